"""Effects of plans and renderers: recovered from simulations of known truth, and worked by hand."""

import numpy as np
import pytest

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.items import DIMENSIONS
from fabula.evaluation.recoverability.score import question_rows
from fabula.experiments.tables.ablations import effects_of
from fabula.experiments.tables.effects import contrasts
from fabula.experiments.tables.registry import make_tables
from fabula.experiments.tables.results import read_results

PLANNER, RENDERER = 0.15, 0.05


def by_value(made):
    return {pair.about["value"]: pair for pair in made}


@pytest.mark.parametrize(("factor", "expected"), [("plan", PLANNER), ("renderer", RENDERER)])
def test_effects_when_truth_is_known_hold_it_within_their_intervals(results, factor, expected):
    made = by_value(effects_of(results, factor))
    assert (made["STG"].first, made["STG"].second) == (
        ("transition-aware", "direct") if factor == "plan" else ("plain", "fine")
    )
    sign = 1 if factor == "plan" else -1  # of renderers, the plain one is compared with the fine one
    assert made["From images"].low < sign * expected < made["From images"].high
    assert made["STG"].low < -sign * expected < made["STG"].high
    assert made["Latent STG"].low < -sign * expected < made["Latent STG"].high
    assert made["Moral target from images"].low < sign * expected < made["Moral target from images"].high


def test_effects_when_the_planner_does_more_are_told_apart(results):
    plan, renderer = (by_value(effects_of(results, factor))["STG"] for factor in ("plan", "renderer"))
    assert plan.high < 0 and plan.p_bootstrap_corrected < 0.01 and plan.p_wilcoxon_corrected < 0.01
    assert abs(plan.difference) > abs(renderer.difference)
    assert plan.interval == "percentile" and plan.n > 30


def test_effect_when_counted_from_the_table_of_questions_is_the_same(results):
    """Counted anew, question by question, from what scoring writes for others."""
    rows = [row for row in question_rows(results.evaluation)]
    methods = ("direct+plain", "direct+fine", "transition-aware+plain", "transition-aware+fine")
    valid: dict[str, list[bool]] = {}
    for row in rows:
        valid.setdefault(row["item"], []).append(row["filtered"])
    common = {item for item, marks in valid.items() if len(marks) == 12 and all(marks)}

    def gap(method):
        shares = []
        for dimension in DIMENSIONS:
            some = [
                row for row in rows
                if row["method"] == method and row["dimension"] == dimension and row["item"] in common
            ]  # fmt: skip
            # Every common question has all three seeds, so that the mean over rows is that of seed means.
            shares.append(np.mean([row["text"] for row in some]) - np.mean([row["image"] for row in some]))
        return np.mean(shares)

    gaps = {method: gap(method) for method in methods}
    expected = np.mean([
        gaps["transition-aware+plain"] - gaps["direct+plain"],
        gaps["transition-aware+fine"] - gaps["direct+fine"],
    ])  # fmt: skip
    assert by_value(effects_of(results, "plan"))["STG"].difference == pytest.approx(expected)


def test_contrasts_when_a_cell_was_not_evaluated_are_over_the_others(results):
    methods = {method.name: method for method in results.evaluation.methods}
    del methods["transition-aware+fine"]
    (plan,) = contrasts(methods, results.cells, "plan")
    assert [(ours.name, theirs.name) for ours, theirs in plan.pairs] == [
        ("transition-aware+plain", "direct+plain")
    ]
    del methods["transition-aware+plain"]
    assert list(contrasts(methods, results.cells, "plan")) == []


def test_effects_when_there_are_two_stories_have_neither_interval_nor_p(small):
    study = small(2)
    results = read_results(study.folder)
    made = effects_of(results, "plan")
    assert {(pair.low, pair.high, pair.p_bootstrap, pair.p_wilcoxon) for pair in made} == {(None,) * 4}
    assert "too few for intervals" in make_tables(results).tables["planner_effects"].note


def test_effects_when_intervals_are_asked_of_few_stories_are_of_students_t(small):
    results = read_results(small(8).folder, Definitions(resamples=200))
    assert by_value(effects_of(results, "plan"))["STG"].interval == "t"
