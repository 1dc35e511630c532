"""Text encoders: asked like chat models, one text at a time, and answering with a vector.

So journal, limits, retries, prices and cost limits are the same for both. A vector travels in a reply's text:
its numbers as little-endian 32-bit floats, in base64. What was stored is exact, whoever computes with it.
"""

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..schemas.canonical import Json
from .chat import CallFault, ChatRequest, Message

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST_VECTOR = 65_536
"""Most numbers of a vector; services give 256 to 4,096."""


def encode_request(spec: str, text: str) -> ChatRequest:
    """Return the request for the vector of one text."""
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
