"""The embeddings of OpenAI, and of the many servers that speak the same: one text at a time."""

import base64
import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from ...models.chat import Message
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.text import normalize_answer
from .answers import Answer, Problem, json_text
from .asked import Asked
from .openai_wire import ERRORS
from .wire import BadRequest, HttpRequest, WireError, member

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


class EmbeddingsWire:
    """``POST .../embeddings``. An answer that is no list of numbers becomes an empty vector."""

    errors: Mapping[str, WireError] = ERRORS
    methods = frozenset(("POST",))

    def takes(self, path: str) -> bool:
        """Return whether a path belongs to this format."""
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

    def error(self, _: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
        """Return the body of an error response."""
        about = {"message": problem.message or error.message, "type": error.kind, "param": None, "code": None}
        return {"error": {**about, **error.more}}


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
