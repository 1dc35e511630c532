"""The SDK's client for services that speak as OpenAI does; the environment is kept out of it."""

from typing import TYPE_CHECKING, Any

from .keys import find_key
from .options import ModelOptions
from .secrets import Redactor
from .spec import COMPATIBLE, ModelSpec
from .transport import GRACE, headers_not_ours, headers_of, http_client

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
"""The SDK's default, named here so that no environment variable moves it unseen."""


def openai_client(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> "openai.AsyncOpenAI":
    """Return the client for one model, without retries of its own.

    Raises:
        MissingRequirement: the key or a variable that the settings name is not there.
    """
    import openai

    key = find_key(spec, options, redactor)
    headers: dict[str, Any] = headers_not_ours("OPENAI_CUSTOM_HEADERS", key, openai.omit)
    if spec.provider == COMPATIBLE:
        # The SDK would take both from the environment; they are nobody else's business.
        headers |= {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}
    return openai.AsyncOpenAI(
        api_key=key,
        base_url=options.base_url or spec.base_url or OPENAI,
        timeout=options.call_timeout + GRACE,
        max_retries=0,
        default_headers={**headers, **headers_of(spec, options, redactor)},
        http_client=http_client(spec, options, redactor),
    )
