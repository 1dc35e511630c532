"""A pipeline whose items ask a model: ``read_lines, answer, count_words``; see :mod:`.toy_pipeline`.

Another stage that asks, ``rephrase``, may stand after ``answer``, and after that :data:`NUMBER`.

The item ``a`` with the words ``cat 2`` asks ``a: cat 2`` and wants a JSON object with a text that holds the
item's id. The words ``ask:3`` make an item ask three questions, ``same`` one that all such items share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..engine.config import resolve_config
from ..engine.execute import Options, RunRequest, Source
from ..engine.pipeline import Pipeline
from ..engine.stage import Ask, BadReply, Item, Made, Outcome, StageSpec, Tools
from ..models.chat import ChatRequest, Message, ReplySchema
from ..models.spec import ModelSettings
from ..schemas.canonical import Json
from .model_server import Asked
from .toy_pipeline import HERE as PLAIN
from .toy_pipeline import NUMBER  # noqa: F401 - may be a stage here, too

HERE = "fabula.testing.toy_models"
SCHEMA = ReplySchema(
    "toy_answer",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
PRICES = {"input": 1.0, "output": 10.0}


class AnswerSettings(ModelSettings):
    """Settings of ``answer``."""

    repair: bool = True


def reply_to(asked: Asked) -> dict[str, Json]:
    """Answer a question of the pipeline, as a handler of the scripted model server."""
    part = asked.messages[0].parts[0]
    return {"text": f"answer to {part}"}


async def answer(item: Item, tools: Tools) -> Outcome:
    """Map: ask about the words; without a model the words are the answer."""
    settings, words = tools.settings, item["words"]
    assert isinstance(settings, AnswerSettings)
    if not settings.models():
        return Made({"text": " ".join(words), "notes": []})
    assert tools.asker is not None
    texts: list[str] = []
    notes: list[str] = []
    for question in _questions(item):
        asked = await tools.asker.ask(_ask(question, settings, tools.seed, question.split(":")[0]))
        texts.append(asked.value)
        notes += asked.notes
    return Made({"text": "; ".join(texts), "notes": notes})


def _questions(item: Item) -> list[str]:
    words = item["words"]
    if "same" in words:
        return ["all: same"]
    count = next((int(word[4:]) for word in words if word.startswith("ask:")), 1)
    text = f"{item.id}: {' '.join(words)}"
    return [text, *(f"{text} ({number})" for number in range(2, count + 1))]


def _ask(question: str, settings: AnswerSettings, seed: int, name: str) -> Ask[str]:
    def read(reply: Json) -> str:
        if name not in reply["text"]:
            raise BadReply(f"the text must hold {name}")
        return str(reply["text"])

    request = ChatRequest(
        model=settings.model or "",
        messages=(Message("user", (question,)),),
        schema=SCHEMA,
        temperature=settings.temperature,
        seed=seed,
        max_tokens=settings.max_tokens or 100,
    )
    return Ask(request, read, "toy@1#000000000000", settings.repair, settings.sample)


async def rephrase(item: Item, tools: Tools) -> Outcome:
    """Map: ask about the answer."""
    settings = tools.settings
    assert isinstance(settings, AnswerSettings)
    assert tools.asker is not None
    asked = await tools.asker.ask(_ask(f"{item.id} again: {item['text']}", settings, tools.seed, item.id))
    return Made({"rephrased": asked.value})


def count_words(item: Item, _: Tools) -> Outcome:
    """Map: the answer, and how many words it has."""
    return Made({"line": {"text": item["text"], "notes": item["notes"], "words": len(item["text"].split())}})


ANSWER = SimpleNamespace(
    SPEC=StageSpec("answer", 1, "map", ("words",), ("text", "notes"), settings=AnswerSettings), run=answer
)
ANSWER_V2 = SimpleNamespace(SPEC=replace(ANSWER.SPEC, version=2), run=answer)
COUNT = SimpleNamespace(
    SPEC=StageSpec("count_words", 1, "map", ("text", "notes"), ("line",)), run=count_words
)


REPHRASE = SimpleNamespace(
    SPEC=StageSpec("rephrase", 1, "map", ("text",), ("rephrased",), settings=AnswerSettings), run=rephrase
)


def toy_models(answer_stage: str = "ANSWER") -> Pipeline:
    """Return the pipeline; ``answer_stage`` says which of this module's objects are the stages that ask."""
    stages = (f"{PLAIN}:READ", *(f"{HERE}:{name}" for name in answer_stage.split()), f"{HERE}:COUNT")
    return Pipeline("toy-models", stages, f"{PLAIN}:finish")


def model_request(
    folder: Path,
    source: tuple[Path, str],
    options: Options | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    answer_stage: str = "ANSWER",
) -> RunRequest:
    """Return the request to run the pipeline on one source file."""
    chosen = toy_models(answer_stage)
    lines, model = source
    given = {model: {"prices": PRICES, **(settings or {})}}
    config = resolve_config(chosen, None, [f"answer.model={model}", *sets], given)
    return RunRequest(
        folder, chosen, config, (Source("lines", lines),), options=options or Options(workers=0)
    )
