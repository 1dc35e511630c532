"""Stage: the vector of a story, where an encoder is set: what is told alike lies near, in whatever words."""

from typing import ClassVar

from pydantic import Field

from ....engine.stage import Ask, BadReply, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ....models.chat import encode_request, packed, unpacked
from ....models.spec import ENCODES, ModelSettings
from ....schemas.canonical import Json

# -- Vectors of texts, for stages in which an encoder is set

_NONE = frozenset({"refused", "blocked", "truncated", "empty", "malformed", "bad_request", "too_long"})


async def encode_text(tools: Tools, encoder: str, text: str) -> str | None:
    """Return the packed vector of a text (see :mod:`fabula.models.chat`); None where there is none."""
    assert tools.asker is not None and isinstance(tools.settings, ModelSettings)
    request = encode_request(encoder, text)
    try:
        answer = await tools.asker.ask(Ask(request, _read, "", repairs=0, sample=tools.settings.sample))
    except NoAnswer as missed:
        if missed.code not in _NONE:
            raise
        return None
    return answer.value


def _read(text: Json) -> str:
    try:
        return packed(unpacked(text).tolist())
    except ValueError as error:
        raise BadReply(str(error)) from error


# -- The vector of a story, where an encoder is set


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
