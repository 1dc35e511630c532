"""Asking judges, and what the archive keeps of each reply. A judge never fails an item.

Where a run allows several attempts, each has a row: those after the first say their number. The last counts.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from ...engine.stage import UNASKED, Ask, Item, Made, NoAnswer, Outcome, Receipt, StageSpec, Tools
from ...errors import InputError, RunError
from ...models.chat import Image
from ...schemas.canonical import Json
from ...schemas.katha import Question, StoryRecord, Variant
from .packets import GivenPacket, Packet
from .pictures import absent_picture, kept_picture
from .settings import JudgeSettings, public_judge

T = TypeVar("T")
OUTCOMES = {
    "refused": "refused",
    "blocked": "blocked",
    "truncated": "truncated",
    "malformed": "malformed",
    "empty": "failed",
    "too_long": "failed",
    "bad_request": "failed",
    UNASKED: UNASKED,
}
"""Code of a missing answer -> outcome in the archive; what was not asked yet is counted, and not archived.
Any other code is raised: the judge had no part in it, and the item is run again."""


@dataclass(frozen=True)
class Asking:
    """A stage in which judges are asked; it writes one field, a row per question, judge, vote and attempt."""

    SPEC: StageSpec  # its declaration, whose settings are :class:`JudgeSettings`
    questions: Callable[[Item, Tools], Iterable[Any]]  # what is asked about an item: packets
    # what asks, where that is not :func:`ask_judges`: questions of whatever sort -> rows
    ask: Callable[[Sequence[Any], Tools], Awaitable[list[Json]]] | None = None

    async def run(self, item: Item, tools: Tools) -> Outcome:
        """Return the rows; without a judge nothing is asked, and no picture read."""
        (answers,) = self.SPEC.writes
        if tools.asker is None or not tools.own(JudgeSettings).judges:
            return Made({answers: []})
        ask = self.ask or ask_judges
        return Made({answers: await ask(list(self.questions(item, tools)), tools)})


async def together(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all calls, so that none is given up because another could not be made; then raise that."""
    made: list[T] = []
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        made.append(outcome)
    return made


async def ask_judges(packets: Sequence[Packet | GivenPacket], tools: Tools) -> list[Json]:
    """Return one row per packet, judge, vote and attempt: what :func:`judgement_of` completes.

    All are asked at the same time; no reply is sent back for repair.
    """
    settings = tools.own(JudgeSettings)
    asked = (
        _rows(packet, spec, vote, settings, tools)
        for packet in packets
        for spec in settings.judges
        for vote in range(settings.votes)
    )
    return [row for rows in await together(asked) for row in rows]


def last_attempts(rows: Iterable[Json]) -> list[Json]:
    """Return those rows that count: of several attempts at an answer the last."""
    last = {}
    for row in rows:
        last[row["kind"], row["item"], row["condition"], row["judge"]["spec"], row["vote"]] = row
    return list(last.values())


async def _rows(
    packet: Packet | GivenPacket, spec: str, vote: int, settings: JudgeSettings, tools: Tools
) -> list[Json]:
    assert tools.asker is not None
    request = packet.request(settings.for_judge(spec), tools.seed)
    question = Ask(
        request, packet.read, packet.label, repairs=0, sample=settings.sample + vote,
        strict=packet.strict, warmer=packet.warmer,
    )  # fmt: skip
    came: list[tuple[Receipt | None, dict[str, Json]]]
    try:
        answer = await tools.asker.ask(question)
    except NoAnswer as none:
        if none.code not in OUTCOMES:
            raise
        came = [(miss.receipt, _why_not(miss)) for miss in (*none.missed, none)]
    else:
        came = [(miss.receipt, _why_not(miss)) for miss in answer.missed]
        came.append((answer.receipt, _said("answered", None, answer.value)))
    identity = {"kind": packet.kind, "item": packet.item, "condition": packet.condition}
    rows = []
    counted = vote if packet.place is None else packet.place
    for number, (receipt, said) in enumerate(came, 1):
        row = row_of(spec, counted, packet.label, said | attempt(number), [receipt])
        rows.append(identity | row)
    return rows


def attempt(number: int) -> dict[str, Json]:
    """Return the part of a row that says which attempt it is; the first does not say so."""
    return {} if number == 1 else {"attempt": number}


