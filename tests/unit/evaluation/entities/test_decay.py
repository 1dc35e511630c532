"""How similarity changes with the gap between shots."""

import numpy as np
import pytest

from fabula.evaluation.entities.gate import admitted, anchor, centroid, similarities_to_centroid
from fabula.evaluation.entities.metrics.aggregate import Definitions
from fabula.evaluation.entities.metrics.decay import GapPair, bin_of, gap_curves, gap_pairs

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
