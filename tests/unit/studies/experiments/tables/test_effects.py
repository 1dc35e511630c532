"""Effects of plans and renderers: recovered from simulations of known truth, and worked by hand."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.items import DIMENSIONS
from fabula.evaluation.recoverability.score import question_rows
from fabula.studies.experiments.tables.ablations import contrasts, effects_of
from fabula.studies.experiments.tables.page import GROUPS, render_study, study_page, write_page
from fabula.studies.experiments.tables.registry import TABLES, make_tables
from fabula.studies.experiments.tables.results import read_results
from fabula.studies.experiments.tables.shown_stories import (
    COMPASS_RULES,
    RULES,
    Facts,
    chosen_stories,
    facts_of,
)
from fabula.testing.simulated_evaluations import write_simulated

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


# Which stories a page shows: rules as data, worked by hand; invalid and ambiguous cases are not used.

CELLS = {"a+x": ("a", "x"), "b+x": ("b", "x"), "a+y": ("a", "y"), "b+y": ("b", "y")}


def facts(gaps, usable=None, methods=tuple(CELLS), dimensions=None):
    """Facts of made-up gaps, shape (methods, stories)."""
    table = np.array(gaps, dtype=np.float64)
    stories = table.shape[1]
    return Facts(
        methods, CELLS, (42,) * stories, np.ones(stories, dtype=bool) if usable is None else np.array(usable),
        table, 1 - table, np.zeros((*table.shape, 6)) if dimensions is None else dimensions,
    )  # fmt: skip


def rule(name):
    return next(each for each in (*RULES, *COMPASS_RULES) if each.name == name)


def test_rules_when_gaps_are_known_choose_highest_lowest_and_median():
    # Means over the four methods: 0.1, 0.2, 0.5, 0.9, 0.3; the median of the five is 0.3.
    some = facts([[0.1, 0.2, 0.5, 0.9, 0.3]] * 4)
    assert [rule(name).choose(some, []) for name in ("high_collapse", "typical", "low_collapse")] == [3, 4, 0]
    # A story is shown once: the next best is taken.
    assert rule("high_collapse").choose(some, [3]) == 2


def test_rules_when_a_story_is_not_usable_never_choose_it():
    some = facts([[0.1, 0.2, 0.5, 0.9]] * 4, usable=[True, True, True, False])
    assert rule("high_collapse").choose(some, []) == 2
    assert rule("high_collapse").choose(facts([[0.1]] * 4, usable=[False]), []) is None


def test_spread_when_plans_and_renderers_differ_is_that_of_their_means():
    # a+x, b+x, a+y, b+y: plan a 0.2 and 0.4, b 0.6 and 0.8: means 0.3 and 0.7, plans differ by 0.4;
    # renderer x 0.2 and 0.6, y 0.4 and 0.8: means 0.4 and 0.6, renderers differ by 0.2.
    some = facts([[0.2], [0.6], [0.4], [0.8]])
    assert some.spread(0) == pytest.approx([0.4])
    assert some.spread(1) == pytest.approx([0.2])
    assert np.isnan(facts([[0.2], [0.6]], methods=("a+x", "b+x")).spread(1)).all()


def test_repair_rules_when_arms_are_known_choose_where_it_helps_most_and_least():
    some = facts([[0.5, 0.5, 0.5], [0.1, 0.5, 0.7]], methods=("first-seed", "full"))
    assert [(each.rule.name, each.story) for each in chosen_stories(some, COMPASS_RULES)] == [
        ("repair", 0), ("repair_boundary", 2),
    ]  # fmt: skip
    assert chosen_stories(facts([[0.5]] * 4), COMPASS_RULES) == ()


def test_dimension_rules_when_one_is_lost_most_choose_that_story():
    dimensions = np.zeros((4, 3, 6))
    dimensions[:, 1, 1] = 0.8  # causal, in the second story
    some = facts([[0.1, 0.2, 0.3]] * 4, dimensions=dimensions)
    assert rule("dimension_causal").choose(some, []) == 1


def test_chosen_when_stories_are_alike_take_the_earlier_one_and_none_twice():
    some = facts([[0.5, 0.5]] * 4)
    chosen = chosen_stories(some, (rule("high_collapse"), rule("low_collapse"), rule("typical")))
    assert [each.story for each in chosen] == [0, 1]


def test_facts_when_generations_failed_show_the_first_seed_that_all_have(small, closed):
    study = small(
        3, seeds=(42, 123), unseeded=("fine",), renderers={"fine": closed},
        failed=(
            ("direct+plain", "kb25k_0001", 42),  # so the second seed is shown
            ("direct+plain", "kb25k_0002", 42), ("transition-aware+plain", "kb25k_0002", 123),  # none shared
            ("direct+fine", "kb25k_0003", None),  # the closed system has none
        ),
    )  # fmt: skip
    results = read_results(study.folder)
    judged = results.evaluation
    made = facts_of(list(judged.methods), judged.items, judged.replies.seeds, results.cells)
    assert made.seeds == (123, None, 42)
    assert made.usable.tolist() == [True, False, False]


def test_facts_when_most_questions_are_ambiguous_leave_the_story_out(small, cells):
    from dataclasses import replace

    truth = replace(cells["direct", "plain"], ambiguous=1.0)
    results = read_results(small(2, cells={("direct", "plain"): truth}).folder)
    judged = results.evaluation
    made = facts_of(list(judged.methods), judged.items, judged.replies.seeds, results.cells)
    assert not made.usable.any()


# The page of a study: planted losses first, everything escaped, nothing to load, what is missing said.

FEW = Definitions(resamples=100)


def page_of(folder):
    results = read_results(folder, FEW)
    return study_page(results, make_tables(results))


@pytest.mark.slow
def test_page_when_written_has_planted_losses_first_and_every_table_or_its_reason(small):
    study = small(6, pictures=True)
    files = write_page(study.folder, FEW)
    assert files[0] == study.folder / "index.html"
    text = files[0].read_text("utf-8")
    heads = re.findall(r'<h2 id="([a-z]+)">', text)
    assert heads[0] == "planted" and heads[1] == "results" and heads[-1] == "definitions"
    assert "no loss was planted" in text and "Semantic Compass was not tuned" in text
    page = page_of(study.folder)
    shown = {table.name for section in page.sections for _, table in section.tables}
    absent = [title for section in page.sections for title, _ in section.absent]
    assert len(shown) + len(absent) == len(TABLES)
    assert {table.group for table in TABLES} <= set(GROUPS)


@pytest.mark.slow
def test_page_when_read_by_a_browser_loads_nothing_and_allows_only_its_own_script(small):
    text = render_study(page_of(small(6, pictures=True).folder))
    assert "default-src &#39;none&#39;" in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text)
    assert text.count("<script>") == 1


def test_page_when_nothing_was_judged_is_made_all_the_same(small):
    study = small(2)
    (study.folder / "evaluation" / "judgements.jsonl").unlink()
    page = page_of(study.folder)
    assert "Nothing was judged yet" in " ".join(page.warnings)
    assert "Pipelines (after Table 41)" in render_study(page)


# The table of planted losses, first on the page: from evaluations of changed storyboards, by evaluator.

FEW_PLANTED = Definitions(resamples=200)
METHOD = "direct+plain"


@pytest.fixture
def planted(small, cells, tmp_path):
    """Return a study with planted losses: causal answers are lost in one copy, nothing in the other."""
    study = small(2)
    whole = replace(cells["direct", "plain"], text=(1.0,) * 6, image=(1.0,) * 6, ambiguous=0.0, spread=0.0)
    lost = replace(whole, image=(1.0, 0.0, 1.0, 1.0, 1.0, 1.0))
    (tmp_path / "changed").mkdir()
    simulated = write_simulated(
        tmp_path / "changed", 48, [(f"{METHOD}-none", whole), (f"{METHOD}-swap", lost)], seed=3
    )
    folder = study.folder / "planted"
    (folder / "storyboards").mkdir(parents=True)
    shutil.copytree(simulated.run, folder / "katha")
    manifest = folder / "katha" / "evaluation.json"
    document = json.loads(manifest.read_bytes())
    document["environment"]["sources"] = [{"role": "release", "path": str(simulated.release)}]
    manifest.write_text(json.dumps(document))
    rows = [
        {
            "story_id": record.story_id, "seed": None, "loss": loss, "panels": [2] if loss == "swap" else [],
            "transition": 1 if loss == "swap" else None, "dimensions": ["causal"] if loss == "swap" else [],
            "method": f"{METHOD}-{loss}",
        }
        for record in simulated.items.records
        for loss in ("none", "swap")
    ]  # fmt: skip
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "storyboards" / "plants.jsonl").write_text(lines)
    return study.folder


@pytest.mark.slow
def test_planted_losses_when_a_judge_sees_them_all_localise_perfectly(planted):
    made = make_tables(read_results(planted, FEW_PLANTED))
    (row,) = made.tables["planted_losses"].rows
    assert row.scores["localisation"].value == 1.0
    # One of six dimensions was hit in each of eight stories.
    assert row.scores["localisation_chance"].value == pytest.approx(1 / 6)
    assert row.scores["sensitivity"].value == 1.0
    assert row.note.startswith("8 changed storyboards and 0 unchanged, of 8 stories")
    (swap,) = made.tables["planted_by_loss"].rows
    assert swap.label.startswith("Swap · ")
