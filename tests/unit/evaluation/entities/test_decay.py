"""How similarity changes with the gap between shots."""

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.entities.entities import entity_key, entity_parts
from fabula.evaluation.entities.gate import admitted, anchor, centroid, similarities_to_centroid
from fabula.evaluation.entities.metrics.aggregate import Definitions
from fabula.evaluation.entities.metrics.decay import BINS, GapPair, bin_of, gap_curves, gap_pairs, labels_of

from .worked import ANA, HALL, episode

ONCE = Definitions(resamples=0)


def test_pairs_when_episode_is_small_are_those_worked_out_by_hand() -> None:
    pairs = list(gap_pairs(episode()))
    near = 0.5**0.5  # of both crops to the centroid
    assert pairs[0] == GapPair("judged", "character", ANA, 1, 0.9, ("1:2", "1:1"))
    assert pairs[1][:4] == ("centroid", "character", ANA, 1)
    assert pairs[1].similarity == pytest.approx(near)
    assert pairs[2] == GapPair("crops", "character", ANA, 1, 0.0, ("1:1", "1:2"))
    assert pairs[3:] == [GapPair("judged", "location", HALL, 1, 0.4, ("1:2", "1:1"))]


@pytest.mark.parametrize(
    ("gap", "index", "intervening"),
    [(1, "1-2", "0"), (2, "1-2", "1-2"), (3, "3-5", "1-2"), (6, "6-10", "3-5"), (21, "21-50", "11-20"),
     (50, "21-50", "21-50"), (51, "51+", "21-50"), (52, "51+", "51+")],
)  # fmt: skip
def test_bin_when_gap_is_counted_in_either_way_is_that_of_the_tables(
    gap: int, index: str, intervening: str
) -> None:
    assert (bin_of(gap), bin_of(gap, "intervening")) == (index, intervening)


def test_bins_when_shots_between_are_counted_begin_with_zero() -> None:
    assert labels_of("index") == ("1-2", "3-5", "6-10", "11-20", "21-50")
    assert labels_of("intervening") == ("0", *labels_of("index"))
    assert [last + 1 for _, last in BINS[:-1]] == [first for first, _ in BINS[1:]]


def test_curve_when_pairs_are_of_several_sources_has_means_and_counts() -> None:
    pairs = [
        (f"film{index % 8}", GapPair("judged", "character", ANA, 1 + index % 2 * 3, index / 40))
        for index in range(40)
    ]
    (curve,) = gap_curves(pairs, [("judged", "character")], Definitions(resamples=500))
    near, far = curve.bins["1-2"], curve.bins["3-5"]
    assert (near.value, far.value) == pytest.approx(
        (0.475, 0.5)
    )  # means of 0, 2, ..., 38 and of 1, 3, ..., 39
    assert near.counts == {"pairs": 20, "sources": 4}
    assert curve.bins["6-10"].value is None
    assert (near.low, near.high) == (None, None)  # four sources are too few
    wide = Definitions(resamples=500, interval="percentile")
    (again,) = gap_curves(pairs, [("judged", "character")], wide)
    low, high = again.bins["1-2"].low, again.bins["1-2"].high
    assert low is not None and high is not None and low < 0.475 < high


def test_curve_when_a_gap_is_beyond_the_last_bin_gets_another() -> None:
    pairs = [("film", GapPair("crops", "object", "object:cup", 60, 0.3))]
    (curve,) = gap_curves(pairs, [("crops", "object")], ONCE)
    assert curve.bins["51+"].value == pytest.approx(0.3)


def test_curve_when_there_are_no_pairs_has_no_value() -> None:
    (curve,) = gap_curves([], [("crops", "object")], Definitions(resamples=10))
    assert {score.value for score in curve.bins.values()} == {None}


# The gate of appearances, their centroid and the anchor.


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
