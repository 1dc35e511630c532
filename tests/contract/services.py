"""What the suites over services share: where a model is, how it is asked once, and what may go wrong."""

import asyncio
from typing import Any

from fabula.models.chat import ChatModel, ChatRequest, Reply
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import open_model
from fabula.models.spec import ModelSpec, parse_spec
from fabula.testing import model_server as service

KEY = "planted-key-0123456789abcdef0123456789"
FAULTS: list[tuple[Any, str]] = [
    (service.RateLimited(), "rate_limited"),
    *((service.ServerError(status), "server_error") for status in (500, 502, 503, 504, 529)),
    (service.Unauthorized(), "key_refused"),
    (service.Unauthorized(403), "key_refused"),
    (service.EchoSecrets(), "key_refused"),
    (service.NoQuota(), "no_quota"),
    (service.NoQuota(402), "no_quota"),
    (service.NoSuchModel(), "no_such_model"),
    (service.TooLong(), "too_long"),
    (service.BadRequestFault(), "bad_request"),
    *((service.HtmlPage(status), "not_an_api") for status in (200, 302, 404, 405)),
    (service.HtmlPage(502), "server_error"),
    (service.NotJson(b"Not Found"), "not_an_api"),
    (service.NotJson(b'{"status": "up"}'), "not_an_api"),
    *((service.NotJson(body), "broken_reply") for body in (b'"ok"', b"[]", b"")),
    (service.NotJson(b'{"choices": [3], "data": [3], "candidates": [3], "content": [{"'), "broken_reply"),
    (service.NotJson(b'{"error": {"code": 429, "message": "slow down"}}'), "rate_limited"),
    (service.NotJson(b'{"error": {"message": "upstream is down"}}'), "server_error"),
    (service.Dropped(), "connection"),
    (service.Dropped(40), "connection"),
    *((service.TruncatedBody(**how), "broken_reply") for how in ({}, {"announced": True}, {"at": 0.0})),
]
"""What may come in place of a reply, of whatever kind, and the kind of fault that it is."""


def place(server: service.ModelServer, provider: str, makes: str = "") -> tuple[ModelSpec, dict[str, Any]]:
    """Return the spec of a model of a service, and the settings that lead to the server."""
    if provider == "compatible":
        return parse_spec(f"{makes}{server.openai_url}#tiny"), {}
    urls = {"google": server.google_url, "anthropic": server.anthropic_url}
    return parse_spec(f"{makes}{provider}:tiny"), {"base_url": urls.get(provider, server.openai_url)}


def ask(
    spec: ModelSpec, options: ModelOptions, request: ChatRequest, model: ChatModel | None = None
) -> Reply:
    async def play() -> Reply:
        opened = model or open_model(spec, options, Redactor())
        try:
            return await opened.complete(request)
        finally:
            await opened.close()

    return asyncio.run(play())
