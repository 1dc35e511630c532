"""Proposals about who is who: made only as far as constraints allow, and all of them recorded."""

from collections.abc import Sequence

import pytest

from fabula.builders.entities.consolidate_people import (
    Consolidated,
    Proposal,
    Rule,
    Settings,
    conflict,
    consolidate,
    rounds_of,
)
from fabula.builders.entities.drafts import Person, Seen, Tracklet


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


def proposed(*named: str, reason: str = "same face") -> Proposal:
    return Proposal(tuple(f"p{one}" for one in named), reason, "model")


def settled(some: list[Person], *replies: Sequence[Proposal], rule: Rule = "shot") -> Consolidated:
    return consolidate(some, BY_ID, replies, rule)


def outcomes(made: Consolidated) -> list[tuple[str, str, str | None]]:
    return [(merge.one, merge.other, merge.refused) for merge in made.merges]


def test_conflict_when_two_share_time_neighbourhood_or_a_shot_says_so() -> None:
    one = {name: [value] for name, value in TRACKLETS.items()}
    assert conflict(one["c"], one["d"], "time") == (
        "seen at the same time in shot 2: v__shot0002__t001 and v__shot0002__t003"
    )
    assert conflict(one["a"], one["b"], "time") == (
        "adjacent tracklets: v__shot0001__t001 and v__shot0001__t002"
    )
    assert conflict(one["c"], one["f"], "shot") == "both in shot 2: v__shot0002__t001 and v__shot0002__t009"
    assert conflict(one["c"], one["f"], "time") is None
    assert conflict(one["a"], one["c"], "shot") is None


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
def test_rounds_when_there_are_many_people_show_the_most_seen_each_time(
    count: int, wanted: list[int]
) -> None:
    tracklets = {
        f"v__shot{at:04d}__t001": tracklet(at, 1, 0, 1000, 2 + (at * 7) % count) for at in range(1, count + 1)
    }
    some = [
        Person(person_id=f"p{at:03d}", tracklets=(name,), shots=(at,))
        for at, name in enumerate(tracklets, start=1)
    ]
    rounds = rounds_of(some, tracklets, Settings())
    assert [len(one) for one in rounds] == wanted
    assert {person.person_id for one in rounds for person in one} == {one.person_id for one in some}
    shown = set.intersection(*({person.person_id for person in one} for one in rounds))
    assert len(shown) == (count if count <= 40 else 12)
    most = sorted(some, key=lambda one: -len(tracklets[one.tracklets[0]].seen))[:12]
    assert {one.person_id for one in most} <= shown
    assert all([p.person_id for p in one] == sorted(p.person_id for p in one) for one in rounds)
