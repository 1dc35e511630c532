"""Adapter for Anthropic's messages.

A schema is enforced as output format (``structured = "schema"``), or by a forced tool (``"json"``), which
older models know, too. The API has no seed; none is sent.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import MissingRequirement
from ..schemas.canonical import Json
from .chat import ChatRequest, Image, Message, Part, Reply, ReplyOutcome, Usage, base64_text
from .edge import (
    Adapter,
    added,
    instead,
    messages_to_send,
    text_or_none,
    tokens,
    usage_or_none,
    without_counts,
)
from .faults import GRACE, LONGEST_BODY, headers_not_ours, headers_of, http_client
from .keys import Redactor, find_key
from .options import ModelOptions
from .spec import ModelSpec

if TYPE_CHECKING:
    import anthropic

ANTHROPIC = "https://api.anthropic.com"
_OUTCOMES: dict[str, ReplyOutcome] = {
    "refusal": "refused",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "pause_turn": "truncated",
}


def _blocks(request: ChatRequest) -> list[tuple[Message, list[dict[str, Json]]]]:
    """Return each message with its blocks; the last one of what it shares with others is marked."""
    messages = [(message, [_part(part) for part in message.parts]) for message in messages_to_send(request)]
    if request.prefix is not None:
        blocks = [block for _, several in messages for block in several]
        blocks[request.prefix.parts - 1]["cache_control"] = {"type": "ephemeral"}
    return messages


def _part(part: Part) -> dict[str, Json]:
    if isinstance(part, Image):
        data = base64_text(part.data)
        return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": data}}
    return {"type": "text", "text": part}


def read_reply(document: Mapping[str, Any]) -> Reply | None:
    """Return the reply in a message; None where the JSON is no message."""
    content = document.get("content")
    if not isinstance(content, list):
        return None
    texts = [_text(block) for block in content if isinstance(block, Mapping)]
    text = "".join(texts)
    finish = text_or_none(document.get("stop_reason"))
    outcome = _OUTCOMES.get(finish or "", "ok" if text.strip() else "empty")
    kinds = (block.get("type") for block in content if isinstance(block, Mapping) and not _text(block))
    details = {
        "truncated": "cut off at max_tokens",
        "refused": "the service refused",
        "empty": instead(kinds),
    }
    return Reply(
        outcome,
        text,
        details.get(outcome),
        finish,
        text_or_none(document.get("model")),
        _usage(document.get("usage")),
    )


def _text(block: Mapping[str, Any]) -> str:
    if block.get("type") == "tool_use":
        return json.dumps(block.get("input"), ensure_ascii=False)
    return str(block.get("text", "")) if block.get("type") == "text" else ""


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    cached, written = (tokens(usage, f"cache_{name}_input_tokens") for name in ("read", "creation"))
    return usage_or_none(
        Usage(
            # The service counts what it read from its cache, and wrote there, apart from the others.
            added(tokens(usage, "input_tokens"), cached, written),
            tokens(usage, "output_tokens"),
            cached_tokens=cached,
            thinking_tokens=tokens(usage.get("output_tokens_details"), "thinking_tokens"),
            cache_write_tokens=written,
            cache_write_1h_tokens=tokens(usage.get("cache_creation"), "ephemeral_1h_input_tokens"),
        )
    )


class AnthropicChat(Adapter):
    """A model behind Anthropic's messages."""

    _path = "/v1/messages"
    _read = staticmethod(read_reply)

    def __init__(
        self, spec: ModelSpec, options: ModelOptions, redactor: Redactor, longest: int = LONGEST_BODY
    ) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise MissingRequirement(
                str(spec), what="the library anthropic is not installed",
                fix="pip install 'fabula[anthropic]'",
            ) from error  # fmt: skip
        super().__init__(spec, options, redactor)
        key = find_key(spec, options, redactor)
        unwanted = headers_not_ours("ANTHROPIC_CUSTOM_HEADERS", key, anthropic.omit)
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=options.base_url or ANTHROPIC,
            timeout=options.call_timeout + GRACE,
            max_retries=0,
            default_headers={**unwanted, **headers_of(spec, options, redactor)},
            http_client=http_client(spec, options, redactor, longest),
        )

    @property
    def client(self) -> "anthropic.AsyncAnthropic":
        client: anthropic.AsyncAnthropic = self._client
        return client

    def _body(self, request: ChatRequest) -> dict[str, Json]:
        messages = _blocks(request)
        body: dict[str, Json] = {
            "model": self._name,
            "max_tokens": request.max_tokens,
            "messages": [
                {"role": message.role, "content": blocks}
                for message, blocks in messages
                if message.role != "system"
            ],
        }
        system = [block for message, blocks in messages if message.role == "system" for block in blocks]
        if system:
            body["system"] = system
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.schema is not None and request.structured == "schema":
            wanted = {"type": "json_schema", "schema": without_counts(request.schema)}
            body["output_config"] = {"format": wanted}
        elif request.schema is not None and request.structured == "json":
            name = request.schema.name
            body["tools"] = [
                {"name": name, "description": "Takes the answer.", "input_schema": request.schema.schema}
            ]
            body["tool_choice"] = {"type": "tool", "name": name, "disable_parallel_tool_use": True}
        return {**body, **request.extra}
