"""What the server was asked and what it answered, in memory and as JSON lines that are written at once."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from ...models.chat import Image, Message
from ...schemas.canonical import Json, canonical_text, sha256_bytes
from .answers import Answer
from .asked import Asked


@dataclass(slots=True)
class Exchange:
    """One question and what came of it.

    Attributes:
        asked: the question.
        status: HTTP status of the response.
        answer: what was answered, spoiled if a fault spoiled it; None where an error was reported.
        faults: names of the faults that struck, such as ``RateLimited``.
        lost: whether the client left before all of the response was sent; faults that cut it do not count.
    """

    asked: Asked
    status: int
    answer: Answer | None
    faults: tuple[str, ...]
    lost: bool = False

    def as_json(self) -> dict[str, Json]:
        """Return the exchange as plain JSON, without headers (they carry keys); pictures as their SHA-256."""
        asked = self.asked
        return {
            "number": asked.number,
            "at": round(asked.at, 6),
            "protocol": asked.protocol,
            "path": asked.path,
            "model": asked.model,
            "key": asked.key,
            "attempt": asked.attempt,
            "schema_name": asked.schema_name,
            "params": dict(asked.params),
            "system": asked.system,
            "messages": [_as_json(message) for message in asked.messages],
            "status": self.status,
            "faults": list(self.faults),
            "text": None if self.answer is None else self.answer.text,
            **self._picture(),
        }

    def _picture(self) -> dict[str, Json]:
        """Return what was wanted, at which step, and the SHA-256 of what was made, where it is no text."""
        if self.asked.wants not in ("image", "video"):
            return {}
        made = None if self.answer is None else self.answer.picture
        return {
            "wants": self.asked.wants,
            "step": self.asked.step,
            "picture": None if made is None else sha256_bytes(made.data),
        }


class Log:
    """The exchanges in order; safe to read from other threads.

    Args:
        path: a file to append one JSON object per line to, flushed before the answer leaves; a response
            that did not reach its client adds a line ``{"lost": true, "number": ...}``.
        keep: whether the exchanges are kept in memory, too.
    """

    def __init__(self, path: Path | None = None, *, keep: bool = True) -> None:
        self._file: TextIOWrapper | None = (
            None if path is None else path.open("a", encoding="utf-8", errors="surrogatepass")
        )
        self._keep = keep
        self._entries: list[Exchange] = []
        self._changed = threading.Condition()
        self.count = 0

    def add(self, exchange: Exchange) -> None:
        """Add an exchange, before its answer is sent."""
        self._write(exchange.as_json)
        with self._changed:
            self.count += 1
            if self._keep:
                self._entries.append(exchange)
            self._changed.notify_all()

    def lose(self, exchange: Exchange) -> None:
        """Note that the client did not get the whole answer."""
        exchange.lost = True
        self._write(lambda: {"number": exchange.asked.number, "lost": True})

    def entries(self) -> tuple[Exchange, ...]:
        """Return the exchanges so far."""
        with self._changed:
            return tuple(self._entries)

    def wait_for(self, count: int, timeout: float) -> bool:
        """Wait until so many questions were answered or are being answered; False if time runs out."""
        with self._changed:
            return self._changed.wait_for(lambda: self.count >= count, timeout)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: Callable[[], dict[str, Json]]) -> None:
        if self._file is not None:
            self._file.write(canonical_text(line()) + "\n")
            self._file.flush()


def _as_json(message: Message) -> dict[str, Json]:
    parts: list[Json] = [
        {"image": sha256_bytes(part.data), "media_type": part.media_type} if isinstance(part, Image) else part
        for part in message.parts
    ]
    return {"role": message.role, "parts": parts}
