"""The chat completions of OpenAI, and of the many servers that speak the same."""

from collections.abc import Mapping
from typing import Any, Literal

from ...models.chat import Message, Part, Role
from ...schemas.canonical import Json
from .answers import Answer, Problem
from .asked import Asked
from .wire import BadRequest, HttpRequest, WireError, data_url, given, joined, member

CREATED = 1_700_000_000
ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
ERRORS = {
    "bad_request": WireError(400, "invalid_request_error", "The request is not valid."),
    "unauthorized": WireError(
        401, "invalid_request_error", "Incorrect API key provided.", {"code": "invalid_api_key"}
    ),
    "forbidden": WireError(403, "invalid_request_error", "The key may not use this model."),
    "no_quota": WireError(
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
        {"code": "insufficient_quota"},
    ),
    "no_such_model": WireError(
        404, "invalid_request_error", "The model does not exist.", {"code": "model_not_found"}
    ),
    "unsupported": WireError(
        400,
        "invalid_request_error",
        "Unsupported parameter: this model does not take it.",
        {"code": "unsupported_parameter"},
    ),
    "too_long": WireError(
        400,
        "invalid_request_error",
        "This model's maximum context length is exceeded.",
        {"code": "context_length_exceeded", "param": "messages"},
    ),
    "content_filter": WireError(
        400,
        "invalid_request_error",
        "The prompt was stopped by the content filter.",
        {"code": "content_filter", "param": "prompt"},
    ),
    "rate_limited": WireError(
        429, "requests", "Rate limit reached for requests.", {"code": "rate_limit_exceeded"}
    ),
    "server_error": WireError(500, "server_error", "The server had an error."),
}


class OpenAIWire:
    """``POST .../chat/completions``."""

    errors: Mapping[str, WireError] = ERRORS
    methods = frozenset(("POST",))

    def takes(self, path: str) -> bool:
        """Return whether a path belongs to this format."""
        return path.endswith("/chat/completions")

    def read(self, request: HttpRequest, document: Mapping[str, Any]) -> Asked:
        """Return what was asked; messages of role ``developer`` count as system messages."""
        system: list[str] = []
        messages: list[Message] = []
        for entry in member(document, "messages", list):
            role, parts = _message(entry)
            if role == "system":
                system.append(joined(parts))
            else:
                messages.append(Message(role, tuple(parts)))
        schema, name, structured = _format(document.get("response_format"))
        return Asked(
            "openai",
            request.path,
            member(document, "model", str),
            "\n".join(system),
            tuple(messages),
            schema,
            name,
            structured,
            given(
                temperature=document.get("temperature"),
                seed=document.get("seed"),
                max_tokens=document.get("max_completion_tokens", document.get("max_tokens")),
            ),
        )

    def reply(self, asked: Asked, answer: Answer) -> Mapping[str, Json] | Problem:
        """Return a chat completion; a prompt that is blocked as a filter error."""
        if answer.blocked == "prompt":
            return Problem("content_filter")
        used = answer.counts(asked)
        finish = "content_filter" if answer.blocked else answer.finish
        message: dict[str, Json] = {
            "role": "assistant",
            "content": None if answer.refusal is not None else answer.text,
            "refusal": answer.refusal,
        }
        if answer.thinking is not None:
            message["reasoning_content"] = answer.thinking
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return {
            "id": f"chatcmpl-{asked.key[:24]}",
            "object": "chat.completion",
            "created": CREATED,
            "model": answer.served_as(asked),
            "choices": [choice] * answer.choices,
            "usage": {
                "prompt_tokens": used["input_tokens"],
                "completion_tokens": used["output_tokens"],
                "total_tokens": used["input_tokens"] + used["output_tokens"],
                "prompt_tokens_details": {
                    "cached_tokens": used["cached_tokens"],
                    "cache_write_tokens": used["cache_write_tokens"],
                },
                "completion_tokens_details": {"reasoning_tokens": used["thinking_tokens"]},
            },
        }

    def error(self, _: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
        """Return the body of an error response."""
        about = {"message": problem.message or error.message, "type": error.kind, "param": None, "code": None}
        return {"error": {**about, **error.more}}


def _message(entry: Json) -> tuple[Role, list[Part]]:
    if not isinstance(entry, Mapping):
        raise BadRequest("a message is not an object")
    role = ROLES.get(str(entry.get("role")))
    if role is None:
        raise BadRequest(f"a message has the role {entry.get('role')!r}")
    content = member(entry, "content", (str, list))
    return role, [content] if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Json) -> Part:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text":
        return str(member(part, "text", str))
    if kind == "image_url":
        return data_url(member(member(part, "image_url", dict), "url", str))
    raise BadRequest(f"a message has a part of type {kind!r}")


def _format(
    asked: Json,
) -> tuple[Mapping[str, Any] | None, str | None, Literal["schema", "json"] | None]:
    kind = asked.get("type") if isinstance(asked, Mapping) else None
    if kind == "json_schema":
        about = member(asked, "json_schema", dict)
        return member(about, "schema", dict), member(about, "name", str), "schema"
    return None, None, "json" if kind == "json_object" else None
