"""Questions wait together and go out as batches: a wave is cut when nobody can go on without a reply."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...errors import FabulaError, ModelUnavailable
from ...models.batches.service import BatchView, NotDone
from ...models.chat import FATAL, TRANSIENT, CallFault, Image, Reply
from ...models.registry import has_batches
from ...models.spec import parse_spec
from ...schemas.text import tallied
from ..budget import Budget, over_budget
from ..calls import Call, Calls, Outgoing
from ..hooks import Event
from ..journal_file import Statement
from . import books
from .books import Batch, Batching, Lane, Settlement, bound_of, settled
from .carrier import Carrier, Halted, Strange, Unsettled, stored_pictures

Key = tuple[str, int]
"""A request's key, and which sample of the reply."""

SENDS = 3
"""Batches that one request may be in before it counts as unanswered."""
TURNS = 30
"""Turns of the event loop after which whoever can go on without a batch has done so."""
HELD = 512 * 1024 * 1024
"""Bytes of pictures in requests that wait: beyond it no further item is begun, for memory's sake."""


class AskSingly(Exception):
    """A request that no batch has answered is to be asked by itself."""


@dataclass(slots=True)
class _Parked:
    """A request that waits for a batch, and how many batches it was in."""

    call: Outgoing
    reply: "asyncio.Future[Reply]"
    sends: int = 0

    def hear(self, outcome: Reply | BaseException) -> None:
        """End the waiting."""
        if self.reply.done():
            return
        if isinstance(outcome, Reply):
            self.reply.set_result(outcome)
        else:
            self.reply.set_exception(outcome)


@dataclass(frozen=True, slots=True)
class House:
    """What the desk needs of those around it."""

    calls: Calls  # the journal's calls
    budget: Budget  # the cost limit
    open_lane: Callable[[str], Lane]  # gets a model's batches ready
    written: Callable[..., Any]  # returns when something is on disk
    # told of what stops the run: a model's spec, and why
    failed: Callable[[str, FabulaError | CallFault], None]
    quiet: Callable[[], bool]  # whether nobody can go on without a batch
    answered: Callable[[Call], None]  # told of each call that was answered, once it is on disk


