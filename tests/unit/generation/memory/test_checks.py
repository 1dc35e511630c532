"""Checks by rules: each planted fault is found by its check and by no other."""

import numpy as np
import pytest
from PIL import Image

from fabula.generation.memory.checks import (
    CheckLimits,
    Subject,
    bounds_of,
    check_cut,
    check_panorama,
    composition,
    passes,
    touching,
)
from fabula.generation.memory.keying import CutOut, cut_by_colour, cut_by_mask
from fabula.generation.memory.keys import KEYS, rgb_of
from fabula.testing.drawn_portraits import FAULTS, Fault, draw_portrait

GREEN = rgb_of(KEYS["green"])
ANA = Subject("character", "Ana")


def cut_of(mask: np.ndarray) -> CutOut:  # type: ignore[type-arg]
    return cut_by_mask(Image.new("RGB", mask.shape[::-1], (90, 60, 50)), mask, "test")


def failed(cut: CutOut, subject: Subject = ANA) -> list[str]:
    return [check.code for check in check_cut(cut, subject, CheckLimits()) if check.passed is False]


@pytest.mark.parametrize("key", KEYS)
def test_checks_when_a_portrait_is_sound_all_pass(key: str) -> None:
    ground = rgb_of(KEYS[key])  # type: ignore[index]
    checks = check_cut(cut_by_colour(draw_portrait(ground), ground), ANA, CheckLimits())
    assert [check.code for check in checks] == ["ground", "area", "holes", "pieces", "border", "key_left"]
    assert passes(checks) and all(check.by == "rules" for check in checks)


@pytest.mark.parametrize("fault", FAULTS)
def test_checks_when_a_fault_is_planted_find_it(fault: Fault) -> None:
    assert failed(cut_by_colour(draw_portrait(GREEN, fault), GREEN)) == [FAULTS[fault]]


def test_checks_when_clothes_of_one_ground_stand_before_another_pass() -> None:
    magenta = rgb_of(KEYS["magenta"])
    image = draw_portrait(magenta)
    image.paste(GREEN, (40, 42, 80, 102))
    assert failed(cut_by_colour(image, magenta)) == []
    assert failed(cut_by_colour(draw_portrait(GREEN, "key-coloured clothes"), GREEN)) == ["pieces"]


def test_checks_when_nothing_or_everything_is_subject_fail_by_area() -> None:
    assert failed(cut_of(np.zeros((50, 40), dtype=bool))) == ["area"]
    assert failed(cut_of(np.ones((50, 40), dtype=bool))) == ["area", "border"]


def test_checks_when_the_ground_is_another_colour_fail_by_ground() -> None:
    assert "ground" in failed(cut_by_colour(draw_portrait((120, 120, 120)), GREEN))


def test_pieces_when_an_object_hovers_or_is_two_tells_them_apart() -> None:
    above = np.zeros((100, 100), dtype=bool)
    above[20:40, 40:60] = above[50:70, 40:60] = True
    beside = above.T.copy()
    assert failed(cut_of(above), Subject("object", "the lamp")) == []
    assert failed(cut_of(beside), Subject("object", "the lamp")) == ["pieces"]
    assert failed(cut_of(above), ANA) == ["pieces"]
    many = check_cut(cut_of(beside), Subject("object", "the metal keys"), CheckLimits())
    assert next(check for check in many if check.code == "pieces").passed is None and passes(many)


def test_touching_when_a_mask_meets_edges_is_the_share_of_each() -> None:
    mask = np.zeros((10, 20), dtype=bool)
    mask[0, 5:10] = mask[9, 0:4] = True
    # Upper: 5 of 20. Lower: 4 of 20. Left: one of ten rows.
    assert touching(mask) == {"upper": 0.25, "lower": 0.2, "left": 0.1, "right": 0.0}


def test_bounds_when_a_mask_has_something_are_half_open() -> None:
    mask = np.zeros((10, 20), dtype=bool)
    mask[2:5, 3:9] = True
    assert bounds_of(mask) == (3, 2, 9, 5)
    assert bounds_of(np.zeros((4, 4), dtype=bool)) is None


def test_composition_when_a_figure_is_right_is_one_and_falls_with_each_part() -> None:
    # 90 of 100 high, in the middle, 30 wide: height over width is 3, which is usual.
    good = np.zeros((100, 100), dtype=bool)
    good[5:95, 35:65] = True
    assert composition(cut_of(good), "character") == pytest.approx(1.0)
    # Half as high: size 0.5; 45 over 30 is 1.5 of the least 1.6, 0.9375; the middle is kept: 1.
    small = np.zeros((100, 100), dtype=bool)
    small[27:72, 35:65] = True
    assert composition(cut_of(small), "character") == pytest.approx((0.5 + 0.99 + 0.9375) / 3)
    # Moved to the left by 20 of 100: place 1 - 2 * 0.2.
    moved = np.roll(good, -20, axis=1)
    assert composition(cut_of(moved), "character") == pytest.approx((1 + 0.6 + 1) / 3)
    assert composition(cut_of(np.zeros((9, 9), dtype=bool)), "character") == 0.0


def test_panorama_when_blank_fails_and_when_of_another_shape_is_told() -> None:
    blank = check_panorama(Image.new("RGB", (1536, 512), (80, 90, 100)))
    assert [(check.code, check.passed) for check in blank] == [("contrast", False), ("shape", True)]
    half = Image.new("RGB", (100, 100), (20, 20, 20))
    half.paste((220, 220, 220), (0, 0, 50, 100))
    other = check_panorama(half)
    assert [(check.code, check.passed) for check in other] == [("contrast", True), ("shape", None)]
    assert "100 x 100" in other[1].note and passes(other)
