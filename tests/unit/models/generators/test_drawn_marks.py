"""Marks of drawn pictures: from texts to cells and back, through pixels, encoders and changes of size."""

import pytest
from PIL import Image

from fabula.evaluation.judging.pictures import ImageSettings, prepare_picture
from fabula.generation.plans import plan_named
from fabula.media.images import Picture
from fabula.models.generators.drawn.codes import KINDS, SIDE, cells_of, code_of, read_cells
from fabula.models.generators.drawn.drawing import Drawing, draw_scene
from fabula.models.generators.drawn.reading import read_marks
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


@pytest.mark.parametrize("kind", KINDS)
def test_cells_when_read_back_give_kind_and_code(kind: str) -> None:
    for text in ("ant", "the dove flying up", "...", "蟻"):
        cells = cells_of(kind, code_of(text))
        assert len(cells) == SIDE * SIDE
        assert set(cells) <= {0, 1, 2, 3}
        assert read_cells(cells) == (kind, code_of(text))


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


def test_picture_when_more_is_shown_than_fits_says_what_had_no_room() -> None:
    marks = tuple(Mark(kind="must_show", text=f"thing {number}") for number in range(30))
    drawing = draw_scene(DrawnScene(marks=marks), (512, 512))
    assert [mark.mark for mark in drawing.marks] == list(marks[:24])
    assert drawing.without_room == marks[24:]
    assert seen_in(drawing.canvas.image) == marks_of(drawing)
