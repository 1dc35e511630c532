"""A model planner whose questions are answered on the spot, without engine, SDK or server."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fabula.builders.katha.model import ModelPlanner
from fabula.builders.katha.planner import PlannerSettings
from fabula.engine.asking import Answer, Ask, BadReply
from fabula.engine.stage import Tools
from fabula.models.chat import ChatRequest, Message
from fabula.models.replies import check_value
from fabula.models.settings import ModelSettings
from fabula.schemas.base import Own
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