class BatchDesk:
    """Collects questions, sends them in batches and hands out the replies. For one event loop.

    ``settings``: how batches are used. ``house``: what is around it.
    """

    def __init__(self, settings: Batching, house: House) -> None:
        self.settings = settings
        self.events: list[Event] = []
        self.warnings: list[str] = []
        self._house = house
        self._carrier = Carrier(settings, self._looked, lambda: self._halted)
        self._lanes: dict[str, Lane] = {}
        self._parked: dict[Key, _Parked] = {}
        self._queue: dict[str, dict[Key, None]] = {}
        self._open: dict[Key, Batch] = {}
        self._at_work: dict[str, Batch] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keepers: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._halted = False
        self._held = 0

    # -- asking

    @property
    def waiting(self) -> int:
        """How many requests wait for a batch."""
        return len(self._parked)

    @property
    def is_full(self) -> bool:
        """Whether requests that wait hold as much as they may."""
        return self._held >= HELD

    def takes(self, call: Outgoing) -> bool:
        """Whether a request goes out in a batch, or is in one."""
        if (call.key, call.sample) in self._open:
            return True
        return self.settings.on and has_batches(parse_spec(call.request.model))

    async def reply(self, call: Outgoing) -> Reply:
        """Return the reply to a request, on disk and on the books by then."""
        key = (call.key, call.sample)
        parked = self._parked[key] = _Parked(call, asyncio.get_running_loop().create_future())
        size = sum(
            len(part.data) for m in call.request.messages for part in m.parts if isinstance(part, Image)
        )
        self._held += size
        if key not in self._open:
            self._enqueue(key, parked)
        self.wake()
        try:
            return await parked.reply
        finally:
            self._held -= size
            del self._parked[key]
            self._queue.get(call.request.model, {}).pop(key, None)
            self.wake()

    def wake(self) -> None:
        """Look whether a wave can be cut: somebody waits, or has gone on."""
        self._changed.set()

    # -- beginning and ending

    def start(self, kept: list[tuple[books.Kept, list[books.Entry]]]) -> None:
        """Begin, and take up the batches that the journal holds; called in the loop."""
        for row, entries in kept:
            try:
                lane = self._lane(row.model)
            except FabulaError as error:
                self._house.failed(row.model, error)
                return
            batch = Batch(row.tag, lane, tuple(entries), row.written, row.remote, row.stop)
            self._take_in(batch)
            for entry in entries:
                self._house.budget.hold(entry.bound or 0.0, entry.stage)
            self._keepers.add(self._spawn(self._resume(batch, row.state)))
        self._spawn(self._cut_when_quiet())

    @property
    def is_at_work(self) -> bool:
        """Whether a batch that the journal held is still looked after."""
        return any(not task.done() for task in self._keepers)

    async def next_end(self) -> None:
        """Return when one more of those batches is over, or left."""
        waiting = [task for task in self._keepers if not task.done()]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def halt(self) -> None:
        """Begin nothing more; return when no batch is on its way to a service any more."""
        self._halted = True
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def shut(self) -> None:
        closing = (lane.service.close() for lane in self._lanes.values())
        await asyncio.gather(*closing, return_exceptions=True)

    def _spawn(self, work: Any) -> asyncio.Task[None]:  # noqa: ANN401 - a coroutine
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _lane(self, model: str) -> Lane:
        if model not in self._lanes:
            self._lanes[model] = self._house.open_lane(model)
        return self._lanes[model]

    def _enqueue(self, key: Key, parked: _Parked) -> None:
        self._queue.setdefault(parked.call.request.model, {})[key] = None

    def _take_in(self, batch: Batch) -> None:
        self._at_work[batch.tag] = batch
        self._open.update((entry.call, batch) for entry in batch.entries)

    def _let_go(self, batch: Batch) -> None:
        """Forget a batch that is over; give back what was set aside for it."""
        self._at_work.pop(batch.tag, None)
        for entry in batch.entries:
            if self._open.get(entry.call) is batch:
                del self._open[entry.call]
            self._house.budget.release(entry.bound or 0.0, entry.stage)

    # -- waves

    async def _cut_when_quiet(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if not self._changed.is_set() and not self._halted and self._house.quiet():
                self._cut()

    def _cut(self) -> None:
        """Send what waits, as far as the money reaches."""
        budget = self._house.budget
        for model, queue in self._queue.items():
            chosen: list[tuple[_Parked, float | None]] = []
            try:
                lane = self._lane(model) if queue else None
            except FabulaError as error:
                self._house.failed(model, error)
                return
            for key in list(queue) if lane is not None else ():
                parked = self._parked[key]
                bound = bound_of(lane, parked.call.request)  # type: ignore[arg-type]
                stage = parked.call.stage
                if not budget.try_reserve(bound or 0.0, stage):
                    if budget.is_idle:
                        self._house.failed(model, over_budget(budget, bound or 0.0, stage))
                        return
                    break
                del queue[key]
                chosen.append((parked, bound))
            if chosen and lane is not None:
                task = self._spawn(self._send(lane, chosen))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)

    async def _send(self, lane: Lane, chosen: list[tuple[_Parked, float | None]]) -> None:
        """Send requests, for which the money is set aside, in as many batches as they need."""
        left = {(parked.call.key, parked.call.sample): (bound, parked.call.stage) for parked, bound in chosen}
        try:
            requests = [parked.call.request for parked, _ in chosen]
            stored = await stored_pictures(lane, requests, self._house.calls, self._carrier, self._write)
            for batch, lines in self._batches(lane, chosen, left, stored):
                if self._halted:
                    break
                for entry in batch.entries:
                    del left[entry.call]
                await self._submit(batch, lines)
        except Halted:
            pass
        except (CallFault, FabulaError) as error:
            self._house.failed(lane.model, self._explained(lane, error))
        finally:
            for bound, stage in left.values():
                self._house.budget.release(bound or 0.0, stage)

    def _batches(
        self,
        lane: Lane,
        chosen: list[tuple[_Parked, float | None]],
        left: dict[Key, tuple[float | None, str]],
        stored: Mapping[str, str],
    ) -> Iterator[tuple[Batch, tuple[bytes, ...]]]:
        """Yield batches within the service's limits, each with its lines."""
        most, most_bytes = lane.service.limits()
        batch, size = self._new(lane), 0
        lines: list[bytes] = []
        entries: list[books.Entry] = []
        for parked, bound in chosen:
            request, key, sample, stage, prompt = parked.call
            line = lane.service.encode(books.name_of(batch.tag, len(entries)), request, stored)
            if len(line) > most_bytes:
                del left[key, sample]
                self._house.budget.release(bound or 0.0, stage)
                text = f"the request has {len(line):,} bytes, more than a batch may have"
                parked.hear(CallFault("too_long", text))
                continue
            if entries and (len(entries) >= most or size + len(line) > most_bytes):
                batch.entries = tuple(entries)
                yield batch, tuple(lines)
                batch, lines, size, entries = self._new(lane), [], 0, []
                line = lane.service.encode(books.name_of(batch.tag, 0), request, stored)
            entries.append(books.Entry(len(entries), request, key, sample, stage, bound, prompt))
            lines.append(line)
            size += len(line) + 2
        if entries:
            batch.entries = tuple(entries)
            yield batch, tuple(lines)

    def _new(self, lane: Lane) -> Batch:
        # Not drawn from the run's seed: two runs must never give two batches one name.
        return Batch(f"fabula-{secrets.token_hex(8)}", lane, (), self.settings.now())

    # -- one batch

    async def _submit(self, batch: Batch, lines: tuple[bytes, ...]) -> None:
        """Write a batch down, send it, and begin to look after it."""
        self._take_in(batch)
        for entry in batch.entries:
            with suppress(KeyError):
                self._parked[entry.call].sends += 1
        known = frozenset(other.remote for other in self._at_work.values() if other.remote)
        order = batch.order(lines, known)
        await self._write(*books.write_down(batch.tag, batch.lane.model, batch.written, batch.entries))
        try:
            file = await self._carrier.upload(batch, order)
            await self._write(books.note_creating(batch.tag, file))
            view = await self._carrier.create(batch, order, file)
        except (CallFault, Halted) as why:
            await self._unmade(batch, "unsent", str(why) or "the run was stopped")
            raise
        except Unsettled as doubt:
            raise doubt.fault from doubt  # it stays in the journal, and is looked for next time
        await self._opened(batch, view)
        self._spawn(self._look_after(batch, view))

    async def _opened(self, batch: Batch, view: BatchView) -> None:
        batch.remote = view.remote
        await self._write(books.note_open(batch.tag, view.remote, view.word))
        self._tell(
            batch,
            f"{tallied(len(batch.entries), 'requests')} to {batch.lane.model} sent as batch {view.remote}",
        )

    async def _unmade(self, batch: Batch, state: str, why: str) -> None:
        """Take a batch off the books that the service never had."""
        end = books.End("unsent", None, self.settings.now(), why)
        await self._write(*books.end_batch(batch.tag, end, rest=state))
        self._let_go(batch)

    async def _resume(self, batch: Batch, state: str) -> None:
        """Take up a batch that an earlier process left."""
        try:
            view = None
            if state == "written":
                await self._unmade(batch, "unsent", "an earlier process ended before it was sent")
                self._ask_again(batch)
                return
            if state != "open":
                order = batch.order((), frozenset(b.remote for b in self._at_work.values() if b.remote))
                view = await self._carrier.find(batch, order)
                if view is None:
                    await self._unmade(batch, "unsent", "its service never had it")
                    self._ask_again(batch)
                    return
                await self._opened(batch, view)
        except Unsettled as doubt:
            self._leave(batch, doubt.fault)
            return
        await self._look_after(batch, view)

    def _ask_again(self, batch: Batch) -> None:
        """Put those back into the line who waited for a batch that never was."""
        for entry in batch.entries:
            parked = self._parked.get(entry.call)
            if parked is not None:
                if self.settings.on:
                    self._enqueue(entry.call, parked)
                else:
                    parked.hear(AskSingly())
        self.wake()

    async def _look_after(self, batch: Batch, view: BatchView | None) -> None:
        try:
            over = await self._carrier.follow(batch, view)
            outcomes = await self._carrier.outcomes(batch, over)
        except CallFault as fault:
            if fault.status in (404, 410):
                await self._lose(batch, "gone", f"the service no longer knows it: {fault.message}")
            else:
                self._leave(batch, fault)
            return
        except Strange as why:
            if why.kind == "state":
                self._leave(batch, self._error(batch, str(why)))
            else:
                refused = why.kind == "refused"
                await self._lose(batch, "done" if refused else "gone", str(why), paid=not refused)
            return
        await self._settle(batch, over, settled(batch, iter(outcomes), self._house.calls))

    async def _settle(self, batch: Batch, over: BatchView, settlement: Settlement) -> None:
        end = books.End("done", over.word, self.settings.now(), over.problem or None)
        await self._write(*settlement.statements, *books.end_batch(batch.tag, end))
        for cost, stage in settlement.costs:
            self._house.budget.spend(cost, stage)
        for call in settlement.calls:
            self._house.answered(call)
        self._let_go(batch)
        answered = sum(isinstance(outcome, Reply) for outcome in settlement.heard.values())
        self._tell(batch, f"batch {batch.remote} is {over.word}: {answered} of {len(batch.entries)} answered")
        for key, outcome in settlement.heard.items():
            parked = self._parked.get(key)
            if parked is not None:
                self._pass_on(key, parked, outcome)
        self.wake()

    def _pass_on(self, key: Key, parked: _Parked, outcome: Reply | CallFault | NotDone) -> None:
        if isinstance(outcome, Reply) or (isinstance(outcome, CallFault) and outcome.kind not in TRANSIENT):
            parked.hear(outcome)
        elif self.settings.then_single or not self.settings.on:
            parked.hear(AskSingly())
        elif parked.sends < SENDS:
            self._enqueue(key, parked)
        else:
            text = f"no answer in {SENDS} batches; the last time it was {getattr(outcome, 'reason', outcome)}"
            parked.hear(CallFault("server_error", text))

    async def _lose(self, batch: Batch, state: str, why: str, *, paid: bool = True) -> None:
        """Take a batch off the books from which nothing will come; it may have been charged."""
        fault = CallFault("bad_request", why, maybe_paid=paid)
        settlement = settled(batch, ((entry, fault) for entry in batch.entries), self._house.calls)
        end = books.End(state, None, self.settings.now(), why)
        await self._write(*settlement.statements, *books.end_batch(batch.tag, end))
        for cost, stage in settlement.costs:
            self._house.budget.spend(cost, stage)
        self._let_go(batch)
        booked = "; it is booked at the most that it can have cost" if paid else ""
        self._stop_for(
            batch, self._error(batch, why + booked, "give the same command again to ask once more")
        )

    def _leave(self, batch: Batch, error: FabulaError | CallFault) -> None:
        """Give up looking after a batch for now: it stays as it is in the journal."""
        self._stop_for(batch, error)

    def _stop_for(self, batch: Batch, error: FabulaError | CallFault) -> None:
        """Stop the run where somebody waits for a batch; else only tell."""
        if any(entry.call in self._parked for entry in batch.entries):
            self._house.failed(batch.lane.model, error)
        else:
            self.warnings.append(f"batch {batch.remote or batch.tag}: {error}")
            self._tell(batch, f"warning: {self.warnings[-1]}")

    @staticmethod
    def _explained(lane: Lane, error: FabulaError | CallFault) -> FabulaError | CallFault:
        """Return a fault that concerns the batch itself as an error that says so; others as they are."""
        if not isinstance(error, CallFault) or error.kind in TRANSIENT or error.kind in FATAL:
            return error
        return ModelUnavailable(
            f"model {lane.model}", what=f"the service refuses the batch: {error.message}",
            fix=f'if it is too large, set batch_requests or batch_megabytes in [models."{lane.model}"];'
            " or leave --batch out",
        )  # fmt: skip

    def _error(self, batch: Batch, why: str, fix: str = "") -> ModelUnavailable:
        usual = (
            "see it in the account at the service; the same command looks again, and"
            " `fabula run cancel` stops it"
        )
        return ModelUnavailable(
            f"model {batch.lane.model}", what=f"batch {batch.remote or batch.tag}: {why}", fix=fix or usual
        )

    # -- telling

    def _looked(self, batch: Batch, view: BatchView) -> None:
        statements = [books.note_look(batch.tag, view.word, view.answered, view.failed)]
        if batch.stop:
            statements.append(books.note_stop(batch.tag))
        self._house.calls.write(*statements)

    def _tell(self, batch: Batch, message: str) -> None:
        data = {"message": message, "batch": batch.remote, "model": batch.lane.model,
                "requests": len(batch.entries)}  # fmt: skip
        self.events.append(Event("batch", stage=None, data=data))

    async def _write(self, *statements: Statement) -> None:
        calls = self._house.calls
        await self._house.written(lambda done: calls.write(*statements, done=done))
