"""A correction is written against what will stand there, and refused at once when it cannot be applied."""

import json
import shutil
from pathlib import Path

import pytest

from fabula.builders.edit_files import Correction
from fabula.builders.katha.apply_edits import consequence_of
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.edits import NAME, edits_of
from fabula.engine.status import run_status, show_item
from fabula.errors import BelowThreshold, ConfigError, RunError, UserError
from fabula.kinds.verbs import continue_run, correct, pipeline_of, withdraw
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


def record(run: Path) -> dict:
    lines = (run / "records.jsonl").read_text("utf-8").splitlines()
    return next(json.loads(line)["payload"]["record"] for line in lines if STORY in line)


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


def test_correct_when_a_boundary_moves_takes_both_halves(run) -> None:
    texts = boundary(run)
    for number, text in enumerate(texts):
        correct(run, STORY, f"$.scenes[{number}].scene_text", text, **SIGNED)
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert tuple(scene["scene_text"] for scene in record(run)["scenes"][:2]) == texts


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


def changed(run: Path, *rows: tuple[str, object]) -> tuple[Correction, dict]:
    """Add corrections, apply them, and return the last one with the record that came of it."""
    made = [correct(run, STORY, path, new, **SIGNED) for path, new in rows][-1]
    assert continue_run(run, workers=0).totals["failed"] == 0
    return made, record(run)


def errors_in(run: Path) -> list[str]:
    return [issue.code for issue in validate(run).errors]


def test_correct_when_a_gold_answer_changes_it_is_accepted_too_beside_the_old_one(run) -> None:
    old = record(run)["questions"][0]["accepted_answers"]
    made, after = changed(run, ("$.questions[0].gold_answer", "a net of rope"))
    accepted, both = "$.questions[0].accepted_answers", ["a net of rope", *old]
    assert [(edit.path, edit.old, edit.new) for edit in made.also] == [(accepted, old, both)]
    assert made.also[0].why == "goes with $.questions[0].gold_answer: clearer"
    assert "is still accepted" in made.notes[0] and accepted in made.notes[0]
    assert after["questions"][0]["accepted_answers"] == both
    assert edits_of(run, STORY) == (made.edit, *made.also)
    assert errors_in(run) == []


def test_correct_when_it_fills_a_gap_tells_of_no_other_and_when_it_makes_one_names_it(run) -> None:
    transitions = record(run)["transitions"]
    gap = next(f"$.transitions[{n}].{name}" for n, part in enumerate(transitions)
               for name in ("causality", "consequence", "expected_change") if part[name] is None)  # fmt: skip
    assert correct(run, STORY, gap, "The net holds him.", **SIGNED).issues == ()
    (issue,) = correct(run, STORY, "$.scenes[0].generation_prompt", " ", **SIGNED).issues
    assert (issue.code, issue.path) == ("incomplete", "$.scenes[0].generation_prompt")


@pytest.mark.parametrize("first", [True, False])
def test_correct_when_a_scene_takes_from_its_neighbour_the_neighbour_gives(run, first) -> None:
    texts = boundary(run)
    number = 0 if first else 1
    made, after = changed(run, (f"$.scenes[{number}].scene_text", texts[number]))
    assert [(edit.path, edit.new) for edit in made.also] == [
        (f"$.scenes[{1 - number}].scene_text", texts[1 - number])
    ]
    assert tuple(scene["scene_text"] for scene in after["scenes"][:2]) == texts
    assert "scene-span" not in {issue.code for issue in made.issues}


def test_correct_when_a_changed_scene_is_reworded_the_story_around_it_is_too_and_the_reverse(run) -> None:
    lines = (run / "records.jsonl").read_text("utf-8").splitlines()
    variant = next(json.loads(line)["payload"]["variants"][0] for line in lines if STORY in line)
    scene, whole = variant["contrastive_scene_text"], variant["contrastive_story_text"]
    reworded = f"{scene} And that was all."
    made = correct(run, STORY, "$.variants[0].contrastive_scene_text", reworded, **SIGNED)
    assert [edit.path for edit in made.also] == ["$.variants[0].contrastive_story_text"]
    assert made.also[0].new == whole.replace(scene, reworded)
    back = correct(run, STORY, "$.variants[0].contrastive_story_text", whole, **SIGNED)
    assert [(edit.path, edit.new) for edit in back.also] == [("$.variants[0].contrastive_scene_text", scene)]
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert errors_in(run) == []


def test_correct_when_a_name_changes_changes_it_wherever_it_is_said_but_in_the_storys_own_words(run) -> None:
    assert [scene["characters"] for scene in record(run)["scenes"]][:2] == [["ant"], ["ant", "dove"]]
    made, after = changed(run, ("$.scenes[0].characters", ["emmet"]))
    assert [scene["characters"] for scene in after["scenes"]][:2] == [["emmet"], ["emmet", "dove"]]
    assert "$.scenes[1].characters" in [edit.path for edit in made.also]
    (note,) = made.notes
    assert "These still say 'ant', because they are the story's own words: $.scenes[0].scene_text" in note


def test_correct_when_a_name_becomes_one_that_is_there_lists_the_places_and_changes_none(run) -> None:
    made = correct(run, STORY, "$.scenes[0].characters", ["dove"], **SIGNED)
    assert made.also == () and "'dove' is somebody or something else there: $.scenes[" in made.notes[0]


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


def test_correct_when_the_moral_target_moves_the_other_transition_gives_it_up(run) -> None:
    correct(run, STORY, "$.moral_label", "courage", **SIGNED)
    transitions = record(run)["transitions"]
    carrier = next(n for n, part in enumerate(transitions) if part["moral_target"] is not None)
    number = 0 if carrier else 1
    made, after = changed(run, (f"$.transitions[{number}].moral_target", "courage"))
    assert [(edit.path, edit.new) for edit in made.also] == [(f"$.transitions[{carrier}].moral_target", None)]
    assert [n for n, part in enumerate(after["transitions"]) if part["moral_target"]] == [number]
    assert "moral-target" not in errors_in(run)


@pytest.mark.parametrize(
    ("path", "new", "code"),
    [
        ("$.questions[0].accepted_answers", ["something else"], "answer-not-accepted"),
        ("$.questions[0].question", "Was it 'she wanted', or what?", None),
        ("$.questions[0].gold_answer", "yes", "answer-empty"),
        ("$.questions[0].evidence_scenes", [9], "question-scene"),
        ("$.variants[0].changed_scene_id", 9, "variant-scene"),
        ("$.variants[0].semantic_delta", " ", "variant-delta"),
        ("$.transitions[0].transition_type", "leap", "unlisted-value"),
    ],
)
def test_correct_when_the_record_then_breaks_a_rule_says_so_at_once_and_notes_it(run, path, new, code):
    made = correct(run, STORY, path, new, **SIGNED)
    found = [issue for issue in made.issues if issue.level == "error"]
    assert code in [issue.code for issue in found] if code else found == []
    assert {issue.where for issue in found} <= {STORY}
    assert code is None or any(issue.path.startswith(path.split("]")[0]) for issue in found)
    assert edits_of(run, STORY)[0].path == path
