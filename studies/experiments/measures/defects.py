"""Planted defective questions: some questions get the accepted answers of another story's question.

Such a question cannot be answered as intended, whatever the pictures show. Nothing is judged again: the
question's text stays, and only what answers are compared with is another. So the archived answers of judges
can be scored against a release with defects.
"""

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from pathlib import Path

from ....releases.loading import Release
from ....schemas.canonical import digest
from ....schemas.katha import Question, StoryRecord
from ....schemas.text import normalize_answer
from ..study import MASTER_SEED

SHARE = 0.2
"""Share of the questions that become defective, of each dimension."""
Read = Callable[[Path], Release]


def plant_defects(
    release: Release, share: float = SHARE, seed: int = MASTER_SEED
) -> tuple[Release, frozenset[str]]:
    """Return a release in which some questions have the answers of another story's, and which these are.

    Of each dimension the share is rounded up. A question for which no other story has answers without an
    overlap stays as it is.
    """
    by_type: dict[str, list[Question]] = {}
    for record in release.records:
        for question in record.questions:
            by_type.setdefault(question.question_type, []).append(question)
    defective: dict[str, Question] = {}
    for questions in by_type.values():
        order = sorted(questions, key=lambda question: digest([seed, "defect", question.question_id]))
        for question in order[: ceil(share * len(order))]:
            donor = _donor(question, questions, seed)
            if donor is not None:
                defective[question.question_id] = question.model_copy(
                    update={"gold_answer": donor.gold_answer, "accepted_answers": donor.accepted_answers}
                )
    records = tuple(_with(record, defective) for record in release.records)
    return replace(release, records=records), frozenset(defective)


def _donor(question: Question, others: list[Question], seed: int) -> Question | None:
    own = _answers(question)
    apart = [other for other in others if other.story_id != question.story_id and not own & _answers(other)]
    return min(apart, key=lambda other: digest([seed, question.question_id, other.question_id]), default=None)


def _answers(question: Question) -> set[str]:
    return {normalize_answer(text) for text in (question.gold_answer, *question.accepted_answers)}


def _with(record: StoryRecord, defective: dict[str, Question]) -> StoryRecord:
    questions = tuple(defective.get(question.question_id, question) for question in record.questions)
    return record.model_copy(update={"questions": questions})
