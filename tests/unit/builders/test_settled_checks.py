"""Checks that apply to a record: those made, verdicts of authors, and those that nobody made."""

import json

import pytest

from fabula.builders.katha.checks.settling import APPLIED, CODES, NOBODY, SCREEN, TEXT, settle
from fabula.errors import InputError
from fabula.schemas.katha import StoryCheck

PART = {"target_transition": [1, 2], "question_type": "causal"}
DRAFT = {
    "narrative_type": "causal_transition",
    "moral_label": None,
    "scenes": [{"action": "a"}, {"action": "b"}],
    "transitions": [{"action": "c"}],
    "questions": [
        {"question": "Why?", **PART},
        {**PART, "question": "Who?", "target_transition": None},
    ],
    "variants": [{"semantic_delta": "d"}],
}
AUTHORED = "author:fabula"


def given(*checks, **changes):
    return {**DRAFT, "author": AUTHORED, "checks": list(checks), **changes}


def verdict(code, path, passed=True, note="read"):
    return {"code": code, "path": path, "passed": passed, "note": note}


def path_of(check):
    return f"$.{check.part}" if check.part == TEXT else f"$.{check.part}[*]"


def row(code, path, passed, producer="rules@1"):
    return {**verdict(code, path, passed, "seen"), "producer": producer}


def settled(made=(), record=None, draft=DRAFT):
    return [(check["code"], check["path"], check["passed"]) for check in settle(made, record, draft)]


def test_checks_when_nobody_made_them_are_there_without_a_verdict() -> None:
    found = [check for check in settle((), None, DRAFT) if not check["code"].startswith(SCREEN)]
    assert {check["note"] for check in found} == {NOBODY}
    assert {(check["passed"], check["producer"]) for check in found} == {(None, None)}
    assert {check["code"]: check["path"] for check in found} == {
        "scene_faithful": "$.scenes[*]",
        "scene_drawable": "$.scenes[*]",
        "transition_faithful": "$.transitions[0]",
        "question_answerable": "$.questions[*]",
        "question_not_guessable": "$.questions[*]",
        "question_drawable": "$.questions[*]",
        # Only the first question is about a transition.
        "question_depends_on_transition": "$.questions[0]",
        "question_answers_equivalent": "$.questions[*]",
        "variant_sound": "$.variants[0]",
        # There is no moral label that could fit.
        "label_fits": "$.narrative_type",
    }


def test_verdicts_when_given_for_every_check_leave_nothing_open() -> None:
    lists = [verdict(check.code, path_of(check)) for check in APPLIED if check.code != "label_fits"]
    found = settle((), given(*lists, verdict("label_fits", "$.narrative_type")), DRAFT)
    assert {check["passed"] for check in found} == {True}
    assert {check["producer"] for check in found} == {AUTHORED}
    judged = {(check["code"], check["path"]) for check in found}
    assert ("scene_drawable", "$.scenes[1]") in judged
    assert ("question_depends_on_transition", "$.questions[1]") not in judged
    for check in found:
        StoryCheck.model_validate(check)


def test_verdict_when_one_part_has_none_leaves_that_part_open() -> None:
    found = settled((), given(verdict("scene_drawable", "$.scenes[1]")))
    assert ("scene_drawable", "$.scenes[1]", True) in found
    assert ("scene_drawable", "$.scenes[0]", None) in found


@pytest.mark.parametrize(
    ("ruled", "said", "left"),
    [(None, True, {True}), (None, False, {False}), (True, False, {True, False}), (True, True, {True}),
     (False, True, {False}), (False, False, {False})],
)  # fmt: skip
def test_verdict_when_the_same_check_was_made_replaces_none_and_overrules_nothing(ruled, said, left) -> None:
    made = [row("screen_wordplay", "$.story_text", ruled)]
    found = settled(made, given(verdict("screen_wordplay", "$.story_text", said)))
    assert {passed for code, _, passed in found if code == "screen_wordplay"} == left


def test_verdict_when_the_part_was_changed_afterwards_does_not_count() -> None:
    changed = {**DRAFT, "questions": [{**DRAFT["questions"][0], "question": "How?"}, DRAFT["questions"][1]]}
    found = settled((), given(verdict("question_drawable", "$.questions[*]")), changed)
    assert ("question_drawable", "$.questions[0]", None) in found
    assert ("question_drawable", "$.questions[1]", True) in found


def test_rule_when_it_has_no_verdict_gives_way_to_one_on_the_same_part() -> None:
    made = [row("answerable", f"$.questions[{n}].gold_answer", None) for n in (0, 1)]
    made.append(row("model_answerable", "$.questions[1].gold_answer", True, "openai:judge"))
    found = settled(made, given(verdict("question_answerable", "$.questions[0]")))
    assert "answerable" not in {code for code, _, _ in found}
    # What a model made under its own name stands for the check that applies.
    assert [path for code, path, _ in found if code == "question_answerable"] == ["$.questions[0]"]


SCENES = [{"scene_text": "A fox ran."}, {"scene_text": "A crow flew."}]


def loaded(katha, write_rows, tmp_path, checks):
    path = tmp_path / "given.jsonl"
    record = {"story_id": "one", "author": AUTHORED, "scenes": SCENES, "checks": checks}
    path.write_text(json.dumps(record) + "\n")
    return katha.load([("stories", write_rows({})), ("records", path)])["one"]["given"]


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (verdict("scene_drawable", "$.scenes[2]"), "the path of scenes that the record gives"),
        (verdict("question_drawable", "$.questions[0]"), "the path of questions that the record gives"),
        (verdict("label_fits", "$.moral_label"), "narrative_type or moral_label"),
        (verdict("scene_drawable", "scenes"), "the path of scenes"),
        (verdict("screen_wordplay", "$.title"), "the path of story_text"),
        (verdict("scene_pretty", "$.scenes[0]"), CODES[0]),
        (verdict("scene_drawable", "$.scenes[0]", passed=None), "passed"),
        ({"code": "scene_drawable"}, "note"),
        ("scene_drawable", "checks[0]"),
    ],
)
def test_verdicts_when_wrong_are_refused(katha, write_rows, tmp_path, check, expected) -> None:
    with pytest.raises(InputError) as raised:
        loaded(katha, write_rows, tmp_path, [check])
    assert expected in str(raised.value)


@pytest.fixture
def sample(katha):
    stories, records = (("stories", "stories.jsonl"), ("records", "gold.jsonl"))
    loaded = katha.load([(role, katha.samples / name) for role, name in (stories, records)])
    return loaded["kb25k_0001"]


def test_record_when_its_author_judged_all_is_auto_checked_and_credited(katha, sample) -> None:
    made = katha.draft(sample)
    assert made["bundle"]["record"]["validation_status"] == "auto_checked"
    assert {entry["producer"] for entry in made["bundle"]["producers"]} <= {"author", AUTHORED}


def test_record_when_one_verdict_of_its_author_is_missing_needs_review(katha, sample) -> None:
    given = sample["given"]
    fewer = [check for check in given["checks"] if check["code"] != "variant_sound"]
    made = katha.draft({**sample, "given": {**given, "checks": fewer}})
    assert made["bundle"]["record"]["validation_status"] == "review_needed"
    left = {check["code"] for check in made["checks"] if check["passed"] is not True}
    assert left == {"variant_sound"}
