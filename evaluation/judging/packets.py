"""Evidence packets: exactly what a judge is sent for one question under one condition (Table 34).

Pictures come first, each after its index label, in story order; then the prompt's text with the question.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel

from ...engine.stage import BadReply
from ...media.images import open_picture
from ...media.quality import TextReader
from ...models.chat import ChatRequest, Image, Message, Part
from ...models.spec import ModelSettings
from ...prompts.loader import Prompt, TextSet, fenced
from ...schemas.canonical import Json, Plain, digest
from ...schemas.judgement import Condition, Kind
from ...schemas.katha import Question, StoryRecord, Variant
from ...schemas.paths import format_path
from ...schemas.text import contains_phrase, is_unspaced, normalize_answer
from ...schemas.values import vocabulary
from ..outputs.storyboards import Storyboards
from .settings import MAIN, PromptSet, foreign_chunks, judge_prompt

Evidence = Literal["text", "image", "text_image"]
EVIDENCE: tuple[Evidence, ...] = ("text", "image", "text_image")
UNCLEAR = "unclear"

Reader = Callable[[Json], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Packet:
    """One question under one condition, before it is known who is asked."""

    # what is asked; one of :data:`fabula.schemas.judgement.KINDS`, or with a dot what a package asks
    kind: Kind
    item: str  # question id, story id, pair id, or what of a shot or an entity is rated
    condition: Condition  # which evidence is shown
    prompt: Prompt  # the prompt
    inputs: Mapping[str, Json]  # what is filled into it
    # the pictures, in story order; none under text-only evidence
    pictures: tuple[Image, ...] = field(repr=False)
    # makes what the archive keeps of a reply that satisfies the prompt's schema
    read: Reader = field(repr=False)
    # the texts of the question itself, options included; everything else is evidence
    asked: tuple[str, ...] = ()
    # whether a reply that breaks the prompt's schema is no answer; else ``read`` says what is
    strict: bool = True
    # the number of the answer that is judged, where one is: in its rows it stands for the vote
    place: int | None = None
    words: str | None = None  # label of the words of others that are asked in; None for ours

    @property
    def label(self) -> str:
        """The prompt as it stands in the archive."""
        return self.words or self.prompt.label

    @property
    def warmer(self) -> float:
        """By how much each further attempt raises the temperature: not at all."""
        return 0.0

    def parts(self) -> tuple[Part, ...]:
        """Return everything that is sent, in order: the texts and pictures of all messages."""
        return tuple(part for message in self.messages() for part in message.parts)

    def messages(self) -> tuple[Message, ...]:
        *system, user = self.prompt.messages(**self.inputs)
        return (*system, Message(user.role, (*labelled(self.pictures), *user.parts)))

    def request(self, settings: ModelSettings, seed: int | None) -> ChatRequest:
        plain = self.prompt.request(settings, seed, **self.inputs)
        return replace(plain, messages=self.messages())


@dataclass(frozen=True, slots=True)
class GivenPacket:
    """One question in the words of others, whose messages are made already."""

    kind: Kind  # as in :class:`Packet`, and so are ``item``, ``condition`` and ``read``
    item: str
    condition: Condition
    label: str  # the text as it stands in the archive
    messages: tuple[Message, ...] = field(repr=False)  # what is sent
    read: Reader = field(repr=False)
    max_tokens: int  # most tokens of a reply, unless the settings say
    seed: int | None = None  # sampling seed; None leaves it to the service
    warmer: float = 0.0  # by how much each further attempt raises the temperature
    place: None = None  # no answer is judged

    @property
    def strict(self) -> bool:
        """Whether a schema must hold: there is none."""
        return True

    def request(self, settings: ModelSettings, _seed: int | None) -> ChatRequest:
        assert settings.model is not None
        return ChatRequest(
            model=settings.model,
            messages=self.messages,
            temperature=settings.temperature,
            seed=self.seed,
            max_tokens=settings.max_tokens or self.max_tokens,
        )


def labelled(pictures: Sequence[Image]) -> Iterator[Part]:
    """Yield each picture after its index label, which says its number and nothing else."""
    for number, picture in enumerate(pictures, start=1):
        yield f"Image {number}"
        yield picture


def question_packets(
    record: StoryRecord, condition: Evidence, pictures: Sequence[Image], seed: int,
    prompts: PromptSet = MAIN, texts: TextSet | None = None,
) -> Iterator[Packet]:  # fmt: skip
    """Yield one packet per recoverability question of a story, in the record's order.

    ``texts``: the words of others, in which the judge is told what it has and what is wanted; evidence,
    question and form of the reply stay.
    """
    name, words = f"question_{condition}", None
    prompt = judge_prompt(name, prompts)
    if texts is not None:
        prompt, words = prompt.told(texts.text(name)), texts.label(name)
    for question in record.questions:
        instruction = dimension_instruction(question, seed, prompts, texts)
        inputs = {"instruction": instruction, "question": question.question}
        asked = (question.question, fenced(question.question), instruction)
        yield Packet(
            "question", question.question_id, condition, prompt,
            inputs | _evidence(record, condition, pictures), _shown(condition, pictures), dict, asked,
            words=words,
        )  # fmt: skip


def label_packet(
    record: StoryRecord, condition: Evidence, pictures: Sequence[Image], seed: int, prompts: PromptSet = MAIN
) -> Packet | None:
    """Return the packet that asks for a story's moral target (Eq. 39); None where the story has none."""
    if record.moral_label is None:
        return None
    options = shuffled(vocabulary("moral_label").values, seed, record.story_id)
    inputs = {"options": options, **_evidence(record, condition, pictures)}
    return Packet(
        "moral_label", record.story_id, condition, judge_prompt(f"label_{condition}", prompts), inputs,
        _shown(condition, pictures), read_label, tuple(options),
    )  # fmt: skip


