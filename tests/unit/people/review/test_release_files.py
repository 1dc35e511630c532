"""What a review leaves on disk: files that their readers take as they are, from the vote to the release."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.edit_files import read_edit_file
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.edits import run_ids
from fabula.engine.manifest import read_manifest
from fabula.errors import ConfigError
from fabula.kinds.making_studies import draw_items
from fabula.kinds.verbs import continue_run, correct_from, pack
from fabula.people.review.exporting import Reviewed, reviewed_records, withdrawal_of, write_review_files
from fabula.people.review.folder import Study, StudyPlan, drop, make_study, open_study, replace_protocol
from fabula.people.review.plan import Plan, Rules
from fabula.people.review.points import cases, decide
from fabula.people.review.protocol import amended
from fabula.people.review.standing import Event, Standing, VoteJournal
from fabula.people.review.task import load_task
from fabula.releases.katha.reviews import is_accepting, read_reviews
from fabula.releases.options import PackOptions
from fabula.schemas.canonical import Json
from fabula.schemas.judgement import HumanRow
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import seen_of
from fabula.testing.review_studies import NOW, toy_study
from fabula.testing.reviewed_records import Changes, add_adjudicator, edit, record_study, vote_all
from fabula.validators.katha.review_tables import read_vote
from fabula.validators.lines import check_schema
from fabula.validators.view import Part

FIRST, SECOND, LATER = "kb25k_0001", "kb25k_0002", "2026-01-02T03:04:05Z"
KIND: Changes = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", "kindness"),
        "moral_label_note": "They do somebody good."}  # fmt: skip
UNSAFE: Changes = {"safety": "unsafe"}
SAID: dict[str, list[Changes]] = {FIRST: [KIND, KIND, {}], SECOND: [UNSAFE, UNSAFE, UNSAFE]}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Three records: one with a disputed label, one unsafe, one in order."""
    return vote_all(record_study(tmp_path / "study", 3), SAID)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    """That study with its cases decided, and the folder of its files; only read."""
    folder = tmp_path_factory.mktemp("decided")
    study = vote_all(record_study(folder / "study", 3), SAID)
    decide_all(study, {"moral_label": "corrected", "safety": "unsafe"})
    written = write_review_files(study, study.standing(), folder / "out")
    assert (written.records, written.decisions) == (3, {"accepted": 2, "rejected": 1})
    assert (written.cases, written.open, written.edits) == (2, 0, 1)
    return study, folder / "out"


def decide_all(study: Study, values: dict[str, Json]) -> None:
    """Decide all cases; by question, with the corrections of those who said so."""
    who = add_adjudicator(study)
    for case in cases(study, study.standing()):
        value = values[case.question.name]
        edits = next(({**said.edits} for said in case.said if said.answer == value), {})
        listed = [{"path": path, "new": new} for path, new in edits.items()]
        line = {"case": case.id, "value": value, "edits": listed, "reason": f"So it is in {case.about}."}
        event = decide(study, study.standing(), who, line, LATER)
        assert event is not None
        with VoteJournal(study.folder) as journal:
            journal.add_now(event)


