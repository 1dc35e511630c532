"""How similarity changes with the gap between shots."""

import pytest

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
