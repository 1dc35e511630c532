"""Reading what people said: JSONL and CSV alike, every problem with its line, nothing dropped silently."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import PermutationMethod, bootstrap, wilcoxon

import fabula
from fabula.errors import InputError
from fabula.people.ratings import Preferred, human_ratings, preferences, preferred_dimensions
from fabula.people.read import Known, read_human
from fabula.people.recoverability import Resampling, estimate, human_moral, human_recovery, ratio
from fabula.people.study import Exclusion, exclude
from fabula.releases.loading import Release
from fabula.schemas.judgement import NEEDED, HumanRow
from fabula.schemas.katha import Question

Write = Callable[..., Path]
ANSWER = {
    "kind": "answer", "rater": "p1", "item": "kb25k_0001_q01", "condition": "image", "method": "m",
    "answer": "a rope",
}  # fmt: skip


def problems(path: Path, known: Known, **given: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_human(path, known, **given)  # type: ignore[arg-type]
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def item(known: Known) -> str:
    return next(iter(known.questions))


@pytest.fixture
def story(known: Known) -> str:
    return next(iter(known.morals))


def test_file_when_csv_and_jsonl_say_the_same_gives_the_same_lines(written, known, item, story):
    csv = written(
        "people.csv",
        "kind,rater,item,condition,method,answer,labels,criterion,value,baseline,seconds,completion",
        f'answer,p1,{item},text,,"rain, and no rope",,,,,12.5,',
        f"moral_label,7,{story},image,m,,kindness|wisdom,,,,,",
        f"rating,p1,{story},,m,,,NCS,4,,,",
        f"preference,p1,{story},,m,,,Q1,-2,n,,",
        f"preference,p1,{story},,m,unclear,,Q2,,n,,",
        "attention,p1,check_1,,,,,,1,,,",
        "",
    )
    rows = [
        {"kind": "answer", "rater": "p1", "item": item, "condition": "text", "answer": "rain, and no rope",
         "seconds": 12.5},
        {"kind": "moral_label", "rater": "7", "item": story, "condition": "image", "method": "m",
         "labels": ["kindness", "wisdom"]},
        {"kind": "rating", "rater": "p1", "item": story, "method": "m", "criterion": "NCS", "value": 4},
        {"kind": "preference", "rater": "p1", "item": story, "method": "m", "baseline": "n",
         "criterion": "Q1", "value": -2},
        {"kind": "preference", "rater": "p1", "item": story, "method": "m", "baseline": "n",
         "criterion": "Q2", "answer": "unclear"},
        {"kind": "attention", "rater": "p1", "item": "check_1", "value": 1},
    ]  # fmt: skip
    jsonl = written("people.jsonl", *map(json.dumps, rows))
    assert read_human(csv, known) == read_human(jsonl, known)
    assert len(read_human(csv, known)) == 6


def test_line_when_wrong_is_named_with_its_number_and_column(written, known, item, refusals, snapshot):
    good = ANSWER | {"item": item}

    def read(change):
        lines = (json.dumps(good), "", json.dumps(good | {"rater": "p2"} | change))
        path = written("people.jsonl", *lines)
        assert len(problems(path, known)) == 1
        read_human(path, known)

    assert refusals(read, [
        {"rater": None}, {"rater": ""}, {"rater": 5}, {"item": "kb25k_9999_q01"}, {"method": "o"},
        {"method": None}, {"condition": "text"}, {"condition": "picture"}, {"answer": None},
        {"confidence": "sure"}, {"seconds": -1}, {"mood": "good"},
    ]) == snapshot  # fmt: skip


def test_file_when_many_lines_are_wrong_names_them_all(written, known, item, story):
    rows = [
        {"kind": "rating", "rater": "p1", "item": story, "method": "m", "criterion": "NCS", "value": 6},
        {"kind": "preference", "rater": "p1", "item": story, "method": "m", "baseline": "m",
         "criterion": "Q1", "value": 1},
        {"kind": "moral_label", "rater": "p1", "item": story, "condition": "image", "method": "m",
         "labels": ["kindness", "speed"]},
        {"kind": "rating", "rater": "p1", "item": "a.mp4", "method": "m", "criterion": "NCS", "value": 1},
        ["a list"],
    ]  # fmt: skip
    found = problems(written("people.jsonl", *map(json.dumps, rows), "{"), known)
    assert len(found) == 6
    for words in ("value: expected a rating from 1 to 5, found 6", "compares two methods", "'speed'",
                  "a story of the release"):  # fmt: skip
        assert any(words in text for text in found)


def test_person_when_answering_twice_differently_is_a_problem_and_the_same_is_none(written, known, item):
    first, other = json.dumps(ANSWER | {"item": item}), json.dumps(ANSWER | {"item": item, "answer": "b"})
    again = json.dumps(ANSWER | {"item": item, "answer": "b", "repeat": 1})
    assert len(read_human(written("a.jsonl", first, first, again), known)) == 2
    (problem,) = problems(written("b.jsonl", first, other), known)
    assert "b.jsonl:2" in problem
    assert "b.jsonl:1" in problem


def test_file_when_of_another_form_is_refused(written, known, refusals, snapshot):
    assert refusals(lambda case: read_human(written(*case), known), [
        ("people.txt", "x"), ("people.csv", "kind,rater,age", "answer,p,3"),
        ("people.csv", "kind,rater,rater", "answer,p,3"), ("people.csv", "kind,rater,item", "answer,p"),
        ("people.csv", "kind,rater", '"answer,p'), ("people.csv", "kind,rater,item"), ("people.jsonl", ""),
    ]) == snapshot  # fmt: skip


def test_file_when_missing_or_not_utf_8_is_refused(tmp_path: Path, known: Known) -> None:
    assert "nothing there" in problems(tmp_path / "none.csv", known)[0]
    (tmp_path / "latin.csv").write_bytes("kind,rater\nanswer,\xe9".encode("latin-1"))
    assert "in UTF-8" in problems(tmp_path / "latin.csv", known)[0]


def test_tasks_when_anonymised_stand_for_what_the_key_says(written: Write) -> None:
    known = Known(methods=frozenset({"x"}), events={"a.mp4": 2})
    row = {"kind": "completion", "rater": "p1", "item": "task_0001", "completion": [1, 0]}
    key = {"task_0001": ("a.mp4", "x"), "task_0002": ("gone.mp4", "x")}
    (found,) = read_human(written("a.jsonl", json.dumps(row)), known, key)
    assert (found.item, found.method, found.completion) == ("a.mp4", "x", (1, 0))
    (problem,) = problems(written("a.jsonl", json.dumps(row)), known)
    assert "given with --key" in problem
    changes = ({"item": "task_9"}, {"method": "x"}, {"item": "task_0002"}, {"completion": [1]})
    bad = [row | change for change in changes]
    found_problems = problems(written("b.jsonl", *map(json.dumps, bad)), known, key=key)
    assert [text.partition(" ")[0].rpartition(":")[2] for text in found_problems] == ["1", "2", "3", "4"]


@given(st.text(max_size=200))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_file_when_it_holds_anything_gives_problems_not_crashes(tmp_path, known, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "replace"))
    assert problems(path, known)


def test_columns_of_a_study_when_csv_and_jsonl_say_the_same_give_the_same_lines(written, known, story):
    csv = written(
        "people.csv",
        "kind,rater,item,method,criterion,value,part,at,protocol,simulated",
        f"rating,p1,{story},m,NCS,4,1-2,2026-01-01T00:00:00Z,{'a' * 64},true",
        f"rating,p2,{story},m,NCS,4,,,,False",
        f"rating,p3,{story},m,NCS,4,,,,",
    )
    row = {"kind": "rating", "item": story, "method": "m", "criterion": "NCS", "value": 4}
    more = {"part": "1-2", "at": "2026-01-01T00:00:00Z", "protocol": "a" * 64, "simulated": True}
    rows = [row | {"rater": "p1"} | more, row | {"rater": "p2"}, row | {"rater": "p3", "simulated": False}]
    jsonl = written("people.jsonl", *map(json.dumps, rows))
    assert read_human(csv, known) == read_human(jsonl, known)
    assert [row.simulated for row in read_human(csv, known)] == [True, False, False]
    (problem,) = problems(written("b.csv", "kind,rater,simulated", "rating,p1,perhaps"), known)
    assert "b.csv:2 simulated" in problem


@pytest.mark.parametrize("known_kinds", [None, frozenset({"rating", "attention"}), frozenset()])
def test_lines_when_used_elsewhere_are_refused_in_one_sentence_for_each_kind(
    written: Write, known: Known, item: str, story: str, known_kinds: frozenset[str] | None
) -> None:
    rows = [
        {"kind": "review", "rater": "p1", "item": story, "criterion": "scene", "answer": "ok"},
        {"kind": "review", "rater": "p2", "item": story, "criterion": "confidence", "value": 4},
        {"kind": "equivalence", "rater": "p1", "item": item, "answer": "a rope", "value": 1},
        {"kind": "audit", "rater": "p1", "item": "x", "criterion": "transition", "value": 1},
        {"kind": "rating", "rater": "p1", "item": story, "method": "m", "criterion": "NCS", "value": 4},
    ]
    fitting = known if known_kinds is None else Known(morals=known.morals, kinds=known_kinds)
    found = problems(written("people.jsonl", *map(json.dumps, rows)), fitting)
    used = {
        "2 lines of kind review": "`fabula release pack --reviews` reads them",
        "1 line of kind equivalence": "`labelled` in the study.toml of an experiment takes the file",
        "1 line of kind audit": "`fabula review status --results` counts them",
    }
    for text, (lines, where) in zip(found, used.items(), strict=True):
        said = text.partition("people.jsonl: ")[2]
        assert said.startswith(f"{lines} cannot be compared with an evaluation: {where}")


def test_page_when_compared_names_every_column_and_kind() -> None:
    page = Path(fabula.__file__).parent / "docs" / "human.md"
    if not page.exists():
        pytest.skip("the suite runs against an installed wheel, which has no docs")
    text = page.read_text("utf-8")
    assert [name for name in (*HumanRow.model_fields, *NEEDED) if f"| `{name}` |" not in text] == []


# -- Human recoverability, STG, moral labels, ratings: by hand, and under intervals that resample people

Line = Callable[..., HumanRow]
FEW = Resampling(200)


def of_type(questions: dict[str, Question], name: str) -> list[str]:
    return [item for item, question in questions.items() if question.question_type == name]


def test_recovery_when_worked_by_hand_is_that(line: Line, questions: dict[str, Question]) -> None:
    one, two = of_type(questions, "causal")[:2]
    told = {
        ("text", one): (True, True, True), ("text", two): (True, True, False),
        ("image", one): (True, False, False), ("image", two): (False, False, False),
    }  # fmt: skip
    rows = [
        line("answer", f"p{person}", item, right, condition=condition)
        for (condition, item), answers in told.items()
        for person, right in enumerate(answers)
    ]
    found = human_recovery(rows, questions, "m", questions, FEW)
    # text: (3/3 + 2/3) / 2 = 5/6; image: (1/3 + 0/3) / 2 = 1/6; the gap is 2/3
    assert found.recoverability["text"]["overall"].value == pytest.approx(5 / 6)
    assert found.recoverability["image"]["causal"].value == pytest.approx(1 / 6)
    assert found.stg["overall"].value == found.stg["causal"].value == pytest.approx(2 / 3)
    assert found.recoverability["image"]["overall"].counts == {
        "valid": 2, "answered": 2, "answers": 6, "dimensions": 1,
    }  # fmt: skip
    nothing = found.recoverability["text_image"]["overall"]
    assert (nothing.value, nothing.status) == (None, "undefined")


def test_recovery_when_dimensions_have_different_sizes_weighs_them_alike(line, questions):
    causal, emotional = of_type(questions, "causal")[:3], of_type(questions, "emotional")[0]
    rows = [line("answer", "p", item, right=False) for item in causal]
    rows.append(line("answer", "p", emotional, right=True))
    rows[0] = line("answer", "p", causal[0], answer="Unclear")  # which is wrong
    rows.append(line("answer", "p", emotional, right=True, condition="text"))
    found = human_recovery(rows, questions, "m", questions, FEW)
    assert found.recoverability["text"]["overall"].counts["dimensions"] == 1
    assert found.recoverability["image"]["overall"].value == pytest.approx((0 + 1) / 2)  # not 1/4
    assert found.recoverability["image"]["overall"].counts["dimensions"] == 2
    assert found.recoverability["image"]["overall"].low is None  # one person says nothing about others


def test_recovery_when_question_is_invalid_or_repeated_or_of_another_method_leaves_it_out(line, questions):
    one, two = of_type(questions, "causal")[:2]
    rows = [
        line("answer", "p", one, right=True), line("answer", "p", two, right=False),
        line("answer", "p", one, right=False, repeat=1), line("answer", "p", one, right=False, method="n"),
    ]  # fmt: skip
    found = human_recovery(rows, questions, "m", {one}, FEW)
    assert found.recoverability["image"]["overall"].value == 1.0
    assert found.valid == 1


def test_recovery_when_lines_come_in_another_order_is_the_same(line, questions):
    random = np.random.default_rng(5)
    rows = [
        line("answer", f"p{person}", item, bool(random.integers(2)), condition=condition)
        for item in list(questions)[:12]
        for condition in ("text", "image")
        for person in range(4)
    ]
    found, turned = (human_recovery(each, questions, "m", questions, FEW) for each in (rows, rows[::-1]))
    assert found == turned


def test_interval_when_participants_are_resampled_is_that_of_scipys_bootstrap() -> None:
    sums, numbers = np.random.default_rng(1).uniform(size=(25, 1)), np.ones((25, 1))
    found = estimate(ratio(sums, numbers), 25, Resampling(20_000))
    other = bootstrap((sums[:, 0],), np.mean, n_resamples=20_000, method="percentile", rng=2)
    assert found.values[0] == pytest.approx(sums.mean())
    assert found.low[0] == pytest.approx(other.confidence_interval.low, abs=0.005)
    assert found.high[0] == pytest.approx(other.confidence_interval.high, abs=0.005)


def test_interval_when_one_persons_answers_agree_is_wider_than_of_single_answers() -> None:
    random = np.random.default_rng(0)
    people = random.integers(2, size=20)  # each says the same fifty times
    by_person = estimate(ratio(50.0 * people[:, None], np.full((20, 1), 50.0)), 20, FEW)
    single = estimate(ratio(np.repeat(people, 50)[:, None].astype(float), np.ones((1000, 1))), 1000, FEW)
    assert by_person.high - by_person.low > 3 * (single.high - single.low)


def test_moral_when_labels_are_ranked_counts_first_and_first_three(line: Line, release: Release) -> None:
    morals = {"a": "kindness", "b": "patience", "c": None}
    rows = [
        line("moral_label", "p", "a", labels=("kindness", "wisdom")),
        line("moral_label", "p", "b", labels=("wisdom", "courage", "patience")),
        line("moral_label", "q", "b", labels=("unclear",)),
        line("moral_label", "q", "c", labels=("wisdom",)),
    ]
    found = human_moral(rows, morals, "image", "m", FEW)
    assert found["HMR@1"].value == pytest.approx(1 / 3)
    assert found["HMR@3"].value == pytest.approx(2 / 3)
    assert found["HMR@1"].counts == {"judgements": 3, "without_intended_label": 1}
    assert human_moral(rows, morals, "text", "m", FEW)["HMR@1"].status == "undefined"


def test_ratings_when_given_have_mean_and_deviation(line: Line) -> None:
    rows = [line("rating", f"p{value}", "a", method="m", criterion="NCS", value=value) for value in (3, 4, 5)]
    rows.append(line("rating", "p3", "a", method="m", criterion="visual", value=2))
    found = human_ratings(rows, "m", FEW)
    assert (found["NCS"].mean.value, found["NCS"].deviation) == (4.0, 1.0)
    assert (found["visual"].mean.value, found["visual"].deviation) == (2.0, None)
    assert human_ratings(rows, "n", FEW) == {}


def test_people_when_careless_are_left_out_and_named(line: Line) -> None:
    rate = {"method": "m", "criterion": "NCS"}
    rows = [
        line("attention", "inattentive", "c", value=0), line("rating", "inattentive", "a", **rate, value=5),
        line("rating", "fast", "a", **rate, value=4, seconds=1.0),
        line("rating", "fast", "b", **rate, value=4, seconds=30.0),
        line("rating", "fickle", "a", **rate, value=1),
        line("rating", "fickle", "a", **rate, value=5, repeat=1),
        line("rating", "steady", "a", **rate, value=2),
        line("rating", "steady", "a", **rate, value=2, repeat=1),
    ]  # fmt: skip
    kept = exclude(rows, Exclusion(min_seconds=2.0, min_consistency=0.5))
    assert set(kept.people) == {"inattentive", "fickle"}
    assert {row.rater for row in kept.rows} == {"fast", "steady"}
    assert (kept.fast, kept.consistency) == (1, {"fickle": 0.0, "steady": 1.0})
    lenient = exclude(rows, Exclusion(attention_failures=1))
    assert lenient.people == {}
    assert len(lenient.rows) == 7


# -- Preferences: tests beside scipy's, pairs of methods apart, dimensions and groups by hand; all made up

NONE = Resampling(0)
EVERY = PermutationMethod(n_resamples=np.inf)
"""scipy's exact test where values tie: it goes through all assignments of signs."""


