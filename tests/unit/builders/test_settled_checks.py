"""Checks that apply to a record: those made, verdicts of authors, and those that nobody made."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fabula.builders.katha import write_questions
from fabula.builders.katha.checks.rules import language_checks, rule_checks
from fabula.builders.katha.checks.settling import APPLIED, CODES, NOBODY, SCREEN, TEXT, settle
from fabula.builders.katha.drafts import LISTS
from fabula.builders.katha.write_questions import REPEATED, repetitions
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


# Whether what a model drafted is in its story's language, and whether two questions ask the same.

FRENCH = (
    "Un renard vit un corbeau perché sur une branche. Le corbeau tenait un fromage dans son bec. Le renard"
    " loua sa voix, et le corbeau ouvrit le bec pour chanter. Le fromage tomba, et le renard l'emporta."
)
ENGLISH = (
    "A fox saw a crow that sat on a branch. The crow held some cheese in her beak. The fox praised her"
    " voice, and the crow opened her beak to sing. The cheese fell down, and the fox took it away."
)
MODEL = "openai:any via katha/describe_scenes@1#0123456789ab"


def draft(text: str, producer: str = MODEL) -> dict[str, Any]:
    """A draft whose scenes are described in a text, and nothing else."""
    scene = {"action": text, "state": None, "emotion": None, "visual_evidence": None, "visual_must_show": []}
    lists = {name: [] for name in LISTS}
    return {**lists, "scenes": [scene], "producers": [{"path": "$.scenes[*].action", "producer": producer}]}


def judged(text: str, described: str, producer: str = MODEL) -> list[tuple[str, str, bool | None]]:
    found = language_checks({"text": text, "language": "xx"}, draft(described, producer))
    return [(check["code"], check["path"], check["passed"]) for check in found]


def test_list_when_in_another_language_of_the_same_script_fails_and_names_both() -> None:
    assert judged(FRENCH, ENGLISH) == judged(ENGLISH, FRENCH) == [("drafted_language", "$.scenes", False)]
    (check,) = language_checks({"text": FRENCH}, draft(ENGLISH))
    assert check["note"] == "it is in the language en, and the story in fr"


def test_lists_when_a_person_wrote_them_are_english_throughout(katha, samples) -> None:
    """The 24 complete records: had a model written them, every list would be judged, and pass."""
    for line in (katha.samples / "gold.jsonl").read_text("utf-8").splitlines():
        gold = json.loads(line)
        lists = {name: gold[name] for name in LISTS}
        made = [{"path": f"$.{name}", "producer": MODEL} for name in LISTS]
        checks = list(language_checks(samples[gold["story_id"]]["story"], {**lists, "producers": made}))
        assert [(check["path"], check["passed"]) for check in checks] == [
            (f"$.{name}", True) for name in LISTS
        ]


def question(text: str, gold: str = "a wet leaf", scenes: tuple[int, ...] = (1, 2)) -> dict[str, Any]:
    return {"question_type": "causal", "question": text, "gold_answer": gold, "evidence_scenes": scenes}


def test_questions_when_they_ask_the_same_are_known_by_words_or_by_answer_and_scenes() -> None:
    questions = [
        question("Why did it fall?"),
        question("What made it slip?", "A wet LEAF."),
        question("why did it fall", "the wind"),
        question("What made it slip?", scenes=(1,)),
        {**question("What was there?"), "question_type": "consequence"},
    ]
    assert repetitions(questions) == {
        1: "it wants the same answer from the same scenes as question 1",
        2: "it has the words of question 1",
    }


def drafts_questions(monkeypatch, questions: Callable[[], list[Any]]) -> None:
    """Let rules draft these questions."""
    step = replace(write_questions.STEP, rules=lambda *_: questions())
    monkeypatch.setattr(write_questions, "STEP", step)


def test_question_when_drafted_twice_is_kept_once_and_the_check_says_why(katha, drafted, monkeypatch) -> None:
    tale = drafted["kb25k_0001"]
    first = {**tale["questions"][0], "evidence_scenes": [1, 2]}
    doubled = [first, {**first, "question": "Asked again?", "question_id": "kb25k_0001_q02"}]
    drafts_questions(monkeypatch, lambda: doubled)
    done = katha.run_stage("write_questions", tale).fields
    assert done["questions"] == [{**first, "question_id": "kb25k_0001_q01"}]
    assert done[REPEATED] == ["'Asked again?': it wants the same answer from the same scenes as question 1"]
    checks = katha.run_stage("verify_record", {**tale, **done}).fields["checks"]
    (check,) = [row for row in checks if row["code"] == "question_distinct"]
    assert check["passed"] is True
    assert "Asked again?" in check["note"]


def test_record_when_two_questions_ask_the_same_all_the_same_fails(drafted) -> None:
    tale = drafted["kb25k_0001"]
    doubled = {**tale["draft"], "questions": [*tale["draft"]["questions"], tale["draft"]["questions"][0]]}
    failed = [row for row in rule_checks(tale["story"], doubled) if row["code"] == "question_distinct"]
    last = len(doubled["questions"]) - 1
    assert [(row["path"], row["passed"]) for row in failed] == [(f"$.questions[{last}].question", False)]
