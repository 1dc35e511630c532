"""Stage: a model's own verdict on which answers mean the same as an accepted one (Table 61).

Nobody is asked unless a matcher is named. Scoring uses the verdicts where it is told to (``matcher=model``).
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from ...schemas.katha import Question, StoryRecord
from .answers import ask_judges
from .frames import record_of
from .packets import Packet, Reader, dimension_instruction
from .settings import MatcherSettings

MATCHER = "model"
"""What the verdicts are called in the archive."""

SPEC = StageSpec(
    name="match_answers",
    version=1,
    shape="map",
    reads=("record", "text_answers", "image_answers", "text_image_answers"),
    writes=("match_answers",),
    settings=MatcherSettings,
    asks=("judge/dimension", "judge/match_answer"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row per answer that a judge gave to a question, and matcher.

    In a row ``vote`` is the place of the answer among all answers to its question under its condition.
    """
    if tools.asker is None:
        return Made({"match_answers": []})
    placed = list(_packets(item, record_of(item), tools.seed))
    rows = await ask_judges([packet for _, packet in placed], tools)
    numbered = [{**row, "vote": place} for row, (place, _) in zip(rows, placed, strict=True)]
    return Made({"match_answers": numbered})


def _packets(item: Item, record: StoryRecord, seed: int) -> Iterator[tuple[int, Packet]]:
    """Yield a packet for each answer, with its place among the answers to its question."""
    questions = {question.question_id: question for question in record.questions}
    for name in ("text_answers", "image_answers", "text_image_answers"):
        answers = sorted((row for row in item[name] if row["kind"] == "question"), key=_by_question)
        for question_id, rows in groupby(answers, key=lambda row: row["item"]):
            for place, row in enumerate(rows):
                if row["parsed"] is not None:
                    yield place, _packet(questions[question_id], record, row, seed)


def _by_question(row: Json) -> Any:  # noqa: ANN401 - something to sort by
    return row["item"], row["judge"]["spec"], row["vote"]


def _packet(question: Question, record: StoryRecord, row: Json, seed: int) -> Packet:
    said = row["parsed"]
    answer = said["final_answer" if row["condition"] == "text_image" else "answer"]
    inputs = {
        "accepted": list(question.accepted_answers),
        "answer": answer,
        "instruction": dimension_instruction(question, seed),
        "language": record.language,
        "question": question.question,
    }
    prompt = load_prompt("judge/match_answer")
    return Packet("match", question.question_id, row["condition"], prompt, inputs, (), _reader(row, answer))


def _reader(row: Json, answer: str) -> Reader:
    def read(reply: Json) -> dict[str, Any]:
        return {"matcher": MATCHER, "of": row["condition"], "answer": answer, "matched": reply["matched"]}

    return read
