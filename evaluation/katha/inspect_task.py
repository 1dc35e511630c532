"""``evaluate katha`` as a task of inspect_ai, whose model is the judge.

``inspect eval fabula/katha -T release=dist/mine -T outputs=boards/x --model openai/gpt-4.1-mini`` asks the
recoverability questions under one condition of evidence, with the packets that our own judges get; what leaks
or cannot be decoded is not shown. Answers are marked by the matcher that scoring has by default. A reply that
does not answer has no score: it is never wrong. inspect_ai is imported only if it is installed.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...engine.execute import Source
from ...engine.manifest import fingerprint
from ...engine.stage import Item, Made, Tools
from ...errors import ConfigError
from ...models.chat import Image, ReplySchema, base64_text
from ...models.replies import Malformed, parse_reply
from ...releases.loading import load
from ...schemas.canonical import Json
from ..judging.answers import pictures_of, record_of
from ..judging.packets import EVIDENCE, Evidence, Packet, question_packets
from ..judging.settings import ImageSettings, ScanSettings, SelectionSettings
from ..recoverability.matching import Definitions, Key, Marker, matcher_of
from .judging import prepare_images, scan_packets
from .load_items import OUTPUTS, RELEASE, generations


@dataclass(frozen=True, slots=True)
class Shown:
    """One question about one storyboard, as it is asked."""

    packet: Packet  # what is asked, with its pictures
    about: Mapping[str, Json]  # method, story, seed, question, type and condition
    key: Key  # what answers are compared with

    @property
    def id(self) -> str:
        """The name of its sample."""
        names = ("method", "story", "seed", "question", "condition")
        return ":".join(str(self.about[name]) for name in names if self.about[name] is not None)

    @property
    def schema(self) -> ReplySchema | None:
        """What a reply must satisfy."""
        return self.packet.prompt.reply_to(self.packet.inputs)

    def mark(self, text: str) -> tuple[bool, str]:
        """Return whether a reply is right, and what it answers; raises Malformed where it is no answer."""
        parsed = self.packet.read(parse_reply(text, self.schema).value)
        said = parsed.get("answer", parsed.get("final_answer", ""))
        definitions = Definitions()
        marker = Marker(matcher_of(definitions.matcher, {}), definitions.support)
        return marker.marks(self.key, self.packet.condition, parsed)[0], str(said)


def shown_questions(
    release: Path, outputs: Sequence[Path], condition: Evidence, chosen: SelectionSettings, seed: int = 42
) -> Iterator[Shown]:
    """Yield the questions about storyboards, by method and story; without pictures each story comes once."""
    sources = [Source(RELEASE, release), *(Source(OUTPUTS, folder) for folder in outputs)]
    asked: set[str] = set()
    with tempfile.TemporaryDirectory() as store:
        tools = Tools(
            chosen, "", seed=seed, paths=tuple(source.path for source in sources), store=Path(store)
        )
        item = Item("", {"sources": [fingerprint(source).field() for source in sources]})
        for child in generations(item, tools, load):
            assert isinstance(child.outcome, Made)
            fields = dict(child.outcome.fields)
            if condition != "text":
                for stage, settings in ((prepare_images, ImageSettings()), (scan_packets, ScanSettings())):
                    made = stage.run(Item(child.id, fields), replace(tools, settings=settings))
                    fields |= made.fields if isinstance(made, Made) else {"frames": []}
                if not fields["frames"] or fields["scan"]["leaks"]:
                    continue
            elif fields["record"]["story_id"] in asked:
                continue
            asked.add(fields["record"]["story_id"])
            yield from _questions(Item(child.id, fields), condition, tools)


def _questions(item: Item, condition: Evidence, tools: Tools) -> Iterator[Shown]:
    record, shown = record_of(item), item["shown"]
    pictures = () if condition == "text" else pictures_of(item["frames"], tools.store)
    made = (None, None) if condition == "text" else (shown["method"], shown["seed"])
    packets = question_packets(record, condition, pictures, tools.seed)
    for question, packet in zip(record.questions, packets, strict=True):
        about = {
            "method": made[0], "story": record.story_id, "seed": made[1], "question": question.question_id,
            "type": question.question_type, "condition": condition,
        }  # fmt: skip
        yield Shown(packet, about, Key.of(question))


def _asked(release: str, outputs: str, condition: str, seed: int, **chosen: str | None) -> dict[str, Shown]:
    """Return the questions by their names; folders and what is chosen come as text, several with commas."""
    evidence = next((known for known in EVIDENCE if known == condition), None)
    if evidence is None:
        raise ConfigError(
            f"condition {condition}", what="there is no such evidence", fix=f"use {', '.join(EVIDENCE)}"
        )
    listed = {name: tuple(text.split(",")) for name, text in chosen.items() if text}
    folders = [Path(folder) for folder in outputs.split(",")]
    for folder in (Path(release), *folders):
        if not folder.exists():
            fix = "give -T release=FOLDER and -T outputs=FOLDER,... from where inspect is started"
            raise ConfigError(str(folder), what="nothing there", fix=fix)
    questions = shown_questions(Path(release), folders, evidence, SelectionSettings(**listed), seed)
    return {shown.id: shown for shown in questions}


def _task() -> Any:  # noqa: ANN401 - of inspect_ai
    """Return the task, known to inspect_ai as ``fabula/katha``."""
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatMessageSystem,
        ChatMessageUser,
        ContentImage,
        ContentText,
        GenerateConfig,
        ResponseSchema,
    )
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, grouped, scorer, stderr
    from inspect_ai.solver import generate
    from inspect_ai.util import JSONSchema

    def content(part: str | Image) -> Any:  # noqa: ANN401
        if isinstance(part, str):
            return ContentText(text=part)
        return ContentImage(image=f"data:{part.media_type};base64,{base64_text(part.data)}")

    def sample(shown: Shown) -> Any:  # noqa: ANN401
        roles = {"system": ChatMessageSystem, "user": ChatMessageUser}
        messages = [
            roles[message.role](content=[content(part) for part in message.parts])
            for message in shown.packet.messages()
        ]
        return Sample(
            input=messages, target=sorted(shown.key.accepted), id=shown.id, metadata=dict(shown.about)
        )

    @task  # type: ignore[untyped-decorator]
    def katha(
        release: str,
        outputs: str,
        condition: str = "image",
        split: str | None = None,
        stories: str | None = None,
        seed: int = 42,
    ) -> Any:  # noqa: ANN401
        """Ask the recoverability questions of a release about storyboards; several folders with commas."""
        asked = _asked(release, outputs, condition, seed, split=split, stories=stories)

        @scorer(metrics=[accuracy(), stderr(), grouped(accuracy(), "type")])  # type: ignore[untyped-decorator]
        def recoverability() -> Any:  # noqa: ANN401
            async def score(state: Any, target: Any) -> Any:  # noqa: ANN401, ARG001
                text, ended = state.output.completion, state.output.stop_reason
                if ended in ("max_tokens", "content_filter", "model_length"):
                    return Score.unscored(reason=ended, answer=text, explanation="no whole answer")
                try:
                    right, said = asked[str(state.sample_id)].mark(text)
                except Malformed as problem:
                    return Score.unscored(reason="malformed", answer=text, explanation=problem.problem)
                return Score(value=CORRECT if right else INCORRECT, answer=said, explanation=text)

            return score

        schema = next((shown.schema for shown in asked.values()), None)
        form = None if schema is None else ResponseSchema(
            name=schema.name, json_schema=JSONSchema.model_validate(schema.schema), strict=True
        )  # fmt: skip
        return Task(
            dataset=MemoryDataset([sample(shown) for shown in asked.values()], name=f"katha-{condition}"),
            solver=generate(),
            scorer=recoverability(),
            config=GenerateConfig(temperature=0.0, seed=seed, response_schema=form),
        )

    return katha


katha = None if find_spec("inspect_ai") is None else _task()