def said(
    line: Line, criterion: str, values: list[int], baseline: str = "n", **more: object
) -> list[HumanRow]:
    choice = {"method": "m", "baseline": baseline, "criterion": criterion, "simulated": True, **more}
    people = enumerate(values)
    return [line("preference", f"p{person}", "s", **choice, value=value) for person, value in people]


@pytest.mark.parametrize("seed", range(4))
def test_few_preferences_when_tested_have_the_p_of_scipy_over_all_signs(line: Line, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-2, 3, 12).tolist()
    (found,) = preferences(said(line, "Q1", values), NONE)
    kept = np.array([value for value in values if value])
    expected = wilcoxon(kept, alternative="greater", method=EVERY)
    assert found.test.p_value == pytest.approx(expected.pvalue)
    assert found.test.positive == expected.statistic
    assert found.test.exact and found.test.zeros == values.count(0)


def test_many_preferences_when_tested_have_the_p_of_scipy_by_approximation(line: Line) -> None:
    values = np.random.default_rng(7).choice([-2, -1, 0, 1, 2], 120, p=[0.1, 0.2, 0.25, 0.25, 0.2]).tolist()
    choice = {"method": "m", "baseline": "n", "criterion": "Q1"}
    rows = [
        line("preference", f"p{number % 9}", f"s{number}", **choice, value=value)
        for number, value in enumerate(values)
    ]
    (found,) = preferences(rows, NONE)
    expected = wilcoxon([value for value in values if value], alternative="greater", method="asymptotic")
    assert not found.test.exact
    assert found.test.p_value == pytest.approx(expected.pvalue)
    means = [np.mean(values[person::9]) for person in range(9)]
    by_person = wilcoxon([mean for mean in means if mean], alternative="greater", method=EVERY)
    assert found.by_person.p_value == pytest.approx(by_person.pvalue)


