"""Embeddings and their cosines."""

import numpy as np
import pytest

from fabula.evaluation.metrics.vectors import Joining, Vectors, mean_of_pairs, similarities, unit


def test_similarities_when_two_encoders_know_both_are_the_mean_of_their_cosines() -> None:
    first = Vectors.of(a=[(1, 0)], b=[(0, 2)])
    second = Vectors.of(a=[(3, 4), (1, 0)], b=[(0, 1), None])
    # pair 1: a gives 3/5, b gives 1, mean 0.8; pair 2: only a knows it, 1
    assert similarities(first, second, ("a", "b")).tolist() == [[pytest.approx(0.8), 1.0]]


def test_similarities_when_weighted_divide_by_the_weights_that_are_there() -> None:
    first = Vectors.of(a=[(1, 0)], b=[(0, 2)])
    second = Vectors.of(a=[(3, 4), (3, 4)], b=[(0, 1), None])
    found = similarities(first, second, ("a", "b"), Joining({"a": 3.0, "b": 1.0}))
    # (3 * 0.6 + 1 * 1) / 4 = 0.7, and 0.6 alone
    assert found.tolist() == [[pytest.approx(0.7), pytest.approx(0.6)]]


def test_similarities_when_no_encoder_is_shared_are_nan_and_never_zero() -> None:
    first, second = Vectors.of(a=[(1, 0)], b=[None]), Vectors.of(a=[None], b=[(1, 0)])
    assert np.isnan(similarities(first, second, ("a", "b"))).all()
    assert np.isnan(similarities(first, second, ("c",))).all()


def test_unit_of_zeros_is_nan() -> None:
    assert np.isnan(unit(np.zeros((1, 3)))).all()


def test_vectors_when_encoders_have_other_numbers_of_pictures_are_refused() -> None:
    with pytest.raises(ValueError, match="every picture"):
        Vectors.of(a=[(1, 0)], b=[(1, 0), (0, 1)])


def test_vectors_when_parts_are_joined_and_taken_keep_their_rows() -> None:
    one, two = Vectors.of(a=[(1, 0)]), Vectors.of(a=[(0, 1), None])
    both = Vectors.joined([one, two])
    assert len(both) == 3
    assert both.known(("a",)).tolist() == [True, True, False]
    assert both.take([1]).by_encoder["a"].tolist() == [[0.0, 1.0]]
    assert len(Vectors.joined([])) == 0


def test_mean_of_pairs_counts_only_pairs_that_are_known() -> None:
    table = np.array([[1, 0.5, np.nan], [0.5, 1, 0.7], [np.nan, 0.7, 1]])
    total, pairs = mean_of_pairs(table)
    assert (total, pairs) == (pytest.approx(1.2), 2)
