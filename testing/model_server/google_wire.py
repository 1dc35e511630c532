"""Gemini's generateContent; requests are read, and answers written, in camelCase or snake_case."""

import base64
import re
from collections.abc import Mapping
from typing import Any, Literal

from ...models.chat import Message, Part
from ...schemas.canonical import Json
from .answers import Answer, Problem
from .asked import Asked
from .wire import BadRequest, HttpRequest, WireError, decode_image, given, joined

Spelling = Literal["camel", "snake"]
PATH = re.compile(r"/models/([^/:]+):generateContent$")
BAD_KEY = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
    "domain": "googleapis.com",
}
QUOTA = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}
ERRORS = {
    "bad_request": WireError(400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "unauthorized": WireError(
        400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", {"details": [BAD_KEY]}
    ),
    "forbidden": WireError(403, "PERMISSION_DENIED", "The caller does not have permission."),
    "no_quota": WireError(
        429,
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota, please check your plan and billing details.",
        {"details": [QUOTA]},
    ),
    "no_such_model": WireError(404, "NOT_FOUND", "The model is not found for this API version."),
    "unsupported": WireError(400, "INVALID_ARGUMENT", "This model does not support the parameter."),
    "too_long": WireError(
        400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed."
    ),
    "content_filter": WireError(400, "INVALID_ARGUMENT", "The prompt was stopped by the content filter."),
    "rate_limited": WireError(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted."),
    "server_error": WireError(500, "INTERNAL", "An internal error has occurred."),
}
STATUS_WORDS = {500: "INTERNAL", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}


class GoogleWire:
    """``POST .../models/NAME:generateContent``."""

    errors: Mapping[str, WireError] = ERRORS
    methods = frozenset(("POST",))

    def __init__(self, spelling: Spelling = "camel") -> None:
        self._spelling = spelling

    def takes(self, path: str) -> bool:
        """Return whether a path belongs to this format."""
        return PATH.search(path) is not None

    def read(self, request: HttpRequest, document: Mapping[str, Any]) -> Asked:
        """Return what was asked."""
        found = PATH.search(request.path)
        contents = document.get("contents")
        if found is None or not isinstance(contents, list):
            raise BadRequest("'contents' is missing or has the wrong type")
        config = pick(document, "generationConfig") or {}
        schema = (
            pick(config, "responseJsonSchema")
            or config.get("_responseJsonSchema")
            or pick(config, "responseSchema")
        )
        wants_json = pick(config, "responseMimeType") == "application/json"
        shape = pick(config, "imageConfig") or {}
        return Asked(
            "google",
            request.path,
            found[1],
            joined(_parts(pick(document, "systemInstruction") or {})),
            tuple(_message(entry) for entry in contents),
            schema,
            schema.get("title") if isinstance(schema, Mapping) else None,
            "schema" if schema else "json" if wants_json else None,
            given(
                temperature=config.get("temperature"),
                seed=config.get("seed"),
                max_tokens=pick(config, "maxOutputTokens"),
                aspect_ratio=pick(shape, "aspectRatio"),
                image_size=pick(shape, "imageSize"),
            ),
            wants="image" if "IMAGE" in (pick(config, "responseModalities") or ()) else "text",
        )

    def reply(self, asked: Asked, answer: Answer) -> Mapping[str, Json] | Problem:
        """Return a response; Gemini has no field for refusals, they are plain text."""
        used = answer.counts(asked)
        body: dict[str, Json] = {
            "usageMetadata": {
                "promptTokenCount": used["input_tokens"],
                "candidatesTokenCount": used["output_tokens"] - used["thinking_tokens"],
                "thoughtsTokenCount": used["thinking_tokens"],
                "cachedContentTokenCount": used["cached_tokens"],
                "totalTokenCount": used["input_tokens"] + used["output_tokens"],
            },
            "modelVersion": answer.served_as(asked),
            "responseId": asked.key[:24],
        }
        if answer.blocked == "prompt":
            body["promptFeedback"] = {"blockReason": answer.block_reason}
        elif answer.choices:
            body["candidates"] = [_candidate(answer)]
        if asked.wants == "image":
            modalities = {"prompt": used["image_input_tokens"], "candidates": used["image_output_tokens"]}
            body["usageMetadata"] |= {
                f"{name}TokensDetails": [{"modality": "IMAGE", "tokenCount": count}]
                for name, count in modalities.items()
            }
        spelled: dict[str, Json] = _spelled(body, self._spelling)
        return spelled

    def error(self, status: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
        """Return the body of an error response; a wait that is asked for stands in it, too."""
        return google_error(status, error, problem)


def google_error(status: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
    """Return the body of an error response of Google's services."""
    word = STATUS_WORDS.get(status, error.kind) if error.kind == "INTERNAL" else error.kind
    about: dict[str, Json] = {"code": status, "message": problem.message or error.message, "status": word}
    details = list(error.more.get("details", ()))
    if problem.retry_after is not None:
        delay = f"{problem.retry_after:g}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return {"error": {**about, "details": details} if details else about}


def pick(document: Mapping[str, Any], name: str) -> Json:
    """Return a member by its camelCase name, in either spelling; None if it is in neither."""
    return document[name] if name in document else document.get(_snake(name))


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def _spelled(value: Json, spelling: Spelling) -> Json:
    if spelling == "camel":
        return value
    if isinstance(value, dict):
        return {_snake(name): _spelled(entry, spelling) for name, entry in value.items()}
    return [_spelled(entry, spelling) for entry in value] if isinstance(value, list) else value


def _candidate(answer: Answer) -> dict[str, Json]:
    finish = {"stop": "STOP", "length": "MAX_TOKENS"}[answer.finish]
    if answer.blocked:
        return {"finishReason": answer.block_reason, "index": 0}
    parts: list[Json] = [] if answer.thinking is None else [{"text": answer.thinking, "thought": True}]
    text = answer.text if answer.refusal is None else answer.refusal
    if text or answer.picture is None:
        parts.append({"text": text})
    if answer.picture is not None:
        data = base64.b64encode(answer.picture.data).decode("ascii")
        parts.append({"inlineData": {"mimeType": answer.picture.media_type, "data": data}})
    return {"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}


def _message(entry: Json) -> Message:
    if not isinstance(entry, Mapping):
        raise BadRequest("a content is not an object")
    return Message("assistant" if entry.get("role") == "model" else "user", tuple(_parts(entry)))


def _parts(content: Json) -> list[Part]:
    parts = content.get("parts", ()) if isinstance(content, Mapping) else content
    return [_part(part) for part in ([parts] if isinstance(parts, Mapping | str) else parts)]


def _part(part: Json) -> Part:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    inline = pick(part, "inlineData") if isinstance(part, Mapping) else None
    if not isinstance(inline, Mapping):
        raise BadRequest("a part is neither text nor inline data")
    return decode_image(str(inline.get("data")), str(pick(inline, "mimeType")))
