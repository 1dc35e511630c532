"""Rules of exclusion: those planted in simulated panels are found, careful people at stated rates only."""

import json
import math
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import binom, norm

from fabula.errors import ConfigError
from fabula.kinds.making_studies import Wanted, make
from fabula.people.review.exporting import export_files, reviewed_records
from fabula.people.review.folder import Study, open_study
from fabula.people.review.items import Item, Part
from fabula.people.review.plan import Plan, Rules, apply
from fabula.people.review.protocol import Floor, Protocol
from fabula.people.review.results import results
from fabula.people.review.status import care, lines, status
from fabula.people.study import Exclusion, exclude
from fabula.schemas.judgement import HumanRow
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_studies import NOW, add_votes
from fabula.testing.reviewed_records import answers_of, record_study, vote_all
from fabula.validators.careless import Said, answers_by_thing, beyond_chance, careless

# -- Panels of simulated reviewers with stated speed, skill and bad habits

PEOPLE, ITEMS, SECONDS, PACE_SPREAD = 12, 100, 20.0, 0.5
"""Median seconds that an item takes, and the standard deviation of their logarithm from item to item."""
LABELS = ("courage", "honesty", "kindness", "patience")
Habits = dict[int, dict[str, float]]
"""Person -> what is odd: ``pace``, how many times the usual seconds are taken; ``copies``, the person whose
answers are said; ``always``, the rating that is said; ``lapse``, the probability of failing a check;
``fickle``, that of answering a repeated item at random; ``items``, how many are rated before they leave."""


def rating(rater: str, item: str, value: int, **given: Any) -> HumanRow:
    columns = {"kind": "rating", "method": "m", "criterion": "quality", "rater": rater, "item": item}
    return HumanRow.model_validate({**columns, "value": value, **given})


def attention(rater: str, passed: bool) -> HumanRow:
    return HumanRow(kind="attention", rater=rater, item="gold", value=int(passed))


def simulated_ratings(seed: int, habits: Habits, checks: int = 0, repeats: int = 0) -> list[HumanRow]:
    """Return the whole numbers of a scale nearest to an item's value, a person's bias and little noise."""
    random = np.random.default_rng(seed)
    values = random.normal(3, 1.2, ITEMS) + random.normal(0, 0.8, (PEOPLE, 1))
    said = np.clip(np.rint(values + random.normal(0, 0.15, (PEOPLE, ITEMS))), 1, 5).astype(int)
    rows = []
    for person in range(1, PEOPLE + 1):
        habit, name = habits.get(person, {}), f"p{person}"
        pace, lapse = habit.get("pace", 1.0), habit.get("lapse", 0.0)
        rows += [attention(name, bool(random.random() >= lapse)) for _ in range(checks)]
        answers = said[int(habit.get("copies", person)) - 1]
        shown = [(item, 0) for item in range(int(habit.get("items", ITEMS)))]
        for item, repeat in [*shown, *((item, 1) for item in range(repeats))]:
            at_random = repeat and random.random() < habit.get("fickle", 0.0)
            value = habit.get("always", random.integers(1, 6) if at_random else answers[item])
            seconds = SECONDS * pace * math.exp(random.normal(0, PACE_SPREAD))
            rows.append(rating(name, f"i{item:03}", int(value), seconds=seconds, repeat=repeat))
    return rows


def simulated_labels(seed: int, skill: float, copies: dict[int, int]) -> list[HumanRow]:
    """Return moral labels: the true one of an item with probability ``skill``, else one of the others."""
    random = np.random.default_rng(seed)
    truth = random.integers(4, size=ITEMS)
    wrong = (truth + random.integers(1, 4, (PEOPLE, ITEMS))) % 4
    said = np.where(random.random((PEOPLE, ITEMS)) < skill, truth, wrong)
    about = {"kind": "moral_label", "condition": "text"}
    return [
        HumanRow(**about, rater=f"p{person}", item=f"s{item:03}", labels=(LABELS[label],))
        for person in range(1, PEOPLE + 1)
        for item, label in enumerate(said[copies.get(person, person) - 1])
    ]


