"""Stages: judges answer questions about a storyboard, and models compare their answers with accepted ones.

``JUDGE_TEXT`` shows the source story alone, the ceiling of what is recoverable; its answers are the same for
every method, and the same request is answered once. ``JUDGE_IMAGES`` shows the generated pictures alone, the
primary diagnostic condition. ``JUDGE_BOTH`` shows story and pictures together, the control for ambiguity.
``JUDGE_CONTRASTS`` asks which of two nearly equal stories the pictures show, the source or a contrast (C.8).

``MATCH_ANSWERS`` gives a model's own verdict on which answers mean the same as an accepted one (Table 61);
scoring uses the verdicts where it is told to (``matcher=model``). ``MATCH_VECTORS`` goes by vectors:

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
from functools import partial
from pathlib import Path
from typing import Any

from ...engine.stage import (
    UNASKED,
    Answer,
    Ask,
    BadReply,
    Failed,
    Item,
    Made,
    NoAnswer,
    Outcome,
    Receipt,
    StageSpec,
    Tools,
    stage,
)
from ...errors import InputError
from ...models.chat import cosine, encode_request, unpacked
from ...prompts.loader import fenced, load_prompt
from ...schemas.canonical import Json, sha256_file
from ...schemas.katha import Question
from ..judging.answers import (
    FIELDS,
    OUTCOMES,
    Asking,
    GivenAnswer,
    attempt,
    given_answers,
    pictures_of,
    record_of,
    row_of,
    variants_of,
)
from ..judging.packets import (
    Evidence,
    Packet,
    contrast_packets,
    dimension_instruction,
    fixed_texts,
    label_packet,
    question_packets,
    scan_packet,
)
from ..judging.settings import (
    ImageSettings,
    LabelledSettings,
    MatcherSettings,
    ScanSettings,
    VectorSettings,
    WordedSettings,
    in_all_sets,
    keep_pictures,
    prepare_storyboard,
)
from ..outputs.layout import UNREADABLE

# -- Judges


def _may_be_shown(item: Item) -> bool:
    """Whether there are pictures to show, and no packet gives the story away."""
    return bool(item["frames"]) and not item["scan"]["leaks"]


def _asked(condition: Evidence, item: Item, tools: Tools) -> Iterator[Packet]:
    if condition != "text" and not _may_be_shown(item):
        return
    settings, record = tools.own(LabelledSettings), record_of(item)
    pictures = () if condition == "text" else pictures_of(item["frames"], tools.store)
    yield from question_packets(record, condition, pictures, tools.seed, settings.prompts, settings.texts)
    label = label_packet(record, condition, pictures, tools.seed, settings.prompts)
    if settings.labels and label is not None:
        yield label


def _contrasted(item: Item, tools: Tools) -> Iterator[Packet]:
    if _may_be_shown(item):
        pictures, prompts = pictures_of(item["frames"], tools.store), tools.own(WordedSettings).prompts
        yield from contrast_packets(record_of(item), variants_of(item), pictures, tools.seed, prompts)


def _under(condition: Evidence, name: str, *reads: str) -> Asking:
    spec = StageSpec(
        name=name, version=3, shape="map", reads=("record", *reads), writes=(f"{condition}_answers",),
        settings=LabelledSettings,
        asks=in_all_sets("dimension", f"label_{condition}", f"question_{condition}"),
    )  # fmt: skip
    return Asking(spec, partial(_asked, condition))


JUDGE_TEXT = _under("text", "judge_text")
JUDGE_IMAGES = _under("image", "judge_images", "frames", "scan")
JUDGE_BOTH = _under("text_image", "judge_both", "frames", "scan")
JUDGE_CONTRASTS = Asking(
    StageSpec(
        name="judge_contrasts", version=3, shape="map", reads=("record", "variants", "frames", "scan"),
        writes=("contrast_answers",), settings=WordedSettings, asks=in_all_sets("contrast_image"),
    ),
    _contrasted,
)  # fmt: skip

# -- A model that compares answers with the accepted ones

MODEL, EMBEDDING = "model", "embedding"
"""What the verdicts are called in the archive."""


def _to_match(item: Item, tools: Tools) -> Iterator[Packet]:
    """Yield a packet for every answer that a judge gave to a question."""
    language = record_of(item).language
    for answer in given_answers(item):
        question = answer.question
        inputs = {
            "accepted": list(question.accepted_answers),
            "answer": answer.text,
            "instruction": dimension_instruction(question, tools.seed),
            "language": language,
            "question": question.question,
        }
        yield Packet(
            "match", question.question_id, answer.condition, load_prompt("judge/match_answer"),  # type: ignore[arg-type]
            inputs, (), partial(_matched, answer), place=answer.place,
        )  # fmt: skip


def _matched(answer: GivenAnswer, reply: Json) -> dict[str, Any]:
    return {"matcher": MODEL, "of": answer.condition, "answer": answer.text, "matched": reply["matched"]}


MATCH_ANSWERS = Asking(
    StageSpec(
        name="match_answers", version=3, shape="map", reads=("record", *FIELDS), writes=("match_answers",),
        settings=MatcherSettings, asks=("judge/dimension", "judge/match_answer"),
    ),
    _to_match,
)  # fmt: skip

# -- An encoder whose vectors of answers are compared

Vector = Any  # a numpy array; numpy is imported where vectors are read
Encoded = Mapping[str, Answer[Vector] | NoAnswer]


async def _by_vectors(answers: Sequence[GivenAnswer], tools: Tools) -> list[Json]:
    """Return one row per answer that a judge gave to a question.

    Tokens and cost of a row are those of the answer's own vector; vectors of accepted answers are in the
    run's sums alone.
    """
    encoded = await _encode((text for answer in answers for text in _texts(answer)), tools)
    return [row for answer in answers for row in _compared(answer, encoded, tools.own(VectorSettings))]


def _texts(answer: GivenAnswer) -> tuple[str, ...]:
    """Return what is encoded for an answer: itself and what it is compared with; nothing for an empty one."""
    return (answer.text, *_accepted(answer.question)) if answer.text.strip() else ()


def _accepted(question: Question) -> tuple[str, ...]:
    every = (question.gold_answer, *question.accepted_answers)
    return tuple(dict.fromkeys(text for text in every if text.strip()))


async def _encode(texts: Iterable[str], tools: Tools) -> Encoded:
    """Return the vector of each text, or why there is none."""
    settings, asker = tools.own(VectorSettings), tools.asker
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


def _compared(answer: GivenAnswer, encoded: Encoded, settings: VectorSettings) -> Iterator[Json]:
    """Yield a row for each attempt at getting all vectors that the answer needs."""
    (spec,), own = settings.judges, encoded.get(answer.text)
    identity = {"kind": "match", "item": answer.question.question_id, "condition": answer.condition}

    def row(receipt: Receipt | None, said: Mapping[str, Json]) -> Json:
        return identity | row_of(spec, answer.place, "", said, [receipt]) | {"raw": None}

    missed = [reply.missed for text in _texts(answer) if (reply := encoded.get(text)) is not None]
    before = max(map(len, missed), default=0)
    for number in range(before):
        why = next(numbers[number] for numbers in missed if len(numbers) > number)
        said = _unread(OUTCOMES[why.code], f"no vector: {why.code}: {why.reason}")
        tried = own.missed[number] if own is not None and len(own.missed) > number else None
        yield row(None if tried is None else tried.receipt, said | attempt(number + 1))
    said = _said(answer, encoded, settings.threshold) | attempt(before + 1)
    yield row(None if own is None else own.receipt, said)


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
        "matcher": EMBEDDING, "of": answer.condition, "answer": answer.text, "matched": matched,
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


MATCH_VECTORS = Asking(
    StageSpec(
        name="match_vectors", version=2, shape="map", reads=("record", *FIELDS), writes=("match_vectors",),
        settings=VectorSettings,
    ),
    lambda item, _tools: given_answers(item),
    _by_vectors,
)  # fmt: skip


# -- Stage: the pictures of a storyboard as judges get them, decoded and encoded once, kept by content


@stage(
    version=4, reads=("shown",), writes=("frames", "unusable"), libraries=("pillow",), settings=ImageSettings
)
def prepare_images(item: Item, tools: Tools) -> Outcome:
    """Return name, size and notes of each picture, in story order; none for an invalid generation.

    Of a video these are the frames that the outputs ask for.

    A storyboard with a file that holds no picture is as invalid as one with a missing file: ``unusable`` says
    so. It fails only where files are no longer those that were found.
    """
    shown = item["shown"]
    files = [Path(file) for file in shown["files"]]
    try:
        pictures = prepare_storyboard(files, tools.own(ImageSettings), frames=shown.get("sampled", 1))
    except InputError as error:
        changed = [file for file, sha256 in zip(files, shown["sha256"], strict=True) if _hash(file) != sha256]
        if changed:
            return Failed("picture", f"{changed[0]} has changed since it was found; {error}")
        return Made({"frames": [], "unusable": [UNREADABLE]})
    if tools.store is not None:
        keep_pictures(pictures, tools.store)
    frames = [
        {"file": one.file_name, "width": one.width, "height": one.height, "notes": list(one.notes)}
        for one in pictures
    ]
    return Made({"frames": frames, "unusable": []})


def _hash(file: Path) -> str | None:
    try:
        return sha256_file(file)
    except OSError:
        return None


# -- Stage: the leakage scan of every image-only packet of a storyboard. A leak stops the item's pictures

_MARKS = {"instruction": "@@instruction@@", "question": "@@question@@"}
# A prompt may show an input between marks that depend on it.
_CUTS = [form for mark in _MARKS.values() for form in (fenced(mark), mark)]


@stage(
    version=2,
    reads=("record", "shown", "frames"),
    writes=("scan",),
    settings=ScanSettings,
    prompts=in_all_sets("dimension", "label_image", "question_image"),
)
def scan_packets(item: Item, tools: Tools) -> Outcome:
    """Return how many packets were scanned, and the leaks."""
    settings = tools.own(ScanSettings)
    if not item["frames"]:
        return Made({"scan": {"packets": 0, "leaks": []}})
    record, method = record_of(item), item["shown"]["method"]
    pictures = pictures_of(item["frames"], tools.store)
    questions = question_packets(record, "image", pictures, tools.seed, settings.prompts)
    label = label_packet(record, "image", pictures, tools.seed, settings.prompts)
    packets = [*questions, *([label] if label else [])]
    leaks = []
    for number, packet in enumerate(packets):
        # The pictures are the same in all packets: their bytes, where there are any, are looked at once.
        with_pictures = number == 0 and tools.store is not None
        parts = [part for part in packet.parts() if with_pictures or isinstance(part, str)]
        found = scan_packet(record, packet.asked, parts, fixed=tuple(_fixed(packet)), names=(method,))
        leaks += [
            {"item": packet.item, "kind": one.kind, "source": one.source, "found": one.found} for one in found
        ]
    return Made({"scan": {"packets": len(packets), "leaks": leaks}})


def _fixed(packet: Packet) -> Iterator[str]:
    """Yield what the packet's prompt says whatever is asked."""
    inputs = {name: _MARKS.get(name, value) for name, value in packet.inputs.items()}
    rendered = [part for message in packet.prompt.messages(**inputs) for part in message.parts]
    yield from fixed_texts([text for text in rendered if isinstance(text, str)], _CUTS)
