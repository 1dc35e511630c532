"""Keys of results: made from what a result depends on, never by hashing content again.

A result depends on the stage's name and version, its settings, the seed, the versions of the libraries that
it declares, the item's id and the digests of the fields that it reads.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..schemas.canonical import canonical_bytes, digest


@dataclass(frozen=True)
class Basis:
    """What all results of one stage depend on, whatever the item.

    Attributes:
        stage: the stage's name.
        version: the stage's version.
        settings: its own settings and the run's seed, as JSON.
        libraries: distribution -> installed version, and prompt -> hash, of those that the stage declares.
    """

    stage: str
    version: int
    settings: Mapping[str, Any]
    libraries: Mapping[str, str]
    settings_digest: str = field(init=False)
    libraries_digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings_digest", digest(self.settings))
        object.__setattr__(self, "libraries_digest", digest(self.libraries))
        head = [self.stage, self.version, self.settings_digest, self.libraries_digest]
        object.__setattr__(self, "_head", hashlib.sha256(canonical_bytes(head)))

    def key(self, item: str, inputs: Sequence[str]) -> str:
        """Return the key of one item's result.

        Args:
            item: the item's id.
            inputs: digests of the fields that the stage reads, in the order of ``reads``.
        """
        state: Any = self._head.copy()  # type: ignore[attr-defined]
        name = item.encode("utf-8", "surrogatepass")
        state.update(b"%d:%s" % (len(name), name))
        state.update("".join(inputs).encode("ascii"))
        return str(state.hexdigest())


def content_key(stage: str, item: str, kept: Sequence[str | None]) -> str:
    """Return the key of a result that is addressed by what it holds: a child, a line of a table."""
    return digest([stage, item, list(kept)])


def table_digest(rows: Sequence[tuple[str, str]]) -> str:
    """Return one digest for a column of an item table: ``(item id, field digest)`` in order."""
    return digest(rows)
