"""Pictures stretched to a fixed size are those of OpenCV."""

import numpy as np
import pytest
from PIL import Image

from fabula.media.stretching import stretched

cv2 = pytest.importorskip("cv2")


@pytest.mark.parametrize(
    "size", [(1280, 720), (576, 320), (512, 320), (320, 256), (1920, 200), (400, 900), (33, 17)]
)
def test_picture_when_stretched_by_area_is_within_a_level_of_opencv(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(7).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    made = np.asarray(stretched(Image.fromarray(pixels), (512, 320), "area")).astype(int)
    truth = cv2.resize(pixels, (512, 320), interpolation=cv2.INTER_AREA)
    assert made.shape == (320, 512, 3)
    assert np.abs(made - truth).max() <= 1


def test_picture_when_stretched_by_bicubic_is_that_of_pillow() -> None:
    pixels = np.random.default_rng(7).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    made = stretched(image, (40, 16), "bicubic")
    assert made.tobytes() == image.resize((40, 16)).tobytes()
