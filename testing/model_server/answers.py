"""What a handler answers, and what a service says instead of an answer."""

import hashlib
import io
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ...models.chat import Usage
from ...models.spec import MARK, is_stand_in
from ...schemas.canonical import Json
from .asked import CHARACTERS_PER_TOKEN, IMAGE_TOKENS, Asked, count_tokens

Finish: TypeAlias = Literal["stop", "length"]
Where: TypeAlias = Literal["prompt", "reply"]


PICTURE_TOKENS = 1290
"""Tokens of a picture that a model makes, and of a second of video, where an answer does not say."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture or a video that a model makes."""

    data: bytes = field(repr=False)  # its bytes
    media_type: str = "image/png"  # such as ``image/png`` or ``video/mp4``
    # the prompt as the service rewrote it, where its format has a place for that
    revised_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, whatever wire format it leaves in."""

    text: str = ""  # the reply's text
    usage: Usage | None = None  # tokens; by default one for every four characters
    finish: Finish = "stop"  # whether the model came to its end or ran into the token limit
    refusal: str | None = None  # the refusal, instead of the text
    blocked: Where | None = None  # whether a filter of the service stopped the prompt or the reply
    block_reason: str = "SAFETY"  # the service's word for it
    thinking: str | None = None  # thinking that the service returns beside the text; counted as output
    choices: int = 1  # 0 answers without any choice or candidate
    # the model that the service says it used; by default that it is a stand-in, whatever model was asked for
    model: str | None = None
    picture: Picture | None = None  # the picture or video that it made

    def served_as(self, asked: Asked) -> str:
        """Return the model's name in the reply: a stand-in's, unless the answer says otherwise."""
        return self.model or (asked.model if is_stand_in(asked.model) else MARK)

    def counts(self, asked: Asked) -> dict[str, int]:
        """Return the tokens of this answer to a question, by the names of their fields in a usage."""
        return {name: count or 0 for name, count in self.tokens(asked).as_json().items()}

    def tokens(self, asked: Asked) -> Usage:
        """Return the usage of this answer to a question."""
        if self.usage is not None:
            return self.usage
        if asked.wants in ("image", "video"):
            drawn = 0 if self.picture is None else round(PICTURE_TOKENS * (asked.seconds or 1))
            written = count_tokens(self.text or self.refusal or "")
            seen = IMAGE_TOKENS * len(asked.images)
            parts = {"image_input_tokens": seen, f"{asked.wants}_output_tokens": drawn}
            return Usage(asked.input_tokens, written + drawn, **parts)
        thinking = count_tokens(self.thinking or "")
        return Usage(
            input_tokens=asked.input_tokens,
            output_tokens=count_tokens(self.text or self.refusal or "") + thinking,
            thinking_tokens=thinking,
            cached_tokens=asked.cached,
            cache_write_tokens=asked.written,
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """An error that a service reports instead of an answer."""

    code: str  # what is wrong, in words of this server; each wire format has its own for them
    message: str | None = None  # what people read; None takes the service's usual words
    status: int | None = None  # HTTP status; None takes the one that the service uses
    headers: Mapping[str, str] = field(default_factory=dict)  # more response headers
    retry_after: float | None = None  # seconds that the service asks to wait


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response and how it is delivered."""

    status: int  # HTTP status
    body: bytes  # the body, whole
    headers: Mapping[str, str] = field(default_factory=dict)  # headers beside those that every response has
    delay: float = 0.0  # seconds before the first byte
    # how many bytes of head and body are sent before the connection is cut; None sends all
    keep: int | None = None
    announced: int | None = None  # the length that the head announces; None announces the true one
    piece: int | None = None  # bytes sent at a time; None sends all at once
    pause: float = 0.0  # seconds between two pieces
    clock_error: float = 0.0  # seconds by which the Date header is wrong
    retry_date: float | None = None  # seconds from that Date to a Retry-After given as a date


