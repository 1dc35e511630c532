"""Stage: the judges' votes on which events a video shows completed, each described first and then scored."""

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...engine.stage import (
    UNASKED,
    Answer,
    Ask,
    BadReply,
    Item,
    Made,
    NoAnswer,
    Outcome,
    Receipt,
    StageSpec,
    Tools,
)
from ...models.chat import Image, Message
from ...prompts.loader import Prompt, load_prompt
from ...prompts.sets import TextSet
from ...schemas.canonical import Json
from ..judging.answers import OUTCOMES, attempt, clean, pictures_of
from ..judging.settings import public_judge
from . import official
from .settings import EventJudgeSettings
from .votes import Completion, Unreadable, parse_completion, parsed_completion

DESCRIBE = "events/describe_video"
SCORE = {"mark": "events/score_events", "structured": "events/score_events_structured"}
REHEARSED = "rehearsed"
"""Code of what a rehearsal answers, in which only questions are written down."""
STAND_IN = "Something moves from frame to frame. " * 40
"""As long as a usual description: what a rehearsal scores by."""
ANSWERED = "answered"
AGAIN = ("refused", "blocked")
"""Outcomes in whose place another vote is asked for."""

SPEC = StageSpec(
    name="judge_events",
    version=3,
    shape="map",
    reads=("prompt", "frames"),
    writes=("votes",),
    settings=EventJudgeSettings,
    asks=(DESCRIBE, *SCORE.values()),
)


