"""Entities are found where they were drawn: status, canonical crop, vectors and grids, worked by hand."""

import io
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.execute import STORE, Options
from fabula.evaluation.entities.looking.colours import NAMED, colours_of, ink_on
from fabula.evaluation.entities.looking.crops import (
    Pixels,
    Rating,
    area_percent,
    best_of,
    crop_of,
    crop_sharpness,
    logistic,
    padded,
    query_of,
    rating_of,
)
from fabula.evaluation.entities.looking.draw_grids import Label, draw_cell, label_of, tile
from fabula.evaluation.entities.looking.encode_appearances import whole_view
from fabula.evaluation.metrics.vectors import unpacked
from fabula.models.vision.grounding_store import GroundingStore
from fabula.models.vision.networks import DINOV2_PREPARATION
from fabula.models.vision.types import Box
from fabula.testing.drawn_entities import (
    COLOURS,
    RIGHT,
    SETTINGS,
    Fault,
    TruthGrounder,
    TruthVectors,
    box_of,
    draw_frame,
    faded,
    find_in,
    write_outputs,
)
from fabula.testing.looking_pipeline import look
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


def test_entities_when_drawn_faded_or_not_at_all_are_weak_or_absent(
    by_paper: tuple[Path, list[dict[str, Any]]],
) -> None:
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


def test_canonical_crop_when_worked_by_hand_agrees_under_code(
    by_code: tuple[Path, list[dict[str, Any]]],
) -> None:
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


def test_canonical_crop_when_of_the_paper_is_224_pixels_wide_and_grid_frames_do_not_enter(
    by_paper: tuple[Path, list[dict[str, Any]]],
) -> None:
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


def test_vectors_when_encoded_are_those_of_the_kept_crop_and_frames(
    by_paper: tuple[Path, list[dict[str, Any]]],
) -> None:
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


def test_whole_view_when_prepared_for_dinov2_is_the_whole_picture_at_224_pixels() -> None:
    image = Image.fromarray(draw_frame(["Ana", "The Garden"], 3))
    stretched = replace(DINOV2_PREPARATION, resize=224, fit="stretched")
    assert np.array_equal(DINOV2_PREPARATION.pixels([whole_view(image)]), stretched.pixels([image]))


def test_grid_when_drawn_boxes_characters_and_objects_in_colours_of_their_own(
    by_code: tuple[Path, list[dict[str, Any]]],
) -> None:
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


def test_shots_when_nobody_looks_or_judges_have_nothing(
    tmp_path: Path, episodes: Path, outputs: Path
) -> None:
    (tmp_path / "m" / "ep_b").mkdir(parents=True)
    (tmp_path / "m" / "ep_b" / "001_002.mkv").symlink_to(outputs / "ep_b" / "001_002.mkv")
    plain = look(tmp_path / "run", episodes, [tmp_path / "m"], [ONLY])
    assert {line[part] for line in plain for part in ("grounded", "vectors", "grid")} == {None}
    lines = look(tmp_path / "run2", episodes, [tmp_path / "m"], (*SETTINGS, ONLY))
    assert [lines[0][part] for part in ("grounded", "vectors", "grid")] == [None, None, None]
    assert None not in [lines[1][part] for part in ("grounded", "vectors", "grid")]


def test_lines_when_order_batches_and_workers_differ_are_the_same(
    tmp_path: Path, episodes: Path, outputs: Path
) -> None:
    other = write_outputs(tmp_path / "model-y", EPISODES[1:])
    lines = look(tmp_path / "a", episodes, [outputs, other], (*SETTINGS, ONLY))
    sets = (
        *SETTINGS,
        ONLY,
        "ground_entities.batch=1",
        "ground_entities.pairs=7",
        "encode_appearances.batch=2",
    )
    again = look(tmp_path / "b", episodes, [other, outputs], sets, Options(workers=2))
    by_id = {line["id"]: line for line in again}
    assert [by_id[line["id"]] for line in lines] == lines


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


def test_boxes_when_kept_come_out_bit_for_bit(tmp_path: Path) -> None:
    class Odd(TruthGrounder):
        def ground(self, images: Any, texts: Any, batch: int = 1) -> list[list[tuple[Box, ...]]]:
            return [[(Box(1 / 3, 0.1, math.pi, math.e, 0.7, text),) for text in row] for row in texts]

    picture = Image.new("RGB", (8, 8))
    for _ in range(2):
        with GroundingStore(tmp_path) as store:
            assert store.boxes(Odd(), [picture], [["x"]]) == [[(Box(1 / 3, 0.1, math.pi, math.e, 0.7, "x"),)]]


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


