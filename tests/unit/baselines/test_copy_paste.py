"""The copy-paste baseline."""

import io
from pathlib import Path

import pytest

from fabula.baselines.copy_paste import HEIGHT, WIDTH, write_copy_paste
from fabula.errors import TargetError
from fabula.evaluation.images.outputs import check_shots
from fabula.releases.shot_tree import ShotSet, read_shot_set
from fabula.testing.drawn_shots import draw_shot_set


@pytest.fixture
def shot_set(tmp_path: Path) -> ShotSet:
    return read_shot_set(draw_shot_set(tmp_path / "set"))[0]


def size(path: Path) -> tuple[int, int]:
    from PIL import Image

    with Image.open(io.BytesIO(path.read_bytes())) as image:
        return image.size


def test_copy_paste_stitches_the_first_references_of_who_is_on_stage(
    shot_set: ShotSet, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert write_copy_paste(shot_set, out) == 10
    # references are square; shots 1, 2, 3 have so many characters, shot 4 has none
    assert [size(out / "01" / f"shot_{number:02d}.png") for number in (1, 2, 3, 4)] == [
        (HEIGHT, HEIGHT), (2 * HEIGHT, HEIGHT), (3 * HEIGHT, HEIGHT), (WIDTH, HEIGHT),
    ]  # fmt: skip
    found = check_shots(out, shot_set)
    assert set(found.counts) <= {"odd-picture"}  # a shot without anybody is one colour
    assert found.accounting()["missing_rate"] == 0.0


def test_copy_paste_when_done_again_is_byte_identical_and_refuses_to_overwrite(
    shot_set: ShotSet, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        write_copy_paste(shot_set, tmp_path / name)
    for path in sorted((tmp_path / "a").rglob("*.png")):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    with pytest.raises(TargetError):
        write_copy_paste(shot_set, tmp_path / "a")
