"""What a review of records comes to: panels of three, one for each row of the rules (Table 19)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.people.review.folder import Study, drop, open_study, replace_protocol
from fabula.people.review.journal import VoteJournal
from fabula.people.review.plan import Plan
from fabula.people.review.points import cases, decide
from fabula.people.review.protocol import amended
from fabula.people.review.records import Reviewed, reviewed_records, withdrawal_of
from fabula.schemas.canonical import Json
from fabula.testing.review_studies import NOW
from fabula.testing.reviewed_records import Changes, add_adjudicator, edit, record_study, vote_all

FIRST, LATER = "kb25k_0001", "2026-01-02T03:04:05Z"
KIND = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", "kindness"),
        "moral_label_note": "They do somebody good."}  # fmt: skip
WISE = {**KIND, "moral_label_correction": edit("$.moral_label", "wisdom")}
UNSURE = {"moral_label": "ambiguous"}
QUESTION = f"{FIRST}_q1"
BETTER = edit("$.questions[0].gold_answer", "the river rose")
MENDED = {f"recoverability_qa/{QUESTION}": "needs_edit", f"qa_correction/{QUESTION}": BETTER}
USELESS = {f"recoverability_qa/{QUESTION}": "invalid", f"qa_note/{QUESTION}": "Two answers fit."}
FAULTY = {"scene_sequence": "flawed", "scene_sequence_correction": edit("$.scenes[1].emotion", "dread")}

Panel = Callable[..., Study]


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


def summary(study: Study) -> tuple[str, str, bool, str | None, tuple[str, ...]]:
    record = came_to(study)
    return record.decision, record.resolution, record.complete, record.label, record.flags


def test_record_when_all_accept_it_is_accepted_unanimously(panel: Panel) -> None:
    record = came_to(panel())
    assert (record.decision, record.resolution, record.complete) == ("accepted", "unanimous", True)
    assert (record.label, record.flags, record.edits) == ("compassion", (), ())
    assert record.reviewers == ("simulated-1", "simulated-2", "simulated-3")
    assert (record.adjudicators, record.signed_at) == ((), NOW)


def test_record_when_two_of_three_agree_waits_for_an_adjudicator(panel: Panel) -> None:
    study = panel({}, {}, KIND)
    assert summary(study) == (
        "needs_correction", "not_reviewed", False, "compassion", ("open:moral_label",),
    )  # fmt: skip


def test_record_when_two_of_three_agree_and_that_decides_is_accepted_and_says_so(panel: Panel) -> None:
    study = panel({}, {}, KIND, consensus=True)
    assert summary(study) == ("accepted", "unanimous", True, "compassion", ("majority:moral_label",))


def test_label_when_all_correct_it_alike_is_corrected_with_what_they_say(panel: Panel) -> None:
    record = came_to(panel(KIND, KIND, KIND))
    assert (record.decision, record.resolution, record.label) == ("accepted", "unanimous", "kindness")
    assert record.flags == ("corrected:moral_label",)
    (correction,) = record.edits
    assert (correction.id, correction.path) == (FIRST, "$.moral_label")
    assert (correction.old, correction.new) == ("compassion", "kindness")
    assert correction.who == "simulated-1, simulated-2, simulated-3"
    assert correction.why == "moral_label corrected: They do somebody good."


def test_label_when_corrections_conflict_is_decided_even_where_a_majority_decides(panel: Panel) -> None:
    study = panel(KIND, KIND, WISE, consensus=True)
    assert summary(study)[:2] == ("needs_correction", "not_reviewed")
    settle(study, moral_label=("corrected", edit("$.moral_label", "wisdom")))
    record = came_to(study)
    assert (record.decision, record.resolution, record.label) == ("accepted", "human_adjudicated", "wisdom")
    assert (record.adjudicators, record.signed_at) == (("simulated-a",), LATER)
    (correction,) = record.edits
    assert (correction.old, correction.new, correction.who) == ("compassion", "wisdom", "simulated-a")
    assert correction.why == "moral_label corrected: The last scene says so."


def test_label_when_found_ambiguous_stays_with_a_flag(panel: Panel) -> None:
    study = settle(panel({}, {}, UNSURE, consensus=True), moral_label="ambiguous")
    assert summary(study) == (
        "accepted", "human_adjudicated", True, "compassion", ("ambiguous:moral_label",),
    )  # fmt: skip


def test_question_when_mended_alike_is_accepted_with_the_correction(panel: Panel) -> None:
    record = came_to(panel(MENDED, MENDED, {}, consensus=True))
    assert (record.decision, record.resolution) == ("accepted", "unanimous")
    assert record.flags == ("corrected:questions[0].gold_answer", f"majority:recoverability_qa:{QUESTION}")
    assert [(each.path, each.new) for each in record.edits] == [
        ("$.questions[0].gold_answer", "the river rose")
    ]


def test_question_when_invalid_and_not_repaired_is_flagged(panel: Panel) -> None:
    study = panel(USELESS, USELESS, USELESS)
    assert summary(study)[:2] == ("needs_correction", "not_reviewed")  # always decided, even where all agree
    settle(study, recoverability_qa="invalid")
    assert summary(study)[::4] == ("accepted", (f"invalid:recoverability_qa:{QUESTION}",))
    assert came_to(study).edits == ()


def test_question_when_invalid_and_the_answer_is_clear_is_repaired(panel: Panel) -> None:
    study = settle(panel(USELESS, USELESS, {}), recoverability_qa=("needs_edit", BETTER))
    record = came_to(study)
    assert (record.decision, record.flags) == ("accepted", ("corrected:questions[0].gold_answer",))


def test_variant_when_invalid_is_set_inactive(panel: Panel) -> None:
    variant = f"{FIRST}_v2"
    study = panel(
        {}, {f"contrastive_variant/{variant}": "invalid"}, {f"contrastive_variant/{variant}": "invalid"}
    )
    record = came_to(settle(study, contrastive_variant="invalid"))
    assert record.decision == "accepted"
    assert record.flags == ("corrected:variants[1].has_variant", f"invalid:contrastive_variant:{variant}")
    (correction,) = record.edits
    assert (correction.path, correction.old, correction.new) == ("$.variants[1].has_variant", True, False)


@pytest.mark.parametrize(
    ("said", "decided", "flag"),
    [
        ({"scene_sequence": "unusable"}, {"scene_sequence": "unusable"}, "unusable:scene_sequence"),
        ({"safety": "unsafe"}, {"safety": "unsafe"}, "unsafe:safety"),
        ({"safety": "rights_uncertain"}, {"safety": "rights_uncertain"}, "rights_uncertain:safety"),
    ],
)
def test_record_when_unusable_unsafe_or_in_doubt_is_rejected_and_not_repaired(
    panel: Panel, said: Changes, decided: Changes, flag: str
) -> None:
    study = panel({**said, **MENDED}, {**said, **MENDED}, {**said, **MENDED})
    assert summary(study)[0] == "needs_correction"
    record = came_to(settle(study, **decided))
    assert (record.decision, record.resolution, record.complete) == ("rejected", "human_adjudicated", True)
    assert record.edits == ()  # the question, on which all agree, is not repaired either
    assert flag in record.flags
    gone = withdrawal_of(record)
    assert (gone.path, gone.new, gone.who) == ("$", None, "simulated-a")
    assert "The last scene says so." in gone.why


def test_record_when_one_reviewer_was_wrong_about_its_scenes_is_accepted(panel: Panel) -> None:
    study = settle(panel({"scene_sequence": "unusable"}, {}, {}), scene_sequence="valid")
    assert summary(study) == ("accepted", "human_adjudicated", True, "compassion", ())


def test_scenes_when_flawed_and_nobody_says_how_need_correction(panel: Panel) -> None:
    flawed = {"scene_sequence": "flawed"}
    study = settle(panel(flawed, flawed, flawed), scene_sequence="flawed")
    assert summary(study) == (
        "needs_correction", "human_adjudicated", True, "compassion", ("uncorrected:scene_sequence",),
    )  # fmt: skip


def test_scenes_when_flawed_and_mended_alike_are_corrected(panel: Panel) -> None:
    record = came_to(panel(FAULTY, FAULTY, FAULTY))
    assert (record.decision, record.flags) == ("accepted", ("corrected:scenes[1].emotion",))


def test_record_when_parts_and_label_are_corrected_has_the_label_first(panel: Panel) -> None:
    both = {**KIND, **MENDED}
    assert [each.path for each in came_to(panel(both, both, both)).edits] == [
        "$.moral_label", "$.questions[0].gold_answer",
    ]  # fmt: skip


def test_record_when_fewer_reviewed_it_than_planned_is_not_complete(tmp_path: Path) -> None:
    study = vote_all(record_study(tmp_path / "study", 2, Plan(raters=3, least=1, overlap=0.5, block=50)))
    records = {len(each.reviewers): each for each in reviewed_records(study, study.standing())}
    assert (records[3].decision, records[3].complete) == ("accepted", True)
    assert (records[1].decision, records[1].complete) == ("needs_correction", False)


def test_record_when_votes_can_still_be_changed_is_not_there(tmp_path: Path) -> None:
    study = vote_all(record_study(tmp_path / "study", 1), closing=False)
    assert reviewed_records(study, study.standing()) == []


def test_record_when_a_reviewer_is_dropped_waits_for_another_and_the_decision_counts_no_more(
    panel: Panel,
) -> None:
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


@pytest.mark.parametrize(
    ("said", "decided", "status", "adjudicator"),
    [
        ({}, {}, "pre_release_reviewed", None),
        (KIND, {}, "review_needed", None),
        (KIND, {"moral_label": "correct"}, "pre_release_reviewed", "simulated-a"),
        ({"safety": "unsafe"}, {"safety": "unsafe"}, "human_review_complete", "simulated-a"),
    ],
)
def test_validation_when_written_has_the_status_of_its_review(
    panel: Panel, said: Changes, decided: Changes, status: str, adjudicator: str | None
) -> None:
    study = panel({}, {}, said)
    row = came_to(settle(study, **decided) if decided else study).as_validation("human_review:gold@0")
    assert (row.validation_status, row.adjudicator_id) == (status, adjudicator)
