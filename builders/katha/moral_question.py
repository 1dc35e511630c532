"""The question for the author's moral label, which any story can be asked that has one (Table 13)."""

from collections.abc import Sequence

from ...schemas.canonical import Json
from ...schemas.text import contains_phrase, normalize_answer, primary_language
from ..text.words import lexicon, pick


def ask_moral(story: Json, transitions: Sequence[Json], label: str | None) -> Json | None:
    """Return the question about the transition that bears a label.

    None without a label, where no transition bears it, and for stories that are not in English, as it is.
    """
    bearer = next((part for part in transitions if part["moral_target"] == label), None)
    question = pick(lexicon("morals")["questions"], story["id"], "moral")
    accepted = moral_answers(label, question)
    if accepted is None or bearer is None or primary_language(story["language"]) != "en":
        return None
    first, second = bearer["from_scene"], bearer["to_scene"]
    return {
        "question_id": f"{story['id']}_q01",
        "story_id": story["id"],
        "question_type": "moral",
        "question": question,
        "gold_answer": accepted[0],
        "accepted_answers": accepted,
        "target_scene": None,
        "target_transition": [first, second],
        "evidence_scenes": [first, second],
        "required_evidence": _evidence(first, second, accepted[0]),
        "answerability": "text_supported",
    }


def relabelled(question: Json, label: str) -> Json | None:
    """Return a moral question answered by another label; None where there are no words for it."""
    accepted = moral_answers(label, question["question"])
    if accepted is None:
        return None
    evidence = question["required_evidence"]
    if question["target_transition"] is not None:
        first, second = question["target_transition"]
        evidence = _evidence(first, second, accepted[0])
    return {
        **question, "gold_answer": accepted[0], "accepted_answers": accepted, "required_evidence": evidence,
    }  # fmt: skip


def moral_answers(label: str | None, question: str) -> list[str] | None:
    """Return the words for a label, the canonical one first; None where none can be asked for."""
    forms = lexicon("morals")["answers"].get(label)
    if forms is None:
        return None
    asked = normalize_answer(question)
    kept = [form for form in forms if not contains_phrase(asked, normalize_answer(form))]
    return kept if kept[:1] == forms[:1] else None


def _evidence(first: int, second: int, gold: str) -> str:
    return f"The choice between scene {first} and scene {second} must show {gold}."
