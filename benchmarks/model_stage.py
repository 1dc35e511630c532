"""The stage that ``models.py`` measures: one structured call per item, with a prompt of about 4 kB."""

from dataclasses import replace
from types import SimpleNamespace

from fabula.engine.pipeline import Pipeline
from fabula.engine.stage import Ask, Item, Made, Outcome, StageSpec, Tools
from fabula.models.chat import ChatRequest, Message, ReplySchema
from fabula.models.spec import ModelSettings

POINTS = 20
TEXT = "The fox looked at the grapes and walked on. " * 90
SCHEMA = ReplySchema(
    "points",
    {
        "type": "object",
        "properties": {
            "points": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "scene": {"type": "integer", "minimum": 1}},
                    "required": ["name", "scene"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["points"],
        "additionalProperties": False,
    },
)
REPLY = {"points": [{"name": f"what the picture shows, number {n}", "scene": n + 1} for n in range(POINTS)]}


def question(number: str) -> str:
    """Return the prompt of one call."""
    return f"Question {number}. {TEXT}"


def answer(_asked: object) -> dict[str, object]:
    """Answer, as a handler of the scripted server."""
    return REPLY


async def ask(item: Item, tools: Tools) -> Outcome:
    """Map: one call."""
    settings = tools.settings
    assert isinstance(settings, ModelSettings)
    assert tools.asker is not None
    request = ChatRequest(
        model=settings.model or "",
        messages=(Message("system", ("Answer in JSON.",)), Message("user", (question(item.id),))),
        schema=SCHEMA,
        temperature=0.0,
        seed=42,
        max_tokens=2000,
    )
    answered = await tools.asker.ask(Ask(request, lambda reply: reply["points"], "points@1#0"))
    return Made({"points": answered.value})


def finish(*_: object) -> None:
    """Write nothing."""


SPEC = StageSpec("ask", 1, "map", ("words",), ("points",), settings=ModelSettings)
ASK = SimpleNamespace(SPEC=SPEC, run=ask)
ASK_V2 = SimpleNamespace(SPEC=replace(SPEC, version=2), run=ask)
READ = "fabula.testing.toy_pipeline:READ"
PIPELINE = Pipeline("points", (READ, "model_stage:ASK"), "model_stage:finish")
PIPELINE_V2 = Pipeline("points", (READ, "model_stage:ASK_V2"), "model_stage:finish")
