"""The models ``image:drawn`` and ``video:drawn``, asked as a study asks them."""

import asyncio
import io
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image
from scipy.stats import binom

from fabula.errors import ConfigError
from fabula.evaluation.judging.settings import ImageSettings, prepare_picture
from fabula.media.images import Picture
from fabula.models.chat import CallFault
from fabula.models.generators.drawn.figures import Drawing, draw_scene, feeling_in
from fabula.models.generators.drawn.images import codes_in, encode_png, read_marks
from fabula.models.generators.drawn.scene import (
    KINDS,
    SIDE,
    DrawnScene,
    Mark,
    cells_of,
    code_of,
    read_cells,
    scene_of,
)
from fabula.models.generators.request import Generated, PictureRequest, read_generated
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import open_model
from fabula.models.spec import parse_spec
from fabula.schemas.canonical import sha256_bytes
from fabula.studies.pictures import plan_named
from fabula.testing.gold_stories import gold_records

SCENE = DrawnScene(
    marks=(
        Mark(kind="character", text="ant"),
        Mark(kind="object", text="leaf"),
        Mark(kind="action", text="The ant rides the leaf to the bank."),
    )
).as_json()


def ask(spec: str, prompt: str = "a scene", **chosen: Any) -> Generated:
    model = open_model(parse_spec(spec), ModelOptions(), Redactor())
    reply = asyncio.run(model.complete(PictureRequest(spec, prompt, **chosen).chat()))
    assert reply.outcome == "ok"
    return read_generated(reply.text)


def texts(generated: Generated, name: str) -> list[str]:
    assert generated.truth is not None
    return [mark["text"] for mark in generated.truth[name]]


def test_faithful_when_asked_draws_everything_and_says_where() -> None:
    made = ask("image:drawn:faithful", scene=SCENE)
    assert made.file.media_type == "image/png"
    assert (made.width, made.height) == (512, 512)
    assert texts(made, "drawn") == ["ant", "leaf", "The ant rides the leaf to the bank."]
    assert texts(made, "forgotten") == []
    assert made.truth is not None
    assert (made.truth["renderer"], made.truth["drawn_from"]) == ("faithful", "scene")
    assert {mark.code for mark in read_marks(made.file.data)} == {
        mark["code"] for mark in made.truth["drawn"]
    }


def test_storyboard_when_many_marks_are_asked_for_forgets_a_quarter_of_those_that_are_no_characters() -> None:
    """Of 1,000 marks a binomial of share 1/4 forgets 205 to 297 in all but one of 1,000 cases."""
    marks = [Mark(kind="must_show", text=f"thing {number}") for number in range(20)]
    scene = DrawnScene(marks=(*marks, Mark(kind="character", text="ant"))).as_json()
    pictures = [
        ask("image:drawn:storyboard", scene=scene, seed=seed, width=64, height=64) for seed in range(50)
    ]
    forgotten = [text for picture in pictures for text in texts(picture, "forgotten")]
    low, high = binom.ppf([0.0005, 0.9995], 1000, 0.25)
    assert (low, high) == (206, 296)
    assert low <= len(forgotten) <= high
    assert "ant" not in forgotten


def test_name_when_it_is_unknown_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="storyboard, faithful"):
        ask("image:drawn:photograph")
    with pytest.raises(ConfigError, match="storyboard, faithful"):
        ask("video:drawn:photograph")


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"width": 8}, "16 to 4096 pixels, not 8 x 512"),
        ({"width": 9000}, "16 to 4096 pixels, not 9000 x 512"),
        ({"scene": {"marks": [{"kind": "smell", "text": "roses"}]}}, "the scene cannot be drawn"),
        ({"scene": {"ground": "green", "form": "portrait"}}, "the scene cannot be drawn"),
    ],
)  # fmt: skip
def test_request_when_it_cannot_be_drawn_is_a_fault_of_its_own(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(CallFault, match=message) as caught:
        ask("image:drawn:faithful", **chosen)
    assert caught.value.kind == "bad_request"


@pytest.mark.parametrize("name", ["rule", "scene", "transition-aware"])
def test_prompt_when_it_is_of_a_plan_gives_all_marks_that_the_plan_draws(name: str) -> None:
    for record in gold_records()[::5]:
        for panel in plan_named(name).panels(record):
            read = {(mark.kind, code_of(mark.text)) for mark in scene_of(panel.prompt).marks}
            assert {(mark.kind, code_of(mark.text)) for mark in panel.drawn.marks} <= read


def test_video_when_asked_for_shows_every_mark_in_every_frame_while_the_hills_move() -> None:
    made = ask("video:drawn:faithful", scene=SCENE, seconds=1.0, width=512, height=288)
    assert made.file.media_type == "video/mp4"
    assert made.unsupported == ()
    with av.open(io.BytesIO(made.file.data)) as container:
        frames = [frame.to_image() for frame in container.decode(video=0)]
    assert len(frames) == 8
    assert {frame.size for frame in frames} == {(512, 288)}
    for frame in frames:
        assert codes_in(frame) == {code_of(text) for text in texts(made, "drawn")}
    assert changed(frames[0], frames[-1], (0, 90, 512, 150)) > 0.05
    assert changed(frames[0], frames[-1], (0, 240, 512, 288)) < 0.01


def changed(first: Image.Image, last: Image.Image, box: tuple[int, int, int, int]) -> float:
    """Share of the pixels of a box that differ by more than 24 of 255."""
    parts = [np.asarray(frame.crop(box), int) for frame in (first, last)]
    return float((np.abs(parts[0] - parts[1]).max(axis=2) > 24).mean())


# Files of drawn pictures: the same bytes for the same pixels, and readable by every decoder.


def decoded(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("seed", range(12))
def test_png_when_decoded_by_another_library_has_the_same_pixels(seed: int) -> None:
    draw = np.random.default_rng(seed)
    width, height = (int(side) for side in draw.integers(1, 400, 2))
    colours = draw.integers(0, 256, (int(draw.integers(1, 257)), 3), dtype=np.uint8)
    blocks = colours[draw.integers(0, len(colours), (height, width // 9 + 1))]
    pixels = np.repeat(blocks, 9, axis=1)[:, :width]
    pixels[height // 2 :] = pixels[height // 2]  # rows like the one before
    assert (decoded(encode_png(Image.fromarray(pixels))) == pixels).all()


def test_png_when_written_is_these_bytes_on_every_machine() -> None:
    scene = DrawnScene(
        marks=(
            Mark(kind="character", text="ant"), Mark(kind="character", text="dove"),
            Mark(kind="object", text="leaf"), Mark(kind="action", text="The dove drops a leaf."),
            Mark(kind="emotion", text="The ant is afraid."), Mark(kind="place", text="a spring"),
            Mark(kind="cause", text="The ant is in the water."),
        )
    )  # fmt: skip
    data = encode_png(draw_scene(scene, (512, 512)).canvas.image)
    assert sha256_bytes(data) == "e953937db74ddd446a1670c06d0896d61bac014e5ff347a70eda0e3553def353"


# Marks of drawn pictures: from texts to cells and back, through pixels, encoders and changes of size.


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


@pytest.mark.parametrize(
    ("text", "feeling"),
    [
        ("The ant is unhappy, and then glad.", "sadness"),  # the first word that names one
        ("She was overjoyed? No, overexcited!", "joy"),  # a long stem within a word: excit
        ("A strange bell rang.", "calm"),  # a short one only where a word begins: ang
        ("ENRAGED, he trembles", "fear"),
    ],
)
def test_feeling_when_a_text_names_several_is_the_first_by_parts_of_words(text, feeling):
    assert feeling_in(text) == feeling
