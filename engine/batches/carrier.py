"""The life of one batch at its service: sent, found again after a lost answer, looked at until it is over.

A batch is asked for once. Where the answer is lost, the list of batches is looked through for its tag, and
only when it is not there, several times over, is it asked for again.

Pictures that go to a service's store of files, once each, and not into every request that shows them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, TypeVar

from ...models.batches.service import BatchView, NotDone, NotYetKnown, Order, Outcome, Results, is_refused
from ...models.chat import TRANSIENT, CallFault, ChatRequest, Image, base64_text
from ...schemas.canonical import sha256_bytes
from ..calls import Calls
from ..journal_file import Statement
from . import books
from .books import HOUR, LOST, Batch, Batching, Entry, Lane, name_of

T = TypeVar("T")

TRIES = 6
"""How often something is tried that may pass by itself."""
FINDS = 4
"""How often a list is looked through for a batch before it counts as never made."""
STEP = 0.5  # seconds between looks at whether the run is to stop
MISSED_LOOKS = 30
"""Looks in a row that may bring no answer: with the usual times between them, some hours."""
STRANGE_LOOKS = 12
"""Looks in a row that may bring a state without a meaning: with the usual times, about an hour."""


class Unsettled(Exception):
    """Nobody knows whether a batch was made, as the service does not say.

    Attributes:
        fault: what it said last.
    """

    def __init__(self, fault: CallFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Strange(Exception):
    """A service keeps giving a state without a meaning, or refused a batch, or has lost its results.

    Attributes:
        kind: which of these.
    """

    def __init__(self, kind: Literal["state", "refused", "results"], text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Halted(Exception):
    """The run is being stopped: nothing more is begun."""


class Carrier:
    """Deals with services, patiently.

    ``settings``: how often to look, and when to give up. ``looked``: told of each look at a batch.
    ``halted``: whether the run is being stopped.
    """

    def __init__(
        self,
        settings: Batching,
        looked: Callable[[Batch, BatchView], None],
        halted: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._looked = looked
        self._halted = halted

    async def upload(self, batch: Batch, order: Order) -> str:
        """Send the requests of a batch ahead, where its service wants that; return the id of the file."""
        return await self._patiently(lambda: batch.lane.service.upload(order), halts=True)

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._settings.now()

    async def store(self, lane: Lane, picture: Image, name: str) -> str:
        """Send a picture to a service's store; return what names it there."""
        return await self._patiently(lambda: lane.service.store(picture, name), halts=True)

    async def create(self, batch: Batch, order: Order, file: str) -> BatchView:
        service, wait = batch.lane.service, self._settings.first_look
        for attempt in range(TRIES):
            if self._halted():
                raise Halted
            try:
                return await service.create(order, file)
            except CallFault as fault:
                last = fault
            if is_refused(last):
                if last.kind not in TRANSIENT or attempt + 1 == TRIES:
                    raise last
            else:
                view = await self.find(batch, order)
                if view is not None:
                    return view
            await self._pause(max(wait, last.retry_after or 0.0))
            wait = self._settings.next_look(wait)
        raise last

    async def find(self, batch: Batch, order: Order) -> BatchView | None:
        """Return a batch that may have been made; None where it was not."""
        wait, lists, missed = self._settings.first_look, 0, 0
        while True:
            try:
                view = await batch.lane.service.find(order)
            except NotYetKnown:
                pass
            except CallFault as fault:
                missed += 1
                if fault.kind not in TRANSIENT or missed >= MISSED_LOOKS:
                    raise Unsettled(fault) from fault
            else:
                lists, missed = lists + 1, 0
                if view is not None:
                    return view
                if lists >= FINDS:
                    return None
            if self._halted():
                raise Unsettled(CallFault("timeout", "the run was stopped before it was clear"))
            await self._pause(wait)
            wait = self._settings.next_look(wait)

    async def follow(self, batch: Batch, view: BatchView | None = None) -> BatchView:
        """Look at a batch until it is over; cancel it when its deadline is past."""
        wait, missed, strange = self._settings.first_look, 0, 0
        begun = view is not None
        while True:
            if view is not None:
                self._looked(batch, view)
                strange = strange + 1 if view.state == "unknown" else 0
                if strange >= STRANGE_LOOKS:
                    text = f"its state is {view.word!r}, of which this version knows nothing"
                    raise Strange("state", text)
                if view.state in ("ended", "failed"):
                    return view
            left = await self._meet_deadline(batch)
            if begun:
                await self._settings.clock.sleep(wait if left is None else min(wait, left))
                wait = self._settings.next_look(wait)
            begun = True
            try:
                view = await batch.lane.service.look(batch.remote or "")
                missed = 0
            except CallFault as fault:
                missed, view = missed + 1, None
                if fault.kind not in TRANSIENT or missed >= MISSED_LOOKS:
                    raise
                wait = max(wait, fault.retry_after or 0.0)

    async def _meet_deadline(self, batch: Batch) -> float | None:
        """Cancel a batch whose deadline is past; return the seconds until then, None where there is none."""
        deadline = self._settings.deadline
        if deadline is None or batch.stop:
            return None
        left = batch.written + deadline * HOUR - self._settings.now()
        if left > 0:
            return left
        await self.stop(batch)
        return None

    async def stop(self, batch: Batch) -> None:
        await self._patiently(lambda: batch.lane.service.cancel(batch.remote or ""))
        batch.stop = True

    async def outcomes(self, batch: Batch, view: BatchView) -> list[tuple[Entry, Outcome]]:
        """Return what became of every request of a batch that is over."""
        if view.state == "failed" and not view.outputs:
            return self._refused(batch, view)
        results = Results({})
        for _ in range(TRIES):
            results = await self._results(batch, view)
            if not results.torn:
                break
            await self._settings.clock.sleep(self._settings.first_look)
        rest: Outcome = LOST if results.torn else _rest(view)
        outcomes = results.outcomes
        return [(entry, outcomes.get(name_of(batch.tag, entry.number), rest)) for entry in batch.entries]

    async def _results(self, batch: Batch, view: BatchView) -> Results:
        requests = batch.order().requests
        try:
            return await self._patiently(lambda: batch.lane.service.results(view, requests))
        except CallFault as fault:
            if fault.kind in ("bad_request", "no_such_model", "not_an_api") or fault.status in (404, 410):
                raise Strange("results", f"its results cannot be had: {fault.message}") from fault
            raise

    @staticmethod
    def _refused(batch: Batch, view: BatchView) -> list[tuple[Entry, Outcome]]:
        """Return the outcomes where single requests are why a batch was refused."""
        if not view.lines:
            raise Strange("refused", f"it was refused: {view.problem or view.word}")
        return [
            (entry, CallFault("bad_request", view.lines[entry.number], status=400))
            if entry.number in view.lines
            else (entry, NotDone("cancelled"))
            for entry in batch.entries
        ]

    async def _patiently(self, action: Callable[[], Awaitable[T]], *, halts: bool = False) -> T:
        wait = self._settings.first_look
        for attempt in range(TRIES):
            if halts and self._halted():
                raise Halted
            try:
                return await action()
            except CallFault as fault:
                if fault.kind not in TRANSIENT or attempt + 1 == TRIES:
                    raise
                pause = self._pause if halts else self._settings.clock.sleep
                await pause(max(wait, fault.retry_after or 0.0))
            wait = self._settings.next_look(wait)
        raise AssertionError("unreachable")

    async def _pause(self, seconds: float) -> None:
        """Return after so many seconds, or soon after the run was asked to stop."""
        while seconds > 0 and not self._halted():
            step = min(seconds, STEP)
            await self._settings.clock.sleep(step)
            seconds -= step


