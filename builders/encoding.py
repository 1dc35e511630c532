"""Vectors of texts, for stages in which an encoder is set."""

from ..engine.stage import Ask, BadReply, NoAnswer, Tools
from ..models.spec import ModelSettings
from ..models.vectors import encode_request, packed, unpacked
from ..schemas.canonical import Json

_NONE = frozenset({"refused", "blocked", "truncated", "empty", "malformed", "bad_request", "too_long"})


async def encode_text(tools: Tools, encoder: str, text: str) -> str | None:
    """Return the packed vector of a text (see :mod:`fabula.models.vectors`); None where there is none."""
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
