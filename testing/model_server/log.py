"""What the server was asked and what it answered, in memory and as JSON lines that are written at once."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from ...models.chat import Image, Message, Part
from ...schemas.canonical import Json, canonical_text, sha256_bytes
from .answers import Answer
from .asked import IMAGE_TOKENS, Asked, count_tokens


@dataclass(slots=True)
class Exchange:
    """One question and what came of it."""

    asked: Asked  # the question
    status: int  # HTTP status of the response
    # what was answered, spoiled if a fault spoiled it; None where an error was reported
    answer: Answer | None
    faults: tuple[str, ...]  # names of the faults that struck, such as ``RateLimited``
    # whether the client left before all of the response was sent; faults that cut it do not count
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


# What a service keeps of prompts that it has read, so that it counts itself what others share with them.
#
# Prompts are kept once they are answered. The rules are those of the services' documentation, simplified:
# OpenAI and Gemini find the longest known beginning by themselves, from 1,024 tokens on, OpenAI in steps of
# 128; Anthropic keeps what stands before a marked block, and finds it again where the same block is marked.

LEAST = 1024
STEP = 128
"""Tokens of a piece of text, and what OpenAI's counts of cached tokens are multiples of."""
_CHARACTERS = STEP * 4


@dataclass(slots=True)
class CacheCount:
    """What the server's cache did."""

    requests: int = 0  # questions that were asked
    hits: int = 0  # those of them that began with something known
    read: int = 0  # input tokens that were known
    written: int = 0  # input tokens that were kept where that is charged
    input: int = 0  # input tokens in all


@dataclass(slots=True)
class PromptCache:
    """The prompts that the server has answered, as hashes of their beginnings."""

    count: CacheCount = field(default_factory=CacheCount)  # what happened so far
    _known: set[bytes] = field(default_factory=set)

    def look(self, asked: Asked) -> Asked:
        """Return a question with the tokens that are known, and those that its answer will write."""
        if asked.protocol not in ("openai", "google", "anthropic") or asked.wants != "text":
            return asked
        marks = _marks(asked)
        read = max((tokens for tokens, name in marks if name in self._known and tokens >= LEAST), default=0)
        read = min(read - read % STEP if asked.protocol == "openai" else read, asked.input_tokens)
        written = 0
        if asked.protocol == "anthropic":
            kept = max((tokens for tokens, _ in marks if tokens >= LEAST), default=0)
            written = max(0, min(kept, asked.input_tokens) - read)
        self.count.requests += 1
        self.count.hits += read > 0
        self.count.read += read
        self.count.written += written
        self.count.input += asked.input_tokens
        return replace(asked, cached=read, written=written)

    def keep(self, asked: Asked) -> None:
        """Keep a prompt that was answered."""
        self._known.update(name for tokens, name in _marks(asked) if tokens >= LEAST)


def _marks(asked: Asked) -> list[tuple[int, bytes]]:
    """Return the places of a prompt up to which it may be known: tokens before it, and their hash."""
    if asked.protocol == "anthropic":
        return list(_marked_blocks(asked.body))
    seen = hashlib.sha256(json.dumps([asked.protocol, asked.model, asked.schema]).encode())
    tokens = count_tokens("" if asked.schema is None else str(asked.schema))
    marks = []
    for part in (asked.system, *(part for message in asked.messages for part in message.parts)):
        for data, count in _pieces(part):
            seen.update(data)
            tokens += count
            marks.append((min(tokens, asked.input_tokens), seen.digest()))
    return marks


def _pieces(part: Part) -> Iterator[tuple[bytes, int]]:
    if isinstance(part, Image):
        yield hashlib.sha256(part.data).digest(), IMAGE_TOKENS
        return
    for start in range(0, len(part), _CHARACTERS):
        piece = part[start : start + _CHARACTERS]
        yield piece.encode("utf-8", "surrogatepass"), count_tokens(piece)


def _marked_blocks(body: Mapping[str, Any]) -> Iterator[tuple[int, bytes]]:
    head = {name: body.get(name) for name in ("model", "tools", "output_config")}
    seen = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    form = (body.get("output_config") or {}).get("format") or {}
    tokens = count_tokens(str(form.get("schema") or "")) + count_tokens(json.dumps(body.get("tools") or ""))
    blocks = _blocks(body.get("system") or [])
    for message in body["messages"]:
        blocks += [{"role": message["role"]}, *_blocks(message["content"])]
    for block in blocks:
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        seen.update(json.dumps(plain, sort_keys=True).encode())
        kind = block.get("type")
        tokens += IMAGE_TOKENS if kind == "image" else count_tokens(str(block.get("text", "")))
        if "cache_control" in block:
            yield tokens, seen.digest()


def _blocks(content: Json) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
