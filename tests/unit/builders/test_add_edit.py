"""A correction is written against what will stand there, and refused at once when it cannot be applied."""

import json
import shutil
from pathlib import Path

import pytest

from fabula.builders.katha import BuildOptions, build_katha
from fabula.builders.registry import add_edit, continue_run, pipeline_of, withdraw
from fabula.engine.edits import NAME, append_edit, edits_of
from fabula.engine.inspect import show_item
from fabula.engine.status import run_status
from fabula.errors import BelowThreshold, ConfigError, RunError, UserError
from fabula.schemas.values import Edit

STORY = "kb25k_0001"
SIGNED = {"who": "ana", "why": "clearer"}
GATHERED = ("load_stories", "find_duplicates", "assign_splits")


@pytest.fixture(scope="module")
def built(katha, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("katha")
    rows = (katha.samples / "stories.jsonl").read_bytes().splitlines(keepends=True)[:3]
    (folder / "stories.jsonl").write_bytes(b"".join(rows))
    options = BuildOptions(
        created_at="2026-01-01T00:00:00Z", workers=0, limit=2, settings=["run.threshold=1"]
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


def test_add_edit_when_a_field_is_edited_twice_then_retried_applies_both(run) -> None:
    assert add_edit(run, STORY, "$.title", "Once", **SIGNED).old == record(run)["title"]
    assert add_edit(run, STORY, "$.title", "Twice", **SIGNED).old == "Once"
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert record(run)["title"] == "Twice"
    assert add_edit(run, STORY, "$.title", "Three times", **SIGNED).old == "Twice"
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert record(run)["title"] == "Three times"


def test_add_edit_when_a_waiting_edit_changed_other_fields_too_sees_them(run) -> None:
    transitions = record(run)["transitions"]
    number = next(n for n, transition in enumerate(transitions) if transition["moral_target"] is not None)
    add_edit(run, STORY, "$.moral_label", "courage", **SIGNED)
    path = f"$.transitions[{number}].moral_target"
    assert add_edit(run, STORY, path, "patience", **SIGNED).old == "courage"
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert record(run)["transitions"][number]["moral_target"] == "patience"


def test_add_edit_when_a_boundary_moves_takes_both_halves(run) -> None:
    texts = boundary(run)
    for number, text in enumerate(texts):
        add_edit(run, STORY, f"$.scenes[{number}].scene_text", text, **SIGNED)
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert tuple(scene["scene_text"] for scene in record(run)["scenes"][:2]) == texts


def test_add_edit_when_the_story_failed_for_its_edits_can_still_correct_them(run) -> None:
    texts = boundary(run)
    add_edit(run, STORY, "$.scenes[0].scene_text", texts[0], **SIGNED)
    with pytest.raises(BelowThreshold):
        continue_run(run, workers=0)
    add_edit(run, STORY, "$.scenes[1].scene_text", texts[1], **SIGNED)
    assert continue_run(run, workers=0).totals["failed"] == 0


@pytest.mark.parametrize(
    ("path", "new", "expected"),
    [
        ("$.questions[0].question_id", "q", "ids"),
        ("$.nothing", "x", "nothing is there; the fields are"),
        ("$.title", 5, "expected a string"),
        ("title", "x", "starts with"),
    ],
)
def test_add_edit_when_it_cannot_be_applied_is_refused_and_not_written(run, path, new, expected) -> None:
    with pytest.raises(ConfigError, match=expected):
        add_edit(run, STORY, path, new, **SIGNED)
    assert edits_of(run, STORY) == ()


@pytest.mark.parametrize("who", ["a\nb", "a\0", "x" * 101])
def test_add_edit_when_the_name_is_no_line_of_text_is_refused(run, who) -> None:
    with pytest.raises(ConfigError, match="--who: expected a name in one line"):
        add_edit(run, STORY, "$.title", "x", who=who, why="clearer")


@pytest.mark.parametrize("name", ["who", "why"])
def test_add_edit_when_not_signed_is_refused(run, name) -> None:
    with pytest.raises(ConfigError, match=f"--{name}: expected some text"):
        add_edit(run, STORY, "$.title", "x", **{**SIGNED, name: ""})


def test_add_edit_when_a_waiting_edit_cannot_be_applied_names_it(run) -> None:
    append_edit(run, lambda: Edit(id=STORY, path="$.title", old="Other", new="x", **SIGNED))
    with pytest.raises(RunError, match=r'edits\.jsonl: kb25k_0001.*expected the old value "Other"'):
        add_edit(run, STORY, "$.title", "y", **SIGNED)
    (run / NAME).write_text("")
    assert add_edit(run, STORY, "$.title", "y", **SIGNED).old == record(run)["title"]


def test_add_edit_when_the_story_has_no_draft_says_where_it_stopped(run) -> None:
    with pytest.raises(RunError, match="an item with a draft, found pending in"):
        add_edit(run, "kb25k_0003", "$.title", "x", **SIGNED)
    with pytest.raises(RunError, match="an item nope"):
        add_edit(run, "nope", "$.title", "x", **SIGNED)


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


def test_withdraw_when_the_record_is_withdrawn_already_is_refused_as_any_edit_is(run) -> None:
    withdraw(run, STORY, **SIGNED)
    for again in (
        lambda: withdraw(run, STORY, **SIGNED),
        lambda: add_edit(run, STORY, "$.title", "x", **SIGNED),
    ):
        with pytest.raises(ConfigError, match="found withdrawn by ana: clearer"):
            again()
    assert len(edits_of(run, STORY)) == 1


@pytest.mark.parametrize(
    ("item", "why", "expected"),
    [
        ("nope", "x", "an item nope"),
        (STORY, "two\nlines", "line ends"),
        (STORY, "x" * 501, "501 characters"),
        (STORY, " ", "some text"),
    ],
)
def test_withdraw_when_it_cannot_be_is_refused_and_not_written(run, item, why, expected) -> None:
    with pytest.raises(UserError, match=expected):
        withdraw(run, item, who="ana", why=why)
    assert not (run / NAME).exists()


def test_add_edit_when_for_the_whole_record_names_the_cure(run) -> None:
    with pytest.raises(ConfigError, match="--withdraw"):
        add_edit(run, STORY, "$", None, **SIGNED)
