"""Stage: more accepted answers, before people's corrections and before the answer sets are frozen (C.5).

Blind answerers, models and people, answer the questions from the story's text. What none of the accepted
answers says word for word is judged by the verifier; what it finds to be the same answer joins the accepted
ones. Who gave each answer, who judged it, and what became of it is kept. Questions that a person wrote take
in what people answered, and nothing of a model. Without a model nothing joins.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from ...engine.stage import REHEARSED, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, normalize_text
from .checks.questions import Answered, judge_answers, questions_asked
from .checks.reading import Judged, read_answers
from .checks.verifier import Case, why_unjudged
from .drafts import (
    GROWN,
    NARRATIVE,
    PARTS,
    REPAIRS,
    by_person,
    make_draft,
    maker_of,
    told_story,
    with_repairs,
)
from .write_questions import answer_fault


class GrowSettings(ModelSettings):
    """Settings of the stage; ``model`` is the verifier, and nothing joins without one."""

    answerers: tuple[str, ...] = Field(
        default=(),
        description="Specs of the models that answer without having seen the answers [the verifier].",
    )
    samples: int = Field(
        default=1,
        ge=1,
        le=20,
        description="Answers of each of them; more than one need a temperature above 0.",
    )

    def models(self) -> tuple[str, ...]:
        """Return the specs of verifier and answerers; nobody is asked without a verifier."""
        return tuple(dict.fromkeys((self.model, *self.answerers))) if self.model is not None else ()


SPEC = StageSpec(
    name="grow_answers",
    version=2,
    shape="map",
    reads=("story", *NARRATIVE, "given", "answers", *PARTS, *REPAIRS),
    writes=GROWN,
    settings=GrowSettings,
    asks=("katha/answer_questions", "katha/check_answers"),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that might join.

    Attributes:
        question: position of its question; None where there is none of this id.
        question_id: id of its question.
        answer: the answer, in its normal form.
        producer: who gave it.
    """

    question: int | None
    question_id: str
    answer: str
    producer: str


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the answers that join, by question id, and what became of every answer."""
    settings = tools.own(GrowSettings)
    draft = with_repairs(make_draft(item.fields), item["repaired"], item["repaired_by"])
    case = Case(told_story(item.fields), draft, tools)
    candidates = list(_people(item["answers"], draft["questions"]))
    is_rehearsed = False
    if settings.models() and draft["questions"]:
        for spec in settings.answerers or settings.models()[:1]:
            for sample in range(settings.samples):
                own = settings.model_copy(update={"model": spec, "sample": settings.sample + sample})
                try:
                    candidates += await _blind(replace(case, tools=replace(tools, settings=own)))
                except NoAnswer as failure:
                    why_unjudged(failure)  # raises where the model is to be asked again later
                    is_rehearsed = is_rehearsed or failure.code == REHEARSED
    history = await _history(case, candidates, is_rehearsed=is_rehearsed)
    joined: dict[str, list[str]] = {}
    for entry in history:
        if entry["joined"]:
            joined.setdefault(entry["question_id"], []).append(entry["answer"])
    return Made({"grown": joined, "answer_history": history})


def _people(answers: Sequence[Json], questions: Sequence[Json]) -> Iterator[Candidate]:
    places = {part["question_id"]: number for number, part in enumerate(questions)}
    for entry in answers:
        name = entry["question_id"]
        text = normalize_text(entry["answer"])
        yield Candidate(places.get(name), name, text, f"hand:{entry['who']}")


async def _blind(case: Case) -> list[Candidate]:
    """Return the answers of a model to the questions that no person wrote.

    Raises:
        NoAnswer: it gave none.
    """
    questions = case.draft["questions"]
    drafted = await case.ask_with_maker(
        "katha/answer_questions",
        lambda reply: read_answers(reply, len(questions)),
        questions=questions_asked(questions),
    )
    return [
        Candidate(number, part["question_id"], answer, drafted.maker)
        for number, (part, answer) in enumerate(zip(questions, drafted.value, strict=True))
        if answer is not None
        and not by_person(maker_of(f"$.questions[{number}].accepted_answers", case.draft["producers"]))
    ]


async def _history(case: Case, candidates: Sequence[Candidate], *, is_rehearsed: bool) -> list[Json]:
    """Return what became of each answer: judged where it is new, joined where it is the same answer."""
    questions = case.draft["questions"]
    faults = [_fault(candidate, questions) for candidate in candidates]
    new: dict[int, dict[str, str]] = {}
    for candidate, fault in zip(candidates, faults, strict=True):
        if fault is None and candidate.question is not None:
            new.setdefault(candidate.question, {}).setdefault(
                normalize_answer(candidate.answer), candidate.answer
            )
    judged = await _judgements(case, new, is_rehearsed=is_rehearsed)
    judge = case.judge if judged else None
    history: list[Json] = []
    seen: set[tuple[str, str]] = set()
    for candidate, fault in zip(candidates, faults, strict=True):
        key = (candidate.question_id, normalize_answer(candidate.answer))
        verdict, reason = _verdict(candidate, fault, judged, is_known=key in seen)
        joined = verdict is True and key not in seen
        seen.add(key)
        history.append(
            {
                "question_id": candidate.question_id,
                "answer": candidate.answer,
                "producer": candidate.producer,
                "judge": None if verdict is None else judge,
                "verdict": verdict,
                "joined": joined,
                "reason": reason,
            }
        )
    return history


def _fault(candidate: Candidate, questions: Sequence[Json]) -> str | None:
    """Return why an answer cannot join, whatever a judge would say, or None."""
    if candidate.question is None:
        return "there is no question of this id"
    question = questions[candidate.question]
    if Answered(question, None).is_accepted(candidate.answer):
        return "it is accepted already"
    return answer_fault(question["question_type"], question["question"], candidate.answer)


async def _judgements(
    case: Case, new: Mapping[int, Mapping[str, str]], *, is_rehearsed: bool
) -> dict[int, tuple[Answered, Judged | str]]:
    """Return the judgements of new answers, by question; nothing where there is no judge or nothing new."""
    numbers = range(len(case.draft["questions"])) if is_rehearsed else sorted(new)
    if not numbers or not case.tools.own(GrowSettings).models():
        return {}
    answered = [
        Answered(case.draft["questions"][number], None, news=tuple(new.get(number, {}).values()))
        for number in numbers
    ]
    judged = await judge_answers(case, answered)
    return dict(zip(numbers, zip(answered, judged, strict=True), strict=True))


def _verdict(
    candidate: Candidate,
    fault: str | None,
    judged: Mapping[int, tuple[Answered, Judged | str]],
    *,
    is_known: bool,
) -> tuple[bool | None, str]:
    """Return what was judged of an answer, and why it joined or did not."""
    if fault is not None:
        return None, fault
    if candidate.question is None or candidate.question not in judged:
        return None, "not judged: there is no model"
    answered, judgement = judged[candidate.question]
    if isinstance(judgement, str):
        return None, judgement
    if not judgement.supported:
        return False, "the text does not support the canonical answer"
    if answered.is_wrong(candidate.answer, judgement):
        return False, f"another answer: {judgement.remark}" if judgement.remark else "another answer"
    return True, "the same answer was given before" if is_known else "the same in other words"
