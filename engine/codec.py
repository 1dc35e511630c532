"""How outcomes are kept: canonical JSON and a digest per field, one compressed blob per result."""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import RunError
from ..schemas.canonical import Json, canonical_bytes, sha256_bytes
from .stage import Failed, Made, Outcome, Rejected

LEVEL = 3  # records shrink to about a third; higher levels cost more time than they save space


@dataclass(frozen=True, slots=True)
class Encoded:
    """An outcome as it is kept.

    Attributes:
        status: ``made``, ``rejected`` or ``failed``.
        code: code of a rejection or failure.
        reason: its reason, in words.
        evidence: what helps to understand a failure, such as a traceback.
        outputs: digest of each field that was made.
        blob: the fields, compressed; see :func:`decode`.
    """

    status: str
    code: str | None = None
    reason: str | None = None
    evidence: str | None = None
    outputs: Mapping[str, str] | None = None
    blob: bytes | None = None


def encode(outcome: Outcome) -> Encoded:
    """Return the kept form of an outcome.

    Raises:
        ValueError, TypeError: a field is not JSON, or holds a lone surrogate.
    """
    if isinstance(outcome, Rejected):
        return Encoded("rejected", outcome.code, _clean(outcome.reason))
    if isinstance(outcome, Failed):
        evidence = None if outcome.evidence is None else _clean(outcome.evidence)
        return Encoded("failed", outcome.code, _clean(outcome.reason), evidence)
    if not isinstance(outcome, Made):
        raise TypeError(f"an outcome is Made, Rejected or Failed, not {type(outcome).__name__}")
    pieces = {name: canonical_bytes(value) for name, value in outcome.fields.items()}
    joined = b",".join(canonical_bytes(name) + b":" + pieces[name] for name in sorted(pieces))
    return Encoded(
        "made",
        outputs={name: sha256_bytes(piece) for name, piece in pieces.items()},
        blob=zlib.compress(b"{" + joined + b"}", LEVEL),
    )


def _clean(text: str) -> str:
    """Return a text that can be stored: lone surrogates, as hostile input may carry, are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def decode(blob: bytes) -> dict[str, Json]:
    """Return the fields that a blob holds.

    Raises:
        RunError: it is damaged.
    """
    try:
        fields: dict[str, Json] = json.loads(zlib.decompress(blob))
    except (zlib.error, ValueError) as error:
        raise RunError(
            "the journal of the run", what=f"a result in it is damaged ({error})",
            fix="see what is damaged with `fabula run check RUN`; with --salvage it keeps all that is sound",
        ) from error  # fmt: skip
    return fields


def gather_fields(parts: Iterable[tuple[bytes, tuple[str, ...]]]) -> dict[str, Json]:
    """Return the named fields of several blobs as one item's fields."""
    fields: dict[str, Json] = {}
    for blob, names in parts:
        document = decode(blob)
        fields.update((name, document[name]) for name in names)
    return fields
