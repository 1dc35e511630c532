"""Entities are found where they were drawn: status, canonical crop, vectors and grids, worked by hand."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.execute import STORE
from fabula.evaluation.entities.grids import NAMED, Label, draw_cell
from fabula.evaluation.entities.looking import (
    Pixels,
    crop_sharpness,
    logistic,
    padded,
    whole_view,
)
from fabula.evaluation.metrics.vectors import unpacked
from fabula.models.vision.store import Box, GroundingStore
from fabula.testing.drawn_entities import (
    RIGHT,
    SETTINGS,
    Fault,
    TruthGrounder,
    TruthVectors,
    box_of,
    draw_frame,
    write_outputs,
)
from fabula.testing.stage_pipelines import look
from fabula.testing.written_episodes import CAST, SECOND, write_episodes, written_episode

EPISODES = [written_episode(), written_episode("ep_b", SECOND)]
CODE = (
    *SETTINGS, "take_frames.grounding='code'", "ground_entities.definition='code'",
    "encode_appearances.definition='code'",
    "draw_grids.format='png'",
)  # fmt: skip


ONLY = "load_episodes.episodes='ep_b'"
FAULTS: dict[str, dict[str, Fault]] = {"ep_a/1:1": {"the red cup": "faded"}, "ep_a/1:2": {"Ben": "absent"}}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Folders of a module are made before each test has a home of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_episodes(tmp_path_factory.mktemp("set") / "episodes", EPISODES)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_outputs(tmp_path_factory.mktemp("outputs") / "model-x", EPISODES, FAULTS)


@pytest.fixture(scope="module")
def by_paper(
    tmp_path_factory: pytest.TempPathFactory, episodes: Path, outputs: Path
) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("paper") / "run"
    return folder, look(folder, episodes, [outputs], SETTINGS)


@pytest.fixture(scope="module")
def by_code(
    tmp_path_factory: pytest.TempPathFactory, episodes: Path, outputs: Path
) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("code") / "run"
    return folder, look(folder, episodes, [outputs], (*CODE, "load_episodes.episodes='ep_a'"))


def statuses(line: dict[str, Any]) -> dict[str, str]:
    return {key: entity["status"] for key, entity in line["grounded"]["entities"].items()}


def test_entities_when_drawn_faded_or_not_at_all_are_weak_or_absent(by_paper):
    _, lines = by_paper
    assert statuses(lines[0]) == {
        "character:Ana": "present", "location:The Kitchen": "present", "object:the red cup": "weak",
    }  # fmt: skip
    assert statuses(lines[1])["character:Ben"] == "absent"
    assert lines[1]["grounded"]["entities"]["character:Ben"] == {
        "status": "absent", "boxes": {}, "canonical": None,
    }  # fmt: skip
    assert {status for line in lines[2:] for status in statuses(line).values()} == {"present"}
    assert lines[0]["grounded"]["models"] == {
        "detector": "truth-grounder@1/float32/cpu", "text": "truth-texts@1/float32/cpu",
    }  # fmt: skip


def test_canonical_crop_when_worked_by_hand_agrees_under_code(by_code):
    folder, (line, *_) = by_code
    ana = line["grounded"]["entities"]["character:Ana"]
    assert sorted(map(int, ana["boxes"])) == [1, 3, 5, 7, 10]
    # The rectangle grows: frame 10 has the largest. Left 8, width 40 + 10, height 70 + 40, feet at 176.
    chosen = ana["canonical"]
    assert (chosen["frame"], chosen["box"], chosen["score"]) == (10, [8, 66, 58, 176], 0.9)
    # A tenth of 50 x 110 on each side, cut off at 0 and 180: 3..63 x 55..180.
    assert (chosen["width"], chosen["height"]) == (60, 125)
    percent = 100 * 60 * 125 / (320 * 180)
    assert chosen["clip"] == pytest.approx(RIGHT)
    assert chosen["area"] == pytest.approx(1 / (1 + math.exp(-(percent - 2) / 5)))
    with Image.open(folder / STORE / chosen["file"]) as crop:
        drawn = draw_frame(["Ana", "The Kitchen", "the red cup"], 10, {"the red cup": "faded"})
        assert (np.asarray(crop) == drawn[55:180, 3:63]).all()
    assert chosen["selection"] == chosen["clip"] * chosen["sharpness"] * chosen["area"]


def test_canonical_crop_when_of_the_paper_is_224_pixels_wide_and_grid_frames_do_not_enter(by_paper):
    _, (line, *_) = by_paper
    ana = line["grounded"]["entities"]["character:Ana"]
    # Five of 12 frames: 0, 2, 5, 8, 11; six: 0, 2, 4, 6, 8, 11.
    assert sorted(map(int, ana["boxes"])) == [0, 2, 4, 5, 6, 8, 11]
    chosen = ana["canonical"]
    assert chosen["frame"] in line["frames"]["ground"]
    assert (chosen["width"], chosen["height"]) == (224, 224)
    left, top, right, bottom = chosen["box"]
    percent = 100 * (right - left) * (bottom - top) / (320 * 180)
    assert chosen["area"] == pytest.approx(logistic((percent - 2) / 5))


def test_vectors_when_encoded_are_those_of_the_kept_crop_and_frames(by_paper):
    folder, (line, *_) = by_paper
    vectors = line["vectors"]
    assert set(vectors["crops"]) == {"character:Ana", "location:The Kitchen", "object:the red cup"}
    names = ["Ana", "The Kitchen", "the red cup"]
    for part, frame in (("first", 0), ("last", 11)):
        drawn = Image.fromarray(draw_frame(names, frame, {"the red cup": "faded"}))
        assert np.array_equal(unpacked(vectors[part]), TruthVectors().encode([drawn]))
    file = line["grounded"]["entities"]["object:the red cup"]["canonical"]["file"]
    with Image.open(folder / STORE / file) as crop:
        assert np.array_equal(unpacked(vectors["crops"]["object:the red cup"]), TruthVectors().encode([crop]))


def test_grid_when_drawn_boxes_characters_and_objects_in_colours_of_their_own(by_code):
    folder, (line, *_) = by_code
    grid = line["grid"]
    assert grid["legend"] == [
        {"key": "character:Ana", "name": "Ana", "color": "red"},
        {"key": "object:the red cup", "name": "the red cup", "color": "green"},
    ]
    assert (grid["width"], grid["height"]) == (1112, 504)
    pixels = np.asarray(Image.open(folder / STORE / grid["file"]))
    blank = pixels[264:496, 752:1104]
    assert (blank == 32).all()
    # Frame 1 in cell 1: 320 x 180 becomes 360 x 202, 19 pixels from the top of the cell.
    box = box_of(0, 1)
    row, column = 8 + 19 + round(box.bottom * 202 / 180) - 1, 8 + round((box.left + 20) * 1.125)
    assert tuple(pixels[row, column]) == NAMED[0].rgb


def test_shots_when_nobody_looks_or_judges_have_nothing(tmp_path, episodes, outputs):
    (tmp_path / "m" / "ep_b").mkdir(parents=True)
    (tmp_path / "m" / "ep_b" / "001_002.mkv").symlink_to(outputs / "ep_b" / "001_002.mkv")
    plain = look(tmp_path / "run", episodes, [tmp_path / "m"], [ONLY])
    assert {line[part] for line in plain for part in ("grounded", "vectors", "grid")} == {None}
    lines = look(tmp_path / "run2", episodes, [tmp_path / "m"], (*SETTINGS, ONLY))
    assert [lines[0][part] for part in ("grounded", "vectors", "grid")] == [None, None, None]
    assert None not in [lines[1][part] for part in ("grounded", "vectors", "grid")]


def test_grounding_when_asked_again_looks_only_for_what_is_new(tmp_path: Path) -> None:
    model, picture = TruthGrounder(), Image.fromarray(draw_frame(["Ana", "Ben"], 0))
    ana, ben = CAST["Character 1"][1], CAST["Character 2"][1]
    with GroundingStore(tmp_path) as store:
        first = store.boxes(model, [picture, picture], [[ana, ben, ana], [ana]])
        assert model.seen == 2
        assert [len(boxes) for row in first for boxes in row] == [1, 1, 1, 1]
    with GroundingStore(tmp_path) as store:
        again = store.boxes(model, [picture], [[ben, ana, "nobody"]])
        assert model.seen == 3
        assert again[0] == [first[0][1], first[0][0], ()]
        assert store.boxes(model, [picture], [["nobody"]]) == [[()]]
        assert store.boxes(model, [], []) == []
        assert model.seen == 3


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (Box(10, 20, 30, 60), Pixels(8, 16, 32, 64)),
        # 10.9 -> 10, 30.2 -> 30: a tenth of 20 x 40
        (Box(10.9, 20.9, 30.2, 60.9), Pixels(8, 16, 32, 64)),
        (Box(-3.7, -1, 20, 20), Pixels(0, 0, 22, 22)),
        (Box(90, 90, 140, 130), Pixels(89, 89, 100, 100)),
        (Box(5, 5, 14, 14), Pixels(5, 5, 14, 14)),
    ],
)
def test_crop_when_padded_has_whole_pixels_inside_the_picture(box: Box, expected: Pixels) -> None:
    assert padded(box, (100, 100), 0.1) == expected


def test_sharpness_when_worked_by_hand_agrees() -> None:
    # One row of 0, 0, 8, 0, 0 repeated: second differences across are 8, -16, 8, variance 128; down all 0.
    row = np.tile(np.array([0, 0, 8, 0, 0], dtype=np.uint8), (5, 1))
    image = Image.fromarray(row).convert("RGB")
    assert crop_sharpness(image, "code") == pytest.approx(128)
    # The Laplacian of the three inner columns is the same, three times each.
    assert crop_sharpness(image, "paper") == pytest.approx(128)
    assert crop_sharpness(image.resize((2, 9)), "code") == 0
    assert crop_sharpness(image.resize((2, 9)), "paper") == 0


def test_view_when_an_encoder_takes_the_middle_holds_the_whole_picture_there() -> None:
    view = whole_view(Image.new("RGB", (64, 32), (200, 10, 30)))
    assert view.size == (256, 256)
    assert view.crop((16, 16, 240, 240)).getcolors() == [(224 * 224, (200, 10, 30))]
    assert view.getpixel((15, 128)) == view.getpixel((128, 240)) == (0, 0, 0)


def test_cell_when_drawn_is_the_frame_made_smaller_with_the_box_where_it_was() -> None:
    label = Label(NAMED[0], "A")
    cell = draw_cell(Image.new("RGB", (40, 100)), {"ana": (10, 50, 30, 90)}, {"ana": label}, (60, 60))
    # A scale of 0.6: 24 x 60, the box from column 6 and row 30 to before 18 and 54, two pixels thick.
    assert cell.size == (24, 60)
    box = np.asarray(cell)[30:54, 6:18] == label.colour.rgb
    edge = np.ones((24, 12), dtype=bool)
    edge[2:-2, 2:-2] = False
    assert (box.all(axis=2) == edge).all()
    assert not np.asarray(cell)[54:].any() and not np.asarray(cell)[32:, :6].any()