def contrast_packets(
    record: StoryRecord, variants: Sequence[Variant], pictures: Sequence[Image], seed: int,
    prompts: PromptSet = MAIN,
) -> Iterator[Packet]:  # fmt: skip
    """Yield one packet per contrastive variant: do the pictures show the story or the variant (C.8)."""
    prompt = judge_prompt("contrast_image", prompts)
    for variant in variants:
        if not variant.has_variant:
            continue
        order = shuffled(("source", "contrastive"), seed, variant.pair_id)
        texts = {"source": record.story_text, "contrastive": variant.contrastive_story_text}
        first, second = (texts[name] for name in order)
        inputs = {"count": len(pictures), "first": first, "language": record.language, "second": second}
        yield Packet(
            "contrast", variant.pair_id, "image", prompt, inputs, tuple(pictures), contrast_reader(order),
            (first, second, fenced(first), fenced(second)),
        )  # fmt: skip


def dimension_instruction(
    question: Question, seed: int, prompts: PromptSet = MAIN, texts: TextSet | None = None
) -> str:
    """Return what a judge is told about the kind of answer that a question wants (Table 35).

    In the words of others the labels stand behind the instruction about a moral target.
    """
    if question.question_type not in vocabulary("question_type").values:
        raise ValueError(f"{question.question_id}: {question.question_type!r} is no scored dimension")
    labels = shuffled(vocabulary("moral_label").values, seed, question.question_id)
    if texts is not None:
        instruction = texts.text(f"dimension_{question.question_type}")
        return f"{instruction} ({', '.join(labels)})" if question.question_type == "moral" else instruction
    return judge_prompt("dimension", prompts).render(dimension=question.question_type, labels=labels)


def shuffled(values: Sequence[str], seed: int, item: str) -> list[str]:
    """Return values in an order that depends on seed and item alone, the same on every machine."""
    return sorted(values, key=lambda value: digest([seed, item, value]))


def read_label(reply: Json) -> dict[str, Any]:
    """Return a reply with the label that its answer stands for, whatever its case and punctuation."""
    labels = vocabulary("moral_label")
    said = normalize_answer(reply["answer"])
    answer = labels.resolve(said.replace(" ", "_"))
    if answer not in (*labels.values, UNCLEAR):
        raise BadReply(f"$.answer: expected one of the labels or {UNCLEAR}, found {reply['answer']!r}")
    return {**reply, "answer": answer}