def _why_not(none: NoAnswer) -> dict[str, Json]:
    outcome = OUTCOMES[none.code]
    named = outcome != "failed" or none.reason.startswith(f"{none.code}: ")
    return _said(outcome, none.reason if named else f"{none.code}: {none.reason}", None)


def _said(outcome: str, reason: str | None, parsed: Json) -> dict[str, Json]:
    return {"outcome": outcome, "reason": reason, "parsed": parsed}


def row_of(
    spec: str, vote: int, prompt: str, said: Mapping[str, Json], receipts: Sequence[Receipt | None]
) -> dict[str, Json]:
    """Return what is kept of an answer: who said it, what it cost over all calls, and the last reply."""
    known, last = [receipt for receipt in receipts if receipt is not None], receipts[-1]
    reported = None if last is None else last.reply.reported_model
    usages = [receipt.reply.usage for receipt in known if receipt.reply.usage is not None]
    costs = [receipt.cost for receipt in known]
    paid = [cost for cost in costs if cost is not None]
    row: dict[str, Json] = clean({
        "judge": public_judge(spec).model_copy(update={"reported_model": reported}).as_json(),
        "vote": vote, "prompt": prompt, **said,
        "raw": None if last is None else last.reply.text,
        "input_tokens": _sum(usage.input_tokens for usage in usages),
        "output_tokens": _sum(usage.output_tokens for usage in usages),
        "cost": math.fsum(paid) if paid and None not in costs else None,
    })  # fmt: skip
    return row


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def clean(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value that can be stored: lone surrogates, as a hostile reply may carry, are replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [clean(entry) for entry in value]
    if isinstance(value, dict):
        return {clean(key): clean(entry) for key, entry in value.items()}
    return value


def judgement_of(protocol: str, row: Json, shown: Json, time: str) -> Json:
    """Return a line of the archive from a row and the generation that was shown.

    Text-only replies do not depend on any generation: they have neither method nor seed.
    """
    is_text = row["condition"] == "text"
    return {
        "schema_version": "1", "protocol": protocol, "unit": shown["story_id"], "time": time,
        "method": None if is_text else shown["method"], "seed": None if is_text else shown["seed"], **row,
    }  # fmt: skip


def pictures_of(frames: Json, store: Path | None) -> tuple[Image, ...]:
    """Return the pictures of a storyboard, in story order.

    Where there is no store, as in a rehearsal, each picture is stood for by its name and hash.
    """
    if store is None:
        return tuple(absent_picture(frame["file"]) for frame in frames)
    try:
        return tuple(kept_picture(store, frame["file"]) for frame in frames)
    except InputError as error:
        raise RunError(
            error.where, expected=error.expected, found=error.found,
            fix="judge into a new folder, with --reuse and this one: nothing that was answered is paid again",
        ) from error  # fmt: skip


def record_of(item: Item) -> StoryRecord:
    """Return the story record of an item."""
    return StoryRecord.model_validate(item["record"])


def variants_of(item: Item) -> tuple[Variant, ...]:
    """Return the contrastive variants of an item's story."""
    return tuple(Variant.model_validate(variant) for variant in item["variants"])


FIELDS = ("text_answers", "image_answers", "text_image_answers")
"""The fields that hold the judges' answers."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer of a judge to a question."""

    question: Question  # what was asked
    condition: str  # under which evidence
    # its place among all answers to the question under that condition; the vote number of a matcher's verdict
    # on it
    place: int
    text: str  # the answer


def given_answers(item: Item) -> Iterator[GivenAnswer]:
    """Yield every answer to a question that could be read, by condition and question."""
    questions = {question.question_id: question for question in record_of(item).questions}
    for name in FIELDS:
        asked = last_attempts(row for row in item[name] if row["kind"] == "question")
        rows = sorted(asked, key=_by_question)
        for question_id, group in groupby(rows, key=lambda row: row["item"]):
            for index, row in enumerate(group):
                if row["parsed"] is not None:
                    key = "final_answer" if row["condition"] == "text_image" else "answer"
                    yield GivenAnswer(questions[question_id], row["condition"], index, row["parsed"][key])


def _by_question(row: Json) -> Any:  # noqa: ANN401 - something to sort by
    return row["item"], row["judge"]["spec"], row["vote"]
