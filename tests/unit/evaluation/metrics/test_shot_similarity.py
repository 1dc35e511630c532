"""Shot similarity: hand-worked values, perfect and worst, what is left out, and an evaluation end to end."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from fabula.evaluation.metrics.shot_similarity import METRIC, shot_similarity
from fabula.evaluation.metrics.vectors import Floats, Vectors, similarities, unit

ONE, SLANT, OTHER = np.array([1.0, 0.0]), np.array([0.6, 0.8]), np.array([0.0, 1.0])


def test_similarity_when_worked_by_hand_is_the_mean_over_neighbours_of_one_setting() -> None:
    found = shot_similarity([ONE, SLANT, OTHER, ONE], [1, 1, 1, 4])
    assert found.score.value == pytest.approx(0.7)  # (1 * 0.6 + 0.8 * 1) / 2; the last is elsewhere
    assert found.score.counts == {"shots": 4, "without_image": 0, "neighbours": 2, "lost": 0, "pairs": 2}
    assert [found.of_shot(place) for place in (0, 3)] == ["first of its setting"] * 2
    assert found.of_shot(2) == pytest.approx(0.8)


def test_similarity_when_one_picture_is_repeated_is_the_highest_and_of_its_opposite_the_lowest() -> None:
    assert shot_similarity([SLANT] * 3, [1, 1, 1]).score.value == pytest.approx(METRIC.range[1])
    assert shot_similarity([SLANT, -SLANT], [1, 1]).score.value == pytest.approx(METRIC.range[0])


@pytest.mark.parametrize(
    ("features", "scenes"),
    [([], []), ([ONE], [1]), ([ONE, ONE], [1, 2]), ([ONE, SLANT, ONE], [1, 2, 1]), ([ONE, None], [1, 1])],
)
def test_similarity_when_no_two_neighbours_share_a_setting_is_undefined(
    features: list[Floats | None], scenes: list[int]
) -> None:
    found = shot_similarity(features, scenes).score
    assert (found.value, found.status) == (None, "undefined")


def test_similarity_when_a_picture_is_missing_leaves_its_pairs_out_and_counts_them() -> None:
    found = shot_similarity([ONE, None, ONE, SLANT], [1, 1, 1, 1])
    assert found.score.value == pytest.approx(0.6)  # not 0, and not across the gap
    assert found.score.counts == {"shots": 4, "without_image": 1, "neighbours": 3, "lost": 2, "pairs": 1}
    assert [found.of_shot(1), found.of_shot(2)] == ["no picture", "no picture before it"]


def test_similarity_when_a_story_is_told_backwards_is_the_same() -> None:
    features = [ONE, SLANT, OTHER, SLANT]
    there, back = shot_similarity(features, [1, 1, 3, 3]), shot_similarity(features[::-1], [3, 3, 1, 1])
    assert there.score.value == back.score.value


def test_similarity_of_drawn_vectors_is_the_cosine_of_scipy() -> None:
    rows = np.random.default_rng(7).normal(size=(6, 12))
    wanted = [1 - cosine(first, second) for first, second in pairwise(rows)]
    found = shot_similarity(list(unit(rows)), [1] * 6)
    assert [found.of_shot(place) for place in range(1, 6)] == pytest.approx(wanted, abs=1e-12)
    assert found.score.value == pytest.approx(np.mean(wanted), abs=1e-12)


# Embeddings and their cosines.


def test_similarities_when_two_encoders_know_both_are_the_mean_of_their_cosines() -> None:
    first = Vectors.of(a=[(1, 0)], b=[(0, 2)])
    second = Vectors.of(a=[(3, 4), (1, 0)], b=[(0, 1), None])
    # pair 1: a gives 3/5, b gives 1, mean 0.8; pair 2: only a knows it, 1
    assert similarities(first, second, ("a", "b")).tolist() == [[pytest.approx(0.8), 1.0]]


def test_similarities_when_no_encoder_is_shared_are_nan_and_never_zero() -> None:
    first, second = Vectors.of(a=[(1, 0)], b=[None]), Vectors.of(a=[None], b=[(1, 0)])
    assert np.isnan(similarities(first, second, ("a", "b"))).all()
    assert np.isnan(similarities(first, second, ("c",))).all()
