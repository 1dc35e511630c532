"""Evidence packets: exactly what a judge is sent for one question under one condition (Table 34).

Pictures come first, each after its index label, in story order; then the prompt's text with the question.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ...engine.stage import BadReply
from ...models.chat import ChatRequest, Image, Message, Part
from ...models.spec import ModelSettings
from ...prompts.loader import Prompt, fenced
from ...schemas.canonical import Json, digest
from ...schemas.judgement import Condition, Kind
from ...schemas.katha import Question, StoryRecord, Variant
from ...schemas.text import normalize_answer
from ...schemas.vocabulary import vocabulary
from .settings import MAIN, PromptSet, judge_prompt

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

    @property
    def label(self) -> str:
        """The prompt as it stands in the archive."""
        return self.prompt.label

    @property
    def warmer(self) -> float:
        """By how much each further attempt raises the temperature: not at all."""
        return 0.0

    def parts(self) -> tuple[Part, ...]:
        """Return everything that is sent, in order: the texts and pictures of all messages."""
        return tuple(part for message in self.messages() for part in message.parts)

    def messages(self) -> tuple[Message, ...]:
        """Return the messages."""
        *system, user = self.prompt.messages(**self.inputs)
        return (*system, Message(user.role, (*labelled(self.pictures), *user.parts)))

    def request(self, settings: ModelSettings, seed: int | None) -> ChatRequest:
        """Return the request to the model that the settings name."""
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
        """Return the request to the model that the settings name."""
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
    record: StoryRecord, condition: Evidence, pictures: Sequence[Image], seed: int, prompts: PromptSet = MAIN
) -> Iterator[Packet]:
    """Yield one packet per recoverability question of a story, in the record's order."""
    prompt = judge_prompt(f"question_{condition}", prompts)
    for question in record.questions:
        instruction = dimension_instruction(question, seed, prompts)
        inputs = {"instruction": instruction, "question": question.question}
        asked = (question.question, fenced(question.question), instruction)
        yield Packet(
            "question", question.question_id, condition, prompt,
            inputs | _evidence(record, condition, pictures), _shown(condition, pictures), dict, asked,
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


def dimension_instruction(question: Question, seed: int, prompts: PromptSet = MAIN) -> str:
    """Return what a judge is told about the kind of answer that a question wants (Table 35)."""
    if question.question_type not in vocabulary("question_type").values:
        raise ValueError(f"{question.question_id}: {question.question_type!r} is no scored dimension")
    labels = shuffled(vocabulary("moral_label").values, seed, question.question_id)
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
