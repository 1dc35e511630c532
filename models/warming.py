"""Requests that begin alike: the first goes ahead and fills the service's cache, the others follow it.

Services keep what they have read of a prompt for some minutes, and charge a part of the price where another
prompt begins with the same. A prompt that comes while the first is still being read finds nothing there.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from ..schemas.canonical import Json, canonical_text, digest
from .chat import ChatRequest, Image, Prefix, canonical_parts
from .generators.request import CHOSEN
from .limits import Clock
from .prices import TYPICAL_IMAGE, estimate_tokens

CACHING = ("openai:", "google:", "anthropic:")
"""What the specs of models begin with whose services are known to keep what they have read."""
LEAST_TOKENS = 1024
"""Estimated tokens from which a common beginning counts: no service keeps a shorter one."""
KEPT = 270.0
"""Seconds after its last use for which a beginning is taken to be kept; services say five minutes or more."""
TURNS = 5
"""Turns of the event loop in which those arrive that were begun together with the first."""


def prefix_of(request: ChatRequest) -> Prefix | None:
    """Return the beginning that a request may share with others; None where it is too short to be kept.

    It ends with the last picture, as questions about pictures come after them; without pictures, with the
    system message. The schema belongs to it: services put it before everything else.
    """
    if CHOSEN in request.extra:  # what makes pictures has no such cache
        return None
    parts = [(message.role, part) for message in request.messages for part in message.parts]
    ends = [number for number, (role, _) in enumerate(parts, 1) if role == "system"]
    ends += [number for number, (_, part) in enumerate(parts, 1) if isinstance(part, Image)]
    count = max(ends, default=0)
    tokens = 0 if request.schema is None else estimate_tokens(canonical_text(request.schema.schema))
    for _, part in parts[:count]:
        tokens += TYPICAL_IMAGE if isinstance(part, Image) else estimate_tokens(part)
    if not count or tokens < LEAST_TOKENS:
        return None
    options = request.canonical_options()
    alike: dict[str, Json] = {name: options[name] for name in ("model", "schema", "structured", "extra")}
    alike["messages"] = [[role, canonical_parts([part])] for role, part in parts[:count]]
    return Prefix(digest(alike), count)


@dataclass(slots=True)
class _Leader:
    """A request that has gone ahead, and how many wait for it."""

    waiting: int = 0
    back: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of one request to be sent."""

    asked: ChatRequest  # the request
    prefix: Prefix | None = None  # the beginning that it may share with others
    leader: _Leader | None = None  # what goes ahead with it; None where the beginning is known to be kept
    is_known: bool = True  # whether the beginning was sent before

    def request(self) -> ChatRequest:
        """Return the request to send: with its beginning marked, where others begin with the same.

        To be called when it is sent: until then others may have come. Writing into a cache costs more than
        reading at some services, so what nobody shares is not marked.
        """
        alone = self.leader is not None and not self.leader.waiting and not self.is_known
        return self.asked if self.prefix is None or alone else replace(self.asked, prefix=self.prefix)


class Warming:
    """Orders the requests to one model. For one event loop.

    Args:
        wanted: whether to; None for services that are known to have a cache.
        clock: what time goes by.
    """

    def __init__(self, wanted: bool | None, clock: Clock) -> None:
        self._wanted = wanted
        self._clock = clock
        self._leaders: dict[str, _Leader] = {}
        self._used: dict[str, float] = {}
        self._warm: set[str] = set()

    @asynccontextmanager
    async def turn(self, request: ChatRequest) -> AsyncIterator[Turn]:
        """Wait for the turn of a request: while another one that begins alike is under way as the first.

        If that one brings no reply, the next one takes its place.
        """
        wanted = request.model.startswith(CACHING) if self._wanted is None else self._wanted
        prefix = prefix_of(request) if wanted else None
        if prefix is None:
            yield Turn(request)
            return
        while (leader := self._leaders.get(prefix.key)) is not None and not self._is_warm(prefix.key):
            leader.waiting += 1
            try:
                await leader.back.wait()
            finally:
                leader.waiting -= 1
        if self._is_warm(prefix.key):
            yield Turn(request, prefix)
            self._use(prefix.key)
            return
        leader = self._leaders[prefix.key] = _Leader()
        turn = Turn(request, prefix, leader, is_known=prefix.key in self._used)
        try:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            yield turn
            if turn.request().prefix is not None:
                self._warm.add(prefix.key)
            self._use(prefix.key)
        finally:
            del self._leaders[prefix.key]
            leader.back.set()

    def _is_warm(self, key: str) -> bool:
        self._forget()
        return key in self._warm

    def _use(self, key: str) -> None:
        self._used.pop(key, None)
        self._used[key] = self._clock.monotonic()  # the last used stand last

    def _forget(self) -> None:
        oldest = self._clock.monotonic() - KEPT
        while self._used and (key := next(iter(self._used))) and self._used[key] < oldest:
            del self._used[key]
            self._warm.discard(key)
