"""Who judges what: known block designs, bounds on seats, and what holds of every plan, counted anew here."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations, pairwise, product

import pytest

from fabula.errors import ConfigError
from fabula.people.review.balance import balance
from fabula.people.review.design import (
    Place,
    Plan,
    Seat,
    Unit,
    design,
    fits,
    least_seats,
    remaining,
    wanted_votes,
)

METHODS = ("anna", "bert", "cleo", "dora", "emil", "fred")


def ratings(stories: int, methods: Sequence[str] = METHODS) -> list[Unit]:
    return [
        Unit(f"s{story:04}/{name}", f"s{story:04}", (name,))
        for story, name in product(range(stories), methods)
    ]


def pairs(stories: int, methods: Sequence[str] = METHODS) -> list[Unit]:
    return [
        Unit(f"s{story:04}/{first}/{second}", f"s{story:04}", (first, second), sides=2)
        for story in range(stories)
        for first, second in combinations(methods, 2)
    ]


def texts(stories: int) -> list[Unit]:
    return [Unit(f"s{story:04}", f"s{story:04}") for story in range(stories)]


def conditions(
    stories: int, questions: int = 1, names: Sequence[str] = ("text", "image", "both")
) -> list[Unit]:
    return [
        Unit(f"s{story:03}/{name}/{number}", f"s{story:03}", (), name)
        for story, name, number in product(range(stories), names, range(questions))
    ]


def items_of(seat: Seat) -> list[str]:
    return [place.item for place in seat.places if not place.check and not place.repeat]


# -- balanced incomplete blocks: v methods, b seats of k, r votes of each, lambda = r (k - 1) / (v - 1)


@pytest.mark.parametrize(
    ("v", "b", "r", "k", "together"),
    [
        (4, 6, 3, 2, 1), (7, 7, 3, 3, 1), (6, 10, 5, 3, 2), (9, 12, 4, 3, 1), (8, 14, 7, 4, 3),
        (10, 15, 6, 4, 2), (11, 11, 5, 5, 2), (13, 13, 4, 4, 1), (13, 26, 6, 3, 1), (10, 30, 9, 3, 2),
        (9, 18, 8, 4, 3), (16, 20, 5, 4, 1), (15, 15, 7, 7, 3), (21, 21, 5, 5, 1),
    ],
)  # fmt: skip
def test_design_when_a_balanced_incomplete_block_design_is_known_reaches_its_lambda(
    v: int, b: int, r: int, k: int, together: int
) -> None:
    assert (v * r, r * (k - 1)) == (b * k, together * (v - 1))
    units = [Unit(f"item-{number:02}", f"s{number:02}", (f"m{number:02}",)) for number in range(v)]
    seats = design(units, [], Plan(raters=r, least=r, per_seat=k))
    met = Counter(pair for seat in seats for pair in combinations(sorted(items_of(seat)), 2))
    assert len(seats) == b
    assert {len(seat.places) for seat in seats} == {k}
    assert len(met) == v * (v - 1) // 2
    assert set(met.values()) == {together}


def test_design_when_no_balanced_design_exists_lets_methods_meet_once_more_or_less() -> None:
    # v = 8, k = 3, r = 3: lambda would be 6/7.
    units = [Unit(f"item-{number}", f"s{number}", (f"m{number}",)) for number in range(8)]
    seats = design(units, [], Plan(raters=3, per_seat=3))
    met = Counter(pair for seat in seats for pair in combinations(sorted(items_of(seat)), 2))
    assert len(seats) == 8
    assert set(met.values()) == {1}
    assert len(met) == 24  # of 28 pairs: 8 seats of 3 hold 24, no two the same


def test_design_when_every_story_is_seen_once_by_each_is_a_latin_square() -> None:
    units = ratings(6)
    seats = design(units, [], Plan(raters=1, once=True))
    assert len(seats) == 6  # a story has six votes, and nobody sees it twice
    for seat in seats:
        shown = [item.split("/") for item in items_of(seat)]
        assert sorted(story for story, _ in shown) == [f"s{number:04}" for number in range(6)]
        assert sorted(name for _, name in shown) == sorted(METHODS)


# -- large studies


def test_design_when_a_study_has_eighteen_thousand_votes_is_even_in_everything() -> None:
    units = ratings(1000)
    plan = Plan(raters=3, per_seat=60, once=True)
    counted = balance(design(units, [], plan), units, plan)
    assert (counted.seats, counted.least_seats, counted.placed) == (300, 300, 18_000)
    assert counted.short == counted.extra == {}
    assert counted.items == (60, 60)
    assert set(counted.methods.values()) == {(10, 10)}
    assert counted.meetings == (30_000, 30_000)  # 10 x 10 in each of 300 seats
    assert counted.meeting_share == pytest.approx((1.0, 1.0))
    assert counted.alike == 0
    assert counted.groups == 1


def test_design_when_three_people_review_every_record_gives_all_to_each() -> None:
    seats = design(texts(5000), [], Plan(raters=3, block=50))
    assert len(seats) == 3
    assert all(len(set(items_of(seat))) == 5000 for seat in seats)
    assert len({seat.places[0].item for seat in seats}) > 1  # each in an order of their own
    assert [max(Counter(place.block for place in seat.places).values()) for seat in seats] == [50] * 3


def test_design_when_pairs_fill_seats_unevenly_spreads_methods_and_sides() -> None:
    units = pairs(100)
    plan = Plan(raters=3, per_seat=32, once=True)
    counted = balance(design(units, [], plan), units, plan)
    assert (counted.seats, counted.placed) == (141, 4500)
    assert all(most - least <= 1 for least, most in counted.methods.values())
    assert counted.meetings is not None and counted.meetings[1] - counted.meetings[0] <= 1
    assert all(abs(pair.ahead - pair.behind) <= 1 for pair in counted.sides)
    assert len(counted.sides) == 15
    assert all(abs(left - right) <= 1 for left, right in counted.left.values())


def test_design_when_twenty_raters_share_ten_ratings_gives_each_half() -> None:
    units = ratings(20, [f"m{number:02}" for number in range(18)])
    plan = Plan(raters=10, least=10, seats=20)
    counted = balance(design(units, [], plan), units, plan)
    assert (counted.seats, counted.least_seats, counted.items) == (20, 10, (180, 180))
    assert set(counted.methods.values()) == {(10, 10)}


def test_sides_when_a_seat_shows_a_method_often_stand_evenly_within_it() -> None:
    units = {unit.item: unit for unit in pairs(50)}
    for seat in design(list(units.values()), [], Plan(raters=2, per_seat=30, once=True)):
        ahead: Counter[str] = Counter()
        for place in seat.places:
            left, right = units[place.item].treatments[:: -1 if place.flip else 1]
            ahead.update({left: 1})
            ahead.subtract({right: 1})
        assert max(map(abs, ahead.values())) <= 1


# -- conditions apart


def test_seats_when_conditions_are_apart_are_as_few_as_all_votes_of_a_story() -> None:
    units = conditions(30, questions=10)
    plan = Plan(raters=3, apart=True)
    seats = design(units, [], plan)
    assert len(seats) == 9  # three conditions of three votes each
    for seat in seats:
        seen = defaultdict(set)
        for item in items_of(seat):
            story, condition, _ = item.split("/")
            seen[story].add(condition)
        assert all(len(names) == 1 for names in seen.values())
        # Everybody sees each story, each condition ten times, and all its questions.
        assert Counter(min(names) for names in seen.values()) == {"text": 10, "image": 10, "both": 10}
        assert len(items_of(seat)) == 300


def test_seats_when_conditions_are_apart_and_seats_small_hold_equally_many() -> None:
    units = conditions(40, questions=10)
    plan = Plan(raters=3, per_seat=60, apart=True)
    counted = balance(design(units, [], plan), units, plan)
    assert (counted.seats, counted.least_seats, counted.items) == (60, 60, (60, 60))


# -- what holds of every plan


def drawn_study(number: int) -> tuple[list[Unit], list[Unit], Plan]:
    draw = random.Random(number)
    methods = METHODS[: draw.randint(1, 5)]
    two = len(methods) > 1 and draw.random() < 0.35
    units = []
    for story in range(draw.randint(4, 18)):
        for condition in draw.choice([[None], ["a", "b"]]):
            shown = list(combinations(methods, 2)) if two else [(name,) for name in methods]
            if condition == "a":
                shown = [()]
            units += [
                Unit(f"{story}/{condition}/{'-'.join(names)}", f"s{story}", names, condition, 1 + two)
                for names in shown
                if draw.random() < 0.9
            ]
    gold = [Unit(f"gold-{each}", f"gold-{each}", sides=1 + two) for each in range(4)]
    raters = draw.randint(1, 4)
    plan = Plan(
        seed=number, raters=raters, least=draw.randint(1, raters), overlap=draw.choice([0.0, 0.3, 1.0]),
        per_seat=draw.choice([None, 4, 9, 20]), block=draw.choice([5, 20]), repeats=draw.choice([0, 2]),
        gap=draw.choice([1, 3]), checks=draw.choice([0, 2]), apart=draw.random() < 0.4,
        once=draw.random() < 0.4,
    )  # fmt: skip
    return units, gold, plan


@pytest.mark.parametrize("number", range(40))
def test_design_when_a_plan_is_drawn_keeps_every_promise(number: int) -> None:
    units, gold, plan = drawn_study(number)
    known = {unit.item: unit for unit in (*units, *gold)}
    try:
        seats = design(units, gold, plan)
    except ConfigError as error:
        assert error.where == "repeats"
        return
    placed = Counter(item for seat in seats for item in items_of(seat))
    assert placed == wanted_votes(units, plan)
    wanted = [wanted_votes(units, plan)[unit.item] for unit in units]
    assert len(seats) == least_seats(units, wanted, plan)
    assert [seat.number for seat in seats] == list(range(1, len(seats) + 1))
    for seat in seats:
        items = items_of(seat)
        assert len(set(items)) == len(items)
        assert plan.per_seat is None or len(items) <= plan.per_seat
        assert sum(place.check for place in seat.places) == plan.checks
        assert sum(place.repeat for place in seat.places) == plan.repeats
        assert max(Counter(place.block for place in seat.places).values()) <= plan.block
        blocks = [place.block for place in seat.places]
        assert blocks == sorted(blocks)
        shown = [known[item] for item in {place.item for place in seat.places}]
        stories = Counter(unit.story for unit in shown)
        assert not plan.once or set(stories.values()) == {1}
        assert not plan.apart or len({(unit.story, unit.condition) for unit in shown}) == len(stories)
        first = {place.item: spot for spot, place in enumerate(seat.places) if not place.repeat}
        for spot, place in enumerate(seat.places):
            if place.repeat:
                before = seat.places[first[place.item]]
                assert spot - first[place.item] >= plan.gap
                assert (place.flip != before.flip) == (known[place.item].sides == 2)
            assert not place.flip or known[place.item].sides == 2
    for pair in balance(seats, units, plan).sides:
        assert abs(pair.ahead - pair.behind) <= 1


@pytest.mark.parametrize("number", [0, 3, 5, 8])
def test_design_when_units_come_in_another_order_is_the_same(number: int) -> None:
    units, gold, plan = drawn_study(number)
    assert design(units, gold, plan) == design(units[::-1], gold[::-1], plan)


def test_design_when_the_seed_is_another_is_another() -> None:
    units = ratings(12)
    assert design(units, [], Plan(seed=1, per_seat=9)) != design(units, [], Plan(seed=2, per_seat=9))


# -- order


def test_order_when_two_methods_are_shown_equally_often_alternates() -> None:
    seats = design(ratings(15, ("anna", "bert")), [], Plan(raters=1))
    (seat,) = seats
    shown = [item.split("/")[1] for item in items_of(seat)]
    assert all(first != second for first, second in pairwise(shown))


def test_order_when_seeds_differ_puts_every_item_everywhere() -> None:
    first = {design(texts(5), [], Plan(seed=seed, raters=1))[0].places[0].item for seed in range(60)}
    assert first == {unit.item for unit in texts(5)}


def test_checks_when_drawn_are_spread_and_equally_often_used() -> None:
    gold = [Unit(f"gold-{number}", f"g{number}") for number in range(6)]
    seats = design(texts(240), gold, Plan(raters=1, per_seat=24, checks=3))
    used = Counter(place.item for seat in seats for place in seat.places if place.check)
    assert used == dict.fromkeys((unit.item for unit in gold), 5)  # 10 seats x 3 / 6
    for seat in seats:
        spots = [spot for spot, place in enumerate(seat.places) if place.check]
        assert [spot // 9 for spot in spots] == [0, 1, 2]  # 27 places in three parts


def test_repeats_when_a_seat_is_hardly_longer_than_the_gap_still_fit() -> None:
    gold = [Unit(f"gold-{number}", f"g{number}") for number in range(3)]
    for seed in range(20):
        (seat,) = design(texts(5), gold, Plan(seed=seed, raters=1, repeats=5, gap=5, checks=3))
        assert sum(place.repeat for place in seat.places) == 5


# -- votes wanted


def test_votes_when_stories_overlap_in_part_are_more_for_that_share_of_every_method() -> None:
    draw = random.Random(0)
    units = [
        Unit(f"v{number:03}/{name}", f"v{number:03}", (name,))
        for number in range(400)
        for name in draw.sample(METHODS, 2)
    ]
    plan = Plan(raters=3, least=1, overlap=0.25)
    votes = wanted_votes(units, plan)
    by_story = defaultdict(set)
    for unit in units:
        by_story[unit.story].add(votes[unit.item])
    assert all(len(numbers) == 1 for numbers in by_story.values())  # whole stories
    for name in METHODS:
        its = [votes[unit.item] for unit in units if unit.treatments == (name,)]
        assert its.count(3) == pytest.approx(0.25 * len(its), abs=1.5)


def test_votes_when_the_overlap_is_tiny_are_more_for_one_story() -> None:
    votes = wanted_votes(texts(10), Plan(raters=3, least=1, overlap=0.001))
    assert sorted(votes.values()) == [1] * 9 + [3]


# -- who takes over


SEAT = Seat(
    1,
    (
        Place("a", 0), Place("gold", 0, check=True), Place("b", 0), Place("a", 1, repeat=1), Place("c", 1),
    ),
)  # fmt: skip


def test_remaining_when_somebody_left_is_what_they_did_not_answer_with_the_checks() -> None:
    assert [place.item for place in remaining(SEAT, {"a", "gold"})] == ["gold", "b", "c"]
    assert [place.item for place in remaining(SEAT, {"b"})] == ["a", "gold", "a", "c"]
    assert remaining(SEAT, {"a", "b", "c"}) == ()
    assert remaining(SEAT, ()) == SEAT.places


def test_fits_when_somebody_saw_an_item_a_story_or_a_condition_says_no() -> None:
    text, image = Unit("1", "s", condition="text"), Unit("2", "s", condition="image")
    again, other = Unit("3", "s", condition="text"), Unit("4", "t", condition="image")
    free, apart, once = Plan(), Plan(apart=True), Plan(once=True)
    assert not fits([text, other], [text], free)
    assert fits([image, again], [text], free)
    assert not fits([image], [text], apart)
    assert fits([again, other], [text], apart)
    assert not fits([again], [text], once)
    assert fits([other], [text], once)
    assert fits([text, other], [text], once, again={"1"})
    assert fits([text, text], [], once)  # an item and its repetition


# -- plans that cannot be


@pytest.mark.parametrize(
    ("units", "gold", "plan", "where", "words"),
    [
        (texts(0), [], Plan(), "items", "nothing to judge"),
        (texts(3) * 2, [], Plan(), "items", "more than once"),
        ([Unit("a", "s", sides=3)], [], Plan(), "items", "3 sides"),
        (texts(5), texts(1), Plan(checks=1), "items", "more than once"),
        (texts(5), [], Plan(checks=1), "checks", "there are 0 gold items"),
        (texts(5), [], Plan(raters=3, seats=2), "seats", "an item has as many votes"),
        (conditions(5), [], Plan(raters=3, seats=5, apart=True), "seats", "two conditions of one story"),
        (ratings(5), [], Plan(raters=3, seats=17, once=True), "seats", "two items of one story"),
        (texts(10), [], Plan(raters=1, seats=2, per_seat=4), "seats", "10 votes are wanted"),
        (texts(2), [], Plan(raters=1, seats=3), "seats", "more than the 2 votes"),
        (texts(4), [], Plan(repeats=1, gap=5), "repeats", "a seat has 4 items"),
        (texts(4), [], Plan(repeats=5, gap=1), "repeats", "a seat has 4 items"),
        (texts(5), [Unit("gold", "s0001")], Plan(checks=1, once=True), "checks", "that it has already"),
    ],
)  # fmt: skip
def test_design_when_it_cannot_be_says_what_and_why(
    units: list[Unit], gold: list[Unit], plan: Plan, where: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        design(units, gold, plan)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"raters": 0}, "raters"), ({"per_seat": 0}, "per_seat"), ({"gap": 0}, "gap"),
        ({"block": 0}, "block"), ({"repeats": -1}, "repeats"), ({"overlap": 1.1}, "overlap"),
        ({"least": 4}, "least"),
    ],
)  # fmt: skip
def test_plan_when_a_setting_is_out_of_range_says_so(settings: dict[str, int], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Plan(**settings)
    assert caught.value.where == where


def test_bound_when_seats_are_too_few_is_named_with_its_reason() -> None:
    with pytest.raises(ConfigError, match=r"at least 9, found 8 .*apart.*: 9"):
        design(conditions(4), [], Plan(raters=3, seats=8, apart=True))
