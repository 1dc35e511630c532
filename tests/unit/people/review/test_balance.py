"""How even a design is, counted on seats written by hand."""

import pytest

from fabula.people.review.balance import Sides, balance
from fabula.people.review.design import Place, Plan, Seat, Unit

UNITS = [
    Unit("1", "s", ("a",), "image"), Unit("2", "s", ("b",), "image"), Unit("3", "t", ("c",), "image"),
    Unit("4", "t", (), "text"),
]  # fmt: skip
PLAN = Plan(raters=2)


def seat(number: int, *items: str) -> Seat:
    return Seat(number, tuple(Place(item, 0) for item in items))


def test_balance_when_worked_by_hand_counts_votes_methods_and_meetings() -> None:
    counted = balance([seat(1, "1", "2", "4"), seat(2, "1", "3"), seat(3, "2", "3", "1")], UNITS, PLAN)
    assert (counted.seats, counted.least_seats, counted.wanted, counted.placed) == (3, 2, 8, 8)
    assert (counted.short, counted.extra) == ({"4": 1}, {"1": 1})
    assert counted.items == (2, 3)
    assert counted.methods == {"a": (1, 1), "b": (0, 1), "c": (0, 1)}
    assert counted.conditions == {"image": (2, 3), "text": (0, 1)}
    # a meets b in seats 1 and 3, c in 2 and 3; b meets c in 3. Equal parts: 3 x 2 / 3 = 2, and 2 x 2 / 3.
    assert counted.meetings == (1, 2)
    assert counted.meeting_share == pytest.approx((0.75, 1.0))
    assert counted.alike == 1  # 1 and 2 are of one story
    assert counted.groups == 1


def test_balance_when_seats_share_nothing_counts_groups_of_them() -> None:
    seats = [seat(1, "1"), seat(2, "2"), seat(3, "3", "1"), seat(4, "4")]
    assert balance(seats, UNITS, PLAN).groups == 3


def test_balance_when_there_are_repeats_and_checks_leaves_them_out() -> None:
    places = (Place("1", 0), Place("gold", 0, check=True), Place("4", 0), Place("1", 0, repeat=1))
    counted = balance([Seat(1, places)], UNITS, PLAN)
    assert (counted.placed, counted.items) == (2, (2, 2))
    assert counted.meetings is None
    assert counted.alike == 0  # of 1 and 4, then 4 and 1


def test_sides_when_a_pair_is_named_either_way_are_counted_as_one() -> None:
    units = [Unit("1", "s", ("a", "b"), sides=2), Unit("2", "t", ("b", "a"), sides=2)]
    places = (Place("1", 0), Place("2", 0), Place("2", 0, flip=True))
    counted = balance([Seat(number, (place,)) for number, place in enumerate(places, 1)], units, PLAN)
    assert counted.sides == (Sides("a", "b", ahead=2, behind=1),)
    assert counted.left == {"a": (2, 1), "b": (1, 2)}
