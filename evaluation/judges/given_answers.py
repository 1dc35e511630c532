"""The answers that judges gave to the questions of a storyboard: what matchers compare with accepted ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ...engine.stage import Item
from ...schemas.canonical import Json
from ...schemas.katha import Question
from .answers import last_attempts, record_of

FIELDS = ("text_answers", "image_answers", "text_image_answers")
"""The fields that hold the judges' answers."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer of a judge to a question.

    Attributes:
        question: what was asked.
        condition: under which evidence.
        place: its place among all answers to the question under that condition; the vote number of a
            matcher's verdict on it.
        text: the answer.
    """

    question: Question
    condition: str
    place: int
    text: str


def given_answers(item: Item) -> Iterator[GivenAnswer]:
    """Yield every answer to a question that could be read, by condition and question."""
    questions = {question.question_id: question for question in record_of(item).questions}
    for name in FIELDS:
        asked = last_attempts(row for row in item[name] if row["kind"] == "question")
        rows = sorted(asked, key=_by_question)
        for question_id, group in groupby(rows, key=lambda row: row["item"]):
            for place, row in enumerate(group):
                if row["parsed"] is not None:
                    key = "final_answer" if row["condition"] == "text_image" else "answer"
                    yield GivenAnswer(questions[question_id], row["condition"], place, row["parsed"][key])


def _by_question(row: Json) -> Any:  # noqa: ANN401 - something to sort by
    return row["item"], row["judge"]["spec"], row["vote"]
