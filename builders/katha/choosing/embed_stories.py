"""Stage: the vector of a story, where an encoder is set: what is told alike lies near, in whatever words."""

from typing import ClassVar

from pydantic import Field

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....models.spec import ENCODES, ModelSettings
from ...encoding import encode_text


class Settings(ModelSettings):
    """Settings of the stage."""

    encodes: ClassVar[bool] = True

    model: str | None = Field(
        default=None, pattern=f"^{ENCODES}", description="Encoder, such as embedding:openai:NAME."
    )
    characters: int = Field(default=6000, ge=100, description="So much of a story is encoded.")


SPEC = StageSpec(
    name="embed_stories", version=1, shape="map", reads=("story",), writes=("vector",), settings=Settings
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the packed vector of the story; null without an encoder, and where it gave none."""
    settings = tools.own(Settings)
    if tools.asker is None or settings.model is None:
        return Made({"vector": None})
    text = item["story"]["normalized_text"][: settings.characters]
    return Made({"vector": await encode_text(tools, settings.model, text)})
