"""What a service keeps of prompts that it has read, so that it counts itself what others share with them.

Prompts are kept once they are answered. The rules are those of the services' documentation, simplified:
OpenAI and Gemini find the longest known beginning by themselves, from 1,024 tokens on, OpenAI in steps of
128; Anthropic keeps what stands before a marked block, and finds it again where the same block is marked.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...models.chat import Image, Part
from ...schemas.canonical import Json
from .asked import IMAGE_TOKENS, Asked, count_tokens

LEAST = 1024
STEP = 128
"""Tokens of a piece of text, and what OpenAI's counts of cached tokens are multiples of."""
_CHARACTERS = STEP * 4


@dataclass(slots=True)
class CacheCount:
    """What the server's cache did.

    Attributes:
        requests: questions that were asked.
        hits: those of them that began with something known.
        read: input tokens that were known.
        written: input tokens that were kept where that is charged.
        input: input tokens in all.
    """

    requests: int = 0
    hits: int = 0
    read: int = 0
    written: int = 0
    input: int = 0


@dataclass(slots=True)
class PromptCache:
    """The prompts that the server has answered, as hashes of their beginnings.

    Attributes:
        count: what happened so far.
    """

    count: CacheCount = field(default_factory=CacheCount)
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