def contrast_reader(order: Sequence[str]) -> Reader:
    """Return what maps the answer back from the order in which the two texts were shown."""

    def read(reply: Json) -> dict[str, Any]:
        meant = {"first": order[0], "second": order[1]}
        return {**reply, "answer": meant.get(reply["answer"], UNCLEAR), "first": order[0]}

    return read


def _shown(condition: Evidence, pictures: Sequence[Image]) -> tuple[Image, ...]:
    return () if condition == "text" else tuple(pictures)


def _evidence(record: StoryRecord, condition: Evidence, pictures: Sequence[Image]) -> dict[str, Json]:
    inputs: dict[str, Json] = {}
    if condition != "image":
        inputs |= {"language": record.language, "story": record.story_text}
    if condition != "text":
        inputs["count"] = len(pictures)
    return inputs


# -- What would tell a judge what pixels should show: in a packet, and as text inside generated pictures
#
# An image-only packet may hold pixels, index labels and what is asked: a leak of a record's texts stops the
# item. Text rendered in a picture is a property of the method's output: it is reported and stops nothing.
# Pure functions.


@dataclass(frozen=True, slots=True)
class RenderedText(Plain):
    """A line of text in a picture."""

    story_id: str  # of which story
    seed: int | None  # seed of the generation, if there are several
    panel: int  # which picture, from 1
    text: str  # the line, as it was read
    # JSON path of the text of the record that the line gives away; None where it is no such
    source: str | None

    def __str__(self) -> str:
        seed = "" if self.seed is None else f"/seed_{self.seed}"
        source = f" (as {self.source} of the record)" if self.source else ""
        return f"{self.story_id}{seed} panel {self.panel}: {self.text!r}{source}"


def rendered_in(
    report: Storyboards, records: Mapping[str, StoryRecord], reader: TextReader
) -> list[RenderedText]:
    """Read the text in every valid storyboard of a method, in order.

    ``records``: story id -> record.
    """
    texts = []
    for board in report.valid:
        secrets = secrets_of(records[board.unit])
        for panel in board.files:
            for text in reader.read(open_picture(panel.file).image):
                normal = normalize_answer(text)
                source = next((secret.path for secret in secrets if secret.shown_in(normal)), None)
                texts.append(RenderedText(board.unit, board.seed, panel.number, text, source))
    return texts


WINDOW_WORDS, WINDOW_CHARACTERS = 6, 12
"""A run of so many words of a longer text gives it away; characters where the script has no spaces."""