def _rest(view: BatchView) -> Outcome:
    """Return what became of requests about which the results say nothing."""
    word = view.word.lower()
    if "expired" in word:
        return NotDone("expired")
    return NotDone("cancelled") if "cancel" in word or view.state == "failed" else LOST


LARGE = 100_000
"""Bytes from which on a picture is stored; smaller ones stand in the requests."""
TOGETHER = 8


async def stored_pictures(
    lane: Lane,
    requests: Iterable[ChatRequest],
    calls: Calls,
    carrier: Carrier,
    write: Callable[[Statement], Awaitable[None]],
) -> dict[str, str]:
    """Store the large pictures of some requests; return each in base64 -> what names it at the service.

    A picture that is in the store already, by its content, is not sent again while the service keeps it.
    """
    kept = lane.service.keeps_pictures
    if not lane.options.batch_files or not kept:
        return {}
    now = carrier.now()
    known = dict(calls.rows(books.PICTURES, (lane.model, now - kept)))
    parts = (part for request in requests for message in request.messages for part in message.parts)
    large = {part.data: part for part in parts if isinstance(part, Image) and len(part.data) >= LARGE}
    several = asyncio.Semaphore(TOGETHER)

    async def ref_of(picture: Image) -> str:
        sha256 = sha256_bytes(picture.data)
        if sha256 in known:
            return str(known[sha256])
        async with several:
            ref = await carrier.store(lane, picture, f"fabula-{sha256[:32]}")
        await write(books.note_picture(lane.model, sha256, ref, now))
        return ref

    refs = await asyncio.gather(*map(ref_of, large.values()))
    return {base64_text(data): ref for data, ref in zip(large, refs, strict=True)}
