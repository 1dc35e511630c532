"""Who judges what: what holds of every plan, counted anew here, and bounds on seats."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fabula.errors import ConfigError
from fabula.kinds.making_studies import source_of
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
from fabula.people.review.plan import items_for, load_preset, preset_names
from fabula.people.review.protocol import FIXED, Protocol
from fabula.people.review.task import load_task, task_names

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


@pytest.mark.parametrize(
    ("name", "lowest"),
    [("raters", 1), ("least", 1), ("seats", 1), ("per_seat", 1), ("block", 1), ("gap", 1), ("repeats", 0),
     ("checks", 0)],
)  # fmt: skip
def test_plan_when_a_number_is_the_lowest_is_one_and_below_it_is_refused(name: str, lowest: int) -> None:
    assert getattr(Plan(**{name: lowest}), name) == lowest
    with pytest.raises(ConfigError, match=f"{name}: {lowest - 1} is below {lowest}") as caught:
        Plan(**{name: lowest - 1})
    assert caught.value.where == name


@pytest.mark.parametrize("name", ["overlap", "least"])
def test_plan_when_a_number_is_too_large_is_refused(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Plan(**{name: {"overlap": 1.1, "least": 4}[name]})
    assert caught.value.where == name


# -- the stated property: nobody gets an item twice, and seats differ by one vote, by one in every arm, too


def loads_of(seats: Sequence[Seat], units: Sequence[Unit]) -> dict[Any, list[int]]:
    """Return how many votes each seat has, by arm; None: of all arms."""
    known = {unit.item: unit for unit in units}
    arms: dict[Any, Counter[int]] = defaultdict(Counter)
    for seat in seats:
        for item in items_of(seat):
            arms[None][seat.number] += 1
            arms[tuple(sorted(known[item].treatments)), known[item].condition][seat.number] += 1
    return {arm: [counts[seat.number] for seat in seats] for arm, counts in arms.items()}


def differs(loads: Sequence[int]) -> int:
    return max(loads) - min(loads)


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


@pytest.mark.parametrize("number", [16, 22, 26, 36, 59])
def test_design_when_made_again_is_what_people_were_asked_before(number: int, snapshot) -> None:
    units, gold, plan = drawn_study(number)
    seats = design(units, gold, plan)
    marks = {"flip": "<>", "repeat": "again", "check": "gold"}
    assert [
        f"seat {seat.number}, block {place.block}: {place.item} "
        + " ".join(text for name, text in marks.items() if getattr(place, name))
        for seat in seats
        for place in seat.places
    ] == snapshot


def test_design_when_conditions_have_different_votes_seats_them_in_proportion() -> None:
    # 5 votes of text, 3 of images, a seat each; then text (5 to 3) and images (3 to 5/2) get one.
    units = conditions(1, 5, ["text"]) + conditions(1, 3, ["image"])
    held = [items_of(seat) for seat in design(units, [], Plan(raters=1, apart=True, seats=4))]
    assert sorted((items[0].split("/")[1], len(items)) for items in held) == [
        ("image", 1), ("image", 2), ("text", 2), ("text", 3)
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(30))
def test_seats_when_one_person_takes_all_that_fit_show_no_item_and_no_story_twice(number: int) -> None:
    units, _, plan = drawn_study(number)
    plan = replace(plan, repeats=0, checks=0)
    known = {unit.item: unit for unit in units}
    seen: list[Unit] = []
    for seat in design(units, [], plan):
        todo = [known[place.item] for place in seat.places]
        if fits(todo, seen, plan):
            seen += todo
    assert len({unit.item for unit in seen}) == len(seen)
    assert not plan.once or len({unit.story for unit in seen}) == len(seen)


def test_design_when_every_story_is_seen_once_by_each_is_a_latin_square() -> None:
    units = ratings(6)
    seats = design(units, [], Plan(raters=1, once=True))
    assert len(seats) == 6  # a story has six votes, and nobody sees it twice
    for seat in seats:
        shown = [item.split("/") for item in items_of(seat)]
        assert sorted(story for story, _ in shown) == [f"s{number:04}" for number in range(6)]
        assert sorted(name for _, name in shown) == sorted(METHODS)


# -- large studies


def test_design_when_a_study_has_thousands_of_votes_is_even_in_every_arm() -> None:
    units = ratings(200)
    loads = loads_of(design(units, [], Plan(raters=3, per_seat=60, once=True)), units)
    assert loads.pop(None) == [60] * 60
    assert [set(each) for each in loads.values()] == [{10}] * 6


def test_design_when_everybody_sees_all_asks_each_in_an_order_of_their_own() -> None:
    seats = design(texts(500), [], Plan(raters=3, block=50))
    assert len(seats) == 3
    assert all(len(set(items_of(seat))) == 500 for seat in seats)
    assert len({seat.places[0].item for seat in seats}) > 1
    assert [max(Counter(place.block for place in seat.places).values()) for seat in seats] == [50] * 3


# -- sides


def ahead_of(seats: Sequence[Seat], units: Sequence[Unit]) -> dict[tuple[str, ...], int]:
    """Return pair of methods -> how often the first of the alphabet stands left, less how often right."""
    known, ahead = {unit.item: unit for unit in units}, Counter[tuple[str, ...]]()
    for place in (place for seat in seats for place in seat.places if not place.repeat and not place.check):
        left, right = known[place.item].treatments[:: -1 if place.flip else 1]
        ahead[tuple(sorted((left, right)))] += 1 if left < right else -1
    return dict(ahead)


def test_sides_when_methods_are_compared_stand_either_way_as_often_over_all_and_in_a_seat() -> None:
    units = [*pairs(50), Unit("turned", "s9999", ("bert", "anna"), sides=2)]
    seats = design(units, [], Plan(raters=3, per_seat=32, once=True))
    over_all = ahead_of(seats, units)
    assert len(over_all) == 15
    for either in (over_all, *(ahead_of([seat], units) for seat in seats)):
        assert all(abs(ahead) <= 1 for ahead in either.values())


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


def test_seats_when_conditions_are_apart_and_seats_small_are_a_few_more() -> None:
    units = conditions(20, questions=10)
    seats = design(units, [], Plan(raters=3, per_seat=60, apart=True))
    assert 30 <= len(seats) <= 36  # 1,800 votes
    assert max(len(items_of(seat)) for seat in seats) <= 60
    for seat in seats:
        shown = {tuple(item.split("/")[:2]) for item in items_of(seat)}
        assert len({story for story, _ in shown}) == len(shown)


@pytest.mark.parametrize("number", range(60))
def test_design_when_a_plan_is_drawn_keeps_every_promise(number: int) -> None:
    units, gold, plan = drawn_study(number)
    known = {unit.item: unit for unit in (*units, *gold)}
    votes = wanted_votes(units, plan)
    least = least_seats(units, [votes[unit.item] for unit in units], plan)
    if number % 2 and not plan.apart:
        most = max(least, min(sum(votes.values()), 2 * least))
        plan = replace(plan, seats=random.Random(number).randint(least, most))
    try:
        seats = design(units, gold, plan)
    except ConfigError as error:
        assert error.where == "repeats"
        return
    placed = Counter(item for seat in seats for item in items_of(seat))
    assert placed == votes
    assert least <= len(seats) <= 2 * least
    assert [seat.number for seat in seats] == list(range(1, len(seats) + 1))
    assert plan.seats in (None, len(seats))
    assert plan.apart or all(differs(loads) <= 1 for loads in loads_of(seats, units).values())
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


@pytest.mark.parametrize("number", [0, 3, 5, 8])
def test_design_when_units_come_in_another_order_is_the_same(number: int) -> None:
    units, gold, plan = drawn_study(number)
    assert design(units, gold, plan) == design(units[::-1], gold[::-1], plan)


def test_design_when_the_seed_is_another_is_another() -> None:
    units = ratings(12)
    assert design(units, [], Plan(seed=1, per_seat=9)) != design(units, [], Plan(seed=2, per_seat=9))


# -- order


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


PLACES = Place("a", 0), Place("gold", 0, check=True), Place("b", 0), Place("a", 1, repeat=1), Place("c", 1)
SEAT = Seat(1, PLACES)


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


CANNOT_BE: dict[str, tuple[list[Unit], list[Unit], Plan]] = {
    "nothing": (texts(0), [], Plan()),
    "items twice": (texts(3) * 2, [], Plan()),
    "three sides": ([Unit("a", "s", sides=3)], [], Plan()),
    "no gold": (texts(5), [], Plan(checks=1)),
    "gold among items": (texts(5), texts(1), Plan(checks=1)),
    "two seats of three votes": (texts(5), [], Plan(raters=3, seats=2)),
    "conditions apart": (conditions(5), [], Plan(raters=3, seats=5, apart=True)),
    "conditions apart, eight seats": (conditions(4), [], Plan(raters=3, seats=8, apart=True)),
    "each story once": (ratings(5), [], Plan(raters=3, seats=17, once=True)),
    "small seats": (texts(10), [], Plan(raters=1, seats=2, per_seat=4)),
    "more seats than votes": (texts(2), [], Plan(raters=1, seats=3)),
    "a large gap": (texts(4), [], Plan(repeats=1, gap=5)),
    "many repetitions": (texts(4), [], Plan(repeats=5, gap=1)),
    "gold of a story": (texts(5), [Unit("gold", "s0001")], Plan(checks=1, once=True)),
    "gold of one story": (texts(5), [Unit("g1", "g"), Unit("g2", "g")], Plan(checks=2, once=True)),
}


def test_design_when_it_cannot_be_says_what_and_why(refusals, snapshot):
    assert refusals(lambda name: design(*CANNOT_BE[name]), CANNOT_BE) == snapshot


# -- how many items


@pytest.mark.parametrize(
    ("width", "variance", "raters", "by_item", "items"),
    [
        (0.1, 0.25, 1, 0.0, 385),  # Cochran, "Sampling techniques" (1977): 1.96^2 / 4 / 0.05^2 = 384.2
        (0.06, 0.25, 1, 0.0, 1068),  # the 3 % of opinion polls: 1067.1
        (4.0, 15.0**2, 1, 0.0, 217),  # a mean, 15 to either side of it: (1.96 * 15 / 2)^2 = 216.1
        (0.1, 0.25, 3, 0.0, 129),  # 384.1 independent votes, 3 of each item
        (0.1, 0.25, 3, 1.0, 385),  # votes on an item say the same: only items count
        (0.1, 0.24, 3, 0.4, 222),  # 4 * 3.8415 / 0.01 * 0.24 * (0.4 + 0.6 / 3) = 221.3
    ],
)
def test_items_when_worked_by_hand_or_published_are_as_many(width, variance, raters, by_item, items):
    assert items_for(width, variance, raters, by_item) == items


@given(
    st.floats(0.02, 2.0), st.floats(0.01, 4.0), st.integers(1, 12), st.floats(0.0, 1.0), st.floats(0.5, 0.99)
)
@settings(max_examples=50, deadline=None)
def test_items_when_scipy_makes_the_interval_are_the_fewest_within_the_width(
    width: float, variance: float, raters: int, by_item: float, level: float
) -> None:
    def reached(number: int) -> float:
        error = (variance * (by_item + (1 - by_item) / raters) / number) ** 0.5
        low, high = norm.interval(level, scale=error)
        return float(high - low)

    items = items_for(width, variance, raters, by_item, level)
    assert reached(items) <= width * (1 + 1e-9)
    assert items == 1 or reached(items - 1) > width * (1 - 1e-9)


@pytest.mark.parametrize(("width", "by_item", "where"), [(0.0, 0.0, "--width"), (0.1, 1.5, "--by-item")])
def test_items_when_a_number_is_out_of_range_are_not_counted(width, by_item, where):
    with pytest.raises(ConfigError) as caught:
        items_for(width, 0.25, by_item=by_item)
    assert caught.value.where == where


# -- Presets: each is a study that can be made, and has the numbers of its paper

NAMES = {
    "vistory", "storyeval", "entitybench", "entitybench-pairs", "kathatrace-study", "kathatrace-perception",
    "kathabench-review",
}  # fmt: skip


def test_presets_when_listed_are_these() -> None:
    assert set(preset_names()) == NAMES
    with pytest.raises(ConfigError, match="expected one of entitybench"):
        load_preset("../secret")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_preset_when_read_is_valid(name: str) -> None:
    preset = load_preset(name)
    assert preset.task in task_names()
    plan = preset.planned({})
    assert plan.raters >= 3 and preset.planned({"seed": 7}).seed == 7
    preset.ruled({})
    task = load_task(preset.task)
    assert set(preset.chosen({}).given) <= set(source_of(task).options)
    assert preset.protocol.keys() <= Protocol.model_fields.keys() - FIXED
    assert preset.source.count(".") > 1 and "ours" in preset.source
    assert task.card.apart <= plan.apart


def test_the_vistory_preset_when_dealt_gives_ten_ratings_of_every_story_in_tasks_of_eight() -> None:
    units = [
        Unit(f"{story}-{method}", f"{story}", (f"m{method}",)) for story in range(20) for method in range(6)
    ]
    seats = design(units, [], load_preset("vistory").planned({}))
    assert len(seats) == 20
    votes = Counter(place.item for seat in seats for place in seat.places)
    assert set(votes.values()) == {10} and len(votes) == 120
    blocks = [Counter(place.block for place in seat.places) for seat in seats]
    assert max(max(block.values()) for block in blocks) == 8
    assert max(map(len, blocks)) == 8  # 60 ratings of each person, in tasks of 8 at most


def test_the_entitybench_preset_when_dealt_shows_everything_to_three_people() -> None:
    preset = load_preset("entitybench")
    assert preset.chosen({}).count == 200
    units = [Unit(f"i{number}", f"e{number % 20}", ("m",)) for number in range(200)]
    seats = design(units, [], preset.planned({}))
    assert [len(seat.places) for seat in seats] == [200, 200, 200]


def test_the_kathatrace_preset_when_dealt_keeps_conditions_of_a_story_apart() -> None:
    plan = load_preset("kathatrace-study").planned({"checks": 0})
    units = [
        Unit(f"{story}-{condition}", f"s{story}", () if condition == "text" else ("m",), condition)
        for story in range(12)
        for condition in ("text", "image", "text_image")
    ]
    seats = design(units, [], plan)
    votes = Counter(place.item for seat in seats for place in seat.places if not place.repeat)
    assert set(votes.values()) == {3}
    for seat in seats:
        stories = [place.item.partition("-")[0] for place in seat.places if not place.repeat]
        assert len(set(stories)) == len(stories)


def test_numbers_of_the_papers_when_stated_are_there() -> None:
    assert (load_preset("storyeval").chosen({}).per_prompt, load_preset("storyeval").training) == (2, 20)
    assert load_preset("kathabench-review").planned({}) == Plan(raters=3, least=3, block=10)
    perception = load_preset("kathatrace-perception")
    assert perception.ruled({}).attention_failures == 0 and perception.planned({}).repeats == 2
