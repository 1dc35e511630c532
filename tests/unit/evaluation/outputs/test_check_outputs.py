"""What is wrong with generated storyboards is named before anything is spent on them.

All that is found in sound ones is pinned once; each damage by what it changes of that.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fabula.errors import InputError
from fabula.evaluation.outputs.storyboards import Storyboards, check_outputs
from fabula.schemas.katha import StoryRecord
from fabula.testing.drawn import draw_panel, picture_bytes, write_outputs, write_storyboard

Records = tuple[StoryRecord, ...]


def told(report: Storyboards) -> str:
    """Return all that is found: the counts, each finding, and the files of each storyboard."""
    issues = [f"{one.level} {one.where} {one.code}: {one.message}. {one.cure}" for one in report.issues]
    boards = [
        " ".join([board.unit, f"seed {board.seed}", *board.codes, *names])
        for board in report.outputs
        for names in [[f"{file.file.name}={file.scene}" for file in board.files]]
    ]
    return "\n".join([f"{report.method}: {report.told()}", *issues, *boards])


def test_check_outputs_when_all_is_well_finds_nothing(outputs: Path, records: Records, snapshot: Any) -> None:
    report = check_outputs(outputs, records)
    assert report.ok and report.told() in report.summary()
    assert told(report) == snapshot


@pytest.mark.parametrize(
    "names",
    [
        ("1.png", "2.png", "3.png", "4.png", "5.png"),
        ("001.PNG", "002.PNG", "003.PNG", "004.PNG", "005.PNG"),
        ("scene_01.png", "scene_02.png", "scene_03.png", "scene_04.png", "scene_05.png"),
        ("panel-1.png", "frame2.png", "Image_3.png", "04.png", "5.png"),
    ],
)
def test_check_outputs_when_numbers_are_written_otherwise_reads_them(tmp_path, records, names):
    folder = tmp_path / "out" / "kb25k_0001"
    folder.mkdir(parents=True)
    for number, name in enumerate(names, 1):
        (folder / name).write_bytes(picture_bytes(draw_panel(number)))
    report = check_outputs(tmp_path / "out", records[:1])
    assert report.issues == ()
    assert [panel.file.name for panel in report.valid[0].files] == list(names)


@pytest.mark.parametrize("suffix", ["jpg", "jpeg", "webp"])
def test_check_outputs_when_format_is_another_reads_it(tmp_path: Path, records: Records, suffix: str) -> None:
    write_storyboard(tmp_path / "out" / "kb25k_0001", suffix=suffix)
    assert check_outputs(tmp_path / "out", records[:1]).issues == ()


def drop(name: str) -> Callable[[Path], None]:
    return lambda story: (story / name).unlink()


def write(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda story: (story / name).write_bytes(data) and None


def from_zero(story: Path) -> None:
    for number in range(1, 6):
        (story / f"{number:02}.png").rename(story / f"{number - 1:02}.png")


def empty_folder(story: Path) -> None:
    shutil.rmtree(story)
    story.mkdir()


def folders(*names: str) -> Callable[[Path], None]:
    return lambda story: [(story / name).mkdir() for name in names] and None


def copies(first: str, *others: str) -> Callable[[Path], None]:
    return lambda story: [shutil.copy(story / first, story / other) for other in others] and None


PANEL = picture_bytes(draw_panel(1))
DAMAGE: dict[str, Callable[[Path], None]] = {
    # unusable: the storyboard is invalid
    "a panel is missing": drop("05.png"), "an empty file": write("03.png", b""),
    "a cut file": write("03.png", PANEL[:-40]), "no picture": write("03.png", b"no picture"),
    "numbered from zero": from_zero, "a zeroth": write("00.png", PANEL), "a sixth": write("06.png", PANEL),
    "a sixth and a zeroth": copies("01.png", "00.png", "06.png"), "a number twice": write("3.png", PANEL),
    "a number in two forms": write("02.jpg", picture_bytes(draw_panel(2), "JPEG")),
    "no folder": shutil.rmtree, "an empty folder": empty_folder,
    # odd: it is warned of, and valid
    "a GIF": write("03.png", picture_bytes(draw_panel(3), "GIF")),
    "one colour": write("03.png", picture_bytes(Image.new("RGB", (64, 48)))),
    "a text": write("prompt.txt", b"a fox"), "a folder in it": folders("old"),
    "a story that nobody knows": folders("../kb25k_9999"), "a file beside": write("../grid.png", b"x"),
    "a tiny one": write("03.png", picture_bytes(draw_panel(3, (4, 3)))),
    "a wide one": write("04.png", picture_bytes(draw_panel(4, (3000, 200)))),
    "the same picture twice": copies("01.png", "02.png"),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, records: Records) -> str:
    """What is found in outputs in which all is well."""
    folder = write_outputs(tmp_path_factory.mktemp("sound") / "model-x", [one.story_id for one in records])
    return told(check_outputs(folder, records))


@pytest.mark.parametrize("case", DAMAGE)
def test_check_outputs_when_a_storyboard_is_damaged_or_odd_says_so(
    outputs, records, sound, case, difference, snapshot
) -> None:
    DAMAGE[case](outputs / "kb25k_0002")
    report = check_outputs(outputs, records)
    assert difference(sound, told(report)) == snapshot
    assert report.ok is (report.invalid == ())


def test_check_outputs_when_pictures_are_not_decoded_leaves_out_what_only_they_show(outputs, records):
    for case in ("a tiny one", "the same picture twice"):
        DAMAGE[case](outputs / "kb25k_0002")
    assert check_outputs(outputs, records, decode=False).issues == ()


def test_check_outputs_when_manifest_names_bridges_expects_them(tmp_path, records, snapshot) -> None:
    about = {"method": "Compass + FLUX", "bridges": {"kb25k_0001": [3]}}
    folder = write_outputs(tmp_path / "out", ["kb25k_0001"], panels=6, manifest=about)
    assert told(check_outputs(folder, records[:1])) == snapshot


def test_check_outputs_when_seeds_are_several_counts_each(tmp_path, records, snapshot) -> None:
    ids = [record.story_id for record in records]
    folder = write_outputs(tmp_path / "out", ids, seeds=(42, 123, 2026))
    (folder / "kb25k_0001" / "seed_42" / "02.png").unlink()
    shutil.rmtree(folder / "kb25k_0002")
    report = check_outputs(folder, records)
    assert report.seeds == (42, 123, 2026) and told(report) == snapshot
    assert report.accounting() == {
        "method": "out", "stories_requested": 3, "stories_valid": 2, "generations_requested": 9,
        "generations_valid": 5, "generations_invalid": 4, "invalid_rate": pytest.approx(4 / 9),
    }  # fmt: skip


def test_check_outputs_when_a_seed_has_two_folders_judges_neither(tmp_path, records, snapshot) -> None:
    folder = write_outputs(tmp_path / "out", ["kb25k_0001"], seeds=(1,))
    write_storyboard(folder / "kb25k_0001" / "seed_01")
    assert told(check_outputs(folder, records[:1])) == snapshot


@pytest.mark.parametrize(
    "text",
    ["[", "[]", '{"panels": 0}', '{"panel": 5}', '{"bridges": {"a": [0]}}', '{"seeds": []}', "[" * 100_000],
)
def test_check_outputs_when_manifest_is_wrong_refuses(outputs: Path, records: Records, text: str) -> None:
    (outputs / "outputs.json").write_text(text)
    with pytest.raises(InputError, match=r"outputs\.json"):
        check_outputs(outputs, records)


def test_check_outputs_when_content_changes_changes_its_hash(outputs: Path, records: Records) -> None:
    before = check_outputs(outputs, records).sha256
    assert check_outputs(outputs, records).sha256 == before
    (outputs / "kb25k_0001" / "01.png").write_bytes(picture_bytes(draw_panel(4)))
    assert check_outputs(outputs, records).sha256 != before
