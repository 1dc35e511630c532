"""Rules of exclusion: those planted in simulated panels are found, careful people at stated rates only."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import binom, norm

from fabula.people.review.design import Place, Plan, Seat, Unit, design
from fabula.people.review.exclusions import Rules, apply
from fabula.people.study import Exclusion, exclude
from fabula.schemas.judgement import HumanRow
from fabula.testing.simulated_panel import (
    PACE_SPREAD,
    Panel,
    Population,
    Reviewer,
    draw_panel,
    simulated_labels,
    simulated_ratings,
)

PEOPLE, ITEMS = 12, 100
UNITS = {f"i{number:03}": Unit(f"i{number:03}", f"s{number:03}", ("m",)) for number in range(ITEMS)}
GOLD = [Unit(f"gold-{number}", f"g{number}") for number in range(4)]


def seats(people: int = PEOPLE, **plan: Any) -> tuple[Seat, ...]:
    return design(list(UNITS.values()), GOLD, Plan(raters=people, least=people, **plan))


def panel(seed: int, *habits: Reviewer, people: int = PEOPLE, **population: Any) -> Panel:
    return draw_panel(Population(**population), people, list(UNITS), seed).planted(*habits)


def names(*numbers: int) -> set[str]:
    return {f"simulated-{number}" for number in numbers}


def rating(rater: str, item: str, value: int, **given: Any) -> HumanRow:
    columns = {"kind": "rating", "method": "m", "criterion": "quality", "rater": rater, "item": item}
    return HumanRow.model_validate({**columns, "value": value, **given})


# -- what was planted is found


# With little noise, two people of one taste say the same of nine items in ten: max_match lies above that.
ALL_RULES = Rules(
    attention_failures=1, min_speed_share=0.4, min_consistency=0.5, consistency_items=10, max_same=0.5,
    max_match=0.98, match_items=50, min_items=50,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_rules_when_habits_are_planted_find_each_of_them_and_nobody_else(seed: int) -> None:
    planted = panel(
        seed, Reviewer(2, pace=0.2), Reviewer(3, copies=4), Reviewer(5, always=3), Reviewer(6, lapse=1.0),
        Reviewer(7, fickle=1.0), noise=0.15, person_spread=0.8, item_spread=1.2,
    )  # fmt: skip
    asked = [*seats(checks=4, repeats=20)]
    asked[7] = replace(asked[7], places=asked[7].places[:30])  # simulated-8 left after thirty items
    left_out = apply(simulated_ratings(planted, asked, UNITS), ALL_RULES)
    by_rule: dict[str, set[str]] = {}
    for rater, reasons in left_out.people.items():
        for reason in reasons:
            by_rule.setdefault(reason.rule, set()).add(rater)
    assert by_rule == {
        "attention_failures": names(6), "min_speed_share": names(2), "min_consistency": names(7),
        "max_same": names(5), "max_match": names(3, 4), "min_items": names(8),
    }  # fmt: skip
    assert {row.rater for row in left_out.kept.rows} == names(1, 9, 10, 11, 12)
    assert all(row.kind == "rating" for row in left_out.kept.rows)


@pytest.mark.parametrize("seed", range(2))
def test_rules_when_people_copy_labels_find_the_pair(seed: int) -> None:
    planted = panel(seed, Reviewer(9, copies=2), skill=0.85)
    left_out = apply(simulated_labels(planted, seats(), UNITS), Rules(max_match=0.95, match_items=50))
    assert set(left_out.people) == names(2, 9)
    (reason,) = left_out.people["simulated-9"]
    assert reason.text.startswith("100 of 100 answers are the same as those of simulated-2; 7")
    assert left_out.kept.people["simulated-9"] == reason.text


# -- and careful people at the stated rates only


def test_speed_when_careful_people_differ_leaves_out_as_many_as_their_spread_says() -> None:
    # The median of 25 log-normal times has a standard error of 1.2533 x 0.5 / 5 in the logarithm.
    people, spread, share = 250, 0.3, 0.7
    random = np.random.default_rng(1)
    paces = np.exp(random.normal(0, spread, people))
    habits = [Reviewer(number, pace=float(pace)) for number, pace in enumerate(paces, 1)]
    places = tuple(Place(item, 0) for item in list(UNITS)[:25])
    asked = [Seat(number, places) for number in range(1, people + 1)]
    rows = simulated_ratings(panel(1, *habits, people=people), asked, UNITS)
    left_out = apply(rows, Rules(min_speed_share=share))
    rate = norm.cdf(math.log(share) / math.hypot(spread, 1.2533 * PACE_SPREAD / 5))
    assert rate == pytest.approx(0.136, abs=0.001)
    assert len(left_out.people) / people == pytest.approx(
        rate, abs=3.5 * math.sqrt(rate * (1 - rate) / people)
    )
    assert not apply(rows, Rules(min_speed_share=0.2)).people  # 5 standard deviations: one in 4 million


@pytest.mark.parametrize(
    ("seconds", "left_out"),
    [((10, 10, 4), set()), ((10, 10, 3.9), {"p2"}), ((1, 1, 0.3), {"p2"}), ((0, 0, 3), set())],
)
def test_speed_when_a_share_is_at_the_bound_or_nobody_took_time_leaves_nobody_out(
    seconds: Sequence[float], left_out: set[str]
) -> None:
    # medians 10, 10, 1 and 0: 4 is a share of 0.4, which is not below it, and of 0 there is no share
    rows = [rating(f"p{person}", "i000", 3, seconds=taken) for person, taken in enumerate(seconds)]
    assert set(apply(rows, Rules(min_speed_share=0.4)).people) == left_out


def test_straight_lining_when_answers_are_tossed_leaves_out_as_many_as_runs_say() -> None:
    # Of ten tosses, a run of one side longer than 5 is one of heads longer than 4 in the nine comparisons
    # with the toss before (Schilling 1990): 464 of 512 sequences have none.
    people, rate = 1000, 1 - 464 / 512
    tosses = np.random.default_rng(2).integers(1, 3, (people, 10))
    rows = [
        rating(f"p{person}", f"i{step}", int(value))
        for person, values in enumerate(tosses)
        for step, value in enumerate(values)
    ]
    left_out = apply(rows, Rules(max_same=0.5))
    assert len(left_out.people) / people == pytest.approx(
        rate, abs=3.5 * math.sqrt(rate * (1 - rate) / people)
    )


def test_checks_when_careful_people_fail_some_leave_out_as_many_as_chance_says() -> None:
    people, lapse = 600, 0.1
    habits = [Reviewer(number, lapse=lapse) for number in range(1, people + 1)]
    places = tuple(Place(unit.item, 0, check=True) for unit in GOLD)
    asked = [Seat(number, (*places, Place("i000", 0))) for number in range(1, people + 1)]
    rows = simulated_ratings(panel(3, *habits, people=people), asked, UNITS)
    rate = float(binom.sf(1, 4, lapse))  # two or more of four
    left_out = apply(rows, Rules(attention_failures=1))
    assert len(left_out.people) / people == pytest.approx(
        rate, abs=3.5 * math.sqrt(rate * (1 - rate) / people)
    )


def test_copying_when_everybody_errs_alone_leaves_out_nobody_in_many_panels() -> None:
    # However low the share: by the rule's own level, one pair in a thousand such panels.
    rules = Rules(max_match=0.01, match_items=50)
    for seed in range(4):
        assert not apply(simulated_labels(panel(seed, skill=0.7), seats(), UNITS), rules).people


def test_copying_when_there_are_two_people_cannot_tell_what_is_usual() -> None:
    rows = [rating(rater, item, 3) for rater in ("p", "q") for item in UNITS]
    assert not apply(rows, Rules(max_match=0.9)).people
    odd = [rating("r", item, 1) for item in UNITS]
    assert set(apply([*rows, *odd], Rules(max_match=0.9)).people) == {"p", "q"}


# -- what rules mean, by hand


def test_rules_when_none_are_stated_leave_out_nobody_and_nothing() -> None:
    planted = panel(0, Reviewer(1, pace=0.01, always=3, lapse=1.0), Reviewer(2, copies=3))
    rows = simulated_ratings(planted, seats(checks=2), UNITS)
    left_out = apply(rows, Rules())
    assert (dict(left_out.people), left_out.rows) == ({}, ())
    assert len(left_out.kept.rows) == PEOPLE * ITEMS


def test_rules_when_they_are_those_of_calibration_leave_out_the_same() -> None:
    planted = panel(5, Reviewer(1, lapse=1.0), Reviewer(2, fickle=1.0), Reviewer(3, pace=0.1), noise=0.15)
    rows = simulated_ratings(planted, seats(checks=3, repeats=20), UNITS)
    stated = {"attention_failures": 1, "min_seconds": 5.0, "min_consistency": 0.5}
    mine, usual = apply(rows, Rules(**stated)).kept, exclude(rows, Exclusion(**stated))
    assert mine.rows == usual.rows
    assert mine.people.keys() == usual.people.keys() == names(1, 2)
    assert (mine.fast, mine.consistency) == (usual.fast, usual.consistency)
    assert mine.fast > 50


def test_reasons_when_several_rules_say_so_are_all_kept_whatever_the_order() -> None:
    planted = panel(4, Reviewer(5, always=3, pace=0.1, lapse=1.0))
    rows = simulated_ratings(planted, seats(checks=4), UNITS)
    rules = Rules(attention_failures=0, min_speed_share=0.4, max_same=0.5)
    left_out = apply(rows, rules)
    reasons = [reason.rule for reason in left_out.people["simulated-5"]]
    assert reasons == ["attention_failures", "min_speed_share", "max_same"]
    assert apply(rows[::-1], rules).people == left_out.people
    document = left_out.as_json()
    assert document["by_rule"] == {"attention_failures": 1, "max_same": 1, "min_speed_share": 1}
    assert document["people"]["simulated-5"][0]["why"] == "attention checks failed: 4"
    assert (document["lines"], document["lines_kept"]) == (0, (PEOPLE - 1) * ITEMS)


def test_fast_lines_when_kinds_have_limits_of_their_own_go_with_their_reason() -> None:
    label = {"kind": "moral_label", "rater": "p", "item": "s", "condition": "text", "labels": ["kindness"]}
    rows = [
        rating("p", "a", 3, seconds=2.0), rating("p", "b", 3, seconds=4.0), rating("p", "c", 3),
        HumanRow.model_validate({**label, "seconds": 4.0}),
    ]  # fmt: skip
    left_out = apply(rows, Rules(min_seconds={"rating": 3.0, "moral_label": 10.0}))
    assert [(dropped.row.item, dropped.reason.text) for dropped in left_out.rows] == [
        ("a", "answered in 2.0 s, below 3 s"), ("s", "answered in 4.0 s, below 10 s"),
    ]  # fmt: skip
    assert [row.item for row in left_out.kept.rows] == ["b", "c"]
    assert left_out.as_json()["lines_by_rule"] == {"min_seconds": 2}
    assert left_out.kept.fast == 2


def preferences(sides: Iterable[int]) -> list[HumanRow]:
    """Somebody who always says +2 for what stands left; -1 where the method stands right."""
    return [
        HumanRow(
            kind="preference", rater="left", item=f"s{number}", method="m", baseline="n", criterion="Q15",
            value=2 * side,
        )
        for number, side in enumerate(sides)
    ]  # fmt: skip


def test_straight_lining_when_sides_change_is_seen_in_what_was_pressed() -> None:
    sides: Sequence[int] = [1, -1] * 10
    rows = preferences(sides)
    turned = {f"s{number}": side for number, side in enumerate(sides)}
    rules = Rules(max_same=0.8)
    assert not apply(rows, rules).people
    by_side = apply(rows, rules, pressed=lambda row: (row.value or 0) * turned[str(row.item)])
    assert by_side.people["left"][0].text == "preference Q15: 20 of 20 answers in a row are the same"


def test_straight_lining_when_lines_have_times_follows_them() -> None:
    # In the file the answers alternate; in time, ten 3s come first.
    rows = [
        rating(
            "p", f"i{number}", 3 + number % 2, at=f"2030-01-01T00:{number % 2 * 30 + number // 2:02}:00+00:00"
        )
        for number in range(20)
    ]
    assert apply(rows, Rules(max_same=0.49)).people
    assert not apply([row.model_copy(update={"at": None}) for row in rows], Rules(max_same=0.49)).people


def test_rules_when_a_field_is_unknown_or_out_of_range_are_refused() -> None:
    for wrong in ({"max_same": 1.5}, {"min_speed_share": 0.0}, {"match_items": 1}, {"fastest": 3}):
        with pytest.raises(ValidationError):
            Rules.model_validate(wrong)
    rules = Rules(min_seconds={"rating": 2.0}, max_same=0.8)
    assert Rules.model_validate(rules.as_json()) == rules
