"""Every table of a study: what it says of known truths, of failures, of few stories, and as files."""

import csv
import io
import json
import shutil

import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import release_sha256
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.report.formats import written
from fabula.studies.compass.frozen import Conditions, Frozen, Search, Setting, write_frozen
from fabula.studies.compass.scoring import Weights
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
    with pytest.raises(InputError, match="release: Field required"):
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
