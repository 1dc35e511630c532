"""Generated shots on disk: every layout, and everything that can be wrong with them."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.outputs.layout import require_shots
from fabula.evaluation.outputs.shots import FATAL, CheckOptions, Choice, ShotOutputs, check_shots
from fabula.evaluation.shots.looking import BoxRows, boxes_of
from fabula.evaluation.shots.requests import EVALUATING, ImageOptions, _account
from fabula.models.vision.store import Box
from fabula.releases.shots.tree import ShotSet, read_shot_set
from fabula.testing.drawn import picture_bytes, write_video
from fabula.testing.drawn_shots import draw_shot, draw_shot_outputs, draw_shot_set, onstage
from fabula.testing.table_detector import SETTINGS


@pytest.fixture(scope="module")
def shot_set(tmp_path_factory: pytest.TempPathFactory) -> ShotSet:
    return read_shot_set(draw_shot_set(tmp_path_factory.mktemp("set")))[0]


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return draw_shot_outputs(tmp_path / "my-model")


def test_check_shots_when_sound_finds_every_shot(shot_set: ShotSet, outputs: Path) -> None:
    found = check_shots(outputs, shot_set)
    assert found.counts == {}
    assert found.accounting() == {
        "method": "my-model", "stories_requested": 2, "stories_complete": 2, "stories_without_shot": 0,
        "shots_requested": 10, "shots_valid": 10, "missing_rate": 0.0,
    }  # fmt: skip
    assert list(found.shots["01"]) == [1, 2, 3, 4, 5]
    assert found.shots["02"][3].file.name == "shot_03.png"


def test_account_when_worked_by_hand_tells_whole_stories_and_those_without_a_shot() -> None:
    def line(story: str, boxes: dict[str, list[str]] | None, *hashes: str | None) -> dict[str, Any]:
        shots = [{"number": number, "sha256": sha256} for number, sha256 in enumerate(hashes, 1)]
        return {"story_id": story, "shots": shots, "boxes": boxes and {"shots": boxes}}

    lines = [
        line("01", {"1": ["x", "y"], "2": ["z"]}, "aa", "bb"), line("02", None, None, None),
        line("03", {"1": []}, "cc", None), line("04", None, None),
    ]  # fmt: skip
    found = _account(lines)
    assert len(found.pop("outputs_sha256")) == 64
    assert found == {
        "stories_requested": 4, "stories_complete": 1, "stories_without_shot": 2,
        "shots_requested": 7, "shots_valid": 3, "missing_rate": pytest.approx(4 / 7), "boxes": 3,
    }  # fmt: skip
    assert _account([])["missing_rate"] is None, "nothing was asked for"


@pytest.mark.parametrize(
    ("below", "choice"),
    [
        ("img_ref/en/20250101_120000", Choice()),
        ("en/img_ref/20250101-120000", Choice()),
        ("img_ref/zh/20250101_120000", Choice(language="ch")),
    ],
)
def test_check_shots_in_the_official_layouts_finds_the_same(shot_set, outputs, tmp_path, below, choice):
    plain = check_shots(outputs, shot_set)
    place = tmp_path / "deep" / below
    place.parent.mkdir(parents=True)
    outputs.rename(place)
    found = check_shots(tmp_path / "deep", shot_set, CheckOptions("my-model", choice))
    assert (found.counts, found.sha256) == ({}, plain.sha256)


def test_check_shots_when_outputs_json_names_the_folders_finds_the_same(shot_set, outputs):
    plain = check_shots(outputs, shot_set)
    (outputs / "by title").mkdir()
    (outputs / "01").rename(outputs / "by title" / "The Hat")
    name_folders(outputs, {"01": "by title/The Hat"})
    found = check_shots(outputs, shot_set)
    assert (found.counts, found.sha256) == ({}, plain.sha256)
    (outputs / "02").rename(outputs / "The Cup")
    name_folders(outputs, {"01": "by title/The Hat", "02": "The Cup"})
    found = check_shots(outputs, shot_set)
    assert (found.counts, found.sha256) == ({}, plain.sha256)
    (outputs / "02").mkdir()  # another one of this number, which goes behind
    found = check_shots(outputs, shot_set)
    assert (found.counts, found.sha256) == ({"stray-file": 1}, plain.sha256)


def name_folders(outputs: Path, folders: dict[str, str]) -> None:
    (outputs / "outputs.json").write_text(json.dumps({"folders": folders}), "utf-8")


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        ({"The Hat": "01"}, "The Hat is not a story: the stories of a set have numbers"),
        ({"01": "no"}, "there is no folder 'no'"),
        ({"01": "../other"}, "is not a folder below this one"),
        ({"01": "02", "02": "02"}, "is also the folder of 01"),
    ],
)
def test_check_shots_when_outputs_json_is_wrong_says_where(shot_set, outputs, folders, said):
    name_folders(outputs, folders)
    with pytest.raises(InputError) as caught:
        check_shots(outputs, shot_set)
    assert said in str(caught.value) and "outputs.json" in str(caught.value)


def test_check_shots_when_there_are_two_time_stamps_asks_which(shot_set: ShotSet, tmp_path: Path) -> None:
    for stamp in ("20250101_120000", "20250202-120000"):
        draw_shot_outputs(tmp_path / "m" / "base" / "en" / stamp)
    with pytest.raises(ConfigError, match="--timestamp"):
        check_shots(tmp_path / "m", shot_set)
    latest = check_shots(tmp_path / "m", shot_set, CheckOptions(choice=Choice(timestamp="latest")))
    assert latest.root.name == "20250202-120000"
    named = CheckOptions(choice=Choice(timestamp="20250101_120000"))
    assert check_shots(tmp_path / "m", shot_set, named).root.name == "20250101_120000"
    with pytest.raises(ConfigError, match="19990101"):
        check_shots(tmp_path / "m", shot_set, CheckOptions(choice=Choice(timestamp="19990101_000000")))


def _renumbered(outputs: Path, step: int) -> None:
    place = outputs / "01/shots"
    files = sorted(place.iterdir(), reverse=step > 0)
    for file in files:
        file.rename(place / f"shot_{int(file.stem[-2:]) + step:02d}.png")


def _write(name: str, data: bytes) -> Callable[[Path], object]:
    def write(outputs: Path) -> None:
        place = outputs / "01" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    return write


PICTURE = draw_shot(onstage(1))
BROKEN: dict[str, tuple[Callable[[Path], object], str, int]] = {
    "from zero": (lambda outputs: _renumbered(outputs, -1), "numbered-from-zero", 9),
    "no folder": (lambda outputs: (outputs / "01").rename(outputs / "77"), "missing", 5),
    "another story": (lambda outputs: (outputs / "77").mkdir(), "unknown-story", 10),
    "padded twice": (lambda outputs: draw_shot_outputs(outputs.parent / "x").joinpath("01").rename(
        outputs / "001"), "repeated-story", 10),
    "a shot less": (lambda outputs: (outputs / "01/shots/shot_02.png").unlink(), "missing", 9),
    "a shot more": (_write("shots/shot_06.png", PICTURE), "extra", 10),
    "twice": (_write("shots/2.png", PICTURE), "repeated", 10),
    "two numbers": (_write("shots/shot_03_1.png", PICTURE), "unnumbered-file", 10),
    "a grid": (_write("shots/grid.png", PICTURE), "unnumbered-file", 10),
    "zero bytes": (_write("shots/shot_02.png", b""), "unreadable-picture", 9),
    "text": (_write("shots/shot_02.png", b"no picture"), "unreadable-picture", 9),
    "jpeg named png": (_write("shots/shot_02.png", PICTURE[:20] + b"x" * 50), "unreadable-picture", 9),
    "a log": (_write("shots/log.txt", b"x"), "stray-file", 10),
    "logs beside": (lambda outputs: (outputs / "logs").mkdir(), "stray-file", 10),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_check_shots_when_something_is_wrong_names_it_and_keeps_the_rest(shot_set, outputs, name):
    change, code, valid = BROKEN[name]
    change(outputs)
    found = check_shots(outputs, shot_set)
    assert code in found.counts
    assert found.accounting()["shots_valid"] == valid
    with pytest.raises(InputError, match=rf"\[{code}\]") if code in FATAL else nullcontext():
        require_shots([found], FATAL, "picture")


def test_check_shots_when_told_that_numbers_begin_at_zero_shifts_them(shot_set, outputs):
    before = check_shots(outputs, shot_set)
    for story in ("01", "02"):
        for file in sorted((outputs / story / "shots").iterdir()):
            file.rename(file.with_name(f"{int(file.stem[-2:]) - 1:02d}.png"))
    found = check_shots(outputs, shot_set, CheckOptions(first=0))
    assert (found.counts, found.sha256) == ({}, before.sha256)


def test_check_shots_of_odd_pictures_warns_and_keeps_them(shot_set: ShotSet, outputs: Path) -> None:
    from PIL import Image

    (outputs / "01/shots/shot_01.png").write_bytes(picture_bytes(Image.new("CMYK", (64, 64), 9), "JPEG"))
    (outputs / "01/shots/shot_02.png").write_bytes(picture_bytes(Image.new("RGBA", (640, 64), (1, 2, 3, 0))))
    found = check_shots(outputs, shot_set)
    assert set(found.counts) == {"odd-picture"}
    assert found.accounting()["shots_valid"] == 10
    assert found.ok
    (outputs / "01/shots/shot_03.png").unlink()
    assert not check_shots(outputs, shot_set).ok


def test_check_shots_of_clips_takes_their_first_frames(shot_set: ShotSet, tmp_path: Path) -> None:
    pytest.importorskip("av")
    place = tmp_path / "video" / "01"
    place.mkdir(parents=True)
    for number in range(1, 6):
        write_video(place / f"shot_{number:02d}.mp4", 4)
    (place / "shot_05.mp4").write_bytes(b"cut")
    found: ShotOutputs = check_shots(tmp_path / "video", shot_set)
    assert (len(found.shots["01"]), len(found.shots["02"])) == (4, 0)
    assert found.counts == {"missing": 1, "unreadable-picture": 1}


def test_find_root_when_the_folder_holds_methods_says_which(shot_set: ShotSet, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        draw_shot_outputs(tmp_path / "m" / name)
    with pytest.raises(InputError, match="if these are methods, give one of: a, b, c; if"):
        check_shots(tmp_path / "m", shot_set)


def test_evaluation_when_no_shot_can_be_judged_stops_at_once(shot_set, outputs, tmp_path):
    for picture in outputs.rglob("*.png"):
        picture.write_bytes(b"no picture")
    given = ImageOptions(metrics=("occm",), settings=SETTINGS, device="cpu", workers=0)
    with pytest.raises(InputError, match=r"no shot can be judged .10 unreadable-picture"):
        EVALUATING.evaluate(shot_set.folder, [outputs], tmp_path / "run", given)


def test_boxes_when_a_detector_finds_too_many_are_the_best_of_them_in_order() -> None:
    found = [Box(float(n), 0, n + 9.0, 9, n / 100) for n in range(70)]

    class Many:
        card = identity = None

        def detect(self, images: Any) -> Any:
            return [found, found[:1], []][: len(images)]

    rows = BoxRows(Many()).predict([None] * 3)  # a detector of this test looks at no picture
    many, one, none = map(boxes_of, rows)
    assert [box[0] for box in many] == [float(n) for n in range(69, 5, -1)]
    assert one == [[0.0, 0.0, 9.0, 9.0, 0.0]] and none == []
