"""A model planner whose questions are answered on the spot, without engine, SDK or server."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fabula.builders.katha.model import ModelPlanner
from fabula.builders.katha.rules import Rules
from fabula.builders.step import PlannerSettings
from fabula.engine.asking import Answer, Ask, BadReply
from fabula.engine.stage import Tools
from fabula.models.chat import ChatRequest, Message
from fabula.models.replies import check_value
from fabula.models.settings import ModelSettings
from fabula.schemas.base import Own
from fabula.schemas.text import normalize_text
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import Asked

Handler = Callable[[Asked], Any]


def as_asked(request: ChatRequest) -> Asked:
    """The request as the model server would hand it over."""
    system = "\n".join(str(m.parts[0]) for m in request.messages if m.role == "system")
    rest: tuple[Message, ...] = tuple(m for m in request.messages if m.role != "system")
    assert request.schema is not None
    return Asked("openai", "/", request.model, system, rest, request.schema.schema, request.schema.name)


class DirectAsker:
    """Answers with a handler; what is read must satisfy the schema. Remembers the prompts and requests."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.asks: list[Ask[Any]] = []

    async def ask(self, ask: Ask[Any]) -> Answer[Any]:
        self.asks.append(ask)
        reply = self.handler(as_asked(ask.request))
        if isinstance(reply, Exception):
            raise reply
        check_value(reply, ask.request.schema)
        return Answer(ask.read(reply))


class Model:
    """What the tests of the model planner use."""

    BadReply = BadReply
    asked = staticmethod(as_asked)

    @staticmethod
    def tools(handler: Handler | None = None, settings: Own | None = None) -> Tools:
        chosen = settings or PlannerSettings(model="openai:tested", planner="model")
        asker = DirectAsker(handler or KathaModel())
        return Tools(settings=chosen, created_at="2026-01-01T00:00:00Z", asker=asker)

    @classmethod
    def planner(cls, handler: Handler | None = None) -> ModelPlanner:
        return ModelPlanner(cls.tools(handler))

    @staticmethod
    def settings(**values: Any) -> ModelSettings:
        return ModelSettings(**values)

    @staticmethod
    def run(coroutine: Any) -> Any:
        return asyncio.run(coroutine)


@pytest.fixture(scope="session")
def model() -> type[Model]:
    return Model


HAT = (
    "On a windy morning Mira walked along the river with her new hat. A gust tore the hat from her head, and"
    " she ran after it to the edge of the water. A fisherman sat there with his rod. He saw that the girl was"
    " afraid for her hat. He swung his rod and hooked the hat out of the air. Mira was happy, and she"
    " thanked the fisherman. The next day she brought him a basket of fresh bread."
)


class Tale:
    """A story with its analysis and one draft of it by the stand-in model."""

    def __init__(self, text: str = HAT, **changes: Any) -> None:
        row = {"id": "tale_1", "title": "The Hat", "language": "en", "text": text, **changes}
        row |= {"source_collection": "aesop", "source_reference": None}
        self.story = {
            **row,
            "normalized_text": normalize_text(text),
            "rights_status": "public_domain_or_rights_compatible",
            "narrative_type": None,
            "moral_label": None,
        }
        self.analysis = Rules().analyze(self.story)

    async def drafted(
        self, planner: ModelPlanner, count: int = 5, moral: str = "gratitude"
    ) -> dict[str, Any]:
        """The draft of the whole record; the stand-in's labels but for the moral."""
        scenes = await planner.scenes(self.story, self.analysis, count)
        assert scenes is not None
        labels = (await planner.labels(self.story)).value
        transitions = await planner.transitions(self.story, self.analysis, scenes.value, moral)
        questions = await planner.questions(self.story, self.analysis, scenes.value, transitions.value, moral)
        kind = labels["narrative_type"]
        variants = await planner.variants(self.story, self.analysis, scenes.value, (kind, moral), 2)
        return {
            "title": self.story["title"],
            "narrative_type": kind,
            "moral_label": moral,
            "scenes": scenes.value,
            "transitions": transitions.value,
            "questions": questions.value,
            "variants": variants.value,
            "producers": [],
        }


@pytest.fixture
def tale() -> type[Tale]:
    return Tale


@pytest.fixture(scope="session")
def hat() -> Tale:
    """The story of the hat."""
    return Tale()


@pytest.fixture
def draft(hat: Tale) -> dict[str, Any]:
    """A fresh draft of the story of the hat."""
    return asyncio.run(hat.drafted(Model.planner()))
