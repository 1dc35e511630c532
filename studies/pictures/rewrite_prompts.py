"""Stage: prompts written anew by a chat model, where the order wants it; a condition of its own."""

import asyncio
from typing import Self

from pydantic import Field, model_validator

from ...engine.stage import Ask, Item, Made, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings, parse_spec
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from .plans import Order

PROMPT = "generation/rewrite_prompt"


class RewriteSettings(ModelSettings):
    """Who may be asked; the order says who is."""

    writers: tuple[str, ...] = Field(default=(), description="Specs of the chat models that orders name.")

    @model_validator(mode="after")
    def _writers_are_chat_models(self) -> Self:
        for spec in self.writers:
            if parse_spec(spec).makes != "text":
                raise ValueError(f"{spec} is no chat model, which writing prompts anew needs")
        return self

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that may be asked."""
        return self.writers


SPEC = StageSpec(
    name="rewrite_prompts", version=1, shape="map", reads=("order",), writes=("prompts",),
    settings=RewriteSettings, asks=(PROMPT,),
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the prompt of each picture as it is sent."""
    order = Order.model_validate(item["order"])
    settings = tools.own(RewriteSettings)
    if order.rewrite is None or order.rewrite not in settings.writers or tools.asker is None:
        return Made({"prompts": [panel.prompt for panel in order.panels]})
    asked = settings.model_copy(update={"model": order.rewrite})
    prompt, asker = load_prompt(PROMPT), tools.asker

    async def rewritten(text: str) -> str:
        request = prompt.request(asked, tools.seed, prompt=text)
        return (await asker.ask(Ask(request, _read, prompt.label))).value

    prompts: list[Json] = list(await asyncio.gather(*(rewritten(panel.prompt) for panel in order.panels)))
    return Made({"prompts": prompts})


def _read(reply: Json) -> str:
    return str(reply["prompt"])
