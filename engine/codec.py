"""How outcomes are kept and found: canonical JSON, a digest per field, keys of what they depend on."""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import RunError
from ..schemas.canonical import Json, canonical_bytes, canonical_rows, digest, digest_rows, sha256_bytes
from ..schemas.plain_files import unzipped
from .stage import Failed, Made, Outcome, Rejected

LEVEL = 3  # records shrink to about a third; higher levels cost more time than they save space


@dataclass(frozen=True, slots=True)
class Encoded:
    """An outcome as it is kept."""

    status: str  # ``made``, ``rejected`` or ``failed``
    code: str | None = None  # code of a rejection or failure
    reason: str | None = None  # its reason, in words
    evidence: str | None = None  # what helps to understand a failure, such as a traceback
    outputs: Mapping[str, str] | None = None  # digest of each field that was made
    blob: bytes | None = None  # the fields, compressed; see :func:`decode`


def encode(outcome: Outcome) -> Encoded:
    """Return the kept form of an outcome."""
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


def encode_lists(lists: Mapping[str, Iterable[Sequence[str]]]) -> Encoded:
    """Return what :func:`encode` makes of lists of texts, of which a few lines are in memory at a time."""
    packer, packed, outputs = zlib.compressobj(LEVEL), bytearray(), {}
    for number, name in enumerate(sorted(lists)):
        packed += packer.compress((b"," if number else b"{") + canonical_bytes(name) + b":")
        state = hashlib.sha256()
        for piece in canonical_rows(lists[name]):
            state.update(piece)
            packed += packer.compress(piece)
        outputs[name] = state.hexdigest()
    packed += packer.compress(b"}") + packer.flush()
    return Encoded("made", outputs=outputs, blob=bytes(packed))


def _clean(text: str) -> str:
    """Return a text that can be stored: lone surrogates, as hostile input may carry, are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def decode(blob: bytes) -> dict[str, Json]:
    """Return the fields that a blob holds."""
    try:
        fields: dict[str, Json] = json.loads(unzipped(blob))
    except (zlib.error, ValueError) as error:
        raise damaged_result(error) from error
    return fields


def damaged_result(error: Exception) -> RunError:
    """Return the error for a result that cannot be read."""
    return RunError(
        "the journal of the run", what=f"a result in it is damaged ({error})",
        fix="see what is damaged with `fabula run check RUN`; with --salvage it keeps all that is sound",
    )  # fmt: skip


def gather_fields(parts: Iterable[tuple[bytes, tuple[str, ...]]]) -> dict[str, Json]:
    """Return the named fields of several blobs as one item's fields."""
    fields: dict[str, Json] = {}
    for blob, names in parts:
        document = decode(blob)
        fields.update((name, document[name]) for name in names)
    return fields


@dataclass(frozen=True)
class Basis:
    """What all results of one stage depend on, whatever the item."""

    stage: str  # the stage's name
    version: int  # the stage's version
    settings: Mapping[str, Any]  # its own settings and the run's seed, as JSON
    # distribution -> installed version, and prompt -> hash, of those that the stage declares
    libraries: Mapping[str, str]
    settings_digest: str = field(init=False)
    libraries_digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings_digest", digest(self.settings))
        object.__setattr__(self, "libraries_digest", digest(self.libraries))
        head = [self.stage, self.version, self.settings_digest, self.libraries_digest]
        object.__setattr__(self, "_head", hashlib.sha256(canonical_bytes(head)))

    def key(self, item: str, inputs: Sequence[str]) -> str:
        """Return the key of one item's result."""
        state: Any = self._head.copy()  # type: ignore[attr-defined]
        name = item.encode("utf-8", "surrogatepass")
        state.update(b"%d:%s" % (len(name), name))
        state.update("".join(inputs).encode("ascii"))
        return str(state.hexdigest())


def content_key(stage: str, item: str, kept: Sequence[str | None]) -> str:
    """Return the key of a result that is addressed by what it holds: a child, a line of a table."""
    return digest([stage, item, list(kept)])


def table_digest(rows: Iterable[tuple[str, str]]) -> str:
    """Return one digest for a column of an item table: ``(item id, field digest)`` in order."""
    return digest_rows(rows)
