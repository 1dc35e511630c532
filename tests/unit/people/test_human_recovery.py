"""Human recoverability, STG, moral labels, ratings: by hand, and under intervals that resample people."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import bootstrap

from fabula.people.participants import Resampling, estimate, ratio
from fabula.people.ratings import human_ratings
from fabula.people.recoverability import human_moral, human_recovery
from fabula.people.study import Exclusion, exclude
from fabula.releases.loading import Release
from fabula.schemas.judgement import HumanRow
from fabula.schemas.katha import Question

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


def test_recovery_when_dimensions_have_different_sizes_weighs_them_alike(
    line: Line, questions: dict[str, Question]
) -> None:
    causal, emotional = of_type(questions, "causal")[:3], of_type(questions, "emotional")[0]
    rows = [line("answer", "p", item, right=False) for item in causal]
    rows.append(line("answer", "p", emotional, right=True))
    found = human_recovery(rows, questions, "m", questions, FEW)
    assert found.recoverability["image"]["overall"].value == pytest.approx((0 + 1) / 2)  # not 1/4
    assert found.recoverability["image"]["overall"].counts["dimensions"] == 2
    assert found.recoverability["image"]["overall"].low is None  # one person says nothing about others


def test_recovery_when_question_is_invalid_or_repeated_or_of_another_method_leaves_it_out(
    line: Line, questions: dict[str, Question]
) -> None:
    one, two = of_type(questions, "causal")[:2]
    rows = [
        line("answer", "p", one, right=True), line("answer", "p", two, right=False),
        line("answer", "p", one, right=False, repeat=1), line("answer", "p", one, right=False, method="n"),
    ]  # fmt: skip
    found = human_recovery(rows, questions, "m", {one}, FEW)
    assert found.recoverability["image"]["overall"].value == 1.0
    assert found.valid == 1


def test_recovery_when_unclear_is_wrong(line: Line, questions: dict[str, Question]) -> None:
    (item, *_) = questions
    found = human_recovery([line("answer", "p", item, answer="Unclear")], questions, "m", questions, FEW)
    assert found.recoverability["image"]["overall"].value == 0.0


def test_recovery_when_lines_come_in_another_order_is_the_same(
    line: Line, questions: dict[str, Question]
) -> None:
    random = np.random.default_rng(5)
    rows = [
        line("answer", f"p{person}", item, bool(random.integers(2)), condition=condition)
        for item in list(questions)[:12]
        for condition in ("text", "image")
        for person in range(4)
    ]
    assert human_recovery(rows, questions, "m", questions, FEW) == human_recovery(
        rows[::-1], questions, "m", questions, FEW
    )


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
