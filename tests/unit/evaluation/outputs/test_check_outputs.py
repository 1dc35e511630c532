"""What is wrong with generated storyboards is named before anything is spent on them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from fabula.errors import InputError
from fabula.evaluation.outputs.storyboards import Storyboards, check_outputs
from fabula.schemas.katha import StoryRecord
from fabula.testing.drawn import draw_panel, picture_bytes, write_outputs, write_storyboard

Records = tuple[StoryRecord, ...]


def found(report: Storyboards) -> list[tuple[str, str, str]]:
    return [(issue.level, issue.where, issue.code) for issue in report.issues]


def test_check_outputs_when_all_is_well_finds_nothing(outputs: Path, records: Records) -> None:
    report = check_outputs(outputs, records)
    assert report.ok
    assert report.issues == ()
    assert [board.unit for board in report.valid] == ["kb25k_0001", "kb25k_0002", "kb25k_0003"]
    assert [panel.file.name for panel in report.valid[0].files] == [f"0{n}.png" for n in range(1, 6)]
    assert [panel.scene for panel in report.valid[0].files] == [1, 2, 3, 4, 5]
    assert report.accounting() == {
        "method": "model-x",
        "stories_requested": 3,
        "stories_valid": 3,
        "generations_requested": 3,
        "generations_valid": 3,
        "generations_invalid": 0,
        "invalid_rate": 0.0,
    }
    assert "3 of 3 stories valid, 0 of 3 generations invalid (0.0%)" in report.summary()


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


def sixth_and_zeroth(story: Path) -> None:
    for name in ("00.png", "06.png"):
        shutil.copy(story / "01.png", story / name)


PANEL = picture_bytes(draw_panel(1))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (drop("05.png"), [("error", "kb25k_0002", "missing")]),
        (write("03.png", b""), [("error", "kb25k_0002/03.png", "unreadable-picture")]),
        (write("03.png", PANEL[:-40]), [("error", "kb25k_0002/03.png", "unreadable-picture")]),
        (write("03.png", b"no picture"), [("error", "kb25k_0002/03.png", "unreadable-picture")]),
        (from_zero, [("error", "kb25k_0002", "numbered-from-zero")]),
        (write("00.png", PANEL), [("error", "kb25k_0002", "extra")]),
        (write("06.png", PANEL), [("error", "kb25k_0002", "extra")]),
        (sixth_and_zeroth, [("error", "kb25k_0002", "extra")]),
        (write("3.png", PANEL), [("error", "kb25k_0002", "repeated")]),
        (write("02.jpg", picture_bytes(draw_panel(2), "JPEG")), [("error", "kb25k_0002", "repeated")]),
        (shutil.rmtree, [("error", "kb25k_0002", "missing")]),
        (empty_folder, [("error", "kb25k_0002", "missing")]),
    ],
)  # fmt: skip
def test_check_outputs_when_a_storyboard_is_unusable_names_what_is_wrong(outputs, records, damage, expected):
    damage(outputs / "kb25k_0002")
    report = check_outputs(outputs, records)
    assert found(report) == expected
    assert [board.unit for board in report.valid] == ["kb25k_0001", "kb25k_0003"]
    assert [(one.unit, one.codes) for one in report.invalid] == [("kb25k_0002", (expected[0][2],))]
    assert report.accounting()["invalid_rate"] == pytest.approx(1 / 3)
    assert not report.ok


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (write("03.png", picture_bytes(draw_panel(3), "GIF")), ("kb25k_0002/03.png", "odd-picture")),
        (write("03.png", picture_bytes(Image.new("RGB", (64, 48)))), ("kb25k_0002/03.png", "odd-picture")),
        (write("prompt.txt", b"a fox"), ("kb25k_0002/prompt.txt", "stray-file")),
        (lambda story: (story / "old").mkdir(), ("kb25k_0002/old", "stray-file")),
        (lambda story: (story.parent / "kb25k_9999").mkdir(), ("kb25k_9999", "unknown-story")),
        (lambda story: (story.parent / "grid.png").write_bytes(b"x"), ("grid.png", "stray-file")),
    ],
)
def test_check_outputs_when_something_is_odd_warns_and_stays_valid(outputs, records, damage, expected):
    damage(outputs / "kb25k_0002")
    report = check_outputs(outputs, records)
    assert found(report) == [("warning", *expected)]
    assert len(report.valid) == 3


def test_check_outputs_when_pictures_are_tiny_unlike_or_the_same_warns_of_each(outputs, records):
    tiny, wide = outputs / "kb25k_0001" / "03.png", outputs / "kb25k_0002" / "04.png"
    tiny.write_bytes(picture_bytes(draw_panel(3, (4, 3))))
    wide.write_bytes(picture_bytes(draw_panel(4, (3000, 200))))
    shutil.copy(outputs / "kb25k_0003" / "01.png", outputs / "kb25k_0003" / "02.png")
    report = check_outputs(outputs, records)
    assert report.ok and len(report.valid) == 3
    assert found(report) == [
        ("warning", "kb25k_0001", "unlike-sizes"),
        ("warning", "kb25k_0001/03.png", "small-picture"),
        ("warning", "kb25k_0002", "unlike-sizes"),
        ("warning", "kb25k_0003", "same-picture"),
    ]
    assert report.issues[0].message == "pictures of unlike sizes: 4 of 64 x 48, 1 of 4 x 3"
    assert report.issues[3].message == "the same picture: 01.png, 02.png"
    assert check_outputs(outputs, records, decode=False).issues == ()


def test_check_outputs_when_manifest_names_bridges_expects_them(tmp_path: Path, records: Records) -> None:
    folder = write_outputs(
        tmp_path / "out",
        ["kb25k_0001"],
        panels=6,
        manifest={"method": "Compass + FLUX", "bridges": {"kb25k_0001": [3]}},
    )
    report = check_outputs(folder, records[:1])
    assert report.issues == ()
    assert report.method == "Compass + FLUX"
    assert [panel.scene for panel in report.valid[0].files] == [1, 2, None, 3, 4, 5]


def test_check_outputs_when_seeds_are_several_counts_each(tmp_path: Path, records: Records) -> None:
    ids = [record.story_id for record in records]
    folder = write_outputs(tmp_path / "out", ids, seeds=(42, 123, 2026))
    (folder / "kb25k_0001" / "seed_42" / "02.png").unlink()
    shutil.rmtree(folder / "kb25k_0002")
    report = check_outputs(folder, records)
    assert report.seeds == (42, 123, 2026)
    assert [(one.unit, one.seed) for one in report.invalid] == [
        ("kb25k_0001", 42),
        ("kb25k_0002", 42),
        ("kb25k_0002", 123),
        ("kb25k_0002", 2026),
    ]
    assert report.accounting() == {
        "method": "out",
        "stories_requested": 3,
        "stories_valid": 2,
        "generations_requested": 9,
        "generations_valid": 5,
        "generations_invalid": 4,
        "invalid_rate": pytest.approx(4 / 9),
    }


def test_check_outputs_when_a_seed_has_two_folders_judges_neither(tmp_path: Path, records: Records) -> None:
    folder = write_outputs(tmp_path / "out", ["kb25k_0001"], seeds=(1,))
    write_storyboard(folder / "kb25k_0001" / "seed_01")
    report = check_outputs(folder, records[:1])
    assert {code for _, _, code in found(report)} == {"repeated-seed"}
    assert [one.codes for one in report.invalid] == [("repeated-seed",)]


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
