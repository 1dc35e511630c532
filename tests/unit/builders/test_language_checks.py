"""Whether what a model drafted is in its story's language, and whether two questions ask the same."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fabula.builders.katha import write_questions
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.checks.language import language_checks
from fabula.builders.katha.checks.rules import rule_checks
from fabula.builders.katha.drafts import LISTS
from fabula.builders.katha.write_questions import NEAR, REPEATED, near_repetitions, repetitions
from fabula.models.vectors import packed
from fabula.testing.model_server import ModelServer

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


def test_near_questions_when_the_cosine_reaches_the_threshold_are_left_out() -> None:
    first, near, far = packed([1.0, 0.0]), packed([0.95, 0.3122499]), packed([0.9, 0.4358899])
    questions = [question(f"Asked {number}?") for number in range(3)]
    assert NEAR == 0.92
    # The vectors have length 1, so that the cosine with (1, 0) is the first number: 0.95 and 0.9.
    reason = "it asks nearly the same as 'Asked 0?' (cosine of their vectors 0.950)"
    assert near_repetitions(questions, {0: first, 1: near, 2: far}) == {1: reason}
    assert near_repetitions(questions, {0: first, 1: near, 2: far}, 0.995) == {}
    elsewhere = [questions[0], question("Asked 1?", scenes=(1,)), questions[2]]
    assert near_repetitions(elsewhere, {0: first, 1: near, 2: far}) == {}
    assert near_repetitions(questions, {0: first, 1: None, 2: near}).keys() == {2}


def test_build_when_an_encoder_is_set_keeps_one_of_two_near_questions_and_the_check_says_why(
    katha, tmp_path, monkeypatch
) -> None:
    gold = json.loads((katha.samples / "gold.jsonl").read_text("utf-8").splitlines()[0])
    first, other = gold["questions"][:2]
    again = {
        **first,
        "question": f"Say, {first['question']}",
        "gold_answer": f"{first['gold_answer']} so",
    }
    drafts_questions(monkeypatch, lambda: [first, again, other])
    source = tmp_path / "one.jsonl"
    source.write_text((katha.samples / "stories.jsonl").read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    with ModelServer() as server:
        for near in (None, 0.8):
            encoder = (
                f"write_questions.encoder=embedding:{server.openai_url}#e5",
                f"write_questions.near={near}",
            )
            options = BuildOptions(
                created_at="2026-01-01T00:00:00Z", workers=0, settings=() if near is None else encoder
            )
            build_katha(source, tmp_path / str(near), options)
        assert {one.asked.protocol for one in server.log} == {"embeddings"}
    plain, compared = (
        json.loads((tmp_path / str(near) / "records.jsonl").read_text("utf-8"))["payload"]
        for near in (None, 0.8)
    )
    asked = [[part["question"] for part in built["record"]["questions"]] for built in (plain, compared)]
    assert asked[0] == [asked[1][0], f"Say, {asked[1][0]}", *asked[1][1:]]
    ids = [part["question_id"] for part in compared["record"]["questions"]]
    assert ids == [f"kb25k_0001_q{number:02d}" for number in range(1, len(ids) + 1)]
    (check,) = [row for row in compared["checks"] if row["code"] == "question_distinct"]
    assert check["passed"] is True and "nearly the same" in check["note"] and "cosine" in check["note"]
