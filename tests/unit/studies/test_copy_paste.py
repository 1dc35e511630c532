"""The copy-paste baseline."""

import io
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.errors import TargetError
from fabula.evaluation.outputs.shots import check_shots
from fabula.media.images import Picture, encode, open_picture
from fabula.releases.shots.tree import ShotSet, read_shot_set
from fabula.studies.copy_paste import HEIGHT, UNFINISHED, WIDTH, stitch, write_copy_paste
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.endurance import rounds


@pytest.fixture
def shot_set(tmp_path: Path) -> ShotSet:
    return read_shot_set(draw_shot_set(tmp_path / "set"))[0]


def size(path: Path) -> tuple[int, int]:
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


def test_pictures_when_stitched_stand_side_by_side_without_a_gap() -> None:
    reds, blues = ((40, 40), "red"), ((20, 40), "blue")
    drawn = [open_picture(encode(Picture(Image.new("RGB", *each), "PNG"))) for each in (reds, blues)]
    whole = open_picture(stitch(drawn)).image
    # scaled to HEIGHT: HEIGHT columns of red from the first on, half as many of blue, all rows alike
    assert whole.size == (HEIGHT + HEIGHT // 2, HEIGHT)
    columns = [(255, 0, 0)] * HEIGHT + [(0, 0, 255)] * (HEIGHT // 2)
    assert np.array_equal(np.asarray(whole), np.broadcast_to(columns, (HEIGHT, len(columns), 3)))


def test_copy_paste_when_done_again_is_byte_identical_and_refuses_to_overwrite(
    shot_set: ShotSet, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        write_copy_paste(shot_set, tmp_path / name)
    for path in sorted((tmp_path / "a").rglob("*.png")):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    with pytest.raises(TargetError):
        write_copy_paste(shot_set, tmp_path / "a")


KILLED = """
import os, signal, sys
from pathlib import Path
from fabula.studies.copy_paste import write_copy_paste
from fabula.releases.shots.tree import read_shot_set

left, before = int(sys.argv[1]), sys.argv[2] == "before"
real = Path.replace

def replace(self, target):
    global left
    left -= 1
    if left == 0 and before:
        os.kill(os.getpid(), signal.SIGKILL)
    done = real(self, target)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

Path.replace = replace
write_copy_paste(read_shot_set(Path(sys.argv[3]))[0], Path(sys.argv[4]))
"""


@pytest.mark.slow
@pytest.mark.endurance
def test_copy_paste_when_killed_at_any_file_goes_on_and_keeps_what_is_there(
    shot_set: ShotSet, tmp_path: Path, starter: Any
) -> None:
    write_copy_paste(shot_set, tmp_path / "whole")
    wanted = {
        path.relative_to(tmp_path / "whole"): path.read_bytes()
        for path in (tmp_path / "whole").rglob("*.png")
    }
    files = len(wanted) + 1  # the pictures, and the note that they are not finished
    kills = [(number, when) for number in range(1, files + 1) for when in ("before", "after")]
    count = rounds(len(kills))
    for number, when in kills[:: len(kills) // count][:count]:
        out = tmp_path / f"{number}-{when}"
        done = starter.run_code(KILLED, number, when, tmp_path / "set", out)
        assert done.returncode == -signal.SIGKILL, done.stderr
        there = {path: path.stat().st_mtime_ns for path in out.rglob("shot_*.png")}
        assert len(there) == max(0, number - 1 - (when == "before"))
        assert write_copy_paste(shot_set, out) == len(wanted)
        found = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        assert found == wanted, "nothing else is left: no part, no note"
        assert {path: path.stat().st_mtime_ns for path in there} == there, (
            "what was there was not drawn again"
        )


def test_copy_paste_when_it_was_begun_for_another_set_is_refused_and_left_alone(
    shot_set: ShotSet, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    write_copy_paste(shot_set, out)
    other = read_shot_set(draw_shot_set(tmp_path / "other", stories=3))[0]
    (out / UNFINISHED).write_text("{}")
    before = sorted(path.name for path in out.iterdir())
    with pytest.raises(TargetError, match="began this folder for another set"):
        write_copy_paste(other, out)
    assert sorted(path.name for path in out.iterdir()) == before
