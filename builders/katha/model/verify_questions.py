"""Having a model check the questions: answered without the answers, and answers that agree.

The questions are first answered by a prompt that has not seen the answers. What it says is compared with the
accepted answers by the rule that scoring uses; where it is none of them word for word, a second prompt judges
it among the accepted answers, without being told which it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ....engine.asking import NoAnswer
from ....schemas.canonical import Json
from ....schemas.text import normalize_answer
from ..rule_checks import make_check
from .case import Case, why_unjudged, with_remark
from .read_checks import Judged, note, read_answers, read_judgements

ANSWERABLE, EQUIVALENT = "model_answerable", "model_answers_equivalent"


@dataclass(frozen=True, slots=True)
class _Answered:
    """A question and what the model answered without having seen the answers.

    Attributes:
        others: the accepted answers beside the canonical one.
        blind: the model's answer; None where it finds the text unclear.
    """

    question: Json
    others: tuple[str, ...]
    blind: str | None

    @property
    def is_canonical(self) -> bool:
        """Whether the model's answer is the canonical one, by the rule that scoring uses."""
        return normalize_answer(self.blind or "") == normalize_answer(self.question["gold_answer"])

    @property
    def listed(self) -> tuple[str, ...]:
        """The answers to be judged: the accepted ones, and the model's own where it is a new one."""
        return self.others if self.blind is None or self.place is not None else (*self.others, self.blind)

    @property
    def place(self) -> int | None:
        """Where its answer is among the accepted ones, -1 for the canonical one; None if it is new."""
        if self.is_canonical:
            return -1
        plain = [normalize_answer(text) for text in self.others]
        said = normalize_answer(self.blind or "")
        return plain.index(said) if said in plain else None


async def check_questions(case: Case) -> list[Json]:
    """Return the checks of all questions: one whether it is answerable, one whether its answers agree.

    Raises:
        NoAnswer: the model cannot be reached.
    """
    questions = case.draft["questions"]
    if not questions:
        return []
    asked = [f"({part['question_type']}) {part['question']}" for part in questions]
    try:
        blind = await case.ask(
            "katha/answer_questions", lambda reply: read_answers(reply, len(asked)), questions=asked
        )
    except NoAnswer as failure:
        why = why_unjudged(failure)
        return [make_check(ANSWERABLE, _path(number), None, why) for number in range(len(questions))]
    answered = [_Answered(part, _others(part), answer) for part, answer in zip(questions, blind, strict=True)]
    judged = await _judgements(case, answered)
    checks = []
    for number, (part, verdict) in enumerate(zip(answered, judged, strict=True)):
        checks += [_answerable(number, part, verdict), _equivalent(number, part, verdict)]
    return checks


def _path(number: int) -> str:
    return f"$.questions[{number}].gold_answer"


def _others(question: Json) -> tuple[str, ...]:
    gold = normalize_answer(question["gold_answer"])
    return tuple(text for text in question["accepted_answers"] if normalize_answer(text) != gold)


async def _judgements(case: Case, answered: Sequence[_Answered]) -> Sequence[Judged | str]:
    """Return the judgement of each question, or why there is none."""
    entries = [
        {
            "question": part.question["question"],
            "gold_answer": part.question["gold_answer"],
            "answers": list(part.listed),
        }
        for part in answered
    ]
    counts = [len(part.listed) for part in answered]
    try:
        return await case.ask(
            "katha/check_answers", lambda reply: read_judgements(reply, counts), questions=entries
        )
    except NoAnswer as failure:
        return [why_unjudged(failure)] * len(answered)


def _answerable(number: int, part: _Answered, judged: Judged | str) -> Json:
    path = _path(number)
    if part.blind is None:
        return make_check(ANSWERABLE, path, False, "without having seen the answers: the text is unclear")
    said = f"without having seen the answers: {note(part.blind)!r}"
    if isinstance(judged, str):
        known = part.place is not None
        more = "an accepted answer" if known else judged
        return make_check(ANSWERABLE, path, True if known else None, f"{said}, {more}")
    if not judged.supported:
        fault = with_remark("the text does not support the answer", judged.remark)
        return make_check(ANSWERABLE, path, False, fault)
    place = len(part.others) if part.place is None else part.place
    if place in judged.wrong:
        return make_check(
            ANSWERABLE, path, False, with_remark(f"{said}, which is another answer", judged.remark)
        )
    kind = "the same in other words" if part.place is None else "an accepted answer"
    return make_check(ANSWERABLE, path, True, f"{said}, {kind}")


def _equivalent(number: int, part: _Answered, judged: Judged | str) -> Json:
    path = f"$.questions[{number}].accepted_answers"
    if isinstance(judged, str):
        return make_check(EQUIVALENT, path, None, judged)
    wrong = [text for place, text in enumerate(part.others) if place in judged.wrong]
    if not wrong:
        said = f"{len(part.others)} answers say the same as the canonical one"
        return make_check(EQUIVALENT, path, True, said)
    said = "not the same answer: " + ", ".join(map(repr, wrong[:5]))
    return make_check(EQUIVALENT, path, False, with_remark(said, judged.remark))
