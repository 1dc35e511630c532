"""Stage: the style of an episode's pictures, inferred from its overview (EntityBench, C.2)."""

from pydantic import Field

from ...builders.step import ask
from ...engine.stage import UNAVAILABLE, BadReply, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from .scripts import RULES, MemoryScript, style_in

PROMPT = "memory/infer_style"
USUAL = "photorealistic film still, natural light"
"""The style where a text names none: the published episodes were made from films and series."""
_LONGEST = 200


class StyleSettings(ModelSettings):
    """Who chooses the style."""

    style: str | None = Field(default=None, description="The style of all pictures; null: it is inferred.")

    def models(self) -> tuple[str, ...]:
        """Return the model; nobody is asked where the style is given."""
        return super().models() if self.style is None else ()


SPEC = StageSpec(
    name="infer_style", version=1, shape="map", reads=("script",), writes=("style",),
    settings=StyleSettings, asks=(PROMPT,),
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the ``text`` of the style and who chose it."""
    script, settings = MemoryScript.model_validate(item["script"]), tools.own(StyleSettings)
    if settings.style is not None:
        return Made({"style": {"text": settings.style, "by": "user"}})
    by_rules = {"text": style_in(script.overview) or USUAL, "by": RULES}
    if tools.asker is None:
        return Made({"style": by_rules})
    names = [f"{entity.name}: {entity.description}" for entity in script.entities]
    try:
        answer = await ask(tools, PROMPT, read_style, overview=script.overview, entities=names)
    except NoAnswer as none:
        if none.code == UNAVAILABLE:
            raise
        return Made({"style": {**by_rules, "by": f"{RULES}, as the model gave no answer ({none.code})"}})
    return Made({"style": {"text": answer.value, "by": answer.maker}})


def read_style(reply: Json) -> str:
    """Return the style that a reply names."""
    style = " ".join(str(reply["style"]).split()).rstrip(".")
    if not style or len(style) > _LONGEST:
        raise BadReply(f"the style must have 1 to {_LONGEST} characters, not {len(style)}")
    return style
