"""Steps whose questions are answered on the spot, without engine, SDK or server."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fabula.builders.katha import (
    annotate_transitions,
    draft_scenes,
    write_contrastives,
    write_questions,
)
from fabula.builders.katha.choosing import screen_stories
from fabula.builders.katha.drafts import Sketch
from fabula.builders.step import Drafted, PlannerSettings, Step
from fabula.builders.text.boundaries import analyze
from fabula.engine.stage import Answer, Ask, BadReply, Tools
from fabula.models.chat import ChatRequest, Message
from fabula.models.replies import Malformed, check_value
from fabula.models.spec import ModelSettings
from fabula.schemas.text import normalize_text
from fabula.schemas.values import Own
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
        try:
            check_value(reply, ask.request.schema)
        except Malformed as problem:
            raise BadReply(str(problem)) from problem
        return Answer(ask.read(reply))


class Drafting:
    """Drafts by the steps of a record, with the tools of a test."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    async def _draft(self, step: Step, sketch: Sketch, **chosen: Any) -> Drafted:
        settings = step.settings.model_validate({**self.tools.settings.as_json(), **chosen})
        return await step.draft(sketch, replace(self.tools, settings=settings))

    async def scenes(self, sketch: Sketch, count: int) -> Drafted:
        return await self._draft(draft_scenes.STEP, sketch, scenes=count)

    async def labels(self, sketch: Sketch) -> Drafted:
        return await self._draft(screen_stories.ASSESS_STORY, sketch)

    async def transitions(self, sketch: Sketch) -> Drafted:
        return await self._draft(annotate_transitions.STEP, sketch)

    async def questions(self, sketch: Sketch) -> Drafted:
        return await self._draft(write_questions.STEP, sketch)

    async def variants(self, sketch: Sketch, count: int) -> Drafted:
        return await self._draft(write_contrastives.STEP, sketch, variants=count)


class Model:
    """What the tests of steps that ask a model use."""

    BadReply = BadReply
    asked = staticmethod(as_asked)

    @staticmethod
    def tools(handler: Handler | None = None, settings: Own | None = None) -> Tools:
        chosen = settings or PlannerSettings(model="openai:tested", planner="model")
        asker = DirectAsker(handler or KathaModel())
        return Tools(settings=chosen, created_at="2026-01-01T00:00:00Z", asker=asker)

    @classmethod
    def planner(cls, handler: Handler | None = None) -> Drafting:
        return Drafting(cls.tools(handler))

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
        self.analysis = analyze(self.story)

    def sketch(self, **drafted: Any) -> Sketch:
        return Sketch(self.story, self.analysis, **drafted)

    async def drafted(self, planner: Drafting, count: int = 5, moral: str = "gratitude") -> dict[str, Any]:
        """The draft of the whole record; the stand-in's labels but for the moral."""
        scenes = await planner.scenes(self.sketch(), count)
        kind = (await planner.labels(self.sketch())).value["narrative_type"]
        known = {"scenes": scenes.value, "narrative_type": kind, "moral_label": moral}
        transitions = await planner.transitions(self.sketch(**known))
        known["transitions"] = transitions.value
        questions = await planner.questions(self.sketch(**known))
        variants = await planner.variants(self.sketch(**known), 2)
        return {
            "title": self.story["title"],
            "narrative_type": kind,
            "moral_label": moral,
            "moral": None,
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
