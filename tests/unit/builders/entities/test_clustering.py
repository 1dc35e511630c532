"""Clustering under constraints: against a plain cubic one, scikit-learn, and by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from fabula.builders.entities import identities
from fabula.builders.entities.names import Person, Seen, Tracklet


def matrix(seed: int, count: int, levels: int = 0) -> identities.Distances:
    """Random distances; with levels, only so many different ones, so that many are equal."""
    random = np.random.default_rng(seed)
    values = random.random((count, count))
    if levels:
        values = np.ceil(values * levels) / levels
    return np.triu(values, 1).astype(np.float32) + np.triu(values, 1).astype(np.float32).T


def some_pairs(seed: int, count: int, share: float) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    return [(a, b) for a in range(count) for b in range(a + 1, count) if random.random() < share]


def plain(distances: identities.Distances, pairs: list[tuple[int, int]], threshold: float) -> list[list[int]]:
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
def test_cluster_when_compared_with_the_plain_definition_gives_the_same_groups(seed, share):
    count = 8 + seed
    distances, pairs = matrix(seed, count), some_pairs(seed, count, share)
    wanted = plain(distances, pairs, 0.45)
    assert identities.forbid(distances, pairs) == len(pairs)
    assert identities.cluster(distances, 0.45).groups() == wanted
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
    assert identities.cluster(distances, 0.4).groups() == sorted(found.values())
    assert 5 < len(found) < 100


def test_cluster_when_two_are_forbidden_keeps_whoever_joined_either_apart_too() -> None:
    distances = np.array([[0, 3, 1], [3, 0, 2], [1, 2, 0]], dtype=np.float32)
    identities.forbid(distances, [(0, 1)])
    assert identities.cluster(distances, 10).groups() == [[0, 2], [1]]


def test_cluster_when_order_changes_groups_the_same_items() -> None:
    distances, pairs = matrix(3, 60), some_pairs(3, 60, 0.1)
    identities.forbid(distances, pairs)
    np.fill_diagonal(distances, 0)
    wanted = {frozenset(group) for group in identities.cluster(distances.copy(), 0.47).groups()}
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(60)
        found = identities.cluster(distances[np.ix_(order, order)].copy(), 0.47).groups()
        assert {frozenset(int(order[item]) for item in group) for group in found} == wanted


def test_cluster_when_there_are_none_one_or_only_strangers_leaves_them_alone() -> None:
    assert identities.cluster(np.zeros((0, 0), dtype=np.float32), 1).groups() == []
    assert identities.cluster(np.zeros((1, 1), dtype=np.float32), 1).groups() == [[0]]
    alone = np.full((3, 3), identities.APART, dtype=np.float32)
    assert identities.cluster(alone, np.inf).groups() == [[0], [1], [2]]
    assert identities.cluster(matrix(1, 5), 0).groups() == [[0], [1], [2], [3], [4]]


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
        identities.cluster(distances, 1)


def test_cluster_when_there_are_a_thousand_joins_at_distances_that_never_fall() -> None:
    random = np.random.default_rng(0)
    rows = np.repeat(random.normal(size=(50, 32)), 20, axis=0) + random.normal(scale=0.5, size=(1000, 32))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    distances = np.maximum(0, 1 - rows @ rows.T).astype(np.float32)
    distances = np.maximum(distances, distances.T)
    identities.forbid(distances, [(at, at + 1) for at in range(0, 1000, 20)])
    made = identities.cluster(distances, 0.5)
    assert 50 < len(made.groups()) < 200
    assert [join.distance for join in made.joins] == sorted(join.distance for join in made.joins)


# Proposals about who is who: made only as far as constraints allow, and all of them recorded.


def tracklet(shot: int, number: int, first: int, last: int, looks: int = 2) -> Tracklet:
    frames = [first, *range(first + 1, first + looks - 1), last][:looks]
    seen = tuple(Seen(frame=frame, box=(0, 0, 9, 30), score=0.9) for frame in frames)
    return Tracklet(tracklet_id=f"v__shot{shot:04d}__t{number:03d}", shot=shot, seen=seen)


TRACKLETS = {
    "a": tracklet(1, 1, 0, 10),
    "b": tracklet(1, 2, 20, 30),
    "c": tracklet(2, 1, 40, 50),
    "d": tracklet(2, 3, 45, 60),
    "e": tracklet(3, 1, 70, 80),
    "f": tracklet(2, 9, 62, 65),
}
BY_ID = {one.tracklet_id: one for one in TRACKLETS.values()}


def people(*groups: str) -> list[Person]:
    return [
        Person(
            person_id=f"p{number:03d}",
            tracklets=tuple(TRACKLETS[one].tracklet_id for one in group),
            shots=tuple(sorted({TRACKLETS[one].shot for one in group})),
        )
        for number, group in enumerate(groups, start=1)
    ]


def proposed(*named: str, reason: str = "same face") -> identities.Proposal:
    return identities.Proposal(tuple(f"p{one}" for one in named), reason, "model")


def settled(
    some: list[Person], *replies: Sequence[identities.Proposal], rule: identities.Rule = "shot"
) -> identities.Consolidated:
    return identities.consolidate(some, BY_ID, replies, rule)


def outcomes(made: identities.Consolidated) -> list[tuple[str, str, str | None]]:
    return [(merge.one, merge.other, merge.refused) for merge in made.merges]


def test_conflict_when_two_share_time_neighbourhood_or_a_shot_says_so() -> None:
    one = {name: [value] for name, value in TRACKLETS.items()}
    assert identities.conflict(one["c"], one["d"], "time") == (
        "seen at the same time in shot 2: v__shot0002__t001 and v__shot0002__t003"
    )
    assert identities.conflict(one["a"], one["b"], "time") == (
        "adjacent tracklets: v__shot0001__t001 and v__shot0001__t002"
    )
    assert (
        identities.conflict(one["c"], one["f"], "shot")
        == "both in shot 2: v__shot0002__t001 and v__shot0002__t009"
    )
    assert identities.conflict(one["c"], one["f"], "time") is None
    assert identities.conflict(one["a"], one["c"], "shot") is None


def test_proposal_when_nothing_speaks_against_it_is_made_and_recorded() -> None:
    made = settled(people("a", "c", "e"), [proposed("003", "001")])
    assert [(one.person_id, one.shots) for one in made.cast] == [("p001", (1, 3)), ("p002", (2,))]
    assert made.cast[0].tracklets == ("v__shot0001__t001", "v__shot0003__t001")
    (merge,) = made.merges
    assert (merge.one, merge.other, merge.by, merge.reason, merge.refused) == (
        "p001", "p003", "model", "same face", None,
    )  # fmt: skip
    assert made.cast[0].merges == (merge,)


def test_proposal_when_it_breaks_a_constraint_is_refused_and_recorded() -> None:
    made = settled(people("c", "d", "e"), [proposed("001", "002", "003")])
    assert [one.person_id for one in made.cast] == ["p001", "p002"]
    assert outcomes(made) == [
        ("p001", "p002", "seen at the same time in shot 2: v__shot0002__t001 and v__shot0002__t003"),
        ("p001", "p003", None),
    ]
    assert len(made.cast[0].merges) == 2
    assert made.cast[0].merges[0].refused is not None


def test_proposal_when_a_merge_brought_somebody_in_keeps_his_enemies_out_too() -> None:
    # p001 takes p002 in, who is seen together with p003.
    made = settled(people("e", "c", "d"), [proposed("001", "002")], [proposed("001", "003")])
    assert [one.person_id for one in made.cast] == ["p001", "p003"]
    assert outcomes(made)[1][2] is not None


def test_proposal_when_it_names_strangers_or_people_twice_is_refused_for_them_alone() -> None:
    made = settled(
        people("a", "c", "e"),
        [proposed("001", "001", "404"), proposed("002", "003"), proposed("003", "001"), proposed("002")],
    )
    assert outcomes(made) == [
        ("p001", "p404", "nobody has this id"),
        ("p002", "p003", None),
        ("p003", "p003", "named before in the same reply"),
        ("p003", "p001", "named before in the same reply"),
        ("p002", "p002", "named before in the same reply"),
        ("p002", "p002", "nobody else"),
    ]
    assert [one.person_id for one in made.cast] == ["p001", "p002"]


@pytest.mark.parametrize(("count", "wanted"), [(3, [3]), (40, [40]), (41, [40, 13]), (100, [40, 40, 40, 16])])
def test_rounds_when_there_are_many_people_show_the_most_seen_each_time(count, wanted):
    tracklets = {
        f"v__shot{at:04d}__t001": tracklet(at, 1, 0, 1000, 2 + (at * 7) % count) for at in range(1, count + 1)
    }
    some = [
        Person(person_id=f"p{at:03d}", tracklets=(name,), shots=(at,))
        for at, name in enumerate(tracklets, start=1)
    ]
    rounds = identities.rounds_of(some, tracklets, identities.ConsolidateSettings())
    assert [len(one) for one in rounds] == wanted
    assert {person.person_id for one in rounds for person in one} == {one.person_id for one in some}
    shown = set.intersection(*({person.person_id for person in one} for one in rounds))
    assert len(shown) == (count if count <= 40 else 12)
    most = sorted(some, key=lambda one: -len(tracklets[one.tracklets[0]].seen))[:12]
    assert {one.person_id for one in most} <= shown
    assert all([p.person_id for p in one] == sorted(p.person_id for p in one) for one in rounds)
