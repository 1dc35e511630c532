"""A correction is written against what will stand there, and refused at once when it cannot be applied."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.builders.katha.apply_edits import consequence_of
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.edits import NAME, edits_of
from fabula.engine.status import run_status, show_item
from fabula.errors import BelowThreshold, ConfigError, RunError, UserError
from fabula.kinds.verbs import continue_run, correct, pipeline_of, withdraw
from fabula.schemas.paths import get_at
from fabula.validators.katha.validation import validate

STORY = "kb25k_0001"
SIGNED = {"who": "ana", "why": "clearer"}
GATHERED = ("load_stories", "find_duplicates", "assign_splits")


@pytest.fixture(scope="module")
def built(katha, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("katha")
    rows = (katha.samples / "stories.jsonl").read_bytes().splitlines(keepends=True)[:3]
    (folder / "stories.jsonl").write_bytes(b"".join(rows))
    by_hand = json.loads((katha.samples / "gold.jsonl").read_text("utf-8").splitlines()[0])
    given = {name: by_hand[name] for name in ("story_id", "author", "variants")}
    places = ("story_id", "scene_index", "scene_text")
    given["scenes"] = [{name: scene[name] for name in places} for scene in by_hand["scenes"]]
    (folder / "records.jsonl").write_text(json.dumps(given) + "\n", "utf-8")
    options = BuildOptions(
        created_at="2026-01-01T00:00:00Z",
        workers=0,
        limit=2,
        records=folder / "records.jsonl",
        settings=["run.threshold=1"],
    )
    build_katha(folder / "stories.jsonl", folder / "run", options)
    return folder / "run"


@pytest.fixture
def run(built, tmp_path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "run"))


def bundle(run: Path) -> dict:
    lines = (run / "records.jsonl").read_text("utf-8").splitlines()
    return next(json.loads(line)["payload"] for line in lines if STORY in line)


def record(run: Path) -> dict:
    return bundle(run)["record"]


def boundary(run: Path) -> tuple[str, str]:
    """Return two scene texts of the story with the first word of the second moved into the first."""
    first, second = (scene["scene_text"] for scene in record(run)["scenes"][:2])
    word, _, rest = second.partition(" ")
    return f"{first} {word}", rest


def test_correct_when_a_field_is_edited_twice_then_retried_applies_both(run) -> None:
    assert correct(run, STORY, "$.title", "Once", **SIGNED).edit.old == record(run)["title"]
    assert correct(run, STORY, "$.title", "Twice", **SIGNED).edit.old == "Once"
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert record(run)["title"] == "Twice"
    assert correct(run, STORY, "$.title", "Three times", **SIGNED).edit.old == "Twice"
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert record(run)["title"] == "Three times"


def test_correct_when_the_story_failed_for_its_edits_can_still_correct_them(run) -> None:
    text = record(run)["scenes"][0]["scene_text"]
    made = correct(run, STORY, "$.scenes[0].scene_text", f"Once upon a time {text}", **SIGNED)
    assert "scene-span" in [issue.code for issue in made.issues if issue.level == "error"]
    with pytest.raises(BelowThreshold):
        continue_run(run, workers=0)
    correct(run, STORY, "$.scenes[0].scene_text", text, **SIGNED)
    assert continue_run(run, workers=0).totals["failed"] == 0


@pytest.mark.parametrize(
    ("path", "new", "expected"),
    [
        ("$.questions[0].question_id", "q", "ids"),
        ("$.nothing", "x", r"nothing at .*; .* has moral"),
        ("$.title", 5, "expected a string"),
        ("title", "x", "starts with"),
    ],
)
def test_correct_when_it_cannot_be_applied_is_refused_and_not_written(run, path, new, expected) -> None:
    with pytest.raises(ConfigError, match=expected):
        correct(run, STORY, path, new, **SIGNED)
    assert edits_of(run, STORY) == ()


def test_correct_when_the_story_has_no_draft_says_where_it_stopped(run) -> None:
    with pytest.raises(RunError, match="pending in"):
        correct(run, "kb25k_0003", "$.title", "x", **SIGNED)
    with pytest.raises(RunError, match="no item nope"):
        correct(run, "nope", "$.title", "x", **SIGNED)


def test_withdraw_when_retried_rejects_the_record_and_moves_nothing_else(run) -> None:
    continue_run(run, workers=0)  # the third story
    before = (run / "records.jsonl").read_bytes().splitlines()
    splits = (run / "assignments.jsonl").read_bytes().splitlines()
    withdraw(run, STORY, **SIGNED)
    report = continue_run(run, workers=0)
    assert (run / "records.jsonl").read_bytes().splitlines() == [
        line for line in before if STORY.encode() not in line
    ]
    assert set((run / "assignments.jsonl").read_bytes().splitlines()) < set(splits)
    entry = next(item for item in report.items if item.id == STORY)
    assert (entry.stage, entry.code, entry.reason) == ("assemble_records", "withdrawn", "clearer")
    assert sum(stage.ran for stage in report.stages if stage.name not in GATHERED) == 1
    status = run_status(run, pipeline_of(run))
    assert status.rejected == {"assemble_records": {"withdrawn": 1}}
    assert "rejected by assemble_records: 1 withdrawn" in status.lines()
    assert "withdrawn by ana (clearer)" in show_item(run, pipeline_of(run), STORY).lines()


@pytest.mark.parametrize(
    ("item", "why", "expected"),
    [
        ("nope", "x", "no item nope"),
        (STORY, "two\nlines", "line ends"),
        (STORY, "x" * 501, "501 characters"),
        (STORY, " ", "is missing"),
    ],
)
def test_withdraw_when_it_cannot_be_is_refused_and_not_written(run, item, why, expected) -> None:
    with pytest.raises(UserError, match=expected):
        withdraw(run, item, who="ana", why=why)
    assert not (run / NAME).exists()


def reworded(run: Path) -> str:
    return f"{bundle(run)['variants'][0]['contrastive_scene_text']} And that was all."


Row = tuple[str, object]
CORRECTIONS: dict[str, Callable[[Path], Row]] = {
    "a gold answer": lambda run: ("$.questions[0].gold_answer", "a net of rope"),
    "a gap is filled": lambda run: ("$.transitions[0].causality", "The net holds him."),
    "a gap is made": lambda run: ("$.scenes[0].generation_prompt", " "),
    "a scene takes": lambda run: ("$.scenes[0].scene_text", boundary(run)[0]),
    "a scene gives": lambda run: ("$.scenes[1].scene_text", boundary(run)[1]),
    "a changed scene": lambda run: ("$.variants[0].contrastive_scene_text", reworded(run)),
    "a name": lambda run: ("$.scenes[0].characters", ["emmet"]),
    "a name that is there": lambda run: ("$.scenes[0].characters", ["dove"]),
    "a moral label": lambda run: ("$.moral_label", "courage"),
    "a moral target": lambda run: ("$.transitions[0].moral_target", "gratitude"),
    # what then breaks a rule
    "other accepted answers": lambda run: ("$.questions[0].accepted_answers", ["something else"]),
    "a quoting question": lambda run: ("$.questions[0].question", "Was it 'she wanted', or what?"),
    "an empty answer": lambda run: ("$.questions[0].gold_answer", "yes"),
    "an unknown scene": lambda run: ("$.questions[0].evidence_scenes", [9]),
    "an unknown changed scene": lambda run: ("$.variants[0].changed_scene_id", 9),
    "no difference": lambda run: ("$.variants[0].semantic_delta", " "),
    "an unknown type": lambda run: ("$.transitions[0].transition_type", "leap"),
}
STAYS = ("a gold answer", "a scene takes", "a changed scene", "a name", "a moral target")
"""Corrections that can stand side by side."""


@pytest.mark.parametrize("case", CORRECTIONS)
def test_correction_when_given_brings_others_along_and_says_what_breaks(run, case, snapshot) -> None:
    path, new = CORRECTIONS[case](run)
    made = correct(run, STORY, path, new, **SIGNED)
    assert edits_of(run, STORY) == (made.edit, *made.also) and made.edit.path == path
    assert {edit.why for edit in made.also} <= {f"goes with {path}: clearer"}
    also = [f"{edit.path}: {edit.old!r} -> {edit.new!r}" for edit in made.also]
    issues = [f"{issue.level} {issue.code} {issue.path}" for issue in made.issues]
    assert "\n".join([*also, *made.notes, *issues]) == snapshot


def test_corrections_when_applied_stand_in_the_record_with_those_that_they_brought(run) -> None:
    rows = [CORRECTIONS[case](run) for case in STAYS]
    made = [correct(run, STORY, path, new, **SIGNED) for path, new in rows]
    assert continue_run(run, workers=0).totals["failed"] == 0
    document = {**record(run), "variants": bundle(run)["variants"]}
    for one in made:
        for edit in (one.edit, *one.also):
            assert get_at(document, edit.path) == edit.new, edit.path
    assert [issue.code for issue in validate(run).errors] == []


def test_changed_story_when_put_back_puts_the_changed_scene_back_too(run) -> None:
    variant = bundle(run)["variants"][0]
    correct(run, STORY, *CORRECTIONS["a changed scene"](run), **SIGNED)
    whole = variant["contrastive_story_text"]
    back = correct(run, STORY, "$.variants[0].contrastive_story_text", whole, **SIGNED)
    assert [(edit.path, edit.new) for edit in back.also] == [
        ("$.variants[0].contrastive_scene_text", variant["contrastive_scene_text"])
    ]


def test_consequence_when_an_action_changes_reaches_its_copies_and_no_drafted_prompt() -> None:
    scene = {"characters": ["ant"], "objects": [], "action": "drops a leaf", "visual_must_show": ["a leaf"]}
    prompt = {"generation_prompt": "The dove drops a leaf."}
    draft = {
        "scenes": [scene | prompt, {**scene, "action": "She drops a leaf again", **prompt}],
        "transitions": [{"action": "drops a leaf", "from_scene": 1}], "questions": [], "variants": [],
        "producers": [
            {"path": "$.scenes[*].generation_prompt", "producer": "rules@1"},
            {"path": "$.scenes[1].generation_prompt", "producer": "hand:ana"},
        ],
    }  # fmt: skip
    reads = {"story": {"normalized_text": ""}}
    follows = consequence_of(reads, draft, ("scenes", 0, "action"), "throws a twig")
    assert follows.values == {
        "$.scenes[1].action": "She throws a twig again",
        "$.scenes[1].generation_prompt": "The dove throws a twig.",
        "$.transitions[0].action": "throws a twig",
    }
    assert follows.notes == ()
