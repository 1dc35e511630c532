"""Every table of a study: what it says of known truths, of failures, of few stories, and as files."""

import csv
import io
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import release_sha256
from fabula.evaluation.recoverability.matching import DIMENSIONS, Definitions
from fabula.evaluation.recoverability.score import question_rows
from fabula.evaluation.report.formats import written
from fabula.studies.compass.boards import Weights
from fabula.studies.compass.frozen import Conditions, Frozen, Search, Setting, write_frozen
from fabula.studies.experiments.tables import page as pages
from fabula.studies.experiments.tables.ablations import contrasts, effects_of
from fabula.studies.experiments.tables.registry import (
    ABSENT,
    TABLES,
    absent_table,
    make_tables,
    study_tables,
    write_tables,
)
from fabula.studies.experiments.tables.results import read_results
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import expected

FEW = Definitions(resamples=100)


def rows_of(table):
    return {row.label: row for row in table.rows}


@pytest.fixture(scope="session")
def tables(results):
    """Return all tables of the study, by name."""
    return make_tables(results).tables


def test_leaderboard_when_truth_is_known_holds_it_within_its_intervals(tables, cells):
    rows = rows_of(tables["leaderboard"])
    assert list(rows) == ["direct+fine", "direct+plain", "transition-aware+fine", "transition-aware+plain"]
    hits = [
        score.low < expected(truth)[name] < score.high
        for (plan, renderer), truth in cells.items()
        for score, name in (
            (rows[f"{plan}+{renderer}"].scores["image"], "question.filtered.image"),
            (rows[f"{plan}+{renderer}"].scores["text"], "question.filtered.text"),
            (rows[f"{plan}+{renderer}"].scores["gap"], "question.filtered.gap"),
            (rows[f"{plan}+{renderer}"].scores["ambiguity"], "ambiguity"),
            (rows[f"{plan}+{renderer}"].scores["moral_target"], "moral.image"),
        )
    ]
    # Twenty intervals of 95 %: with this seed at most two may miss.
    assert sum(hits) >= len(hits) - 2


def test_leaderboard_when_generations_failed_counts_them_and_leaves_people_empty(tables):
    rows = rows_of(tables["leaderboard"])
    plain = rows["direct+plain"].scores
    assert plain["invalid_rate"].numerator == 2 and plain["invalid_rate"].denominator == 144
    assert plain["invalid_rate"].low < plain["invalid_rate"].value < plain["invalid_rate"].high
    fine = rows["transition-aware+fine"].scores["invalid_rate"]
    assert (fine.value, fine.low, fine.high) == (0.0, None, None)
    assert plain["visual"].value is None and plain["visual"].reason == "no person has rated it"


def test_latent_gaps_when_averaged_are_the_mean_of_the_four(tables):
    for row in tables["latent_gaps"].rows:
        four = [row.scores[name].value for name in ("causal", "emotional", "consequence", "moral")]
        assert row.scores["latent_gap"].value == pytest.approx(sum(four) / 4)


def test_audits_when_nothing_is_ambiguous_or_invalid_agree_and_else_differ_as_named(tables, results):
    stories, questions = rows_of(tables["story_audit"]), rows_of(tables["question_audit"])
    scores = results.scores.methods["direct+plain"]
    plain = stories["direct+plain"].scores
    assert (plain["total"].value, plain["valid"].value) == (48, 48)  # story 1 has one seed left
    assert plain["filtered"] == questions["direct+plain"].scores["filtered"]
    # Lost storyboards make the gap larger than without them.
    assert plain["before_validity"].value > plain["filtered"].value
    assert plain["before_both"].value == pytest.approx(scores.gaps["question"]["raw"].gap.value)
    untouched = stories["transition-aware+fine"].scores
    assert untouched["before_validity"].value == pytest.approx(untouched["filtered"].value)
    asked = questions["direct+plain"].scores
    assert asked["total"].value == 48 * 6 * 3
    assert questions["direct+plain"].note == "12 questions of invalid generations"
    assert asked["valid"].value < asked["total"].value - 12  # some are ambiguous, too


def test_invalid_generations_when_pictures_were_refused_list_seed_reply_and_reason(tables):
    values = [row.values for row in tables["invalid_generations"].rows if row.label == "direct+fine"]
    assert values == [
        {
            "story": "kb25k_0002", "seed": "2026", "codes": "missing-panel", "panel": 3, "outcome": "refused",
            "reason": "refused by its policy", "reply": "I cannot draw picture 3.",
        }
    ]  # fmt: skip
    assert len(tables["invalid_generations"].rows) == 3


