"""Cutting by colour: masks of drawn pictures whose areas are known."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from fabula.generation.memory.keying import components, cut_by_colour, cut_by_mask, ground_of
from fabula.generation.memory.keys import KEYS, rgb_of
from fabula.testing.drawn_portraits import COAT, draw_portrait

GREEN = rgb_of(KEYS["green"])


@pytest.mark.parametrize("key", KEYS)
def test_cut_when_the_ground_is_flat_is_exactly_the_figure_on_every_ground(key: str) -> None:
    ground = rgb_of(KEYS[key])  # type: ignore[index]
    image = draw_portrait(ground)
    cut = cut_by_colour(image, ground)
    figure = (np.asarray(image) != np.array(ground)).any(axis=-1)
    # Pillow draws no half pixels, so that every pixel is either ground or figure.
    assert np.array_equal(cut.mask, figure)
    assert cut.ground == 1.0 and not cut.enclosed.any() and not cut.tinted.any()
    rgba = np.asarray(cut.image)
    assert (rgba[..., 3][figure] == 255).all() and not rgba[~figure].any()
    assert tuple(rgba[60, 60][:3]) == COAT


def test_cut_when_the_ground_is_shaded_takes_the_shadow_for_ground() -> None:
    image = draw_portrait(GREEN)
    ImageDraw.Draw(image).rectangle((10, 146, 110, 155), fill=tuple(part * 3 // 4 for part in GREEN))
    assert np.array_equal(cut_by_colour(image, GREEN).mask, cut_by_colour(draw_portrait(GREEN), GREEN).mask)


def test_cut_when_the_ground_is_another_green_than_asked_for_finds_it() -> None:
    near = (20, 190, 80)
    cut = cut_by_colour(draw_portrait(near), GREEN)
    pixels = np.asarray(draw_portrait(near), dtype=np.float32)
    ground, share = ground_of(pixels, GREEN)
    assert tuple(ground) == near and share == 1.0 and not cut.mask[:10].any()


def test_cut_when_the_ground_is_not_of_the_colour_says_so() -> None:
    cut = cut_by_colour(draw_portrait((200, 200, 200)), GREEN)
    assert cut.ground == 0.0 and cut.mask.all()


def test_cut_when_the_subject_encloses_ground_counts_it() -> None:
    cut = cut_by_colour(draw_portrait(GREEN, "hole"), GREEN)
    assert int(cut.enclosed.sum()) == 16 * 16


def test_cut_when_an_edge_is_mixed_frees_it_of_the_ground() -> None:
    image = Image.new("RGB", (40, 40), GREEN)
    ImageDraw.Draw(image).rectangle((10, 10, 29, 29), fill=(255, 255, 255))
    half = tuple((255 + part) // 2 for part in GREEN)
    ImageDraw.Draw(image).rectangle((10, 10, 29, 10), fill=half)  # half white, half ground: (127, 216, 159)
    cut = cut_by_colour(image, GREEN)
    red, _, blue, alpha = np.asarray(cut.image)[10, 20]
    assert 0 < alpha < 255
    # Its distance from the ground is half of white's: of white 83.4, so 41.7; (41.7 - 24) / 32 = 0.55, which
    # is 141 of 255. What is left of the colour is nearer to white than the mixture was.
    assert abs(int(alpha) - 141) <= 3 and red > half[0] and blue > half[2]


def test_cut_when_clothes_come_near_the_ground_tells_them_as_tinted() -> None:
    image = draw_portrait(GREEN)
    ImageDraw.Draw(image).rectangle((40, 42, 79, 101), fill=(72, 138, 84))  # 52 from the ground
    cut = cut_by_colour(image, GREEN)
    assert cut.mask[70, 60] and cut.tinted[70, 60] and not cut.tinted[25, 60]


def test_cut_when_a_mask_is_given_keeps_what_it_says() -> None:
    mask = np.zeros((160, 120), dtype=bool)
    mask[20:120, 30:90] = True
    mask[50:60, 50:60] = False
    cut = cut_by_mask(draw_portrait(GREEN), mask, "someone@1", GREEN)
    assert cut.by == "someone@1" and np.array_equal(np.asarray(cut.image)[..., 3] == 255, mask)
    assert int(cut.enclosed.sum()) == 100 and cut.ground == 1.0
    assert cut.tinted.any(), "ground within the mask is a leftover of the key"


def test_components_when_parts_touch_at_corners_are_one() -> None:
    mask = np.zeros((6, 6), dtype=bool)
    mask[0:2, 0:2] = mask[2, 2] = mask[5, 5] = True
    assert components(mask) == [5, 1]
    assert components(np.zeros((3, 3), dtype=bool)) == []
