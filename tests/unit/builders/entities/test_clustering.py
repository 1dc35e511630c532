"""Clustering under constraints: against a plain cubic one, scikit-learn, and by hand."""

import numpy as np
import pytest

from fabula.builders.entities.distances import APART, Distances, cluster, forbid


def matrix(seed: int, count: int, levels: int = 0) -> Distances:
    """Random distances; with levels, only so many different ones, so that many are equal."""
    random = np.random.default_rng(seed)
    values = random.random((count, count))
    if levels:
        values = np.ceil(values * levels) / levels
    return np.triu(values, 1).astype(np.float32) + np.triu(values, 1).astype(np.float32).T


def some_pairs(seed: int, count: int, share: float) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    return [(a, b) for a in range(count) for b in range(a + 1, count) if random.random() < share]


def plain(distances: Distances, pairs: list[tuple[int, int]], threshold: float) -> list[list[int]]:
    """The definition, word by word: averages over all pairs of members, constraints over all pairs."""
    forbidden = {frozenset(pair) for pair in pairs}
    groups = [[item] for item in range(len(distances))]
    exact = distances.astype(np.float64)
    first_is_nearer = np.zeros_like(exact)
    upper = np.triu_indices(len(exact), 1)
    first_is_nearer[upper] = np.arange(len(upper[0])) / len(upper[0]) * 3e-8
    exact += first_is_nearer + first_is_nearer.T
    while True:
        allowed = []
        for at, one in enumerate(groups):
            for other in groups[at + 1 :]:
                if not any(frozenset((a, b)) in forbidden for a in one for b in other):
                    mean = exact[np.ix_(one, other)].mean()
                    allowed.append((float(mean), one[0], other[0]))
        if not allowed or min(allowed)[0] > threshold + 6e-8:
            return groups
        _, first, second = min(allowed)
        one = next(group for group in groups if group[0] == first)
        other = next(group for group in groups if group[0] == second)
        groups = sorted([sorted(one + other), *(g for g in groups if g is not one and g is not other)])


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_cluster_when_compared_with_the_plain_definition_gives_the_same_groups(
    seed: int, share: float
) -> None:
    count = 8 + seed
    distances, pairs = matrix(seed, count), some_pairs(seed, count, share)
    wanted = plain(distances, pairs, 0.45)
    assert forbid(distances, pairs) == len(pairs)
    assert cluster(distances, 0.45).groups() == wanted
    assert any(len(group) > 1 for group in wanted)


@pytest.mark.parametrize("seed", range(5))
def test_cluster_when_nothing_is_forbidden_gives_what_scikit_learn_gives(seed: int) -> None:
    learn = pytest.importorskip("sklearn.cluster")
    rows = np.random.default_rng(seed).normal(size=(120, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    distances = np.maximum(0, 1 - rows @ rows.T).astype(np.float32)
    distances = np.maximum(distances, distances.T)
    np.fill_diagonal(distances, 0)
    theirs = learn.AgglomerativeClustering(
        n_clusters=None, metric="precomputed", linkage="average", distance_threshold=0.4
    ).fit(distances.astype(np.float64))
    found: dict[int, list[int]] = {}
    for item, label in enumerate(theirs.labels_):
        found.setdefault(int(label), []).append(item)
    assert cluster(distances, 0.4).groups() == sorted(found.values())
    assert 5 < len(found) < 100


def test_cluster_when_two_are_forbidden_keeps_whoever_joined_either_apart_too() -> None:
    distances = np.array([[0, 3, 1], [3, 0, 2], [1, 2, 0]], dtype=np.float32)
    forbid(distances, [(0, 1)])
    assert cluster(distances, 10).groups() == [[0, 2], [1]]


def test_cluster_when_order_changes_groups_the_same_items() -> None:
    distances, pairs = matrix(3, 60), some_pairs(3, 60, 0.1)
    forbid(distances, pairs)
    np.fill_diagonal(distances, 0)
    wanted = {frozenset(group) for group in cluster(distances.copy(), 0.47).groups()}
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(60)
        found = cluster(distances[np.ix_(order, order)].copy(), 0.47).groups()
        assert {frozenset(int(order[item]) for item in group) for group in found} == wanted


def test_cluster_when_there_are_none_one_or_only_strangers_leaves_them_alone() -> None:
    assert cluster(np.zeros((0, 0), dtype=np.float32), 1).groups() == []
    assert cluster(np.zeros((1, 1), dtype=np.float32), 1).groups() == [[0]]
    alone = np.full((3, 3), APART, dtype=np.float32)
    assert cluster(alone, np.inf).groups() == [[0], [1], [2]]
    assert cluster(matrix(1, 5), 0).groups() == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize(
    "distances",
    [
        np.array([[0, np.nan], [np.nan, 0]], dtype=np.float32),
        np.array([[0, -1], [-1, 0]], dtype=np.float32),
        np.array([[0, 1], [2, 0]], dtype=np.float32),
        np.zeros((2, 3), dtype=np.float32),
        np.zeros((2, 2)),
    ],
)
def test_cluster_when_the_matrix_is_wrong_says_so(distances: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"distances are|a square matrix"):
        cluster(distances, 1)


def test_cluster_when_there_are_a_thousand_joins_at_distances_that_never_fall() -> None:
    random = np.random.default_rng(0)
    rows = np.repeat(random.normal(size=(50, 32)), 20, axis=0) + random.normal(scale=0.5, size=(1000, 32))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    distances = np.maximum(0, 1 - rows @ rows.T).astype(np.float32)
    distances = np.maximum(distances, distances.T)
    forbid(distances, [(at, at + 1) for at in range(0, 1000, 20)])
    made = cluster(distances, 0.5)
    assert 50 < len(made.groups()) < 200
    assert [join.distance for join in made.joins] == sorted(join.distance for join in made.joins)
