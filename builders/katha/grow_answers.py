"""Stage: more accepted answers, before people's corrections and before the answer sets are frozen (C.5).

What blind readers answered when the draft was checked was judged then; what is the same answer joins the
accepted ones. What people answered from the story's text is judged here, by the verifier. An answer that is
nearly an accepted one does not join. Who gave each answer, who judged it, and what became of it is kept.
Questions that a person wrote take in what people answered, and nothing of a model. Without a model nothing
that people answered joins.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.text import is_unspaced, normalize_answer, normalize_text
from ..step import Worded
from ..text.segments import word_set
from .checks.verify_record import Case, judge_answers, with_remark
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


class GrowSettings(Worded):
    """Settings of the stage; ``model`` is the verifier, and nothing joins without one."""

    retired: ClassVar[tuple[str, ...]] = ("answerers", "samples")


SPEC = StageSpec(
    name="grow_answers",
    version=4,
    shape="map",
    reads=("story", *NARRATIVE, "given", "answers", "readings", *PARTS, *REPAIRS),
    writes=GROWN,
    settings=GrowSettings,
    asks=("katha/check_answers",),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that might join."""

    question: int | None  # position of its question; None where there is none of this id
    question_id: str  # id of its question
    answer: str  # the answer, in its normal form
    producer: str  # who gave it
    # what was judged of it before (``verdict``, ``judge``, ``remark``); None where nothing was
    reading: Json = None


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the answers that join, by question id, and what became of every answer."""
    draft = with_repairs(make_draft(item.fields), item["repaired"], item["repaired_by"])
    case = Case(told_story(item.fields), draft, tools)
    candidates = [*_people(item["answers"], draft["questions"]), *_read(item["readings"], draft)]
    history = await _history(case, candidates)
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


def _read(readings: Sequence[Json], draft: Json) -> Iterator[Candidate]:
    """Yield what readers answered when the draft was checked, to the questions that no person wrote."""
    places = {part["question_id"]: number for number, part in enumerate(draft["questions"])}
    for reading in readings:
        number = places[reading["question_id"]]
        if not _is_given(number, draft):
            name, answer, producer = (reading[key] for key in ("question_id", "answer", "producer"))
            yield Candidate(number, name, answer, producer, reading)


def _is_given(number: int, draft: Json) -> bool:
    """Return whether a person gave the accepted answers of a question."""
    return by_person(maker_of(f"$.questions[{number}].accepted_answers", draft["producers"]))


async def _history(case: Case, candidates: Sequence[Candidate]) -> list[Json]:
    """Return what became of each answer: judged where it is new, joined where it is the same answer."""
    questions = case.draft["questions"]
    faults = [_fault(candidate, questions) for candidate in candidates]
    new: dict[int, dict[str, str]] = {}
    for candidate, fault in zip(candidates, faults, strict=True):
        if fault is None and candidate.question is not None and candidate.reading is None:
            new.setdefault(candidate.question, {}).setdefault(
                normalize_answer(candidate.answer), candidate.answer
            )
    judged = await _judgements(case, new)
    history: list[Json] = []
    joined: dict[str, list[str]] = {}
    for candidate, fault in zip(candidates, faults, strict=True):
        name = candidate.question_id
        verdict, reason = (None, fault) if fault is not None else _verdict(candidate, judged)
        earlier = joined.setdefault(name, [])
        near = None
        if verdict and candidate.question is not None:
            near = nearest([*questions[candidate.question]["accepted_answers"], *earlier], candidate.answer)
        if near is not None:
            reason = f"it is nearly {near!r}"
        is_joined = verdict is True and near is None
        earlier += [candidate.answer] if is_joined else []
        judge = None
        if verdict is not None:
            judge = case.judge if candidate.reading is None else candidate.reading["judge"]
        history.append(
            {
                "question_id": name,
                "answer": candidate.answer,
                "producer": candidate.producer,
                "judge": judge,
                "verdict": verdict,
                "joined": is_joined,
                "reason": reason,
            }
        )
    return history


NEAR = 0.6
"""Share of the words of two answers that both have, from which one says nearly what the other says."""
NEAR_SIGNS = 80
"""The same of their characters, in per cent, where no spaces tell words apart."""


def nearest(answers: Sequence[str], answer: str) -> str | None:
    """Return the first of some answers that an answer nearly repeats, with a word more or less; or None."""
    words = _content(answer)
    for other in answers:
        if is_unspaced(answer):
            from rapidfuzz.fuzz import ratio

            is_near = ratio(normalize_answer(other), normalize_answer(answer)) >= NEAR_SIGNS
        else:
            both = _content(other)
            is_near = words == both or len(words & both) >= NEAR * len(words | both) > 0
        if is_near:
            return other
    return None


def _content(answer: str) -> frozenset[str]:
    words = normalize_answer(answer).split()
    return frozenset(words) - word_set("words", "function") or frozenset(words)


def _fault(candidate: Candidate, questions: Sequence[Json]) -> str | None:
    """Return why an answer cannot join, whatever a judge would say, or None."""
    if candidate.question is None:
        return "there is no question of this id"
    question = questions[candidate.question]
    if normalize_answer(candidate.answer) in map(normalize_answer, question["accepted_answers"]):
        return "it is accepted already"
    return answer_fault(question["question_type"], question["question"], candidate.answer)


async def _judgements(
    case: Case, new: Mapping[int, Mapping[str, str]]
) -> dict[tuple[int, str], tuple[bool | None, str]]:
    """Return verdict and reason of new answers, by question and plain answer; nothing without a judge."""
    questions = case.draft["questions"]
    numbers = sorted(new)
    if not numbers or not case.tools.own(GrowSettings).models():
        return {}
    answers = [list(new[number].values()) for number in numbers]
    judged = await judge_answers(case, [questions[number] for number in numbers], answers)
    verdicts: dict[tuple[int, str], tuple[bool | None, str]] = {}
    for number, texts, judgement in zip(numbers, answers, judged, strict=True):
        for at, text in enumerate(texts):
            if isinstance(judgement, str):
                said: tuple[bool | None, str] = (None, judgement)
            elif not judgement.supported:
                said = (False, "the text does not support the canonical answer")
            else:
                said = _said(at not in judgement.wrong, judgement.remark)
            verdicts[number, normalize_answer(text)] = said
    return verdicts


def _said(verdict: bool | None, remark: str) -> tuple[bool | None, str]:
    if verdict is None:
        return None, remark
    return verdict, "the same in other words" if verdict else with_remark("another answer", remark)


def _verdict(
    candidate: Candidate, judged: Mapping[tuple[int, str], tuple[bool | None, str]]
) -> tuple[bool | None, str]:
    """Return what was judged of an answer, and why it is the same or another."""
    if candidate.reading is not None:
        return _said(candidate.reading["verdict"], candidate.reading["remark"])
    nobody = (None, "not judged: there is no model")
    return judged.get((candidate.question or 0, normalize_answer(candidate.answer)), nobody)
