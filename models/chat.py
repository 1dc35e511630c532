"""What is asked of a chat model and what comes back, whoever serves it.

A request is identified by its own canonical form, never by what an SDK makes of it: :meth:`ChatRequest.key`
is what the journal stores replies under.
"""

import base64
import binascii
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ..schemas.canonical import Json, Plain, digest, sha256_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Role: TypeAlias = Literal["system", "user", "assistant"]
Structured: TypeAlias = Literal["schema", "json", "prompt"]
"""How a model is made to keep to a reply schema: the service enforces it, the service only promises JSON, or
the schema just stands in the prompt."""

ReplyOutcome: TypeAlias = Literal["ok", "refused", "blocked", "truncated", "empty"]
"""What a reply that arrived whole is: text to read, a refusal in the model's words, a block by the service's
filters (of the prompt or of the reply), text cut off at the token limit, or nothing at all."""


@dataclass(frozen=True, slots=True)
class Image:
    """An encoded picture."""

    data: bytes  # its bytes
    media_type: str  # such as ``image/png``
    # SHA-256 of its bytes where they are not at hand and ``data`` only stands for them, as in a rehearsal:
    # such a picture is never sent
    sha256: str | None = None
    # how closely the service is to look, where it can be told; None leaves it to the service
    detail: str | None = None


Part: TypeAlias = str | Image


@dataclass(frozen=True, slots=True)
class Message:
    """One message: who speaks, and texts and pictures in order."""

    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ReplySchema:
    """The JSON Schema that a reply must satisfy, in strict form: every property required, no others."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning that a request shares with others, for caches of services."""

    key: str  # the same for all that begin with it, and for no others
    parts: int  # how many parts of the messages it has, counted through all of them


@dataclass(frozen=True, slots=True)
class ChatRequest:
    model: str  # the model's spec as the user wrote it, such as ``openai:gpt-4.1-mini`` (see :mod:`.spec`)
    messages: tuple[Message, ...]  # the conversation
    schema: ReplySchema | None = None  # what the reply must satisfy; None for free text
    temperature: float | None = None  # None leaves it to the service
    seed: int | None = None  # None leaves it to the service
    # most tokens that the reply may have, thinking included where the service counts it
    max_tokens: int = 4096
    structured: Structured = "schema"  # how the schema is enforced
    # more parameters for this service, sent as they are
    extra: Mapping[str, Json] = field(default_factory=dict)
    # of an open model: ``model``, its spec without place and revision, and what else its answers depend on
    weights: Mapping[str, Json] = field(default_factory=dict)
    # what it shares with others. It changes no answer, and is no part of what identifies a request.
    prefix: Prefix | None = field(default=None, compare=False)

    def canonical(self) -> dict[str, Json]:
        """Return the request as JSON; a picture stands there as its media type and SHA-256."""
        messages: list[Json] = [
            {"role": message.role, "parts": canonical_parts(message.parts)} for message in self.messages
        ]
        return {"messages": messages, **self.canonical_options()}

    def canonical_options(self) -> dict[str, Json]:
        """Return all of the canonical form but the messages."""
        named = dict(self.weights)
        return {
            "model": named.pop("model", self.model),
            "schema": None
            if self.schema is None
            else {"name": self.schema.name, "schema": self.schema.schema},
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "structured": self.structured,
            "extra": dict(self.extra),
            **({"weights": named} if named else {}),
        }

    def key(self) -> str:
        """Return the SHA-256 of the canonical form, in hexadecimal."""
        return digest(self.canonical())

    @classmethod
    def from_canonical(cls, document: Mapping[str, Any]) -> "ChatRequest":
        """Return the request that :meth:`canonical` wrote; its pictures have no bytes, and cannot be sent."""
        messages = tuple(
            Message(message["role"], tuple(_read_part(part) for part in message["parts"]))
            for message in document["messages"]
        )
        schema = None if document["schema"] is None else ReplySchema(**document["schema"])
        return cls(**{**document, "messages": messages, "schema": schema})


def canonical_parts(parts: Iterable[Part]) -> list[Json]:
    """Return parts of a message as they stand in the canonical form of a request."""
    return [_canonical_part(part) for part in parts]


def _canonical_part(part: Part) -> Json:
    if isinstance(part, Image):
        picture = {"image": part.sha256 or _picture_sha256(part.data), "media_type": part.media_type}
        return picture if part.detail is None else {**picture, "detail": part.detail}
    return {"text": part}


def _read_part(part: Mapping[str, Any]) -> Part:
    if "text" in part:
        return str(part["text"])
    return Image(b"", part["media_type"], part["image"], part.get("detail"))


# The same few pictures are asked about again and again. A bytes object keeps its own hash, so that looking
# it up costs nothing after the first time.
@lru_cache(maxsize=128)
def _picture_sha256(data: bytes) -> str:
    return sha256_bytes(data)


@lru_cache(maxsize=128)
def base64_text(data: bytes) -> str:
    """Return the bytes of a picture in base64, as services take them."""
    return base64.b64encode(data).decode("ascii")


@dataclass(frozen=True, slots=True)
class Usage(Plain):
    """Tokens of one call, as the service counted them; None for a count that cannot be read."""

    input_tokens: int | None = 0  # of the prompt, cached ones included
    output_tokens: int | None = 0  # of the reply, thinking included
    cached_tokens: int | None = 0  # of the prompt, those that the service had cached
    thinking_tokens: int | None = 0  # of the reply, those spent on thinking
    cache_write_tokens: int | None = 0  # of the prompt, those that the service wrote into its cache
    cache_write_1h_tokens: int | None = 0  # of those, the ones that it keeps for an hour
    # of the prompt, those of pictures, where they have a price of their own
    image_input_tokens: int | None = 0
    image_output_tokens: int | None = 0  # of the reply, those of pictures; only for models that make some
    video_output_tokens: int | None = 0  # the same of videos


