"""Preparations: sizes, crops and normalisation, against the steps done by hand."""

import numpy as np
import pytest

from fabula.models.vision.networks import HALF, NONE_MEAN, NONE_STD, Preparation


def test_pixels_of_one_colour_are_that_colour_normalised() -> None:
    from PIL import Image

    rows = Preparation(8, 8, mean=HALF, std=HALF).pixels([Image.new("RGB", (30, 20), (255, 0, 51))])
    assert rows.shape == (1, 3, 8, 8)
    assert rows.dtype == np.float32
    assert rows[0, :, 0, 0].tolist() == pytest.approx([1.0, -1.0, (0.2 - 0.5) / 0.5])


def test_pixels_when_cropped_keep_the_middle_and_when_stretched_everything() -> None:
    from PIL import Image

    wide = Image.new("RGB", (60, 20), (0, 0, 0))
    wide.paste((255, 255, 255), (0, 0, 15, 20))  # a white left quarter
    plain = {"mean": NONE_MEAN, "std": NONE_STD}
    assert Preparation(20, 20, **plain).pixels([wide]).max() == 0.0
    stretched = Preparation(20, 20, "stretched", **plain).pixels([wide])
    assert stretched.mean() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("size", [(1, 400), (400, 1), (7, 7), (224, 224)])
def test_pixels_of_any_size_have_the_networks_size(size: tuple[int, int]) -> None:
    from PIL import Image

    for mode in ("RGB", "L", "RGBA", "CMYK"):
        assert Preparation(16, 16).pixels([Image.new(mode, size)]).shape == (1, 3, 16, 16)


def test_text_says_every_step() -> None:
    text = Preparation(256, 224, resampling="bilinear").text()
    assert "shorter side 256, centre crop 224, bilinear" in text
    assert "stretched to 378 x 378" in Preparation(378, 0, "stretched").text()
