"""Asking judges, and what the archive keeps of each reply. A judge never fails an item."""

import asyncio
from collections.abc import Sequence
from typing import Any

from ...engine.asking import UNASKED, Ask, NoAnswer, Receipt
from ...engine.stage import Tools
from ...schemas.canonical import Json
from .packets import Packet
from .settings import JudgeSettings, public_judge

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


async def ask_judges(packets: Sequence[Packet], tools: Tools) -> list[Json]:
    """Return one row per packet, judge and vote: what :func:`judgement_of` completes.

    All are asked at the same time; no reply is sent back for repair.

    Raises:
        NoAnswer: a judge could not be reached; whatever it answered before is kept in the journal.
    """
    settings = tools.settings
    assert isinstance(settings, JudgeSettings)
    if tools.asker is None:
        return []
    rows = await asyncio.gather(
        *(
            _row(packet, (spec, vote), settings, tools)
            for packet in packets
            for spec in settings.judges
            for vote in range(settings.votes)
        ),
        return_exceptions=True,
    )
    made: list[Json] = []
    for row in rows:
        if isinstance(row, BaseException):
            raise row
        made.append(row)
    return made


async def _row(packet: Packet, asked: tuple[str, int], settings: JudgeSettings, tools: Tools) -> Json:
    spec, vote = asked
    assert tools.asker is not None
    request = packet.request(settings.for_judge(spec), tools.seed)
    question = Ask(request, packet.read, packet.prompt.label, repair=False, sample=settings.sample + vote)
    try:
        answer = await tools.asker.ask(question)
    except NoAnswer as none:
        outcome = OUTCOMES.get(none.code)
        if outcome is None:
            raise
        named = outcome != "failed" or none.reason.startswith(f"{none.code}: ")
        reason = none.reason if named else f"{none.code}: {none.reason}"
        receipt, said = none.receipt, _said(outcome, reason, None)
    else:
        receipt, said = answer.receipt, _said("answered", None, answer.value)
    judge = public_judge(spec).model_copy(
        update={"reported_model": None if receipt is None else receipt.reply.reported_model}
    )
    place = {"kind": packet.kind, "item": packet.item, "condition": packet.condition}
    row = {"judge": judge.as_json(), "vote": vote, "prompt": packet.prompt.label, **said, **_used(receipt)}
    cleaned: Json = clean({**place, **row})
    return cleaned


def _said(outcome: str, reason: str | None, parsed: Json) -> dict[str, Json]:
    return {"outcome": outcome, "reason": reason, "parsed": parsed}


def _used(receipt: Receipt | None) -> dict[str, Json]:
    reply = None if receipt is None else receipt.reply
    usage = None if reply is None else reply.usage
    return {
        "raw": None if reply is None else reply.text,
        "input_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "cost": None if receipt is None else receipt.cost,
    }


def clean(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value that can be stored: lone surrogates, as a hostile reply may carry, are replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [clean(entry) for entry in value]
    if isinstance(value, dict):
        return {clean(key): clean(entry) for key, entry in value.items()}
    return value


def judgement_of(row: Json, shown: Json, time: str) -> Json:
    """Return a line of the archive from a row and the generation that was shown.

    Text-only replies do not depend on any generation: they have neither method nor seed.
    """
    is_text = row["condition"] == "text"
    return {
        "schema_version": "1", "protocol": "katha", "unit": shown["story_id"], "time": time,
        "method": None if is_text else shown["method"], "seed": None if is_text else shown["seed"], **row,
    }  # fmt: skip
