"""Marks of drawn pictures: from texts to cells and back, through pixels, encoders and changes of size."""

import io

import numpy as np
import pytest
from PIL import Image

from fabula.evaluation.judging.pictures import ImageSettings, prepare_picture
from fabula.generation.plans import plan_named
from fabula.media.images import Picture
from fabula.models.generators.drawn.codes import COLOURS, KINDS, SIDE, cells_of, code_of, read_cells
from fabula.models.generators.drawn.drawing import Drawing, draw_scene
from fabula.models.generators.drawn.reading import LEVELS, read_marks
from fabula.models.generators.drawn.scene import DrawnScene, Mark
from fabula.testing.gold_stories import gold_records


def marks_of(drawing: Drawing) -> list[tuple[str, str]]:
    return sorted((mark.mark.kind, code_of(mark.mark.text)) for mark in drawing.marks)


def seen_in(picture: bytes | Image.Image) -> list[tuple[str, str]]:
    return sorted((mark.kind, mark.code) for mark in read_marks(picture))


def scenes(count: int) -> list[DrawnScene]:
    """Scenes of the richest plan, of as many stories as possible."""
    plan = plan_named("transition-aware")
    panels = [panel.drawn for record in gold_records() for panel in plan.panels(record)]
    return panels[:: max(1, len(panels) // count)][:count]


def sent(image: Image.Image, side: int, format: str, quality: int = 92, subsampled: bool = False) -> bytes:
    settings = ImageSettings(max_side=side, format=format, quality=quality, subsampled=subsampled)
    return prepare_picture(Picture(image, "PNG"), settings).data


def test_code_when_text_differs_in_case_and_punctuation_only_is_the_same() -> None:
    assert code_of("The ant, in the water!") == code_of("the ant in the water")
    assert code_of("the ant") != code_of("the ants")
    assert len(code_of("...")) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_cells_when_read_back_give_kind_and_code(kind: str) -> None:
    for text in ("ant", "the dove flying up", "...", "蟻"):
        cells = cells_of(kind, code_of(text))
        assert len(cells) == SIDE * SIDE
        assert set(cells) <= {0, 1, 2, 3}
        assert read_cells(cells) == (kind, code_of(text))


def test_cells_when_one_is_misread_are_no_mark() -> None:
    """Fourteen check bits let about one of 16,384 damaged emblems pass; of these 75 none does."""
    cells = cells_of("action", code_of("The ant bites the fowler's heel"))
    for place in range(SIDE * SIDE):
        for step in (1, 2, 3):
            damaged = (*cells[:place], (cells[place] + step) % 4, *cells[place + 1 :])
            assert read_cells(damaged) is None


@pytest.mark.parametrize("value", range(4))
def test_cells_when_all_are_alike_are_no_mark(value: int) -> None:
    assert read_cells((value,) * SIDE * SIDE) is None


def test_levels_when_compared_lie_far_apart() -> None:
    """Brightness by ITU-R BT.601: 0.299 * 26 + 0.587 * 30 + 0.114 * 74 = 33.8, and so on."""
    assert LEVELS[0] == pytest.approx(33.82)
    assert min(np.diff(LEVELS)) > 60
    assert len(COLOURS) == 4


@pytest.mark.parametrize("size", [(512, 512), (768, 512), (512, 768), (1024, 1024), (1536, 512)])
def test_reading_when_nothing_happened_to_the_picture_gives_every_mark(size: tuple[int, int]) -> None:
    for scene in scenes(4):
        drawing = draw_scene(scene, size)
        assert len(drawing.marks) > 15
        assert drawing.without_room == ()
        assert seen_in(drawing.canvas.image) == marks_of(drawing)


@pytest.mark.parametrize(
    ("side", "format", "quality", "subsampled"),
    [
        (1024, "jpeg", 85, False), (1024, "jpeg", 75, True), (384, "jpeg", 85, False),
        (384, "jpeg", 85, True),
        (384, "png", 92, False), (256, "jpeg", 85, True), (256, "png", 92, False),
    ],
)  # fmt: skip
def test_reading_when_picture_was_sent_to_a_judge_gives_every_mark_and_no_other(
    side: int, format: str, quality: int, subsampled: bool
) -> None:
    for scene in scenes(8):
        drawing = draw_scene(scene, (512, 512))
        data = sent(drawing.canvas.image, side, format, quality, subsampled)
        assert seen_in(data) == marks_of(drawing)


def test_reading_when_picture_is_drawn_at_the_smallest_size_survives_jpeg() -> None:
    for scene in scenes(8):
        drawing = draw_scene(scene, (256, 256))
        assert seen_in(sent(drawing.canvas.image, 1024, "jpeg", 85)) == marks_of(drawing)


def test_reading_when_picture_is_of_something_else_sees_nothing() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (512, 512, 3), dtype=np.uint8)
    assert read_marks(Image.fromarray(noise)) == ()
    assert read_marks(Image.new("RGB", (512, 512), COLOURS[3])) == ()
    assert read_marks(Image.new("RGB", (8, 8))) == ()


def test_reading_when_boxes_are_compared_lies_within_what_was_drawn() -> None:
    drawing = draw_scene(scenes(1)[0], (512, 512))
    boxes = {(mark.mark.kind, code_of(mark.mark.text)): mark.box for mark in drawing.marks}
    for mark in read_marks(drawing.canvas.image):
        left, top, right, bottom = boxes[mark.kind, mark.code]
        assert left <= mark.box[0] < mark.box[2] <= right
        assert top <= mark.box[1] < mark.box[3] <= bottom


def test_marks_when_texts_are_equal_look_the_same_in_every_picture() -> None:
    """The ant stands in another column, and everything else is other: her figure is the same pixels."""
    alone = draw_scene(DrawnScene(marks=(Mark(kind="character", text="ant"),)), (512, 512))
    later = draw_scene(
        DrawnScene(marks=(Mark(kind="character", text="dove"), Mark(kind="character", text="Ant"))),
        (512, 512),
    )
    figures = []
    for drawing, place in ((alone, 0), (later, 1)):
        left, top, right, bottom = drawing.marks[place].box
        centre = (left + right) // 2
        figures.append(drawing.canvas.image.crop((centre - 16, top + 60, centre + 16, bottom - 60)))
    difference = np.abs(np.asarray(figures[0], int) - np.asarray(figures[1], int))
    assert (difference.max(axis=2) > 0).mean() < 0.05  # columns may be rounded to pixels in another way


def test_picture_when_more_is_shown_than_fits_says_what_had_no_room() -> None:
    marks = tuple(Mark(kind="must_show", text=f"thing {number}") for number in range(30))
    drawing = draw_scene(DrawnScene(marks=marks), (512, 512))
    assert [mark.mark for mark in drawing.marks] == list(marks[:24])
    assert drawing.without_room == marks[24:]
    assert seen_in(drawing.canvas.image) == marks_of(drawing)


def test_picture_when_it_is_a_portrait_shows_one_entity_on_its_ground() -> None:
    scene = DrawnScene(
        form="portrait", ground="#00b140",
        marks=(Mark(kind="character", text="fowler"), Mark(kind="emotion", text="He is glad.")),
    )  # fmt: skip
    drawing = draw_scene(scene, (512, 512))
    assert seen_in(drawing.canvas.image) == [("character", code_of("fowler"))]
    assert drawing.faces[0][1] == "joy"
    assert drawing.truth()["without_room"][0]["kind"] == "emotion"
    left, top, right, bottom = drawing.marks[0].box
    outside = np.ones((512, 512), bool)
    outside[top:bottom, left:right] = False
    assert (np.asarray(drawing.canvas.image)[outside] == (0, 0xB1, 0x40)).all()


def test_reading_when_file_is_given_as_bytes_is_as_of_the_picture() -> None:
    drawing = draw_scene(scenes(1)[0], (512, 512))
    file = io.BytesIO()
    drawing.canvas.image.save(file, "PNG")
    assert read_marks(file.getvalue()) == read_marks(drawing.canvas.image)
