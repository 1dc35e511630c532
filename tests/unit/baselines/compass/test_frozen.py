"""What a frozen file refuses, and which cell of Table 64 an evaluation is."""

import json
from collections import Counter
from pathlib import Path

import pytest

from fabula.baselines.compass.frozen import (
    CELLS,
    HELD_OUT,
    Conditions,
    Frozen,
    Search,
    Setting,
    cell_of,
    check_applies,
    read_frozen,
    write_frozen,
)
from fabula.baselines.compass.judging import selection_prompts
from fabula.baselines.compass.questions import (
    QUESTIONS,
    halve_release,
    read_halves,
    split_questions,
)
from fabula.baselines.compass.scoring import Weights
from fabula.errors import InputError, TargetError
from fabula.evaluation.judging.settings import judge_prompt
from fabula.releases.loading import load
from fabula.schemas.canonical import pretty_bytes
from fabula.schemas.katha import StoryRecord
from fabula.testing.compass_stories import compass_release
from fabula.testing.drawn_storyboards import drawn_release

CONDITIONS = Conditions(
    release_sha256="r", questions_sha256="q", selection_sha256="s", reporting_sha256="t", judges=("a",),
    prompts=selection_prompts(), encoders={"coverage": "clip@1", "copies": "dino@1"}, psi="fields",
    weakest="own",
)  # fmt: skip
FROZEN = Frozen(
    version=1,
    setting=Setting(
        weights=Weights(recoverability=0.4, coverage=0.4, copies=0.2), delta=0.2, gamma=0.9,
        repair_threshold=0.5,
    ),
    conditions=CONDITIONS, split="validation", stories=("story_1", "story_2"), method="m", seeds=(42, 123),
    search=Search(
        method="grid", seed=42, grid={"delta": (0.1, 0.2)}, tried=2, objective="R", ties="first",
        reranked=0.5, repaired={"0": 0.5}, base=0.4, stories=2,
    ),
)  # fmt: skip


def test_frozen_file_when_written_is_read_back_and_refused_when_changed(tmp_path: Path) -> None:
    path = tmp_path / "frozen.json"
    write_frozen(path, FROZEN)
    assert read_frozen(path) == FROZEN
    document = json.loads(path.read_text())
    document["setting"]["gamma"] = 0.8
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="changed after it was frozen"):
        read_frozen(path)
    path.write_text("{}")
    with pytest.raises(InputError, match="no frozen file"):
        read_frozen(path)
    with pytest.raises(InputError, match="no frozen file"):
        read_frozen(tmp_path / "nothing.json")


def test_frozen_file_when_applied_to_a_story_it_was_tuned_on_is_refused() -> None:
    check_applies(FROZEN, CONDITIONS, ["story_3"])
    with pytest.raises(InputError, match="tuned on 1 story that it is to be applied to: story_2"):
        check_applies(FROZEN, CONDITIONS, ["story_2", "story_3"])


@pytest.mark.parametrize(
    ("name", "other", "words"),
    [
        ("release_sha256", "x", "another release"),
        ("questions_sha256", "x", "other halves of questions"),
        ("selection_sha256", "x", "other selection questions"),
        ("judges", ("b",), "other judges"),
        ("prompts", {"judge/question_image": "x"}, "other prompts"),
        ("encoders", {"coverage": "clip@2", "copies": "dino@1"}, "other encoders"),
        ("weakest", "whole", "another way to find the weakest transition"),
    ],
)
def test_frozen_file_when_conditions_differ_is_refused(name: str, other: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_applies(FROZEN, CONDITIONS.model_copy(update={name: other}), ["story_3"])


def evaluation(folder: Path, release: str, prompts: str) -> Path:
    """An evaluation folder that says no more than what was asked."""
    folder.mkdir()
    prompt = judge_prompt("question_image", prompts)  # type: ignore[arg-type]
    protocol = {"release": {"sha256": release}, "prompts": {prompt.card.id: prompt.label}}
    document = {"kind": "katha", "protocol": protocol, "subject": {}, "environment": {}}
    (folder / "evaluation.json").write_bytes(pretty_bytes(document))
    return folder


def test_evaluation_when_looked_at_is_one_of_the_four_cells(tmp_path: Path) -> None:
    cells = [
        cell_of(evaluation(tmp_path / f"{release}-{prompts}", release, prompts), CONDITIONS)
        for prompts in ("main", "heldout")
        for release in ("s", "t")
    ]
    assert tuple(cells) == CELLS
    assert cells[3] == HELD_OUT
    assert HELD_OUT.label == "Held-out judge prompts, held-out questions"
    with pytest.raises(InputError, match="neither those that select nor those that report"):
        cell_of(evaluation(tmp_path / "other", "x", "main"), CONDITIONS)


# Halves of questions: what selects and what reports.


def with_counts(record: StoryRecord, counts: dict[str, int]) -> StoryRecord:
    """The record with so many questions of each dimension."""
    first = record.questions[0]
    questions = tuple(
        first.model_copy(update={"question_id": f"{record.story_id}_{kind}{number}", "question_type": kind})
        for kind, count in counts.items()
        for number in range(count)
    )
    return record.model_copy(update={"questions": questions})


def test_halves_when_numbers_are_odd_give_reporting_more_and_single_ones_to_reporting(tmp_path: Path) -> None:
    (record, *_) = drawn_release(tmp_path, 2).records
    record = with_counts(record, {"causal": 1, "moral": 2, "emotional": 5})
    halves = split_questions([record])
    counted = Counter(
        (question.question_type, halves.half_of[question.question_id]) for question in record.questions
    )
    assert counted == {
        ("causal", "reporting"): 1, ("moral", "selection"): 1, ("moral", "reporting"): 1,
        ("emotional", "selection"): 2, ("emotional", "reporting"): 3,
    }  # fmt: skip


def test_halved_release_when_written_holds_each_question_once_and_no_label_where_it_selects(
    tmp_path: Path,
) -> None:
    release = compass_release(tmp_path / "release", 2, 2)
    halved = halve_release(release, tmp_path / "out")
    selecting, reporting = load(halved.selection), load(halved.reporting)
    ids = [
        {question.question_id for record in half.records for question in record.questions}
        for half in (selecting, reporting)
    ]
    whole = {question.question_id for record in release.records for question in record.questions}
    assert not ids[0] & ids[1]
    assert ids[0] | ids[1] == whole
    assert {record.moral_label for record in selecting.records} == {None}
    assert [record.moral_label for record in reporting.records] == [
        record.moral_label for record in release.records
    ]
    assert not selecting.variants
    assert reporting.variants == release.variants
    how = json.loads((halved.selection / "release.json").read_text())["derived"]["how"]
    assert how == {"half": "selection", "seed": 42, "questions_sha256": halved.halves.sha256}
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert halve_release(release, tmp_path / "out").halves == halved.halves
    assert {path: path.read_bytes() for path in before} == before


def test_halves_when_changed_or_of_another_release_are_refused(tmp_path: Path) -> None:
    release = compass_release(tmp_path / "release", 1, 1)
    halve_release(release, tmp_path / "out")
    path = tmp_path / "out" / QUESTIONS
    with pytest.raises(TargetError, match="halves of other questions"):
        halve_release(compass_release(tmp_path / "other", 3, 0), tmp_path / "out")
    document = json.loads(path.read_text())
    moved = next(iter(document["half_of"]))
    document["half_of"][moved] = "selection" if document["half_of"][moved] == "reporting" else "reporting"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="was changed"):
        read_halves(path)
    path.write_text("[]")
    with pytest.raises(InputError, match="no halves"):
        read_halves(path)