def test_tables_when_nothing_was_judged_are_listed_with_the_reason(small):
    study = small(2)
    (study.folder / "evaluation" / "judgements.jsonl").unlink()
    made = make_tables(read_results(study.folder, FEW))
    assert set(made.tables) == {"pipelines", "picture_costs"}
    listed = {row.values["name"]: row.values["why"] for row in absent_table(made).rows}
    assert "judges were not asked yet" in listed["leaderboard"]
    assert set(made.tables) | set(listed) == {table.name for table in TABLES}
    assert study_tables(study.folder)[-1].name == ABSENT


@pytest.mark.slow
def test_write_tables_when_done_again_gives_the_same_files_and_drops_stale_ones(small):
    study = small(6)
    first = {path: path.read_bytes() for path in write_tables(study.folder, FEW)}
    stale = study.folder / "tables" / f"{ABSENT}.csv"
    assert stale in first  # such as Compass, of which nothing is there
    assert {path.suffix for path in first} == {".csv", ".md", ".tex", ".json"}
    assert {path: path.read_bytes() for path in write_tables(study.folder, FEW)} == first
    (study.folder / "evaluation" / "judgements.jsonl").unlink()
    again = write_tables(study.folder, FEW)
    assert study.folder / "tables" / "leaderboard.csv" not in again
    assert not (study.folder / "tables" / "leaderboard.csv").exists()
    assert json.loads((study.folder / "tables" / "pipelines.json").read_bytes())["name"] == "pipelines"


LATEX = r"""% Needs \usepackage{booktabs}.
\begin{table}
\centering
\caption{Gaps of the latent dimensions (after Table 56). What text tells and images do not, per dimension. Over the questions that are valid for the method, equal weight per dimension. In brackets 95 \% intervals: the seeds of a story are averaged first, then stories are drawn with replacement. Action visibility and temporal order are in the table by dimension.}
\label{tab:latent-gaps}
\begin{tabular}{lrrrrr}
\toprule
Plan + renderer & Causal & Emotional & Consequence & Moral & Latent STG \\
\midrule
direct+plain & 0.0 & +50.0 & 0.0 & 0.0 & +12.5 \\
\bottomrule
\end{tabular}
\end{table}
"""  # noqa: E501


def test_latex_and_csv_when_a_table_is_written_are_as_pinned(small, cells):
    study = small(2, cells={("direct", "plain"): cells["direct", "plain"]}, seed=3)
    tables = make_tables(read_results(study.folder, FEW)).tables
    assert written([tables["latent_gaps"]], "latex") == LATEX
    rows = list(csv.DictReader(io.StringIO(written([tables["latent_gaps"]], "csv"))))
    # One of two stories: text tells it and images do not. The mean of the four: (0 + 0.5 + 0 + 0) / 4.
    assert rows[1] == {
        "table": "latent_gaps", "row": "direct+plain", "measure": "emotional", "value": "0.5", "low": "",
        "high": "", "numerator": "1.0", "denominator": "2.0", "status": "ok", "reason": "",
    }  # fmt: skip
    assert rows[4]["value"] == "0.125"


def test_read_results_when_files_are_broken_says_which_line_and_what_to_do(small, tmp_path):
    study = small(2)
    lines = study.folder / "outputs" / "direct+plain" / "generations.jsonl"
    good = lines.read_bytes()
    for bad, told in (
        (good[:-20], "generations.jsonl:10: this cannot be used"),
        (good + good.splitlines(keepends=True)[0], "generations.jsonl:11: .* is there twice"),
        (
            good.replace(b'"refused"', b'"gone"').replace(b'"made"', b'"gone"', 1),
            "generations.jsonl:1: .*outcome",
        ),
    ):
        lines.write_bytes(bad)
        with pytest.raises(InputError, match=told) as raised:
            read_results(study.folder)
        assert "run `fabula experiment run` again" in str(raised.value)
    lines.write_bytes(good)
    path = study.folder / "study.json"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"study\.json: this cannot be used"):
        read_results(study.folder)
    path.write_text('{"study": {"name": "x"}}')
    with pytest.raises(InputError, match=r"study\.json: .*release: it is missing"):
        read_results(study.folder)
    with pytest.raises(InputError, match="this is no study folder"):
        read_results(tmp_path)


# Tables of Semantic Compass, from a frozen file, ``compass.json`` and a simulated evaluation of its arms.

FEW_COMPASS = Definitions(resamples=300)
ARMS = {"base": 0.0, "first-seed": 0.0, "random-extra": 0.02, "rerank-only": 0.1, "full": 0.2}


