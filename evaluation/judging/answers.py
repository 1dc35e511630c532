"""Asking judges, and what the archive keeps of each reply. A judge never fails an item.

Where a run allows several attempts, each has a row: those after the first say their number. The last counts.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from ...engine.config import RUN
from ...engine.execute import RunRequest
from ...engine.manifest import Manifest
from ...engine.stage import UNASKED, Ask, Item, Made, NoAnswer, Outcome, Receipt, StageSpec, Tools
from ...errors import ConfigError, InputError, RunError
from ...models.chat import Image
from ...prompts.fetching import official
from ...prompts.loader import MANIFEST, TextSet, check_texts, official_set, read_set
from ...schemas.canonical import Json
from ...schemas.katha import Question, StoryRecord, Variant
from ..archive.replies import labels_of
from .packets import GivenPacket, Packet
from .settings import JudgeSettings, absent_picture, kept_picture, public_judge

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


# -- Whose texts judges are asked with, and published protocols by name: everything that a judge gets at once
#
# A set of texts lies in the settings of the stages that ask, so that a run is whole without the user's cache.

OFFICIAL, OWN = "official", "main"


@dataclass(frozen=True, slots=True)
class Published:
    """What was published of how a kind of evaluation is judged."""

    noun: str  # what is evaluated, for messages
    texts: str | None  # name of the official set; None where no texts were published
    needed: Collection[str]  # names of the texts that are asked with
    # name of a protocol -> its settings besides the texts, ``stage.key`` -> value. One that names a commit
    # behind ``@`` is asked with the official texts, any other one with ours.
    presets: Mapping[str, Mapping[str, Any]]
    # value of settings that are left out where they have it
    usual: Mapping[str, Any] = field(default_factory=dict)

    def official_texts(self) -> TextSet:
        if self.texts is None:
            raise ConfigError(
                f"--prompts {OFFICIAL}",
                what=f"no official prompts were published for {self.noun}",
                fix=f"use {OWN}, or another wording of ours",
            )
        return official_set(self.texts, official(self.texts).commit)

    def protocol(self, settings: "JudgeSettings", run: Manifest) -> dict[str, Any]:
        """Return what the protocol of a run says of its texts, and of its preset if it has one.

        A preset stands there with the settings that depart from it.
        """
        texts = settings.texts
        prompts = labels_of(run.prompts) if texts is None else texts.labels()
        return {"prompts": prompts, **self.chosen(settings.preset, run)}

    def chosen(self, preset: str | None, run: Manifest) -> dict[str, Any]:
        """Return the preset of a run, with the settings that depart from it; nothing where it has none."""
        if preset is None:
            return {}
        departures = []
        for path, value in self.presets[preset].items():
            stage, _, key = path.partition(".")
            actual = getattr(run.run, key) if stage == RUN else run.settings.get(stage, {}).get(key)
            if (self.usual.get(path) if actual is None else actual) != value:
                departures.append(path)
        return {"preset": {"name": preset, "departures": departures}}


@dataclass(frozen=True, slots=True)
class Wording:
    """Whose words an evaluation is to use."""

    texts: TextSet | None = None  # a set of texts; None for our own
    preset: str | None = None  # name of the protocol that was chosen; None for none
    # settings that follow from it, ``stage.key`` -> value
    settings: Mapping[str, Any] = field(default_factory=dict)

    def given(self) -> dict[str, Any]:
        """Return the settings that can be written: null cannot."""
        return {path: value for path, value in self.settings.items() if value is not None}

    def unset(self, stage: str) -> dict[str, None]:
        """Return the settings of a stage that have no value under the protocol."""
        paths = [path.split(".") for path, value in self.settings.items() if value is None]
        return {key: None for named, key in paths if named == stage}

    def put_into(self, request: RunRequest, stages: Collection[str]) -> RunRequest:
        """Return a request whose asking stages hold the texts and the name of the protocol."""
        if self.texts is None and self.preset is None:
            return request
        changed = {}
        for name in stages:
            update = {"texts": self.texts, "preset": self.preset, **self.unset(name)}
            changed[name] = request.config.stages[name].model_copy(update=update)
        config = replace(request.config, stages={**request.config.stages, **changed})
        return replace(request, config=config)


def asking_with(published: Published, prompts: str | None, protocol: str | None) -> Wording:
    """Return whose words an evaluation is to use.

    ``protocol``: a published protocol by name; None for none.
    """
    if protocol is None:
        texts = _texts(published, prompts)
        return Wording(texts)
    if prompts is not None:
        raise ConfigError(
            "--prompts, --protocol", what="a protocol names its prompts itself", fix="leave one out"
        )
    if protocol not in published.presets:
        raise ConfigError(
            f"--protocol {protocol}", what=f"there is no such protocol for {published.noun}",
            fix=f"use {' or '.join(published.presets)}",
        )  # fmt: skip
    texts = published.official_texts() if "@" in protocol else None
    return Wording(texts, protocol, published.presets[protocol])


def _texts(published: Published, prompts: str | None) -> TextSet | None:
    if prompts is None or prompts == OWN:
        return None
    if prompts == OFFICIAL:
        texts = published.official_texts()
    elif (Path(prompts) / MANIFEST).is_file():
        texts = read_set(Path(prompts))
    else:
        raise ConfigError(
            f"--prompts {prompts}", what=f"this is neither a set of prompts nor a folder with {MANIFEST}",
            fix=f"use {OWN}, {OFFICIAL}, or a folder as `fabula prompts fetch` writes it",
        )  # fmt: skip
    check_texts(texts, published.needed, f"--prompts {prompts}")
    return texts
