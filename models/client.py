"""Calls to one model: every retry, pause and limit in one place."""

import asyncio
import logging
import random as random_module
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from ..schemas.canonical import Json, canonical_text, digest
from .chat import TRANSIENT, CallFault, ChatModel, ChatRequest, Image, Prefix, Reply, canonical_parts
from .generators.request import CHOSEN
from .limits import AdaptiveLimit, Clock, RateLimit, SystemClock
from .options import ModelOptions
from .prices import TYPICAL_IMAGE, checked, estimate_request, estimate_tokens, most_tokens

if TYPE_CHECKING:
    from .limits import SharedLimit

LOG = logging.getLogger(__name__)


# -- Requests that begin alike: the first goes ahead and fills the service's cache, the others follow it
#
# Services keep what they have read of a prompt for some minutes, and charge a part of the price where another
# prompt begins with the same. A prompt that comes while the first is still being read finds nothing there.

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

    ``wanted``: whether to; None for services that are known to have a cache. ``clock``: what time goes by.
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


# -- Calls to one model

FIRST_BACKOFF = 1.0
"""Most seconds before the second attempt; twice as many before each further one."""

LONGEST_BACKOFF = 60.0
FIRST_PATIENCE = 20.0
"""Most seconds of faults before the first answer of a model: a wrong address does not get better."""

LONGEST_PAUSE = 120.0
"""Most seconds that a service's Retry-After is obeyed for."""

OnFault: TypeAlias = Callable[[CallFault], None]
"""Told of each attempt that failed; what it raises ends the call."""

OnSend: TypeAlias = Callable[[], None]
"""Called right before each attempt is sent; what it raises ends the call."""

OnReady: TypeAlias = Callable[[], Awaitable[None]]
"""Awaited before each attempt that has its slot; what it raises ends the call."""


@dataclass(frozen=True, slots=True)
class Called:
    """What a call brought."""

    reply: Reply  # the reply
    attempts: int  # how many HTTP calls it took, this one included


class ModelDown(CallFault):
    """Nothing has succeeded for the time that ``patience`` grants; asking on is pointless for now."""


