"""Boxes: areas, overlaps, and what is suppressed."""

import pytest

from fabula.models.vision.types import Box, suppressed


def test_box_overlap_is_intersection_over_union() -> None:
    one, two = Box(0, 0, 10, 10), Box(5, 0, 15, 10)
    assert one.overlap(two) == pytest.approx(50 / 150)
    assert one.overlap(Box(20, 20, 30, 30)) == 0.0
    assert one.overlap(one) == 1.0
    assert Box(0, 0, 0, 0).overlap(Box(0, 0, 0, 0)) == 0.0


def test_box_within_a_picture_is_clamped() -> None:
    assert Box(-5, -5, 50, 8, 0.5, "cat").within(20, 10) == Box(0, 0, 20, 8, 0.5, "cat")
    assert Box(30, 0, 40, 8).within(20, 10).area == 0.0


def test_suppressed_keeps_the_best_of_overlapping_boxes_whatever_their_order() -> None:
    best, worse, other = Box(0, 0, 10, 10, 0.9), Box(1, 0, 11, 10, 0.8), Box(50, 0, 60, 10, 0.3)
    assert suppressed([other, worse, best], 0.5) == (best, other)
    assert suppressed([best, other, worse], 0.5) == (best, other)
    assert suppressed([best, worse], 0.95) == (best, worse)
