"""Files of drawn pictures: the same bytes for the same pixels, and readable by every decoder."""

import io

import numpy as np
import pytest
from PIL import Image

from fabula.models.generators.drawn.drawing import draw_scene
from fabula.models.generators.drawn.png import encode_png
from fabula.models.generators.drawn.scene import DrawnScene, Mark
from fabula.schemas.canonical import sha256_bytes


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


def test_png_when_there_are_more_colours_than_a_palette_holds_is_stored_whole() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (90, 300, 3), dtype=np.uint8)
    assert (decoded(encode_png(Image.fromarray(pixels))) == pixels).all()


def test_png_when_it_is_of_one_colour_is_small() -> None:
    """512 rows: 'none' and a run of 512 once, then 'up' and a run of zeros, a few bytes each."""
    assert len(encode_png(Image.new("RGB", (512, 512), (1, 2, 3)))) < 5000


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
