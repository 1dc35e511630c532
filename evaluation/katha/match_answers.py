"""Stage: a model's own verdict on which answers mean the same as an accepted one (Table 61).

Nobody is asked unless a matcher is named. Scoring uses the verdicts where it is told to (``matcher=model``).
"""

from itertools import accumulate
from typing import Any

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from ..judging.answers import FIELDS, GivenAnswer, ask_judges, given_answers, record_of
from ..judging.packets import Packet, Reader, dimension_instruction
from ..judging.settings import MatcherSettings

MATCHER = "model"
"""What the verdicts are called in the archive."""

SPEC = StageSpec(
    name="match_answers",
    version=3,
    shape="map",
    reads=("record", *FIELDS),
    writes=("match_answers",),
    settings=MatcherSettings,
    asks=("judge/dimension", "judge/match_answer"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row per answer that a judge gave to a question, matcher and attempt.

    In a row ``vote`` is the place of the answer among all answers to its question under its condition.
    """
    if tools.asker is None:
        return Made({"match_answers": []})
    answers, language = list(given_answers(item)), record_of(item).language
    rows = await ask_judges([_packet(answer, language, tools.seed) for answer in answers], tools)
    # A row without the number of its attempt is the first about its answer.
    about = accumulate((int("attempt" not in row) for row in rows), initial=-1)
    numbered = [
        {**row, "vote": answers[place].place} for row, place in zip(rows, list(about)[1:], strict=True)
    ]
    return Made({"match_answers": numbered})


def _packet(answer: GivenAnswer, language: str, seed: int) -> Packet:
    question = answer.question
    inputs = {
        "accepted": list(question.accepted_answers),
        "answer": answer.text,
        "instruction": dimension_instruction(question, seed),
        "language": language,
        "question": question.question,
    }
    prompt, condition = load_prompt("judge/match_answer"), answer.condition
    return Packet("match", question.question_id, condition, prompt, inputs, (), _reader(answer))  # type: ignore[arg-type]


def _reader(answer: GivenAnswer) -> Reader:
    def read(reply: Json) -> dict[str, Any]:
        return {
            "matcher": MATCHER, "of": answer.condition, "answer": answer.text, "matched": reply["matched"]
        }  # fmt: skip

    return read
