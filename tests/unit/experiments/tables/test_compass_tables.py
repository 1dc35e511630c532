"""Tables of Semantic Compass, from a frozen file, ``compass.json`` and a simulated evaluation of its arms."""

import json
import shutil

import pytest

from fabula.baselines.compass.frozen import Conditions, Frozen, Search, Setting, write_frozen
from fabula.baselines.compass.scoring import Weights
from fabula.evaluation.archive.protocols import release_sha256
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.experiments.tables.registry import make_tables
from fabula.experiments.tables.results import read_results
from fabula.testing.simulated_evaluations import write_simulated

FEW = Definitions(resamples=300)
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


def test_bridge_controls_when_truth_is_known_hold_it_and_stand_against_the_base(compass):
    table = make_tables(read_results(compass, FEW)).tables["bridge_controls"]
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


def test_terms_when_copies_are_known_give_the_copy_rate_of_what_was_taken(compass):
    results = read_results(compass, FEW)
    rows = {row.label: row for row in make_tables(results).tables["compass_terms"].rows}
    assert list(rows) == ["Candidate rerank only (R C P)", "Full Semantic Compass (R C P)"]
    assert rows["Full Semantic Compass (R C P)"].scores["copy_rate"].value == 0.0
    assert rows["Candidate rerank only (R C P)"].scores["copy_rate"].value == 8 / 160
    assert rows["Full Semantic Compass (R C P)"].note == "reranks and bridges"
    base = results.compass.arms[0]
    assert results.compass.copies(base) == (40, 160)


def test_protocol_and_held_out_when_made_are_those_of_the_frozen_file(compass):
    tables = make_tables(read_results(compass, FEW)).tables
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
