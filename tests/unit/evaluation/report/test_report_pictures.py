"""The pictures of a report: found, made small, and never outside of the run folder."""

import base64
import json
from pathlib import Path

from fabula.evaluation.report.showing import MOST, SIDE, Pictures, Shown, Thumbnails, pictures_of_run
from fabula.media.images import open_picture
from fabula.testing.drawn import draw_panel, write_storyboard

PLACE = ("m", "kb25k_0001", None)


def row(files: list[str], scenes: list) -> str:
    frames = [{"file": file, "width": 1, "height": 1, "notes": []} for file in files]
    return json.dumps({"method": "m", "unit": "kb25k_0001", "seed": None, "scenes": scenes, "frames": frames})


def test_thumbnail_when_picture_is_large_is_a_small_jpeg_without_metadata(tmp_path: Path) -> None:
    draw_panel(3, (1200, 800)).save(tmp_path / "a.png")
    frame = Thumbnails().frame(tmp_path / "a.png", "Scene 1", "words")
    picture = open_picture(base64.b64decode(frame.data.removeprefix("data:image/jpeg;base64,")))
    assert (picture.width, picture.height) == (frame.width, frame.height) == (SIDE, 240)
    assert picture.format == "JPEG"


def test_thumbnail_when_file_is_gone_or_broken_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "zero.png").touch()
    small = Thumbnails()
    assert small.frame(tmp_path / "zero.png", "a").data is None
    assert small.frame(tmp_path / "gone.png", "a").data is None
    assert small.frame(None, "a").data is None


def test_run_pictures_when_a_name_leads_outside_are_not_opened(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    outside = write_storyboard(tmp_path / "other", panels=1)[0]
    inside = write_storyboard(run / "store", panels=1)[0]
    files = ["../other/" + outside.name, str(outside), f"store/{inside.name}"]
    (run / "frames.jsonl").write_text(row(files, [1, 2, 3]) + "\n")
    frames = pictures_of_run(run).of_scenes(PLACE, (1, 3), {})
    assert [frame.data is None for frame in frames] == [True, True, False]


def test_run_pictures_when_lines_are_broken_are_those_that_can_be_read(tmp_path: Path) -> None:
    assert pictures_of_run(tmp_path).shown == {}
    lines = ["{", "[]", '{"method": "m"}', "5", row([], [])]
    (tmp_path / "frames.jsonl").write_text("\n".join(lines))
    assert list(pictures_of_run(tmp_path).shown) == [PLACE]


def test_scene_pictures_when_a_bridge_lies_between_include_it(tmp_path: Path) -> None:
    files = tuple(write_storyboard(tmp_path, panels=4))
    pictures = Pictures({PLACE: Shown(files, (1, None, 2, 3))})
    frames = pictures.of_scenes(PLACE, (1, 2), {1: "one", 2: "two"})
    assert [(frame.label, frame.text) for frame in frames] == [
        ("Scene 1", "one"), ("Panel 2", None), ("Scene 2", "two")
    ]  # fmt: skip


def test_scene_pictures_when_scenes_are_unknown_are_all_as_panels(tmp_path: Path) -> None:
    files = tuple(write_storyboard(tmp_path, panels=3))
    frames = Pictures({PLACE: Shown(files, (None,) * 3)}).of_scenes(PLACE, (1, 2), {})
    assert [frame.label for frame in frames] == ["Panel 1", "Panel 2", "Panel 3"]
    assert Pictures({}).of_scenes(PLACE, (1, 2), {}) == ()


def test_every_picture_when_there_are_many_is_a_spread_of_them(tmp_path: Path) -> None:
    files = tuple(tmp_path / f"{n}.png" for n in range(100))
    frames = Pictures({PLACE: Shown(files, ())}).every(PLACE)
    assert len(frames) == MOST
    assert (frames[0].label, frames[-1].label) == ("Panel 1", "Panel 100")
