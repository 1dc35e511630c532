"""Anthropic's messages."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from ...models.chat import Message, Part
from ...schemas.canonical import Json
from .answers import Answer, Problem
from .asked import Asked
from .wire import BadRequest, HttpRequest, WireError, decode_image, errors_of, given, joined, member

ERRORS = errors_of("anthropic")


class AnthropicWire:
    """``POST .../v1/messages``."""

    errors: Mapping[str, WireError] = ERRORS
    methods = frozenset(("POST",))

    def takes(self, path: str) -> bool:
        return path.endswith("/messages")

    def read(self, request: HttpRequest, document: Mapping[str, Any]) -> Asked:
        """Return what was asked; a schema may come as output format or as a forced tool."""
        messages = [_message(entry) for entry in member(document, "messages", list)]
        if not messages or messages[0].role != "user":
            raise BadRequest("messages must start with one of the user")
        schema, name, structured = _format(document)
        return Asked(
            "anthropic",
            request.path,
            member(document, "model", str),
            joined(_content(document.get("system", ""))),
            tuple(messages),
            schema,
            name,
            structured,
            given(temperature=document.get("temperature"), max_tokens=member(document, "max_tokens", int)),
        )

    def reply(self, asked: Asked, answer: Answer) -> Mapping[str, Json] | Problem:
        """Return a message; what a filter stopped ends as a refusal, as at the service."""
        used = answer.counts(asked)
        content = _blocks(asked, answer)
        return {
            "id": f"msg_{asked.key[:24]}",
            "type": "message",
            "role": "assistant",
            "model": answer.served_as(asked),
            "content": content,
            "stop_reason": _stop_reason(answer, content),
            "stop_sequence": None,
            "stop_details": _stop_details(answer),
            "usage": {
                "input_tokens": used["input_tokens"] - used["cached_tokens"] - used["cache_write_tokens"],
                "output_tokens": used["output_tokens"],
                "cache_creation_input_tokens": used["cache_write_tokens"],
                "cache_read_input_tokens": used["cached_tokens"],
                "cache_creation": {
                    "ephemeral_5m_input_tokens": used["cache_write_tokens"] - used["cache_write_1h_tokens"],
                    "ephemeral_1h_input_tokens": used["cache_write_1h_tokens"],
                },
                "output_tokens_details": {"thinking_tokens": used["thinking_tokens"]},
            },
        }

    def error(self, status: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
        kind = "overloaded_error" if status == 529 else error.kind
        return {"type": "error", "error": {"type": kind, "message": problem.message or error.message}}


def _stop_reason(answer: Answer, content: list[Json]) -> str:
    if answer.refusal is not None or answer.blocked:
        return "refusal"
    if answer.finish == "length":
        return "max_tokens"
    return "tool_use" if content and content[-1]["type"] == "tool_use" else "end_turn"


def _stop_details(answer: Answer) -> Json:
    if not answer.blocked:
        return None
    return {"type": "refusal", "category": None, "explanation": f"stopped by a filter: {answer.block_reason}"}


def _blocks(asked: Asked, answer: Answer) -> list[Json]:
    blocks: list[Json] = []
    if answer.thinking is not None:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": "none"})
    if answer.blocked or not answer.choices:
        return blocks
    text = answer.text if answer.refusal is None else answer.refusal
    if asked.structured == "tool" and answer.refusal is None:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            tool = {"id": f"toolu_{asked.key[:24]}", "name": asked.schema_name, "input": value}
            return [*blocks, {"type": "tool_use", **tool}]
    return [*blocks, {"type": "text", "text": text}]


def _message(entry: Json) -> Message:
    if not isinstance(entry, Mapping) or entry.get("role") not in ("user", "assistant"):
        raise BadRequest("a message is not one of user or assistant")
    return Message(entry["role"], tuple(_content(member(entry, "content", (str, list)))))


def _content(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [content] if content else []
    return [_part(part) for part in content]


def _part(part: Json) -> Part:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text":
        return str(member(part, "text", str))
    if kind == "image":
        source = member(part, "source", dict)
        if source.get("type") != "base64":
            raise BadRequest("an image must come as base64")
        return decode_image(member(source, "data", str), member(source, "media_type", str))
    if kind in ("tool_use", "tool_result"):
        return json.dumps(part.get("input", part.get("content")), ensure_ascii=False)
    raise BadRequest(f"a message has a block of type {kind!r}")


def _format(
    document: Mapping[str, Any],
) -> tuple[Mapping[str, Any] | None, str | None, Literal["schema", "tool"] | None]:
    config = document.get("output_config") or {}
    form = config.get("format") or document.get("output_format")
    if form:
        schema = member(form, "schema", dict)
        return schema, schema.get("title"), "schema"
    choice = document.get("tool_choice") or {}
    if choice.get("type") == "tool":
        for tool in document.get("tools") or ():
            if tool.get("name") == choice.get("name"):
                return member(tool, "input_schema", dict), tool["name"], "tool"
        raise BadRequest("tool_choice names no tool of the request")
    return None, None, None