@dataclass(frozen=True, slots=True)
class Reply(Plain):
    """What a service answered, raw."""

    outcome: ReplyOutcome  # what kind of answer it is
    text: str  # the reply's text as it came; for a refusal, the refusal; may be empty
    detail: str | None = None  # what the service says about a block or an unusual end
    finish: str | None = None  # the service's own word for how the reply ended
    reported_model: str | None = None  # the model that the service says it used
    # None where the service does not tell; no count is more than the request can have used
    usage: Usage | None = None
    claimed: Usage | None = None  # the counts as the service gave them, where one of them is more than that

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Reply":
        """Return the reply that :meth:`as_json` wrote."""
        counts = {name: document.get(name) for name in ("usage", "claimed")}
        return cls(**{**document, **{name: count and Usage(**count) for name, count in counts.items()}})


FaultKind: TypeAlias = Literal[
    "rate_limited",
    "server_error",
    "timeout",
    "connection",
    "broken_reply",
    "no_key",
    "key_refused",
    "no_quota",
    "no_such_model",
    "not_an_api",
    "unsupported",
    "too_long",
    "bad_request",
]
"""Why no reply arrived. The first five may pass by themselves and are retried. ``no_key`` to ``unsupported``
would meet every request to the model, so the run stops. The last two concern one request only."""

TRANSIENT: frozenset[str] = frozenset(
    ("rate_limited", "server_error", "timeout", "connection", "broken_reply")
)
FATAL: frozenset[str] = frozenset(
    ("no_key", "key_refused", "no_quota", "no_such_model", "not_an_api", "unsupported")
)


class CallFault(Exception):
    """A call brought no reply.

    Attributes:
        kind: why; see :data:`FaultKind`.
        message: what happened, in one line, without secrets.
        status: HTTP status, if there was a response.
        retry_after: seconds that the service asked to wait, if it did.
        maybe_paid: whether the service may have done, and charged for, the work all the same.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        maybe_paid: bool = False,
    ) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.maybe_paid = maybe_paid

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class ChatModel(Protocol):
    """One model at one service.

    An adapter makes exactly one HTTP call per :meth:`complete`; where a service makes something in the
    background, exactly one that can be charged, and others that only ask how far it is. One that is loaded on
    this machine may have ``async ready()``, which is awaited before each call, outside of its time limit.
    """

    async def complete(self, request: ChatRequest) -> Reply:
        """Ask once. Neither the SDK nor the adapter retries or continues.

        Raises:
            CallFault: no reply arrived.
        """
        ...

    async def close(self) -> None:
        """Close connections; called in the event loop that made the calls."""
        ...


# -- Text encoders: asked like chat models, one text at a time, and answering with a vector
#
# So journal, limits, retries, prices and cost limits are the same for both. A vector travels in a reply's
# text: its numbers as little-endian 32-bit floats, in base64. What was stored is exact, whoever computes
# with it.

LONGEST_VECTOR = 65_536
"""Most numbers of a vector; services give 256 to 4,096."""


def encode_request(spec: str, text: str) -> ChatRequest:
    return ChatRequest(spec, (Message("user", (text,)),), max_tokens=1)


def text_to_encode(request: ChatRequest) -> str:
    """Return the one text that an encoder is asked about."""
    if len(request.messages) == 1 and request.schema is None and len(request.messages[0].parts) == 1:
        (part,) = request.messages[0].parts
        if isinstance(part, str):
            return part
    raise CallFault("unsupported", "an embedding model gives vectors of texts; it answers no questions")


def packed(vector: Sequence[float]) -> str:
    """Return a vector as the text of a reply."""
    import numpy as np

    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def unpacked(text: str) -> "NDArray[np.float64]":
    """Return the vector in the text of a reply, shape (dimensions,)."""
    import numpy as np

    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("expected a vector in base64") from error
    if not data or len(data) % 4:
        raise ValueError(f"expected 32-bit floats, found {len(data)} bytes")
    vector = np.frombuffer(data, dtype="<f4").astype(np.float64)
    if not np.isfinite(vector).all() or not vector.any():
        raise ValueError("expected finite numbers that are not all zero")
    return vector


def cosine(first: "NDArray[np.float64]", second: "NDArray[np.float64]") -> float:
    """Return the cosine of the angle between two vectors, in [-1, 1], to six digits; the same everywhere."""
    if first.shape != second.shape:
        raise ValueError(f"vectors of {first.size} and of {second.size} numbers")
    scale = math.sqrt(_dot(first, first) * _dot(second, second))
    return round(max(-1.0, min(1.0, _dot(first, second) / scale)), 6)


def _dot(first: "NDArray[np.float64]", second: "NDArray[np.float64]") -> float:
    # Not numpy's: the order in which it adds depends on the processor.
    return math.fsum((first * second).tolist())


def read_vector(value: Json) -> str | None:
    """Return the packed vector in what a service gave, numbers or base64; None where it is neither."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, list) and 0 < len(value) <= LONGEST_VECTOR and all(map(_is_number, value)):
        text = packed(value)
    else:
        return None
    try:
        return text if unpacked(text).size <= LONGEST_VECTOR else None
    except ValueError:
        return None


def first_vector(document: Mapping[str, Any]) -> Json:
    """Return the vector of the first entry of an embeddings response, unread; None where there is none."""
    entries = document.get("data")
    entry = entries[0] if isinstance(entries, list) and entries else None
    return entry.get("embedding") if isinstance(entry, Mapping) else None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 3.0e38