def frozen_of(reporting: str) -> Frozen:
    return Frozen(
        version=1,
        setting=Setting(
            weights=Weights(recoverability=0.5, coverage=0.3, copies=0.2), delta=0.25, gamma=0.9,
            repair_threshold=0.5,
        ),
        conditions=Conditions(
            release_sha256="a" * 64, questions_sha256="b" * 64, selection_sha256="c" * 64,
            reporting_sha256=reporting, judges=("simulated:judge-1",), prompts={"judge/question_image": "x"},
            encoders={"coverage": "pixels@1", "copies": "pixels@1"}, psi="fields", weakest="own",
        ),
        split="validation", stories=("kb25k_9001", "kb25k_9002"), method="direct+plain", seeds=(42, 123),
        search=Search(
            method="grid", seed=42, grid={"delta": (0.25,)}, tried=9, objective="mean R", ties="the first",
            reranked=0.5, repaired={"0": 0.5}, base=0.4, stories=2,
        ),
    )  # fmt: skip


@pytest.fixture
def compass(small, cells, tmp_path):
    """Return a study with Semantic Compass: 40 stories, whose arms add what is stated."""
    study = small(2, pictures=True)
    truth = cells["direct", "plain"]
    truths = [
        (name, type(truth)(
            text=truth.text, image=tuple(share + more for share in truth.image), ambiguous=0.02,
            errors=(0.0,), labels=truth.labels,
        ))
        for name, more in ARMS.items()
    ]  # fmt: skip
    (tmp_path / "arms").mkdir()
    simulated = write_simulated(tmp_path / "arms", 240, truths, seed=5)
    folder = study.folder / "compass"
    (folder / "evaluations").mkdir(parents=True)
    shutil.copytree(simulated.run, folder / "evaluations" / "reporting-heldout")
    manifest = folder / "evaluations" / "reporting-heldout" / "evaluation.json"
    document = json.loads(manifest.read_bytes())
    document["environment"]["sources"] = [{"role": "release", "path": str(simulated.release)}]
    manifest.write_text(json.dumps(document))
    write_frozen(folder / "frozen.json", frozen_of(release_sha256(simulated.release)))
    stories = {
        record.story_id: {
            "candidates": [
                {"seed": 42, "copies": {"value": 0.5, "reason": None}},
                {"seed": 123, "copies": {"value": 0.0, "reason": None}},
            ],
            "selected": {"first-seed": 42, "random-extra": 42, "rerank-only": 123, "full": 123},
        }
        for record in simulated.items.records
    }
    # 40 storyboards of 5 pictures have 160 pairs of neighbours; a frame more in 12 of them makes 172.
    copies = {"base": {"above_gamma": 40, "pairs": 160}, "full": {"above_gamma": 0, "pairs": 172}}
    arms = {
        name: {
            "storyboards": 40, "inserted": 12 if name == "full" else None,
            "copies": copies.get(name, {"above_gamma": 8, "pairs": 160}),
        }
        for name in ARMS
    }  # fmt: skip
    (folder / "compass.json").write_text(json.dumps({"arms": arms, "stories": stories}))
    return study.folder


@pytest.mark.slow
def test_bridge_controls_when_truth_is_known_hold_it_and_stand_against_the_base(compass):
    table = make_tables(read_results(compass, FEW_COMPASS)).tables["bridge_controls"]
    rows = {row.label: row for row in table.rows}
    assert list(rows) == [
        "Base, mean over seeds", "Base, first seed", "Random extra frame", "Candidate rerank only",
        "Full Semantic Compass",
    ]  # fmt: skip
    assert "delta" not in rows["Base, mean over seeds"].scores
    full = rows["Full Semantic Compass"].scores
    assert full["delta"].low < -ARMS["full"] < full["delta"].high
    assert full["delta"].high < 0 and full["p_wilcoxon"].value < 0.05
    random_extra = rows["Random extra frame"].scores
    assert random_extra["delta"].low < -ARMS["random-extra"] < random_extra["delta"].high
    assert rows["Full Semantic Compass"].note == (
        "reranks by recoverability, coverage, copies; a frame more in 12 of 40"
    )  # fmt: skip
    assert full["visual"].reason == "no person has rated it"
    assert table.title == "Semantic Compass and controls of its length (after Tables 55 and 75)"


@pytest.mark.slow
def test_terms_when_copies_are_known_give_the_copy_rate_of_what_was_taken(compass):
    results = read_results(compass, FEW_COMPASS)
    rows = {row.label: row for row in make_tables(results).tables["compass_terms"].rows}
    assert list(rows) == ["Candidate rerank only (R C P)", "Full Semantic Compass (R C P)"]
    assert rows["Full Semantic Compass (R C P)"].scores["copy_rate"].value == 0.0
    assert rows["Candidate rerank only (R C P)"].scores["copy_rate"].value == 8 / 160
    assert rows["Full Semantic Compass (R C P)"].note == "reranks and bridges"
    base = results.compass.arms[0]
    assert results.compass.copies(base) == (40, 160)


