"""Stage: whether an answer lies near an accepted one, by the vectors of an encoder (Table 61).

Question: does an answer say what one of the accepted answers says?
Formula: 1 where the largest cosine between the vector of the answer and those of the canonical and the
    accepted answers exceeds a threshold.
Input: an answer and the accepted answers, each encoded alone, without the question.
Output: right or wrong, the similarity and the answer that was nearest; kept as kind ``match``.
Undefined when: a text has no vector: the row says why, and scoring with this matcher then names the answer.
Source: KathaTrace, Table 61, embedding-only match.
Departures from the source: it names neither encoder nor threshold. The threshold is a setting, 0.8 where none
    is given; how near a paraphrase lies depends on the encoder, so choose it on people's verdicts.
Example: similarities 0.43 and 0.86 to two accepted answers; with the threshold 0.8 the answer is right.

Vectors are replies like any others: the journal keeps them, so another threshold asks for nothing anew.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ...models.vectors import cosine, encode_request, unpacked
from ...schemas.canonical import Json
from ...schemas.katha import Question
from ..judging.answers import FIELDS, OUTCOMES, GivenAnswer, attempt, given_answers
from ..judging.settings import VectorSettings, public_judge

MATCHER = "embedding"
"""What the verdicts are called in the archive."""

SPEC = StageSpec(
    name="match_vectors",
    version=2,
    shape="map",
    reads=("record", *FIELDS),
    writes=("match_vectors",),
    settings=VectorSettings,
)

Vector = Any  # a numpy array; numpy is imported where vectors are read
Encoded = Mapping[str, Answer[Vector] | NoAnswer]


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row per answer that a judge gave to a question, where an encoder is named.

    Tokens and cost of a row are those of the answer's own vector; vectors of accepted answers are in the
    run's sums alone. ``vote`` is as in ``match_answers``.
    """
    settings = tools.settings
    assert isinstance(settings, VectorSettings)
    if tools.asker is None or not settings.judges:
        return Made({"match_vectors": []})
    answers = list(given_answers(item))
    encoded = await _encode((text for answer in answers for text in _texts(answer)), tools)
    return Made({"match_vectors": [row for answer in answers for row in _rows(answer, encoded, settings)]})


def _texts(answer: GivenAnswer) -> tuple[str, ...]:
    """Return what is encoded for an answer: itself and what it is compared with; nothing for an empty one."""
    return (answer.text, *_accepted(answer.question)) if answer.text.strip() else ()


def _accepted(question: Question) -> tuple[str, ...]:
    every = (question.gold_answer, *question.accepted_answers)
    return tuple(dict.fromkeys(text for text in every if text.strip()))


async def _encode(texts: Iterable[str], tools: Tools) -> Encoded:
    """Return the vector of each text, or why there is none."""
    settings, asker = tools.settings, tools.asker
    assert isinstance(settings, VectorSettings)
    assert asker is not None
    (spec,) = settings.judges
    wanted = list(dict.fromkeys(texts))
    asked = (Ask(encode_request(spec, text), _read, "", repairs=0, sample=settings.sample) for text in wanted)
    replies = await asyncio.gather(*(asker.ask(request) for request in asked), return_exceptions=True)
    encoded: dict[str, Answer[Vector] | NoAnswer] = {}
    for text, reply in zip(wanted, replies, strict=True):
        if isinstance(reply, BaseException) and not (isinstance(reply, NoAnswer) and reply.code in OUTCOMES):
            raise reply
        encoded[text] = reply
    return encoded


def _rows(answer: GivenAnswer, encoded: Encoded, settings: VectorSettings) -> Iterator[Json]:
    """Yield a row for each attempt at getting all vectors that the answer needs."""
    own = encoded.get(answer.text)
    missed = [reply.missed for text in _texts(answer) if (reply := encoded.get(text)) is not None]
    before = max(map(len, missed), default=0)
    for number in range(before):
        why = next(numbers[number] for numbers in missed if len(numbers) > number)
        said = _unread(OUTCOMES[why.code], f"no vector: {why.code}: {why.reason}")
        tried = own.missed[number] if own is not None and len(own.missed) > number else None
        yield _row(answer, None if tried is None else tried.receipt, settings, said | attempt(number + 1))
    said = _said(answer, encoded, settings.threshold) | attempt(before + 1)
    yield _row(answer, None if own is None else own.receipt, settings, said)


def _row(
    answer: GivenAnswer, receipt: Receipt | None, settings: VectorSettings, said: dict[str, Json]
) -> Json:
    (spec,) = settings.judges
    usage = None if receipt is None else receipt.reply.usage
    reported = None if receipt is None else receipt.reply.reported_model
    return {
        "kind": "match",
        "item": answer.question.question_id,
        "condition": answer.condition,
        "judge": public_judge(spec).model_copy(update={"reported_model": reported}).as_json(),
        "vote": answer.place,
        "prompt": "",
        "raw": None,
        "input_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "cost": None if receipt is None else receipt.cost,
        **said,
    }


def _said(answer: GivenAnswer, encoded: Encoded, threshold: float) -> dict[str, Json]:
    texts = _texts(answer)
    missing = [reply for reply in map(encoded.get, texts) if isinstance(reply, NoAnswer)]
    if missing:
        told = next((reply for reply in missing if reply.code == UNASKED), missing[0])
        return _unread(OUTCOMES[told.code], f"no vector: {told.code}: {told.reason}")
    try:
        nearest, similarity = _nearest(texts, encoded)
    except ValueError as error:
        return _unread("failed", f"the encoder gave {error}")
    matched = similarity is not None and similarity > threshold
    parsed = {
        "matcher": MATCHER, "of": answer.condition, "answer": answer.text, "matched": matched,
        "similarity": similarity, "nearest": nearest, "threshold": threshold,
    }  # fmt: skip
    return {"outcome": "answered", "reason": None, "parsed": parsed}


def _unread(outcome: str, reason: str) -> dict[str, Json]:
    return {"outcome": outcome, "reason": reason, "parsed": None}


def _read(text: Json) -> Vector:
    try:
        return unpacked(text)
    except ValueError as error:
        raise BadReply(str(error)) from error


def _nearest(texts: Sequence[str], encoded: Encoded) -> tuple[str | None, float | None]:
    """Return the accepted answer nearest to the first text, and how near; the first of equally near ones."""
    vectors = [(text, reply.value) for text in texts if isinstance(reply := encoded[text], Answer)]
    best: tuple[str | None, float | None] = (None, None)
    for text, vector in vectors[1:]:
        similarity = cosine(vectors[0][1], vector)
        if best[1] is None or similarity > best[1]:
            best = (text, similarity)
    return best
