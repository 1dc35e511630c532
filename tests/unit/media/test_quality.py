"""Sharpness, bars, differences and hashes of frames, by hand."""

import numpy as np
import pytest
from PIL import Image, ImageFilter

from fabula.media.quality import (
    Bars,
    black_bars,
    difference,
    inside,
    luma,
    picture_hash,
    sharpness,
)
from fabula.testing.drawn_videos import Take, draw_takes


def drawn(look: int = 3, size: tuple[int, int] = (320, 180)) -> Image.Image:
    return Image.fromarray(next(draw_takes((Take(1, look),), size)))


def test_luma_when_picture_is_large_has_a_shorter_side_of_360() -> None:
    assert luma(Image.new("RGB", (1920, 1080), (255, 0, 0))).shape == (360, 640)
    # Rec. 601: 0.299 * 255 = 76.2.
    assert luma(Image.new("RGB", (90, 160), (255, 0, 0)))[0, 0] == 76
    assert luma(Image.new("RGB", (1080, 1920))).shape == (640, 360)


def test_sharpness_when_worked_by_hand_agrees() -> None:
    # A single bright pixel of 4 in 5 x 5: the Laplacian is -16 there, 4 at four neighbours, else 0.
    # Mean 0; variance (256 + 4 * 16) / 9 = 320 / 9.
    values = np.zeros((5, 5))
    values[2, 2] = 4
    assert sharpness(values) == pytest.approx(320 / 9)
    assert sharpness(np.full((9, 9), 80.0)) == 0
    assert sharpness(np.zeros((2, 9))) == 0


def test_sharpness_when_picture_is_out_of_focus_falls_with_the_blur() -> None:
    picture = drawn()
    found = [sharpness(luma(picture.filter(ImageFilter.GaussianBlur(radius)))) for radius in (0, 1, 2, 4)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 20 > found[3]


def test_black_bars_when_picture_is_between_them_gives_their_shares() -> None:
    frame = np.full((100, 200), 120.0)
    frame[:12], frame[-13:], frame[:, :20] = 16, 16, 16
    bars = black_bars([frame, frame * 0.9])
    assert bars == Bars(0.12, 0.13, 0.1, 0.0)
    assert bars.area == pytest.approx(1 - 0.75 * 0.9)
    assert inside(frame, bars).shape == (75, 180)


def test_black_bars_when_all_is_black_or_one_frame_has_none_are_none() -> None:
    dark, light = np.full((50, 80), 10.0), np.full((50, 80), 90.0)
    assert black_bars([dark, dark]) == (0, 0, 0, 0)
    assert black_bars([dark, light]) == (0, 0, 0, 0)


def test_difference_when_every_pixel_is_three_off_is_three() -> None:
    assert difference(np.full((4, 4), 10.0), np.full((4, 4), 13.0)) == 3


def test_picture_hash_when_picture_is_resized_or_darker_changes_few_bits() -> None:
    own = picture_hash(luma(drawn()))
    assert 0 < own < 2**255
    small = luma(drawn().resize((240, 135)))
    assert (own ^ picture_hash(small)).bit_count() <= 40
    assert (own ^ picture_hash(luma(drawn()) * 0.9)).bit_count() <= 40
    assert (own ^ picture_hash(luma(drawn(look=4)))).bit_count() > 72