# What tells nothing of the story: places in it, and how the record came to be.
_SILENT = {
    "question_id", "question_type", "answerability", "split", "validation_status", "evidence_status",
    "provenance", "language", "transition_type",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Secret:
    """One text of a record."""

    path: str  # its JSON path in the record
    text: str  # as :func:`~fabula.schemas.text.normalize_answer` leaves it

    @property
    def is_short(self) -> bool:
        """Whether it is one or two words, which may stand in any prompt."""
        return len(self.text.split()) < 3 and not (is_unspaced(self.text) and len(self.text) >= 6)

    def shown_in(self, text: str) -> str | None:
        """Return what of it stands in a normalised text: all of it, or a run of it; None where nothing."""
        if contains_phrase(text, self.text):
            return self.text
        return next((run for run in self._runs() if contains_phrase(text, run)), None)

    def _runs(self) -> Iterator[str]:
        if is_unspaced(self.text):
            solid = self.text
            for start in range(len(solid) - WINDOW_CHARACTERS + 1):
                yield solid[start : start + WINDOW_CHARACTERS]
        else:
            words = self.text.split()
            for start in range(len(words) - WINDOW_WORDS + 1):
                yield " ".join(words[start : start + WINDOW_WORDS])


def secrets_of(record: StoryRecord) -> tuple[Secret, ...]:
    """Return every text of a record that tells something of the story, each once, in record order."""
    seen: dict[str, Secret] = {}
    for path, text in _texts(record, ()):
        normal = normalize_answer(text)
        if normal and normal not in seen:
            seen[normal] = Secret(format_path(path), normal)
    return tuple(seen.values())


def _texts(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            if name not in _SILENT:
                yield from _texts(getattr(value, name), (*path, name))
    elif isinstance(value, tuple):
        for number, element in enumerate(value):
            yield from _texts(element, (*path, number))


LeakKind = Literal["text", "name", "metadata", "unaccounted"]

_INDEX_LABEL = re.compile(r"\b(?:image|picture|panel|frame) \d+(?: of \d+)?\b")
_FILE_NAME = re.compile(r"[\w.-]+\.(?:png|jpe?g|webp|gif|mp4|webm|mov)\b", re.IGNORECASE)
# Normalised text holds no line breaks: one in place of what was taken out keeps its neighbours apart.
_CUT = "\n"


@dataclass(frozen=True, slots=True, order=True)
class Leak:
    """Something in a packet that must not be there."""

    part: int  # which part of the packet, from 1
    # ``text`` (of the record), ``name`` (a file's, a method's or the story's), ``metadata`` (anything in a
    # picture's file besides pixels) or ``unaccounted`` (text that is neither asked nor the prompt's)
    kind: LeakKind
    source: str  # what it is: a JSON path of the record, or of which chunk or name
    found: str  # the text, shortened

    def __str__(self) -> str:
        return f"part {self.part}: {self.kind} of {self.source}: {self.found}"


def scan_packet(
    record: StoryRecord,
    question: str | Sequence[str],
    parts: Sequence[Part],
    *,
    fixed: Sequence[str] | None = None,
    names: Sequence[str] = (),
) -> list[Leak]:
    """Return the leaks of one packet, in order; none for a clean one.

    ``parts``: everything that is sent (system and user messages, texts and pictures), in order. ``names``:
    more that must not be sent: method, folder and file names.
    """
    asked = (question,) if isinstance(question, str) else tuple(question)
    # A fenced text stands between marks that hold its own hash; being longer, it is taken out first.
    exempt = _longest_first((*asked, *map(fenced, asked), *(fixed or ())))
    leaks: list[Leak] = []
    for number, part in enumerate(parts, 1):
        if not isinstance(part, str):
            leaks += [Leak(number, "metadata", *chunk) for chunk in foreign_chunks(part.data)]
            continue
        left = _without(normalize_answer(part), exempt)
        if not left.strip():
            continue
        leaks += [Leak(number, "name", "file name", name) for name in _file_names(part, asked)]
        leaks += _names(number, left, (record.story_id, *names))
        texts = [secret for secret in secrets_of(record) if fixed is not None or not secret.is_short]
        shown = ((secret, secret.shown_in(left)) for secret in texts if secret.path != "$.story_id")
        leaks_here = [Leak(number, "text", secret.path, _short(text)) for secret, text in shown if text]
        leaks += leaks_here
        if fixed is not None and not leaks_here:
            leaks.append(Leak(number, "unaccounted", "the packet", _short(" ".join(left.split()))))
    return leaks


def fixed_texts(rendered: Sequence[str], marks: Sequence[str]) -> tuple[str, ...]:
    """Return what a prompt says whatever the story is: the texts of its messages, cut at the marks."""
    cuts = re.compile("|".join(re.escape(mark) for mark in marks)) if marks else None
    pieces = (piece for text in rendered for piece in (cuts.split(text) if cuts else [text]))
    return tuple(piece.strip() for piece in pieces if piece.strip())


def _longest_first(texts: Iterable[str]) -> list[str]:
    return sorted({normalize_answer(text) for text in texts} - {""}, key=lambda text: (-len(text), text))


def _without(text: str, exempt: Sequence[str]) -> str:
    """Return a normalised text without the exempt ones and without index labels."""
    for words in exempt:
        if words in text:  # most are of other packets, and each would be a pattern to compile
            text = re.sub(rf"(?<!\w){re.escape(words)}(?!\w)", _CUT, text)
    return _INDEX_LABEL.sub(_CUT, text)


def _file_names(part: str, asked: Iterable[str]) -> list[str]:
    exempt = {name for text in asked for name in _FILE_NAME.findall(text)}
    return sorted({name for name in _FILE_NAME.findall(part)} - exempt)


def _names(number: int, left: str, names: Iterable[str]) -> Iterator[Leak]:
    for name in sorted(set(names)):
        if contains_phrase(left, normalize_answer(name)):
            yield Leak(number, "name", "name of the story, the method or a file", name)


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