@pytest.mark.slow
def test_protocol_and_held_out_when_made_are_those_of_the_frozen_file(compass):
    tables = make_tables(read_results(compass, FEW_COMPASS)).tables
    rows = {row.label: row.values for row in tables["compass_protocol"].rows}
    assert rows["Candidates"]["value"] == 2
    assert rows["Transition threshold"]["value"] == 0.25
    assert rows["Copy penalty"]["where"] == "tuned on validation, 2 stories; frozen"
    held = [(row.label, row.scores["gap"].value is not None) for row in tables["held_out"].rows]
    assert held == [
        ("Same judge prompts, same questions", False),
        ("Same judge prompts, held-out questions", False),
        ("Held-out judge prompts, same questions", False),
        ("Held-out judge prompts, held-out questions", True),
    ]


# -- Effects of plans and renderers: recovered from simulations of known truth, and worked by hand

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
    return pages.Facts(
        methods, CELLS, (42,) * stories, np.ones(stories, dtype=bool) if usable is None else np.array(usable),
        table, 1 - table, np.zeros((*table.shape, 6)) if dimensions is None else dimensions,
    )  # fmt: skip


def rule(name):
    return next(each for each in (*pages.RULES, *pages.COMPASS_RULES) if each.name == name)


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
    assert [(each.rule.name, each.story) for each in pages.chosen_stories(some, pages.COMPASS_RULES)] == [
        ("repair", 0), ("repair_boundary", 2),
    ]  # fmt: skip
    assert pages.chosen_stories(facts([[0.5]] * 4), pages.COMPASS_RULES) == ()


def test_dimension_rules_when_one_is_lost_most_choose_that_story():
    dimensions = np.zeros((4, 3, 6))
    dimensions[:, 1, 1] = 0.8  # causal, in the second story
    some = facts([[0.1, 0.2, 0.3]] * 4, dimensions=dimensions)
    assert rule("dimension_causal").choose(some, []) == 1


def test_chosen_when_stories_are_alike_take_the_earlier_one_and_none_twice():
    some = facts([[0.5, 0.5]] * 4)
    chosen = pages.chosen_stories(some, (rule("high_collapse"), rule("low_collapse"), rule("typical")))
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
    made = pages.facts_of(list(judged.methods), judged.items, judged.replies.seeds, results.cells)
    assert made.seeds == (123, None, 42)
    assert made.usable.tolist() == [True, False, False]


def test_facts_when_most_questions_are_ambiguous_leave_the_story_out(small, cells):
    from dataclasses import replace

    truth = replace(cells["direct", "plain"], ambiguous=1.0)
    results = read_results(small(2, cells={("direct", "plain"): truth}).folder)
    judged = results.evaluation
    made = pages.facts_of(list(judged.methods), judged.items, judged.replies.seeds, results.cells)
    assert not made.usable.any()


# The page of a study: planted losses first, everything escaped, nothing to load, what is missing said.


def page_of(folder):
    results = read_results(folder, FEW)
    return pages.study_page(results, make_tables(results))


@pytest.mark.slow
def test_page_when_written_has_planted_losses_first_and_every_table_or_its_reason(small):
    study = small(6, pictures=True)
    files = pages.write_page(study.folder, FEW)
    assert files[0] == study.folder / "index.html"
    text = files[0].read_text("utf-8")
    heads = re.findall(r'<h2 id="([a-z]+)">', text)
    assert heads[0] == "planted" and heads[1] == "results" and heads[-1] == "definitions"
    assert "no loss was planted" in text and "Semantic Compass was not tuned" in text
    page = page_of(study.folder)
    shown = {table.name for section in page.sections for _, table in section.tables}
    absent = [title for section in page.sections for title, _ in section.absent]
    assert len(shown) + len(absent) == len(TABLES)
    assert {table.group for table in TABLES} <= set(pages.GROUPS)


@pytest.mark.slow
def test_page_when_read_by_a_browser_loads_nothing_and_allows_only_its_own_script(small):
    text = pages.render_study(page_of(small(6, pictures=True).folder))
    assert "default-src &#39;none&#39;" in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text)
    assert text.count("<script>") == 1


def test_page_when_nothing_was_judged_is_made_all_the_same(small):
    study = small(2)
    (study.folder / "evaluation" / "judgements.jsonl").unlink()
    page = page_of(study.folder)
    assert "Nothing was judged yet" in " ".join(page.warnings)
    assert "Pipelines (after Table 41)" in pages.render_study(page)


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