def rows(path: Path) -> list[dict[str, Json]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def sound(schema: str, lines: Iterable[Json]) -> list[str]:
    return [str(found.issue) for line in lines for found in check_schema(schema, line, "line")]


def test_files_when_written_have_the_forms_that_their_readers_ask_for(decided: tuple[Study, Path]) -> None:
    study, out = decided
    assert sorted(path.name for path in out.iterdir()) == [
        "cases.jsonl", "consent.json", "edits.jsonl", "human_validation.jsonl",
        "stands_for.jsonl", "votes.jsonl",
    ]  # fmt: skip
    assert sound("katha_human_validation", rows(out / "human_validation.jsonl")) == []
    assert sound("human_row", rows(out / "votes.jsonl")) == []
    reviews = read_reviews(out)
    assert {name: is_accepting(row) for name, row in reviews.rows.items()} == {
        FIRST: True, SECOND: False, "kb25k_0003": True,
    }  # fmt: skip
    assert reviews.rejects(SECOND)
    first = reviews.rows[FIRST]
    assert first["evidence_source"] == f"human_review:gold@{study.protocol.sha256[:12]}"
    assert (first["final_moral_label"], first["adjudicator_id"]) == ("kindness", "simulated-a")
    assert (first["validation_status"], first["signed_at"]) == ("pre_release_reviewed", LATER)
    assert reviews.kept_back is None


def test_votes_when_written_are_one_for_each_unit_and_one_for_the_label(decided: tuple[Study, Path]) -> None:
    study, out = decided
    lines = rows(out / "votes.jsonl")
    # 3 records and reviewers: 4 for the whole (safety too), confidence, 4 + 6 + 2 parts, and the label
    assert len(lines) == 3 * 3 * (4 + 1 + 12 + 1)
    problems: list[object] = []
    assert all(read_vote(Part("votes.jsonl", line), problems) for line in lines), problems  # type: ignore[arg-type]
    labels = [line["labels"] for line in lines if (line["kind"], line["item"]) == ("moral_label", FIRST)]
    assert labels == [["kindness"], ["kindness"], ["compassion"]]  # what stood there is what the third says
    assert {line["part"] for line in lines if line.get("criterion") == "transition_annotation"} == {
        "1-2", "2-3", "3-4", "4-5",
    }  # fmt: skip
    assert all(line["simulated"] and line["protocol"] == study.protocol.sha256 for line in lines)
    assert [HumanRow.model_validate(line) for line in lines]


def test_label_when_a_reviewer_calls_it_ambiguous_is_unclear(tmp_path: Path) -> None:
    study = vote_all(record_study(tmp_path / "study", 1), {FIRST: [{"moral_label": "ambiguous"}]})
    write_review_files(study, study.standing(), tmp_path / "out")
    lines = rows(tmp_path / "out" / "votes.jsonl")
    said = [line["labels"] for line in lines if line["kind"] == "moral_label"]
    assert said == [["unclear"], ["compassion"], ["compassion"]]


def test_edits_when_written_name_what_was_reviewed_and_keep_the_value_before(decided, tmp_path):
    study, out = decided
    write_review_files(study, study.standing(), tmp_path / "out", withdraw=True)
    header, *corrections = rows(tmp_path / "out" / "edits.jsonl")
    assert header == {
        "format": 1, "release": "0" * 64, "run": None, "protocol": study.protocol.sha256, "simulated": True,
    }  # fmt: skip
    assert [(row["id"], row["path"], row["old"], row["new"]) for row in corrections] == [
        (FIRST, "$.moral_label", "compassion", "kindness"), (SECOND, "$", None, None),
    ]  # fmt: skip
    assert [row["who"] for row in corrections] == ["simulated-a", "simulated-a"]
    assert corrections[1]["why"] == f"safety unsafe: So it is in {SECOND}."
    assert len(read_edit_file(tmp_path / "out" / "edits.jsonl").rows) == 2
    assert len(rows(out / "edits.jsonl")) == 2  # withdrawals only where they are asked for


def test_cases_when_written_have_votes_decision_and_reason(study: Study, tmp_path: Path) -> None:
    decide_all(study, {"moral_label": "correct", "safety": "unsafe"})
    write_review_files(study, study.standing(), tmp_path / "out")
    label, safety = rows(tmp_path / "out" / "cases.jsonl")
    assert (label["item"], label["question"], label["state"]) == (FIRST, "moral_label", "majority")
    assert [vote["answer"] for vote in label["votes"]] == ["corrected", "corrected", "correct"]
    assert label["decision"] == {
        "value": "correct", "edits": [], "reason": f"So it is in {FIRST}.", "adjudicator": "simulated-a",
        "at": LATER,
    }  # fmt: skip
    assert (safety["state"], safety["why"]) == ("unusable", ["unusable"])


def test_votes_when_somebody_did_not_agree_are_left_out_and_counted(study: Study, tmp_path: Path) -> None:
    about, body = (LATER, study.protocol.sha256, "simulated-2"), {"publish": False}
    with VoteJournal(study.folder) as journal:
        journal.add_now(Event("simulated-2/agreed-later", *about, "agreed", None, body))
    written = write_review_files(study, study.standing(), tmp_path / "out")
    assert (written.consented, written.reviewers) == (2, 3)
    consent = json.loads((tmp_path / "out" / "consent.json").read_text("utf-8"))
    assert consent == {"publish_votes": False, "consented": 2, "reviewers": 3}
    raters = {line["rater"] for line in rows(tmp_path / "out" / "votes.jsonl")}
    assert raters == {"simulated-1", "simulated-3"}
    case = rows(tmp_path / "out" / "cases.jsonl")[0]
    assert {vote["reviewer"] for vote in case["votes"]} == raters and case["withheld"] == 1
    assert read_reviews(tmp_path / "out").kept_back


def test_files_when_a_reviewer_answered_twice_or_can_still_change_hold_the_final_ones(tmp_path: Path) -> None:
    plan = Plan(raters=3, block=50, repeats=1, gap=1)
    repeated = vote_all(record_study(tmp_path / "repeated", 3, plan))
    written = write_review_files(repeated, repeated.standing(), tmp_path / "out")
    assert written.votes == 3 * 3 * 18
    assert read_reviews(tmp_path / "out").votes is not None
    begun = vote_all(record_study(tmp_path / "begun", 1), closing=False)
    assert write_review_files(begun, begun.standing(), tmp_path / "none").votes == 0
    assert rows(tmp_path / "none" / "human_validation.jsonl") == []


def test_files_when_the_study_is_about_something_else_are_refused(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    with pytest.raises(ConfigError, match="does not review records"):
        write_review_files(study, study.standing(), tmp_path / "out")


@pytest.mark.slow
def test_review_when_it_goes_back_into_its_run_ends_in_a_reviewed_release(tmp_path: Path) -> None:
    """From a run to its study, votes, decisions, corrections, and the release that says what people found."""
    samples = Path(__file__).parents[4] / "builders" / "katha" / "samples" / "stories.jsonl"
    (tmp_path / "stories.jsonl").write_bytes(b"".join(samples.read_bytes().splitlines(keepends=True)[:6]))
    run = tmp_path / "run"
    options = BuildOptions(created_at=NOW, workers=0, settings=["run.threshold=0.1"])
    build_katha(tmp_path / "stories.jsonl", run, options)
    drawing = draw_items(load_task("record"), run)
    plan = StudyPlan(
        name="gold", title="", task="record", plan=Plan(raters=3, block=50), rules=Rules(), created_at=NOW,
        source=drawing.source, settings={"simulated": True},
    )  # fmt: skip
    study = make_study(tmp_path / "study", plan, drawing.items)
    first = drawing.items[0]
    label = next(value for value in first.values if value.path == "$.moral_label")
    new = next(option for option in label.options if option != label.value)
    said = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", new)}
    study = vote_all(study, {first.about: [said, said, said]})
    write_review_files(study, study.standing(), tmp_path / "review")
    assert read_edit_file(tmp_path / "review" / "edits.jsonl").header.run in run_ids(read_manifest(run))
    applied = correct_from(run, tmp_path / "review" / "edits.jsonl")
    assert [edit.new for edit in applied.added] == [new]
    assert continue_run(run, workers=0).totals["failed"] == 0
    packed = PackOptions("0.1.0", license="CC-BY-4.0", reviews=tmp_path / "review", allow_drafts=True)
    pack(run, tmp_path / "release", packed)
    records = {row["story_id"]: row for row in rows(tmp_path / "release" / "annotations.jsonl")}
    assert records.get(first.about, {"moral_label": new})["moral_label"] == new  # or it is in the hidden test
    accepted = {"human_evidence_accepted": True, "resolution": "unanimous"}
    assert len(records) >= 3
    assert {row["validation_status"] for row in records.values()} == {"pre_release_reviewed"}
    assert all(row["evidence_status"] == accepted for row in records.values())
    info = json.loads((tmp_path / "release" / "release.json").read_text("utf-8"))
    assert info["simulated_reviews"] is True


def test_summary_when_nobody_corrected_stands_for_what_was_shown_and_else_for_the_correction(decided):
    _, out = decided
    reviews = {row["story_id"]: row for row in rows(out / "human_validation.jsonl")}
    bundles = {one["record"]["story_id"]: one for one in sample_bundles(3)}
    third = reviews["kb25k_0003"]
    assert third["seen_sha256"] == third["content_sha256"] == seen_of(bundles["kb25k_0003"])
    first = reviews[FIRST]
    assert first["seen_sha256"] == seen_of(bundles[FIRST]) != first["content_sha256"]
    stood = {row["story_id"]: row["content"] for row in rows(out / "stands_for.jsonl")}
    assert stood[FIRST]["moral_label"] == "kindness"
    assert {part["moral_target"] for part in stood[FIRST]["transitions"]} == {None, "kindness"}
    assert {part["original_moral"] for part in stood[FIRST]["variants"]} == {"kindness"}
    votes = rows(out / "votes.jsonl")
    assert {vote["seen_sha256"] for vote in votes if vote["item"] == FIRST} == {seen_of(bundles[FIRST])}


@pytest.mark.parametrize("kind", ["voted", "decided"])
def test_summary_when_a_vote_or_decision_names_no_content_is_unbound(tmp_path: Path, kind: str) -> None:
    study = vote_all(record_study(tmp_path / "study", 1), {FIRST: [KIND, KIND, {}]})
    decide_all(study, {"moral_label": "corrected"})
    events = [each for each in study.events() if not (each.kind == kind and kind == "decided")]
    last = next(each for each in reversed(study.events()) if each.kind == kind)
    body = {name: value for name, value in last.body.items() if name != "seen_sha256"}
    standing = Standing.of([*events, replace(last, id=f"{last.reviewer}/old", body=body)])
    write_review_files(study, standing, tmp_path / "out")
    assert not {"seen_sha256", "content_sha256"} & rows(tmp_path / "out" / "human_validation.jsonl")[0].keys()
    assert rows(tmp_path / "out" / "stands_for.jsonl") == []


# -- What a review of records comes to: panels of three, one for each row of the rules (Table 19)

WISE = {**KIND, "moral_label_correction": edit("$.moral_label", "wisdom")}
UNSURE = {"moral_label": "ambiguous"}
QUESTION = f"{FIRST}_q1"
BETTER = edit("$.questions[0].gold_answer", "the river rose")
MENDED = {f"recoverability_qa/{QUESTION}": "needs_edit", f"qa_correction/{QUESTION}": BETTER}
USELESS = {f"recoverability_qa/{QUESTION}": "invalid", f"qa_note/{QUESTION}": "Two answers fit."}
FLAWED, UNUSABLE = {"scene_sequence": "flawed"}, {"scene_sequence": "unusable"}
FAULTY = {**FLAWED, "scene_sequence_correction": edit("$.scenes[1].emotion", "dread")}
DOUBTED = {"safety": "rights_uncertain"}
INVALID = {f"contrastive_variant/{FIRST}_v2": "invalid"}
NOBODY: dict[str, Json] = {}

Panel = Callable[..., Study]
PANELS: dict[str, tuple[tuple[Changes, ...], bool, dict[str, Any]]] = {
    "two of three agree": (({}, {}, KIND), False, NOBODY),
    "two of three agree, and that decides": (({}, {}, KIND), True, NOBODY),
    "the other is found right": (({}, {}, KIND), False, {"moral_label": "correct"}),
    "all correct the label alike": ((KIND, KIND, KIND), False, NOBODY),
    "corrections conflict": ((KIND, KIND, WISE), True, NOBODY),
    "of corrections one is chosen": (
        (KIND, KIND, WISE), True, {"moral_label": ("corrected", edit("$.moral_label", "wisdom"))},
    ),
    "the label is found ambiguous": (({}, {}, UNSURE), True, {"moral_label": "ambiguous"}),
    "a question is mended alike by two": ((MENDED, MENDED, {}), True, NOBODY),
    "a question is invalid for all": ((USELESS, USELESS, USELESS), False, NOBODY),
    "a question is invalid and not repaired": (
        (USELESS, USELESS, USELESS), False, {"recoverability_qa": "invalid"},
    ),
    "a question is invalid and repaired": (
        (USELESS, USELESS, {}), False, {"recoverability_qa": ("needs_edit", BETTER)},
    ),
    "a variant is invalid": (({}, INVALID, INVALID), False, {"contrastive_variant": "invalid"}),
    "scenes cannot be used": (({**UNUSABLE, **MENDED},) * 3, False, UNUSABLE),
    "it is unsafe": (({**UNSAFE, **MENDED},) * 3, False, UNSAFE),
    "its rights are in doubt": (({**DOUBTED, **MENDED},) * 3, False, DOUBTED),
    "one was wrong about its scenes": ((UNUSABLE, {}, {}), False, {"scene_sequence": "valid"}),
    "scenes are flawed and nobody says how": ((FLAWED, FLAWED, FLAWED), False, FLAWED),
    "scenes are flawed and mended alike": ((FAULTY, FAULTY, FAULTY), False, NOBODY),
    "label and a part are corrected": (({**KIND, **MENDED},) * 3, False, NOBODY),
}  # fmt: skip
"""Case -> what three say, whether a majority decides, and what an adjudicator then decides."""


@pytest.fixture
def panel(tmp_path: Path) -> Panel:
    """A study of one record on which three have voted, all well but for what each says otherwise."""

    def make(*said: Changes, **settings: Json) -> Study:
        return vote_all(record_study(tmp_path / "study", 1, **settings), {FIRST: said})

    return make


def settle(study: Study, **decisions: Json) -> Study:
    """Decide open cases, by question: a value, or a value with corrections; for the reason that it is so."""
    who = add_adjudicator(study)
    for name, decision in decisions.items():
        value, edits = decision if isinstance(decision, tuple) else (decision, [])
        (case,) = (each.id for each in cases(study, study.standing()) if each.question.name == name)
        line = {"case": case, "value": value, "edits": edits, "reason": "The last scene says so."}
        event = decide(study, study.standing(), who, line, LATER)
        assert event is not None
        with VoteJournal(study.folder) as journal:
            journal.add_now(event)
    return study


def came_to(study: Study) -> Reviewed:
    (record,) = reviewed_records(study, study.standing())
    return record


def told(record: Reviewed) -> str:
    """Return all that a review says of a record, as text."""
    edits = [*record.edits, *([withdrawal_of(record)] if record.decision == "rejected" else [])]
    return "\n".join(
        (
            f"{record.decision}, {record.resolution}, {'complete' if record.complete else 'not complete'}",
            f"status: {record.as_validation('human_review:gold@0').validation_status}",
            f"label: {record.label}",
            f"signed at {record.signed_at} by {', '.join((*record.reviewers, *record.adjudicators))}",
            *(f"flag: {flag}" for flag in record.flags),
            *(
                f"{each.id} {each.path}: {each.old} -> {each.new}, by {each.who}: {each.why}"
                for each in edits
            ),
        )
    )


@pytest.mark.parametrize("case", PANELS)
def test_record_when_three_have_reviewed_it_comes_to_what_the_rules_say(panel, case, snapshot, difference):
    said, consensus, decided = PANELS[case]
    study = panel(*said, consensus=consensus)
    assert difference(ACCEPTED, told(came_to(settle(study, **decided) if decided else study))) == snapshot


ACCEPTED = """\
accepted, unanimous, complete
status: pre_release_reviewed
label: compassion
signed at 2026-01-01T00:00:00Z by simulated-1, simulated-2, simulated-3"""


def test_record_when_all_accept_it_is_accepted_unanimously(panel: Panel) -> None:
    assert told(came_to(panel())) == ACCEPTED


def test_record_when_fewer_reviewed_it_than_planned_is_not_complete(tmp_path: Path) -> None:
    study = vote_all(record_study(tmp_path / "study", 2, Plan(raters=3, least=1, overlap=0.5, block=50)))
    records = {len(each.reviewers): each for each in reviewed_records(study, study.standing())}
    assert (records[3].decision, records[3].complete) == ("accepted", True)
    assert (records[1].decision, records[1].complete) == ("needs_correction", False)


def test_record_when_votes_can_still_be_changed_is_not_there(tmp_path: Path) -> None:
    study = vote_all(record_study(tmp_path / "study", 1), closing=False)
    assert reviewed_records(study, study.standing()) == []


def test_record_when_a_reviewer_is_dropped_waits_for_another_and_the_decision_counts_no_more(panel):
    study = settle(panel({}, {}, KIND), moral_label=("corrected", edit("$.moral_label", "kindness")))
    assert came_to(study).decision == "accepted"
    with VoteJournal(study.folder) as journal:
        drop(study, journal, LATER, ["simulated-1"], "did not look")
    record = came_to(study)
    assert (record.reviewers, record.complete) == (("simulated-2", "simulated-3"), False)
    assert (record.decision, record.label, record.edits) == ("needs_correction", "compassion", ())


def test_record_when_the_study_is_closed_is_decided_on_the_votes_there_are(panel: Panel) -> None:
    study = panel({}, {}, KIND)
    with VoteJournal(study.folder) as journal:
        drop(study, journal, LATER, ["simulated-1"], "did not look")
    assert cases(study, study.standing()) == []
    changed = amended(study.protocol, {"closed": True}, who="ana", why="nobody else came", created_at=LATER)
    replace_protocol(study, changed)
    closed = open_study(study.folder)
    assert [each.verdict.why for each in cases(closed, closed.standing())] == [("no_majority",)]
    settle(closed, moral_label="correct")
    assert came_to(closed).decision == "needs_correction"  # two reviewers are fewer than the plan has


def test_notes_when_somebody_did_not_agree_to_publish_are_not_quoted(panel: Panel) -> None:
    study = panel(KIND, KIND, KIND)
    standing = study.standing()
    for person in standing.reviewers.values():
        person.agreed = {"publish": False}
    (record,) = reviewed_records(study, standing)
    assert record.edits[0].why == "moral_label corrected: 3 of 3 reviewers"