def test_tests_when_methods_are_several_pairs_are_corrected_for_each_pair_alone(line: Line) -> None:
    rows = [
        *said(line, "Q1", [2, 1, 1, 2, 1]), *said(line, "Q2", [1, 1, 1, -1, 2]), *said(line, "Q9", [0, 1]),
        *said(line, "Q1", [1, 2, 2, 1, 1], baseline="o"),
    ]  # fmt: skip
    found = {(one.baseline, one.criterion): one for one in preferences(rows, NONE)}
    assert [found["n", name].tests for name in ("Q1", "Q2", "Q9")] == [3, 3, 3]
    alone = found["o", "Q1"]
    # Five positive values: one of 2^5 assignments of signs is as extreme. One criterion here, three there.
    assert (alone.tests, alone.test.p_value, alone.p_corrected) == (1, 1 / 32, 1 / 32)
    assert found["n", "Q1"].p_corrected == pytest.approx(3 / 32)
    assert {one.correction for one in found.values()} == {"bonferroni"}


def test_dimension_when_worked_by_hand_is_the_mean_of_all_its_judgements(line: Line) -> None:
    rows = [
        *said(line, "Q1", [2, 1], group="experts"), *said(line, "Q2", [-1, 0, 1, 0], group="novices"),
        *said(line, "calm", [2], group="experts"), *said(line, "Q13", [-2]),
        line("preference", "p9", "s", method="m", baseline="n", criterion="Q2", answer="unclear"),
    ]  # fmt: skip
    causal, visual, own = preferred_dimensions(rows, NONE)
    assert (causal.dimension, causal.criteria) == ("causality", ("Q1", "Q2"))
    assert causal.mean.value == pytest.approx((2 + 1 - 1 + 0 + 1 + 0) / 6)
    assert causal.mean.counts == {"judgements": 6, "people": 4, "stories": 1}
    assert {group: mean.value for group, mean in causal.groups.items()} == {"experts": 1.5, "novices": 0.0}
    assert (visual.dimension, visual.groups) == ("visual coherence", {})
    assert (own.dimension, own.criteria, own.mean.value) == ("calm", ("calm",), 2.0)


def test_interval_when_people_are_drawn_again_holds_the_mean_of_their_means(line: Line) -> None:
    rows = [*said(line, "Q1", [2, 1, 0, -1, 1, 2]), *said(line, "Q2", [1, 1, 0, -2, 1, 2])]
    (found,) = preferred_dimensions(rows, Resampling(4000))
    means = np.array([1.5, 1.0, 0.0, -1.5, 1.0, 2.0])  # each of the six said two things
    drawn = np.random.default_rng(1).choice(means, (4000, 6)).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert found.mean.low == pytest.approx(low, abs=0.1)
    assert found.mean.high == pytest.approx(high, abs=0.1)


def test_criterion_when_nobody_decided_has_no_mean_and_ranks_nothing(line: Line) -> None:
    choice = {"method": "m", "baseline": "n", "criterion": "Q1"}
    rows = [line("preference", f"p{person}", "s", **choice, answer="unclear") for person in range(3)]
    found: Preferred = preferences(rows, NONE)[0]
    assert (found.mean.status, found.unclear, found.test.count) == ("undefined", 3, 0)
    assert preferred_dimensions(rows, NONE)[0].mean.status == "undefined"
