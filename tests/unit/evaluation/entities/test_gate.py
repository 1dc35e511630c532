"""The gate of appearances, their centroid and the anchor."""

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.entities.entities import entity_key, entity_parts
from fabula.evaluation.entities.gate import admitted, anchor, centroid, similarities_to_centroid


@pytest.mark.parametrize(
    ("status", "fidelity", "expected"),
    [
        ("present", 0.5, True), ("present", 0.49, False), ("present", None, True),
        ("weak", 0.9, False), ("weak", None, False), ("absent", None, False), (None, None, False),
    ],
)  # fmt: skip
def test_admitted_when_status_and_fidelity_vary_follows_equation_22(
    status: str | None, fidelity: float | None, expected: bool
) -> None:
    assert admitted(status, fidelity) is expected


def test_centroid_when_vectors_are_at_right_angles_is_between_them() -> None:
    rows = np.array([[2.0, 0.0], [0.0, 0.5]])  # unit vectors (1, 0) and (0, 1), whatever their length
    middle = centroid(rows)
    assert middle is not None
    assert middle == pytest.approx([0.5**0.5, 0.5**0.5])
    assert similarities_to_centroid(rows) == pytest.approx([0.5**0.5, 0.5**0.5])


def test_anchor_when_rows_are_equally_near_is_the_first() -> None:
    assert anchor(np.array([[1.0, 0.0], [0.0, 1.0]])) == 0
    assert anchor(np.array([[0.0, 1.0], [1.0, 0.1], [1.0, 0.0]])) == 1


@pytest.mark.parametrize("rows", [[[1.0, 0.0]], [[1.0, 0.0], [-1.0, 0.0]]], ids=["one row", "opposite"])
def test_centroid_when_there_is_none_is_null(rows: list[list[float]]) -> None:
    assert centroid(np.array(rows)) is None
    assert similarities_to_centroid(np.array(rows)) is None
    assert anchor(np.array(rows)) is None


def test_entity_key_when_name_has_a_colon_comes_back_whole() -> None:
    assert entity_parts(entity_key("object", "the sign: stop")) == ("object", "the sign: stop")


@pytest.mark.parametrize("key", ["place:Paris", "character:", "Ana"])
def test_entity_parts_when_key_has_no_type_or_name_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="character:Ana"):
        entity_parts(key)
