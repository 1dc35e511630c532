"""The chat completions of OpenAI, and of the many servers that speak the same."""

import base64
import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...models.chat import Image, Message, Part, Role
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.text import normalize_answer
from .answers import Answer, Problem, json_text
from .asked import Asked
from .wire import BadRequest, HttpRequest, WireError, data_url, errors_of, given, joined, member

CREATED = 1_700_000_000
ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
ERRORS = errors_of("openai")


class _OpenAI:
    """What all formats of the service have."""

    errors: Mapping[str, WireError] = ERRORS
    methods = frozenset(("POST",))

    def error(self, _: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
        about = {"message": problem.message or error.message, "type": error.kind, "param": None, "code": None}
        return {"error": {**about, **error.more}}


class OpenAIWire(_OpenAI):
    """``POST .../chat/completions``."""

    def takes(self, path: str) -> bool:
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


# The embeddings of OpenAI, and of the many servers that speak the same: one text at a time.

SIZE = 64
"""Numbers of a vector that :func:`word_vector` makes."""


def word_vector(text: str) -> list[float]:
    """Return a vector of length 1 that says which words a text has, whatever their order and case.

    A stand-in for an encoder: texts that share words have similar vectors, and that is all it knows.
    """
    vector = [0.0] * SIZE
    for word in normalize_answer(text).split() or [text]:
        number = int(sha256_bytes(word.encode("utf-8", "replace"))[:8], 16)
        vector[number % SIZE] += 1.0 if number // SIZE % 2 else -1.0
    length = math.sqrt(sum(one * one for one in vector)) or 1.0
    return [one / length for one in vector] if any(vector) else [1.0] + [0.0] * (SIZE - 1)


class EmbeddingsWire(_OpenAI):
    """``POST .../embeddings``. An answer that is no list of numbers becomes an empty vector."""

    def takes(self, path: str) -> bool:
        return path.endswith("/embeddings")

    def read(self, request: HttpRequest, document: Mapping[str, Any]) -> Asked:
        """Return what was asked: the text as the only message."""
        given = member(document, "input", (str, list))
        texts = [given] if isinstance(given, str) else given
        if len(texts) != 1 or not isinstance(texts[0], str) or not texts[0]:
            raise BadRequest("this server encodes one text at a time, and no empty one")
        model, message = member(document, "model", str), Message("user", (texts[0],))
        params = {} if document.get("dimensions") is None else {"dimensions": int(document["dimensions"])}
        return Asked("embeddings", request.path, model, "", (message,), params=params, wants="vector")

    def reply(self, asked: Asked, answer: Answer) -> Mapping[str, Json] | Problem:
        """Return an embeddings response."""
        vector: Json = _numbers(answer.text)[: asked.params.get("dimensions")]
        if asked.body.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
        used = answer.counts(asked)["input_tokens"]
        return {
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": vector}] * answer.choices,
            "model": answer.served_as(asked),
            "usage": {"prompt_tokens": used, "total_tokens": used},
        }


def encoded(asked: Asked) -> Answer:
    """Answer with the vector of the text's words."""
    return Answer(json_text(word_vector(asked.text)))


def _numbers(text: str) -> list[float]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    numbers = isinstance(found, Sequence) and all(isinstance(one, int | float) for one in found)
    return list(found) if numbers else []


# The images of OpenAI, and of the many servers that speak the same: JSON, or a form with pictures.


class ImagesWire(_OpenAI):
    """``POST .../images/generations`` and ``POST .../images/edits``.

    A model that refuses, and a filter that stops it, answer with an error; there is no field for a refusal.
    """

    errors = errors_of("openai", "images")

    def takes(self, path: str) -> bool:
        return path.endswith(("/images/generations", "/images/edits"))

    def read(self, request: HttpRequest, document: Mapping[str, Any]) -> Asked:
        """Return what was asked: the prompt and the reference images as the only message."""
        references = document.get("image") or document.get("image[]") or ()
        if request.path.endswith("/edits") and not references:
            raise BadRequest("'image' is missing")
        if not all(isinstance(image, Image) for image in references):
            raise BadRequest("'image' is no file")
        if int(document.get("n", 1)) != 1:
            raise BadRequest("this server makes one picture at a time")
        message = Message("user", (member(document, "prompt", str), *references))
        seed = document.get("seed")
        return Asked(
            "images",
            request.path,
            member(document, "model", str),
            "",
            (message,),
            params=given(size=document.get("size"), seed=None if seed is None else int(seed)),
            wants="image",
        )

    def reply(self, asked: Asked, answer: Answer) -> Mapping[str, Json] | Problem:
        """Return a response with the picture in base64; nothing in it where there is none."""
        if answer.blocked or answer.refusal is not None:
            return Problem("content_filter", answer.refusal)
        used = answer.counts(asked)
        entry: dict[str, Json] = {"b64_json": ""}
        picture = answer.picture
        if picture is not None:
            entry["b64_json"] = base64.b64encode(picture.data).decode("ascii")
            if picture.revised_prompt is not None:
                entry["revised_prompt"] = picture.revised_prompt
        return {
            "created": CREATED,
            "model": answer.served_as(asked),
            "data": [entry] * answer.choices,
            "output_format": "png" if picture is None else picture.media_type.removeprefix("image/"),
            **({"size": asked.params["size"]} if "size" in asked.params else {}),
            "usage": {
                "input_tokens": used["input_tokens"],
                "output_tokens": used["output_tokens"],
                "total_tokens": used["input_tokens"] + used["output_tokens"],
                "input_tokens_details": {
                    "image_tokens": used["image_input_tokens"],
                    "text_tokens": used["input_tokens"] - used["image_input_tokens"],
                },
                "output_tokens_details": {
                    "image_tokens": used["image_output_tokens"],
                    "text_tokens": used["output_tokens"] - used["image_output_tokens"],
                },
            },
        }