def expects(found: int, people: int, rate: float) -> None:
    """See that as many were left out of so many people as a rate says, within 3.5 standard errors."""
    assert found / people == pytest.approx(rate, abs=3.5 * math.sqrt(rate * (1 - rate) / people))


def names(*numbers: int) -> set[str]:
    return {f"p{number}" for number in numbers}


# -- what was planted is found


# With little noise, two people of one taste say the same of nine items in ten: max_match lies above that.
ALL_RULES = Rules(
    attention_failures=1, min_speed_share=0.4, min_consistency=0.5, consistency_items=10, max_same=0.5,
    max_match=0.98, match_items=50, min_items=50,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_rules_when_habits_are_planted_find_each_of_them_and_nobody_else(seed: int) -> None:
    planted: Habits = {2: {"pace": 0.2}, 3: {"copies": 4}, 5: {"always": 3}, 6: {"lapse": 1.0},
                       7: {"fickle": 1.0}, 8: {"items": 30}}  # fmt: skip
    left_out = apply(simulated_ratings(seed, planted, checks=4, repeats=20), ALL_RULES)
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
    rows = simulated_labels(seed, 0.85, {9: 2})
    left_out = apply(rows, Rules(max_match=0.95, match_items=50))
    assert set(left_out.people) == names(2, 9)
    (reason,) = left_out.people["p9"]
    assert reason.text.startswith("100 of 100 answers are the same as those of p2; 7")
    assert left_out.kept.people["p9"] == reason.text
    for least, people in ((100, names(2, 9)), (101, set())):
        assert set(apply(rows, Rules(max_match=0.95, match_items=least)).people) == people


# -- and careful people at the stated rates only


def test_speed_when_careful_people_differ_leaves_out_as_many_as_their_spread_says() -> None:
    # The median of 25 log-normal times has a standard error of 1.2533 x 0.5 / 5 in the logarithm.
    people, spread, share = 250, 0.3, 0.7
    random = np.random.default_rng(1)
    times = np.exp(random.normal(0, spread, (people, 1)) + random.normal(0, PACE_SPREAD, (people, 25)))
    rows = [
        rating(f"p{person}", f"i{item}", 3, seconds=SECONDS * taken)
        for (person, item), taken in np.ndenumerate(times)
    ]
    left_out = apply(rows, Rules(min_speed_share=share))
    rate = norm.cdf(math.log(share) / math.hypot(spread, 1.2533 * PACE_SPREAD / 5))
    assert rate == pytest.approx(0.136, abs=0.001)
    expects(len(left_out.people), people, rate)
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
    expects(len(left_out.people), people, rate)


def test_checks_when_careful_people_fail_some_leave_out_as_many_as_chance_says() -> None:
    people, lapse = 600, 0.1
    passed = np.random.default_rng(3).random((people, 4)) >= lapse
    rows = [attention(f"p{person}", bool(each)) for (person, _), each in np.ndenumerate(passed)]
    rate = float(binom.sf(1, 4, lapse))  # two or more of four
    left_out = apply(rows, Rules(attention_failures=1))
    expects(len(left_out.people), people, rate)


def test_copying_when_everybody_errs_alone_leaves_out_nobody_in_many_panels() -> None:
    # However low the share: by the rule's own level, one pair in a thousand such panels.
    rules = Rules(max_match=0.01, match_items=50)
    for seed in range(4):
        assert not apply(simulated_labels(seed, 0.7, {}), rules).people


def test_copying_when_there_are_two_people_cannot_tell_what_is_usual() -> None:
    rows = [rating(rater, f"i{item}", 3) for rater in ("p", "q") for item in range(ITEMS)]
    assert not apply(rows, Rules(max_match=0.9)).people
    odd = [rating("r", f"i{item}", 1) for item in range(ITEMS)]
    assert set(apply([*rows, *odd], Rules(max_match=0.9)).people) == {"p", "q"}


# -- what rules mean, by hand


def test_rules_when_none_are_stated_leave_out_nobody_and_nothing() -> None:
    rows = simulated_ratings(0, {1: {"pace": 0.01, "always": 3, "lapse": 1.0}, 2: {"copies": 3}}, checks=2)
    left_out = apply(rows, Rules())
    assert (dict(left_out.people), left_out.rows) == ({}, ())
    assert len(left_out.kept.rows) == PEOPLE * ITEMS


def test_rules_when_they_are_those_of_calibration_leave_out_the_same() -> None:
    planted: Habits = {1: {"lapse": 1.0}, 2: {"fickle": 1.0}, 3: {"pace": 0.1}}
    rows = simulated_ratings(5, planted, checks=3, repeats=20)
    stated = {"attention_failures": 1, "min_seconds": 5.0, "min_consistency": 0.5}
    mine, usual = apply(rows, Rules(**stated)).kept, exclude(rows, Exclusion(**stated))
    assert mine.rows == usual.rows
    assert mine.people.keys() == usual.people.keys() == names(1, 2)
    assert (mine.fast, mine.consistency) == (usual.fast, usual.consistency)
    assert mine.fast > 50


def test_reasons_when_several_rules_say_so_are_all_kept_whatever_the_order() -> None:
    rows = simulated_ratings(4, {5: {"always": 3, "pace": 0.1, "lapse": 1.0}}, checks=4)
    rules = Rules(attention_failures=0, min_speed_share=0.4, max_same=0.5)
    left_out = apply(rows, rules)
    reasons = [reason.rule for reason in left_out.people["p5"]]
    assert reasons == ["attention_failures", "min_speed_share", "max_same"]
    assert apply(rows[::-1], rules).people == left_out.people
    document = left_out.as_json()
    assert document["by_rule"] == {"attention_failures": 1, "max_same": 1, "min_speed_share": 1}
    assert document["people"]["p5"][0]["why"] == "attention checks failed: 4"
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
    choice = {"kind": "preference", "rater": "left", "method": "m", "baseline": "n", "criterion": "Q15"}
    return [HumanRow(**choice, item=f"s{number}", value=2 * side) for number, side in enumerate(sides)]


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
    minutes = [number % 2 * 30 + number // 2 for number in range(20)]
    rows = [
        rating("p", f"i{number}", 3 + number % 2, at=f"2030-01-01T00:{minute:02}:00+00:00")
        for number, minute in enumerate(minutes)
    ]
    assert apply(rows, Rules(max_same=0.49)).people
    assert not apply([row.model_copy(update={"at": None}) for row in rows], Rules(max_same=0.49)).people


def test_rules_when_a_field_is_unknown_or_out_of_range_are_refused() -> None:
    for wrong in ({"max_same": 1.5}, {"min_speed_share": 0.0}, {"match_items": 1}, {"fastest": 3}):
        with pytest.raises(ValidationError):
            Rules.model_validate(wrong)
    rules = Rules(min_seconds={"rating": 2.0}, max_same=0.8)
    assert Rules.model_validate(rules.as_json()) == rules


# -- Reviews without care: votes below the least time, one option throughout, answers like coins

FLOOR = {"words_per_second": 10.0, "seconds_per_answer": 0.5}


def timeline(seconds: float) -> list[tuple[float, str]]:
    """Raw events of a page that was seen so long."""
    return [(0.0, "visible"), (0.0, "loaded"), (1000 * seconds, "sent")]


def least(study: Study) -> float:
    """The least seconds of a vote on the first record, by hand: its words and its answers."""
    item = next(iter(study.items))
    return study.items[item].words / 10 + len(answers_of(study, item)) / 2


def test_words_when_counted_are_those_that_are_shown_and_half_the_letters_without_spaces() -> None:
    part = Part(id="p", text="Why did it rain?", detail=("because", "the cloud burst"))  # 4 + 1 + 3
    item = Item(
        item="i", texts={"story": "One two.", "scenes": ["three", {"a": "four"}]}, parts={"q": (part,)}
    )
    assert item.words == 4 + 8
    assert Item(item="i", texts={"story": "昔々ある所に"}).words == 1 + 3


def test_a_vote_when_below_the_least_time_is_stored_and_flagged_and_counts_nowhere(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1, floor=FLOOR)
    bound = least(study)
    assert bound > 20  # a record has a story of a hundred words and twenty questions
    fast = vote_all(study, timeline=timeline(bound - 0.1))
    standing = fast.standing()
    assert sum(len(person.votes) for person in standing.reviewers.values()) == 3
    assert reviewed_records(fast, standing) == []
    document = results(fast, standing)
    assert (document["all"]["votes"], document["kept"]["votes"]) == (3, 0)
    assert document["exclusions"]["under_floor"] == 3
    told = status(fast, standing, NOW)
    assert (told["votes"], told["care"]["under_floor"]) == ({"wanted": 3, "given": 0}, 3)
    shown = "\n".join(lines(told))
    assert "below the least time, on file and not counted: 3 of 3 votes" in shown
    assert "careless? simulated-1: 1 of 1 votes took less than the least time" in shown
    assert "1 answered, 1 too fast to count" in shown


def test_a_vote_when_it_took_the_least_time_counts(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1, floor=FLOOR)
    voted = vote_all(study, timeline=timeline(least(study)))
    (record,) = reviewed_records(voted, voted.standing())
    assert record.complete and record.decision == "accepted"
    unseen = vote_all(record_study(tmp_path / "unseen", 1, floor=FLOOR))  # no page said that it was seen
    assert reviewed_records(unseen, unseen.standing()) == []


def test_a_review_when_three_took_the_first_option_in_two_seconds_accepts_nothing(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 2, floor=FLOOR)
    for number, seat in study.seats.items():
        votes = {
            place.item: {**answers_of(study, place.item), "confidence": 1} for place in seat.places
        }  # the first of five
        about = {"seat": number, "closed": ["0"], "timeline": timeline(2)}
        add_votes(study, f"simulated-{number}", votes, **about)
    exported = export_files(open_study(study.folder), tmp_path / "out")
    assert exported.counts == {"records": 0, "votes": 0, "edits": 0, "open_cases": 0}
    signs = json.loads((tmp_path / "out/careless.json").read_bytes())["people"]
    assert signs.keys() == {"simulated-1", "simulated-2", "simulated-3"}
    assert signs["simulated-1"][0] == "2 of 2 votes took less than the least time"
    assert signs["simulated-1"][1].startswith("chose option 1 in ")
    assert exported.next[-1].endswith("--accept-careless")
    assert any(line.startswith("careless? simulated-1: ") for line in exported.lines())


def test_a_protocol_when_it_is_of_before_has_the_hash_that_it_had(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1)
    document = json.loads((study.folder / "protocol.json").read_bytes())
    assert "floor" not in document
    assert Protocol.model_validate({**document, "floor": None}).sha256 == study.protocol.sha256


# -- signs


def said(who: str, answers: str, question: str = "q", *, placed: bool = True) -> list[Said]:
    """Answers ``a`` and ``b`` of somebody about things 0, 1, ..., at their places."""
    return [
        Said(who, number, question, answer, "ab".index(answer) if placed else None)
        for number, answer in enumerate(answers)
    ]


@pytest.mark.parametrize(("firsts", "others", "is_flagged"), [(39, 1, True), (38, 2, False), (19, 0, False)])
def test_one_option_when_it_is_nearly_all_that_was_chosen_is_flagged(
    firsts: int, others: int, *, is_flagged: bool
) -> None:
    # 39 of 40 are 0.975, 38 of 40 are 0.95; 19 answers are too few.
    found = careless(said("ana", "a" * firsts + "b" * others))
    assert found == (
        {"ana": [f"chose option 1 in {firsts} of {firsts + others} answers"]} if is_flagged else {}
    )


def test_agreement_when_counted_by_hand_is_what_is_beyond_chance() -> None:
    # 20 things; ana says a 10 times, ben 10 times, the same of 14 things. Dealt anew they would agree on
    # 20 x (0.5 x 0.5 + 0.5 x 0.5) = 10: (14 - 10) / (20 - 10) = 0.4. Variance: the number of a's that meet is
    # hypergeometric, 20 drawn 10 and 10: 10 x 10 x 10 x 10 / (20 x 20 x 19) = 1.316; twice that agree: 5.263.
    ana, ben = "a" * 10 + "b" * 10, "a" * 7 + "b" * 3 + "a" * 3 + "b" * 7
    everybody = answers_by_thing([*said("ana", ana), *said("ben", ben)])
    value, upper, answers = beyond_chance(said("ana", ana), everybody) or (0.0, 0.0, 0)
    assert (value, answers) == (pytest.approx(0.4), 20)
    assert upper == pytest.approx((4 + 1.645 * 5.263**0.5) / 10, abs=1e-3)


def test_coins_when_thrown_for_200_things_are_flagged_and_a_careful_pair_is_not() -> None:
    draw = np.random.default_rng(42)
    truth = draw.integers(0, 2, 200)
    careful = [np.where(draw.random(200) < 0.9, truth, 1 - truth) for _ in range(3)]
    letters = ["".join("ab"[each] for each in row) for row in (*careful, draw.integers(0, 2, 200))]
    told = [each for who, row in zip("wxyz", letters, strict=True) for each in said(who, row)]
    assert careless(told).keys() == {"z"}
    assert "no more than chance would" in careless(told)["z"][0]


def test_careful_reviewers_when_records_are_faultless_are_not_flagged(tmp_path: Path) -> None:
    voted = vote_all(record_study(tmp_path / "study", 3))  # all is well, confidence 4
    assert care(voted, voted.standing())["people"] == {}


# -- what a study has by default


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run", sample_bundles(8))


def test_a_study_when_nothing_is_said_has_a_least_time_and_repeats_and_says_what_it_lacks(run, tmp_path):
    made = make(tmp_path / "study", run, {}, Wanted(task="record", simulated=True))
    study = open_study(tmp_path / "study")
    assert study.protocol.floor == Floor() and study.protocol.dealt.repeats == 2
    assert all(sum(place.repeat for place in seat.places) == 2 for seat in study.seats.values())
    second, third = list(made.lines())[1:3]
    assert second.startswith("least time of a vote: 1 s for 20 words shown and 0.5 s for each answer")
    assert third == "repeated items of each seat: 2; gold items: none (--gold FILE gives some)"
    assert "controls of care that this study has not: no gold items" in lines(
        status(study, study.standing(), NOW)
    )


def test_a_study_when_a_stand_in_wrote_its_records_keeps_who(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    with (tmp_path / "run" / "producers.jsonl").open("ab") as lines:
        lines.write(b'{"producer":"local:stand-in via katha/draft_scenes@1"}\n')
    for source, kept in ((run, None), (tmp_path / "run", ["local:stand-in"])):
        make(tmp_path / f"study-{kept is None}", source, {}, Wanted(task="record", simulated=True))
        assert open_study(tmp_path / f"study-{kept is None}").protocol.source.get("stand_ins") == kept


def test_a_study_when_a_preset_makes_it_keeps_the_design_of_its_paper(run: Path, tmp_path: Path) -> None:
    made = make(tmp_path / "study", run, {}, Wanted(preset="kathabench-review", simulated=True))
    dealt = open_study(tmp_path / "study").protocol.dealt
    assert dealt == Plan(raters=3, least=3, block=10)
    assert "repeated items of each seat: none, as in the paper of kathabench-review; " in "\n".join(
        made.lines()
    )


def test_a_study_when_seats_are_too_small_has_no_repeats_unless_they_are_asked_for(run, tmp_path):
    made = make(tmp_path / "study", run, {"limit": 2}, Wanted(task="record", simulated=True), dry_run=True)
    assert made.document["care"]["repeats"] == 0
    with pytest.raises(ConfigError, match="too few to ask"):
        make(tmp_path / "study", run, {"limit": 2, "repeats": 2}, Wanted(task="record"), dry_run=True)
    lifted = Wanted(task="record", settings={"floor": None}, simulated=True)
    make(tmp_path / "study", run, {"limit": 2}, lifted)
    assert open_study(tmp_path / "study").protocol.floor is None
