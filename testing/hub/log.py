"""What the Hub was asked, in memory and as JSON lines that are written at once."""

import threading
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from pathlib import Path

from ...schemas.canonical import canonical_text

WRITES = (
    "create-repo", "lfs-batch", "lfs-upload", "lfs-part", "lfs-complete", "lfs-verify", "commit", "tag",
    "tag-delete",
)  # fmt: skip
"""The routes that change something on the Hub, or prepare it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came of it.

    Attributes:
        number: from 1, over all routes.
        route: the name of what was asked, such as ``commit``; ``unknown`` for a place that is not there.
        method, path: of the request, without query.
        status: of the answer; 0 where none was sent.
        received, sent: bytes of the two bodies.
        user: whose token came with it; None for none.
        fault: the name of the fault that struck, if any.
    """

    number: int
    route: str
    method: str
    path: str
    status: int
    received: int
    sent: int
    user: str | None
    fault: str | None


class Log:
    """The exchanges in order; safe to read from other threads."""

    def __init__(self, path: Path | None = None) -> None:
        self._file: TextIOWrapper | None = None if path is None else path.open("a", encoding="utf-8")
        self._entries: list[Exchange] = []
        self._begun: list[str] = []
        self._changed = threading.Condition()

    def begin(self, route: str) -> tuple[int, int]:
        """Note that a request came; return its number over all, and among those of its route."""
        with self._changed:
            self._begun.append(route)
            self._changed.notify_all()
            return len(self._begun), self._begun.count(route)

    def end(self, exchange: Exchange) -> None:
        """Note what came of a request, before its answer is sent."""
        with self._changed:
            self._entries.append(exchange)
            if self._file is not None:
                self._file.write(canonical_text(asdict(exchange)) + "\n")
                self._file.flush()

    def entries(self) -> tuple[Exchange, ...]:
        """Return the exchanges so far, in the order in which the requests came."""
        with self._changed:
            return tuple(sorted(self._entries, key=lambda entry: entry.number))

    def clear(self) -> None:
        """Forget what was asked so far; counting by route begins anew, numbers go on in the file only."""
        with self._changed:
            self._entries.clear()
            self._begun.clear()

    def wait_for(self, route: str, timeout: float) -> bool:
        """Wait until a request of a route has come; False if the time runs out."""
        with self._changed:
            return self._changed.wait_for(lambda: route in self._begun, timeout)

    def close(self) -> None:
        """Close the file."""
        with self._changed:
            if self._file is not None:
                self._file.close()
                self._file = None