class ModelClient:
    """Asks one model, again where a fault may pass by itself. For one event loop.

    A fault that may pass (:data:`~.chat.TRANSIENT`) is retried after a random time of at most 1, 2, 4, ...
    60 seconds, never earlier than the service asked for; a Retry-After with status 429 or 503 holds up every
    call to the model. A 429 halves the number of calls at a time; successes raise it again. The request
    itself is never changed. Of requests that begin alike, one goes ahead: see :mod:`.warming`.

    ``model``: the adapter. ``options``: the model's settings: limits, attempts, patience, timeout. ``clock``:
    what pauses and limits go by; the machine's by default. ``random``: draws the waiting times, so that many
    callers do not come back together. ``rate``: requests and tokens per minute; by default those of the
    settings, for this client alone.
    """

    def __init__(
        self,
        model: ChatModel,
        options: ModelOptions,
        clock: Clock | None = None,
        random: random_module.Random | None = None,
        rate: "SharedLimit | RateLimit | None" = None,
    ) -> None:
        self._model = model
        self._options = options
        self._timeout = options.call_timeout
        self._attempts = options.attempts
        self._patience = options.patience
        self._clock = clock or SystemClock()
        self._random = random or random_module.Random()  # waiting times only: they change no result
        self._slots = AdaptiveLimit(options.concurrency)
        self._rate = RateLimit.of(options, self._clock) if rate is None else rate
        self._warming = Warming(options.prompt_cache, self._clock)
        self._paused_until = float("-inf")
        self._failing_since: float | None = None
        self._answered = False
        self._loading_since: float | None = None
        self._last_fault = float("-inf")
        # Faults further apart than this are no unbroken row: nobody asked in between.
        self._longest_gap = options.call_timeout + LONGEST_PAUSE + LONGEST_BACKOFF

    @property
    def limit(self) -> int:
        """How many calls at a time are allowed now."""
        return self._slots.limit

    @property
    def loading(self) -> float | None:
        """Seconds for which the model has been loaded; None where it is not being loaded."""
        since = self._loading_since
        return None if since is None else self._clock.monotonic() - since

    @property
    def in_flight(self) -> int:
        """How many calls are under way, or hold a place and wait for the rate limit or the end of a pause."""
        return self._slots.used

    async def call(
        self,
        request: ChatRequest,
        on_fault: OnFault | None = None,
        on_send: OnSend | None = None,
        on_ready: OnReady | None = None,
    ) -> Called:
        """Ask until a reply arrives."""
        attempt = 0
        while True:
            attempt += 1
            try:
                async with self._warming.turn(request) as turn:
                    return Called(await self._attempt(turn, on_send, on_ready), attempt)
            except CallFault as fault:
                if on_fault is not None:
                    on_fault(fault)
                if fault.kind not in TRANSIENT:
                    raise
                self._check_patience(fault)
                if attempt >= self._attempts:
                    raise
                wait = self._waiting_time(attempt, fault)
                LOG.info("%s: attempt %d: %s; again in %.1f s", request.model, attempt, fault, wait)
            await self._clock.sleep(wait)

    async def close(self) -> None:
        """Close the model's connections; call it in the event loop that made the calls."""
        self._rate.close()
        await self._model.close()

    async def _attempt(self, turn: Turn, on_send: OnSend | None, on_ready: OnReady | None) -> Reply:
        slots, request = self._slots, turn.asked
        await slots.acquire()
        try:
            await self._wait_for_pause()
            reserved = 0
            if self._rate.active:
                reserved = estimate_request(request) + request.max_tokens
                await self._rate.reserve(reserved)
                await self._wait_for_pause()
            await self._load()
            if on_ready is not None:
                await on_ready()
                await self._wait_for_pause()
            generation = slots.generation
            if on_send is not None:
                on_send()
            began = self._clock.monotonic()
            try:
                reply = await self._ask(turn.request())
            except CallFault as fault:
                self._note_fault(fault, generation, reserved)
                raise
            LOG.debug("%s: %s after %.1f s", request.model, reply.outcome, self._clock.monotonic() - began)
            self._failing_since = None
            self._answered = True
            slots.raise_after_success()
            self._settle_rate(reserved, reply)
            return reply
        finally:
            slots.release()

    async def _load(self) -> None:
        """Return when a model of this machine can be asked; its loading is no part of a call."""
        ready = getattr(self._model, "ready", None)
        if ready is None:
            return
        self._loading_since = self._loading_since or self._clock.monotonic()
        try:
            await ready()
        finally:
            self._loading_since = None

    async def _ask(self, request: ChatRequest) -> Reply:
        timer = asyncio.timeout(self._timeout)
        try:
            async with timer:
                reply = await self._model.complete(request)
        except TimeoutError:
            if not timer.expired():
                raise
            raise CallFault(
                "timeout", f"no whole reply within {self._timeout:g} s (call_timeout)", maybe_paid=True
            ) from None
        return checked(reply, most_tokens(request, self._options))

    def _settle_rate(self, reserved: int, reply: Reply) -> None:
        counts = () if reply.usage is None else (reply.usage.input_tokens, reply.usage.output_tokens)
        known = [count for count in counts if count is not None]
        if reserved and len(known) == 2:
            self._rate.settle(reserved, sum(known))

    async def _wait_for_pause(self) -> None:
        while (left := self._paused_until - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)

    def _note_fault(self, fault: CallFault, generation: int, reserved: int) -> None:
        now = self._clock.monotonic()
        if fault.kind not in TRANSIENT:
            self._failing_since = None  # the service is there and answers
        else:
            if self._failing_since is None or now - self._last_fault > self._longest_gap:
                self._failing_since = now
            self._last_fault = now
        if fault.kind == "rate_limited":
            self._slots.lower(generation)
        if fault.retry_after is not None and fault.status in (429, 503):
            pause = min(fault.retry_after, LONGEST_PAUSE)
            self._paused_until = max(self._paused_until, now + pause)
            self._rate.pause(pause)
        if reserved and not fault.maybe_paid:
            self._rate.settle(reserved, 0)

    def _check_patience(self, fault: CallFault) -> None:
        since = self._failing_since
        if since is None:  # another call has succeeded in the meantime
            return
        silent = self._clock.monotonic() - since
        known = self._answered or fault.kind in ("rate_limited", "timeout")  # it is there
        if silent >= (self._patience if known else min(self._patience, FIRST_PATIENCE)):
            raise ModelDown(
                fault.kind,
                f"nothing has succeeded for {silent:.0f} s (patience); last: {fault.message}",
                status=fault.status,
                retry_after=fault.retry_after,
                maybe_paid=fault.maybe_paid,
            ) from fault

    def _waiting_time(self, attempt: int, fault: CallFault) -> float:
        most = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** (attempt - 1))
        drawn = self._random.uniform(0.0, most)
        if fault.retry_after is None:
            return drawn
        return min(fault.retry_after, LONGEST_PAUSE) + min(drawn, 1.0)