Given: TypeAlias = str | Mapping[str, Any] | list[Any] | Picture | Answer
"""An answer as a handler may write it: a text, JSON for the text, a picture, or all of it."""


def as_answer(given: Given) -> Answer:
    """Return an answer as :class:`Answer`; JSON becomes its text."""
    if isinstance(given, Answer):
        return given
    if isinstance(given, str):
        return Answer(given)
    if isinstance(given, Picture):
        return Answer(picture=given)
    if isinstance(given, Mapping | list):
        return Answer(json_text(given))
    raise TypeError(
        f"a handler returns str, dict, list, Picture, Answer or Fault, not {type(given).__name__}"
    )


def json_text(value: Json) -> str:
    """Return JSON as a model would write it: in the order given, Unicode kept."""
    return json.dumps(value, ensure_ascii=False)


def within_limit(answer: Answer, asked: Asked) -> Answer:
    """Return the answer cut off at the request's token limit, as a service would."""
    limit = asked.params.get("max_tokens")
    if answer.usage is not None or limit is None or count_tokens(answer.text) <= limit:
        return answer
    return replace(answer, text=answer.text[: limit * CHARACTERS_PER_TOKEN], finish="length")


# Small pictures and videos that are valid and show nothing, for servers without a handler of their own.

USUAL = (64, 64)
LARGEST = 2048


def plain_png(width: int, height: int, mark: str) -> bytes:
    """Return a PNG of one colour, which a text decides: other texts, other pictures."""
    colour = hashlib.sha256(mark.encode("utf-8", "surrogatepass")).digest()[:3]
    rows = (b"\0" + colour * width) * height
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def plain_video(mark: str, frames: int = 8) -> bytes:
    """Return an MP4 of 64 x 64 pixels and so many frames of one colour; needs PyAV."""
    import av
    import numpy as np

    colour = hashlib.sha256(mark.encode("utf-8", "surrogatepass")).digest()[:3]
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=8)
        stream.width, stream.height, stream.pix_fmt = *USUAL, "yuv420p"
        plain = np.full((*USUAL, 3), list(colour), dtype=np.uint8)
        for _ in range(frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(plain, format="rgb24")))
        container.mux(stream.encode(None))
    return file.getvalue()


def plain_picture(asked: Asked) -> Picture:
    """Return a picture of the size that is asked for, or a video: one colour, by prompt and seed."""
    mark = f"{asked.prompt}|{asked.seed}"
    if asked.wants == "video":
        return Picture(plain_video(mark), "video/mp4")
    width, height = asked.size or USUAL
    return Picture(plain_png(min(width, LARGEST), min(height, LARGEST), mark))


# The smallest reply that satisfies a JSON Schema.

DEEPEST = 40


def from_schema(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = 0) -> Json:
    """Return a small value that satisfies a schema.

    It knows types, ``enum``, ``const``, alternatives, local references, required properties and lower bounds;
    patterns and formats it does not.
    """
    root = schema if root is None else root
    if depth > DEEPEST:
        raise ValueError("the schema nests too deeply for a smallest reply")
    if "$ref" in schema:
        return from_schema(_referred(root, schema["$ref"]), root, depth + 1)
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            merged = {**schema[word][0]}
            if word == "allOf":
                for entry in schema[word][1:]:
                    merged |= entry
            rest = {name: value for name, value in schema.items() if name != word}
            return from_schema({**rest, **merged}, root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Json:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        members = schema.get("properties", {})
        return {
            name: from_schema(members.get(name, {}), root, depth + 1) for name in schema.get("required", ())
        }
    if kind == "array":
        items = schema.get("items", {})
        return [from_schema(items, root, depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return "text".ljust(schema.get("minLength", 0), "t")[: schema.get("maxLength", 1_000_000)]
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    return False if kind == "boolean" else None


def _referred(root: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    found: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        if name:
            found = found[name.replace("~1", "/").replace("~0", "~")]
    return dict(found)