def test_crop_when_no_pixel_is_in_it_is_none() -> None:
    image = Image.new("RGB", (100, 100))
    assert crop_of(image, padded(Box(10.2, 10, 10.9, 40), image.size, 0.1), "code") is None


def test_sharpness_when_worked_by_hand_agrees() -> None:
    # One row of 0, 0, 8, 0, 0 repeated: second differences across are 8, -16, 8, variance 128; down all 0.
    row = np.tile(np.array([0, 0, 8, 0, 0], dtype=np.uint8), (5, 1))
    image = Image.fromarray(row).convert("RGB")
    assert crop_sharpness(image, "code") == pytest.approx(128)
    # The Laplacian of the three inner columns is the same, three times each.
    assert crop_sharpness(image, "paper") == pytest.approx(128)
    assert crop_sharpness(image.resize((2, 9)), "code") == 0
    assert crop_sharpness(image.resize((2, 9)), "paper") == 0


def test_rating_when_in_the_middle_is_a_half_each() -> None:
    rating = rating_of(0.4, 100, 2)
    assert (rating.sharpness, rating.area) == (0.5, 0.5)
    assert rating.selection == pytest.approx(0.1)
    assert area_percent(Box(0, 0, 10, 10), Pixels(0, 0, 12, 12), (100, 100), "paper") == 1
    assert area_percent(Box(0, 0, 10, 10), Pixels(0, 0, 12, 12), (100, 100), "code") == pytest.approx(1.44)


def test_best_when_several_are_equal_is_the_first() -> None:
    ratings = [Rating(0.1, 1, 1), Rating(0.2, 0.5, 1), Rating(0.2, 1, 0.5), Rating(-0.5, 1, 1)]
    assert best_of(ratings) == 0
    assert best_of([Rating(-0.5, 1, 1), Rating(-0.1, 1, 1)]) == 1


def test_query_when_of_the_code_has_twelve_words() -> None:
    text = " ".join(map(str, range(15)))
    assert query_of(text, "paper") == text
    assert query_of(text, "code") == " ".join(map(str, range(12)))


def test_colours_when_there_are_more_entities_than_names_are_all_different() -> None:
    for count in (0, 1, 12, 13, 60, 300):
        made = colours_of(count)
        assert (
            len(made)
            == len({colour.rgb for colour in made})
            == len({colour.name for colour in made})
            == count
        )
    assert ink_on(NAMED[-1]) == (255, 255, 255)
    assert ink_on(NAMED[3]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "label"),
    [("Ana", "Ana"), ("Zoë", "Zoe"), ("小红", "7"), ("\x00\n", "7"), ("Ана", "7"), ("a" * 99, "a" * 40)],
)
def test_label_when_the_font_lacks_letters_is_a_number(name: str, label: str) -> None:
    assert label_of(name, 7) == label


def test_cell_when_boxes_are_at_edges_is_drawn_all_the_same() -> None:
    image = Image.new("RGB", (64, 48))
    labels = {"a": Label(NAMED[0], "a very long label that is wider than the picture")}
    for box in ((-5, -5, 200, 200), (63, 47, 64, 48), (0, 0, 0, 0), (10, 0, 20, 3)):
        assert draw_cell(image, {"a": box}, labels, (32, 32)).size == (32, 24)
    assert tile([image.resize((20, 20))] * 9, (20, 20)).size == (92, 64)
    file = io.BytesIO()
    tile([], (20, 20)).save(file, "PNG")


def test_stand_ins_when_asked_find_what_was_drawn() -> None:
    picture = Image.fromarray(draw_frame(["Ana", "The Garden"], 3, {"Ana": "faded"}))
    assert find_in(picture, "Ana") == (Box(8, 94, 51, 176, 0.5, "Ana"),)
    assert find_in(picture, "The Garden") == (Box(0, 0, 320, 180, 0.9, "The Garden"),)
    assert find_in(picture, "Ben") == ()
    every = [*COLOURS.values(), *map(faded, COLOURS)]
    assert (
        min(max(abs(a - b) for a, b in zip(x, y, strict=True)) for x in every for y in every if x != y) > 10
    )