@dataclass(frozen=True, slots=True)
class _Case:
    """What one judge is asked about one video; ``attempts`` as in :class:`fabula.engine.stage.Ask`."""

    spec: str
    pictures: Sequence[Image]
    prompt: Json
    settings: EventJudgeSettings
    tools: Tools
    attempts: int | None = 1


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row per judge and vote, none where there is nothing to show."""
    settings = tools.settings
    assert isinstance(settings, EventJudgeSettings)
    if not item["frames"] or tools.asker is None:
        return Made({"votes": []})
    pictures = pictures_of(item["frames"], tools.store)
    cases = [_Case(spec, pictures, item["prompt"], settings, tools) for spec in settings.judges]
    rows = await asyncio.gather(*(_votes(case) for case in cases), return_exceptions=True)
    made: list[Json] = []
    for row in rows:
        if isinstance(row, BaseException):
            raise row
        made.extend(row)
    return Made({"votes": made})


async def _votes(case: _Case) -> list[Json]:
    """Return all votes of a judge: those that are required, and then others in place of refusals.

    Where there are too few answers all the same, votes without one are asked again, if the run allows that.
    """
    required = case.settings.votes_of(case.spec)
    votes = list(await _together([_vote(case, number) for number in range(required)]))
    for _ in range(case.settings.retries):
        refused = sum(rows[-1]["outcome"] in AGAIN for rows in votes)
        if len(votes) - refused >= required:
            break
        votes.append(await _vote(case, len(votes)))
    again = replace(case, attempts=None)
    for number, rows in enumerate(votes):
        if sum(vote[-1]["outcome"] == ANSWERED for vote in votes) >= required:
            break
        if rows[-1]["outcome"] not in (ANSWERED, UNASKED):
            votes[number] = await _vote(again, number)
    return [row for rows in votes for row in rows]


async def _together(votes: Sequence[Any]) -> list[list[Json]]:
    """Wait for all votes, so that none is given up because another could not be asked."""
    outcomes = await asyncio.gather(*votes, return_exceptions=True)
    votes_found: list[list[Json]] = []
    for rows in outcomes:
        if isinstance(rows, BaseException):
            raise rows
        votes_found.append(rows)
    return votes_found


async def _vote(case: _Case, number: int) -> list[Json]:
    """Return one vote: the video is described, and its events are scored by frames and description.

    Each attempt at it has a row; the last one counts.
    """
    came: list[tuple[dict[str, Json], list[Receipt | None]]] = []
    description: Answer[str] | None = None

    def note(missed: Iterable[NoAnswer]) -> None:
        step, described = ("describing", []) if description is None else ("scoring", [description.receipt])
        for miss in missed:
            reason = f"{step}: {miss.code}: {miss.reason}"
            said = {"outcome": OUTCOMES[miss.code], "reason": reason, "parsed": None}
            came.append((said, [*described, miss.receipt]))

    try:
        described = await _describe(case, number)
        note(described.missed)
        description = described
        answer = await _score(case, number, description.value)
    except NoAnswer as none:
        if none.code not in OUTCOMES:
            if none.code == REHEARSED and description is None:
                await _score(case, number, STAND_IN)  # so that it is written down, too
            raise
        note((*none.missed, none))
    else:
        note(answer.missed)
        parsed = {**parsed_completion(answer.value), "description": description.value}
        said = {"outcome": ANSWERED, "reason": None, "parsed": parsed}
        came.append((said, [description.receipt, answer.receipt]))
    texts = case.settings.texts
    label = load_prompt(SCORE[case.settings.reply]).label if texts is None else texts.label(official.SCORE)
    asked = number, label
    return [
        _row(case.spec, *asked, {**attempt(index), **said}, receipts)
        for index, (said, receipts) in enumerate(came, 1)
    ]


async def _describe(case: _Case, number: int) -> Answer[str]:
    texts = case.settings.texts
    if texts is not None:
        question = official.describe_question(texts)
        return await _ask_official(case, texts, official.DESCRIBE, question, number, _text)
    return await _ask(case, load_prompt(DESCRIBE), number, {"count": len(case.pictures)}, _text)


async def _score(case: _Case, number: int, description: str) -> Answer[Completion]:
    events, texts = case.prompt["event_list"], case.settings.texts
    if texts is not None:
        question = official.score_question(texts, description, case.prompt["prompt"], events)
        read = _official_reader(len(events))
        return await _ask_official(case, texts, official.SCORE, question, number, read)
    inputs = {
        "count": len(case.pictures), "description": description, "events": events,
        "prompt": case.prompt["prompt"],
    }  # fmt: skip
    if case.settings.reply == "mark":
        inputs["example"] = ", ".join("0" if index % 2 else "1" for index in range(len(events)))
    return await _ask(case, load_prompt(SCORE[case.settings.reply]), number, inputs, _reader(len(events)))


async def _ask(
    case: _Case, prompt: Prompt, number: int, inputs: dict[str, Json], read: Callable[[Json], Any]
) -> Answer[Any]:
    assert case.tools.asker is not None
    plain = prompt.request(case.settings.for_judge(case.spec), case.tools.seed + number, **inputs)
    *system, user = plain.messages
    parts = [part for index, picture in enumerate(case.pictures, 1) for part in (f"Frame {index}", picture)]
    request = replace(plain, messages=(*system, Message(user.role, (*parts, *user.parts))))
    sample = case.settings.sample + number
    ask = Ask(request, read, prompt.label, repairs=0, sample=sample, attempts=case.attempts)
    return await case.tools.asker.ask(ask)


async def _ask_official(
    case: _Case, texts: TextSet, name: str, question: str, number: int, read: Callable[[Json], Any]
) -> Answer[Any]:
    assert case.tools.asker is not None
    settings = case.settings.for_judge(case.spec)
    request = official.official_request(texts, question, case.pictures, settings, number)
    sample = case.settings.sample + number
    ask = Ask(request, read, texts.label(name), repairs=0, sample=sample, attempts=case.attempts)
    return await case.tools.asker.ask(ask)


def _official_reader(events: int) -> Callable[[Json], Completion]:
    return lambda reply: official.read_completion(str(reply), events)


def _text(reply: Json) -> str:
    if not str(reply).strip():
        raise BadReply("an empty description")
    return str(reply).strip()


def _reader(events: int) -> Callable[[Json], Completion]:
    """Return what reads the flags from a reply, marked or structured."""

    def read(reply: Json) -> Completion:
        if isinstance(reply, dict):
            numbers = [event["number"] for event in reply["events"]]
            if numbers != list(range(1, events + 1)):
                raise BadReply(f"$.events: expected the events 1 to {events} in order, found {numbers[:20]}")
            return Completion(tuple(int(event["completed"]) for event in reply["events"]), (None,) * events)
        try:
            return parse_completion(str(reply), events)
        except Unreadable as why:
            raise BadReply(str(why)) from why

    return read


def _row(
    spec: str, vote: int, prompt: str, said: dict[str, Json], receipts: Sequence[Receipt | None]
) -> Json:
    known = [receipt for receipt in receipts if receipt is not None]
    last = receipts[-1]
    judge = public_judge(spec).model_copy(
        update={"reported_model": None if last is None else last.reply.reported_model}
    )
    usages = [receipt.reply.usage for receipt in known if receipt.reply.usage is not None]
    tokens_in = [usage.input_tokens for usage in usages if usage.input_tokens is not None]
    tokens_out = [usage.output_tokens for usage in usages if usage.output_tokens is not None]
    costs = [receipt.cost for receipt in known]
    row = {
        "judge": judge.as_json(), "vote": vote, "prompt": prompt, **said,
        "raw": None if last is None else last.reply.text,
        "input_tokens": sum(tokens_in) if tokens_in else None,
        "output_tokens": sum(tokens_out) if tokens_out else None,
        "cost": None if not costs or None in costs else math.fsum(cost for cost in costs if cost is not None),
    }  # fmt: skip
    cleaned: Json = clean(row)
    return cleaned
