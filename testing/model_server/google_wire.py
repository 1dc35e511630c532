"""Gemini's generateContent, and the interactions that make videos."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...models.chat import Message, Part
from ...schemas.canonical import Json
from .answers import Answer, Problem
from .asked import Asked, Step
from .wire import BadRequest, HttpRequest, WireError, decode_image, errors_of, given, joined, member

PATH = re.compile(r"/models/([^/:]+):generateContent$")
ERRORS = errors_of("google")
STATUS_WORDS = {500: "INTERNAL", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}


class GoogleWire:
    """``POST .../models/NAME:generateContent``."""

    errors: Mapping[str, WireError] = ERRORS
    methods = frozenset(("POST",))

    def takes(self, path: str) -> bool:
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
        return body

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
    """Return a member by its camelCase name, or by the same in snake_case; None if it is in neither."""
    snake = re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)
    return document[name] if name in document else document.get(snake)


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


# Google's interactions that make a video: one request creates it, others look at it, one fetches it.

CREATE = re.compile(r"/interactions$")
LOOK = re.compile(r"/interactions/([^/]+)$")
FILE = re.compile(r"/files/([^/:]+):download$")


@dataclass(slots=True)
class _Made:
    """A video, and how often it is still said to be under way."""

    asked: Asked
    answer: Answer
    looks: int


class VideosWire:
    """``POST .../interactions``, ``GET .../interactions/ID`` and ``GET .../files/ID:download``.

    A look and the fetching of a file are questions, too: they are counted, logged and met by faults that
    report an error or spoil the delivery. Only the creation asks the handler.

    Attributes:
        looks: how often a video is said to be under way before it is there.
    """

    errors: Mapping[str, WireError] = ERRORS
    methods = frozenset(("POST", "GET"))

    def __init__(self, looks: int = 0) -> None:
        self.looks = looks
        self._made: dict[str, _Made] = {}

    def takes(self, path: str) -> bool:
        return any(form.search(path) for form in (CREATE, LOOK, FILE))

    def read(self, request: HttpRequest, document: Mapping[str, Any]) -> Asked:
        """Return what was asked; for a look or a file, the path is the question."""
        if request.method == "GET":
            name = next(match[1] for form in (LOOK, FILE) if (match := form.search(request.path)))
            if name not in self._made:
                raise BadRequest(f"there is no video {name}")
            step: Step = "look" if LOOK.search(request.path) else "fetch"
            model = self._made[name].asked.model
            message = Message("user", (request.path,))
            return Asked("videos", request.path, model, "", (message,), wants="video", step=step)
        if CREATE.search(request.path) is None:
            raise BadRequest("nothing can be posted here")
        form = document.get("response_format")
        form = form if isinstance(form, Mapping) else {}
        config = document.get("generation_config")
        duration = str(form.get("duration", ""))
        return Asked(
            "videos",
            request.path,
            member(document, "model", str),
            "",
            (Message("user", tuple(_video_parts(document.get("input")))),),
            params=given(
                seed=config.get("seed") if isinstance(config, Mapping) else None,
                aspect_ratio=form.get("aspect_ratio"),
                resolution=form.get("resolution"),
                seconds=float(duration.removesuffix("s")) if duration else None,
            ),
            wants="video",
        )

    def reply(self, asked: Asked, answer: Answer) -> Mapping[str, Json] | bytes | Problem:
        """Return what was created, how far it is, or the file."""
        if asked.step == "create":
            if answer.blocked == "prompt":
                return Problem("content_filter")
            name = f"{asked.key[:16]}-{asked.number}"
            self._made[name] = _Made(asked, answer, self.looks)
            return {"id": name, "object": "interaction", "model": asked.model, "status": "in_progress"}
        form = LOOK if asked.step == "look" else FILE
        match = form.search(asked.path)
        assert match is not None
        made = self._made[match[1]]
        if asked.step == "fetch":
            return b"" if made.answer.picture is None else made.answer.picture.data
        if made.looks > 0:
            made.looks -= 1
            return {"id": match[1], "model": made.asked.model, "status": "in_progress"}
        return _state(match[1], made, asked)

    def error(self, status: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
        return google_error(status, error, problem)


def _state(name: str, made: _Made, look: Asked) -> dict[str, Json]:
    """Return an interaction that is over."""
    answer, used = made.answer, made.answer.counts(made.asked)
    state: dict[str, Json] = {
        "id": name,
        "model": answer.served_as(made.asked),
        "status": "incomplete" if answer.finish == "length" else "completed",
        "usage": {
            "total_input_tokens": used["input_tokens"],
            "total_output_tokens": used["output_tokens"],
            "input_tokens_by_modality": [{"modality": "image", "tokens": used["image_input_tokens"]}],
            "output_tokens_by_modality": [{"modality": "video", "tokens": used["video_output_tokens"]}],
        },
    }
    if answer.blocked:
        reason = f"the video was blocked: {answer.block_reason}"
        return {**state, "status": "failed", "errors": [{"code": "SAFETY", "message": reason}]}
    words = answer.refusal or answer.text
    if words:
        content = [{"type": "text", "text": words}]
        state["steps"] = [{"type": "model_output", "content": content}]
    if answer.picture is not None:
        video: dict[str, Json] = {"type": "video", "mime_type": answer.picture.media_type}
        if made.asked.body.get("response_format", {}).get("delivery") == "inline":
            video["data"] = base64.b64encode(answer.picture.data).decode("ascii")
        else:
            root = look.path.rpartition("/interactions/")[0]
            video["uri"] = f"http://{look.headers.get('host')}{root}/files/{name}:download?alt=media"
        state["output_video"] = video
    return state


def _video_parts(given: Json) -> list[Part]:
    """Return the texts and pictures of an input: of the user's turns, or as they stand."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list):
        raise BadRequest("'input' is missing or has the wrong type")
    parts: list[Part] = []
    for entry in given:
        content = entry.get("content") if entry.get("type") == "user_input" else [entry]
        parts += [_video_part(part) for part in content]
    return parts


def _video_part(part: Json) -> Part:
    kind = part.get("type")
    if kind == "text":
        return str(member(part, "text", str))
    if kind == "image":
        return decode_image(str(part.get("data")), str(part.get("mime_type")))
    raise BadRequest(f"the input has a part of type {kind!r}")
