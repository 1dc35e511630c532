"""Where model stages run: an event loop in a thread of its own, so that any caller may have a loop itself.

As with :class:`.pool.WorkerPool` tasks go in, and results come out in groups, in no particular order; but
tasks may be of several stages, and more of them may follow from results.
"""

import asyncio
import math
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FabulaError
from ..models.chat import ChatRequest
from ..models.client import ModelClient
from ..models.keys import Redactor
from ..models.prices import batch_price_of, book, most_tokens, price_of
from ..models.registry import has_batches
from ..models.spec import ModelSettings, parse_spec
from .asker import Closed, Desk, ItemAsker, Line
from .batches import books
from .batches.books import Batching, Lane
from .budget import Budget, unknown_price
from .calls import ON_THIS_MACHINE, Call, Calls
from .config import models_of
from .hooks import Event
from .journal import Encoded, Journal, encode, gather_fields
from .pipeline import Stage, load_stage
from .pool import Job, Result, Task, checked, failure
from .stage import Failed, Item, NoAnswer, Tools

if TYPE_CHECKING:
    from ..models.options import ModelOptions

AHEAD = 2
"""Items at work for each call that may be under way, so that no slot waits for an item."""
IN_A_WAVE = 20_000
"""Items at work where they wait for batches."""
IDLE = 0.25  # seconds between looks at whether to stop


@dataclass(frozen=True, slots=True)
class Spending:
    """What an execution has used so far."""

    spent: float  # USD over the whole life of the run, what may have been charged included
    own: float  # USD of these that one stage cost in this execution


class ModelPool:
    """Runs model stages on items.

    ``journal``: of the run. ``options``: settings of every model that the stages name, by spec. ``max_cost``:
    USD that the run may cost in all; None for no limit. ``stage_costs``: stage -> USD that it may cost.
    ``reuse``: folders of other runs whose replies are taken over. ``day``: the day whose prices count; None
    for those known to come last. ``attempts``: most attempts at a question while none gives a usable answer.
    ``batching``: how batches are used. ``tell``: told of what happens to batches. ``tell_call``: told of
    every call that is answered, but for those in batches; None for nobody.
    """

    def __init__(
        self,
        journal: Journal,
        options: "Mapping[str, ModelOptions]",
        max_cost: float | None = None,
        reuse: Sequence[Path] = (),
        day: date | None = None,
        attempts: int = 1,
        batching: Batching | None = None,
        tell: Callable[[Event], None] = lambda _: None,
        stage_costs: Mapping[str, float] | None = None,
        tell_call: Callable[[Event], None] | None = None,
    ) -> None:
        self._journal = journal
        self._batching = batching or Batching()
        self._tell = tell
        self._tell_call = tell_call
        self._attempts = attempts
        self._options = options
        self._max_cost, self._stage_costs = max_cost, dict(stage_costs or {})
        self._reuse = tuple(reuse)
        self._day = day
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._desk: Desk | None = None
        self._warnings: list[str] = []
        self._held: dict[str, float] = {}  # open models -> since when, by the clock that only grows
        # One for all models: a server may echo what another one was sent.
        self._redactor = Redactor(warn=self._warnings.append)

    def __enter__(self) -> "ModelPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up what is under way, close connections and stop the thread."""
        loop, thread, desk = self._loop, self._thread, self._desk
        self._loop = self._thread = self._desk = None
        if loop is None or thread is None or desk is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(_wind_up(desk), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
            desk.calls.close()
            self._note_hours()

    def _note_hours(self) -> None:
        """Note for how long open models were held: they cost no money, and time of this machine."""
        for spec, since in self._held.items():
            name = f"{ON_THIS_MACHINE}{spec}"
            held = float(self._journal.fact(name) or 0.0) + time.monotonic() - since
            self._journal.note(name, round(held, 3))
        self._held = {}

    def spending(self, stage: str) -> Spending | None:
        """Return what was used so far; None before the first model stage that had work."""
        desk = self._desk
        return None if desk is None else Spending(desk.budget.spent, desk.budget.spent_in(stage))

    def under_way(self) -> dict[str, float | str]:
        """Return how many requests have no reply yet, and how many seconds the ``longest`` is under way.

        While a model is ``loading``, the seconds since that began.
        """
        sent = [] if self._desk is None else list(self._desk.under_way.values())
        for model, seconds in {} if self._desk is None else self._desk.loading().items():
            return {"under_way": len(sent), "longest": round(seconds), "loading": model}
        return {"under_way": len(sent), "longest": round(time.monotonic() - min(sent))} if sent else {}

    def run(
        self, jobs: Sequence[Job], draw: Callable[[int], Sequence[Task]], stopping: Callable[[], bool]
    ) -> Iterator[list[Result]]:
        """Yield results in small groups as they come; empty ones while nothing comes.

        ``draw`` returns so many tasks at most, of any of the jobs; it is asked again after each group, as far
        as tasks can be worked on. Once ``stopping()`` is true no call is made any
        more; the calls under way are finished and kept, and items that would need more calls are left.
        """
        desk, loop = self._start()
        most = self._most_at_work({spec for job in jobs for spec in models_of(job.tools.settings)})
        shift = _Shift(desk, [(load_stage(job.path), job.tools) for job in jobs])
        flying = 0
        while True:
            if desk.closing is None and stopping():
                loop.call_soon_threadsafe(desk.close_with, Closed())
            self._journal.check()
            if desk.closing is None and flying <= most - max(1, most // 4):
                batch = draw(most - flying)
                flying += len(batch)
                loop.call_soon_threadsafe(shift.start, batch)
            if not flying:
                break
            landed = shift.landed()
            flying -= len(landed)
            self._tell_all(desk)
            yield [(task, encoded) for task, encoded in landed if encoded is not None]
        self._tell_all(desk)
        if isinstance(desk.closing, FabulaError):
            raise desk.closing

    def _most_at_work(self, models: set[str]) -> int:
        if self._batching.on and any(has_batches(parse_spec(spec)) for spec in models):
            return IN_A_WAVE
        return AHEAD * sum(self._options[spec].concurrency for spec in models)

    def _tell_all(self, desk: Desk) -> None:
        while self._warnings:
            self._tell(Event("warning", data={"message": self._warnings.pop(0)}))
        while desk.kept and self._tell_call is not None:
            self._tell_call(_call_event(desk.kept.popleft()))
        events = [] if desk.batches is None else desk.batches.events
        while events:
            self._tell(events.pop(0))

    def _start(self) -> tuple[Desk, asyncio.AbstractEventLoop]:
        if self._desk is not None and self._loop is not None:
            return self._desk, self._loop
        calls = Calls(self._journal, self._reuse)
        try:
            calls.mark_lost()
            unpriced = self._unpriced_costs(calls)
            before = calls.spent_by_stage()
            stages = {
                stage: (most, before.get(stage, 0.0) + unpriced.get(stage, 0.0))
                for stage, most in self._stage_costs.items()
            }
            budget = Budget(self._max_cost, calls.spent() + math.fsum(unpriced.values()), stages)
            kept = self.kept_batches(calls)
        except BaseException:
            calls.close()
            raise
        self._desk = self.desk(calls, budget)
        self._loop = asyncio.new_event_loop()
        if kept or self._batching.on:
            batches = self._desk.use_batches(self._batching, self._open_lane)
            self._loop.call_soon(batches.start, kept)
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._thread.start()
        return self._desk, self._loop

    def kept_batches(self, calls: Calls) -> list[tuple[books.Kept, list[books.Entry]]]:
        """Return the batches that the journal holds, of models that are asked now, with their requests."""
        kept = [row for row in books.kept_batches(calls.rows(books.KEPT)) if row.model in self._options]
        return [(row, books.entries_of(calls.rows(books.ENTRIES, (row.tag,)))) for row in kept]

    def _open_lane(self, model: str) -> Lane:
        from ..models.registry import open_batches

        options, spec = self._options[model], parse_spec(model)
        service = open_batches(spec, options, self._redactor)
        return Lane(model, service, options, batch_price_of(spec, options, self._day))

    def desk(self, calls: Calls, budget: Budget) -> Desk:
        """Return what gets the replies."""
        desk = Desk(calls, budget, self._options, self._open_line, self._attempts)
        desk.keeps = self._tell_call is not None
        return desk

    def _unpriced_costs(self, calls: Calls) -> dict[str, float]:
        """Return by stage what calls made before their price was known cost at today's, where it matters."""
        costs: dict[str, list[float]] = defaultdict(list)
        for call in calls.unpriced() if self._max_cost is not None or self._stage_costs else ():
            if self._max_cost is None and call.stage not in self._stage_costs:
                continue
            options = self._options.get(call.model)
            known = batch_price_of if calls.is_batched(call) else price_of
            price = None if options is None else known(parse_spec(call.model), options, self._day)
            if options is None or price is None:
                raise unknown_price(call.model)
            most = most_tokens(ChatRequest.from_canonical(call.asked), options)
            costs[call.stage].append(book(price, call.reply.usage, most).cost)
        return {stage: math.fsum(several) for stage, several in costs.items()}

    def _open_line(self, spec: str) -> Line:
        from ..models.limits import shared_limit
        from ..models.registry import open_model

        options, parsed = self._options[spec], parse_spec(spec)
        if parsed.weights is not None:
            self._held[spec] = time.monotonic()
        rate = shared_limit(parsed, options, self._redactor, self._warnings.append)
        client = ModelClient(open_model(parsed, options, self._redactor), options, rate=rate)
        return Line(client, options, price_of(parsed, options, self._day))


def _call_event(call: Call) -> Event:
    usage = call.reply.usage
    data = {
        "model": call.model, "outcome": call.reply.outcome, "attempts": call.attempts, "cost": call.cost,
        "input_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
    }  # fmt: skip
    return Event("call", stage=call.stage, data=data)


class _Shift:
    """The items of some stages in the event loop."""

    def __init__(self, desk: Desk, stages: Sequence[tuple[Stage, Tools]]) -> None:
        self._desk, self._stages = desk, stages
        self._results: queue.SimpleQueue[tuple[Task, Encoded | None]] = queue.SimpleQueue()
        self._working: set[asyncio.Task[None]] = set()
        self._later: deque[Task] = deque()

    def start(self, tasks: Sequence[Task]) -> None:
        """Begin work on items, as many as memory allows; called in the loop."""
        self._later.extend(tasks)
        batches = self._desk.batches
        while self._later and not (batches is not None and batches.is_full and self._working):
            task = self._later.popleft()
            self._desk.note(at_work=1)
            work = asyncio.get_running_loop().create_task(self._work(task))
            self._working.add(work)
            work.add_done_callback(self._ended)

    def _ended(self, work: "asyncio.Task[None]") -> None:
        self._working.discard(work)
        self._desk.note(at_work=-1)
        self.start([])

    def landed(self) -> list[tuple[Task, Encoded | None]]:
        """Return what is finished, waiting a little for the first; None stands for an item left undone."""
        results = []
        try:
            results.append(self._results.get(timeout=IDLE))
            while True:
                results.append(self._results.get_nowait())
        except queue.Empty:
            return results

    async def _work(self, task: Task) -> None:
        stage, tools = self._stages[task.step]
        assert isinstance(tools.settings, ModelSettings)
        asker = ItemAsker(self._desk, stage.name, tools.settings)
        encoded: Encoded | None = None
        try:
            outcome = await self._outcome(task, stage, replace(tools, asker=asker))
            if not asker.stopped:  # else the stage may have made something up instead of the answer
                self._desk.calls.link(task.key, asker.asked, asker.unusable)
                encoded = outcome
        except FabulaError as error:
            self._desk.close_with(error)
        finally:
            self._results.put((task, encoded))

    async def _outcome(self, task: Task, stage: Stage, tools: Tools) -> Encoded:
        try:
            outcome = await stage.run(Item(task.item, gather_fields(task.parts)), tools)
            return encode(checked(stage.spec, outcome))
        except NoAnswer as none:
            return encode(Failed(none.code, none.reason, none.evidence))
        except FabulaError:
            raise
        except asyncio.CancelledError as error:
            this = asyncio.current_task()
            if this is None or this.cancelling():
                raise
            return encode(failure(error))  # the stage did this to itself
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the runner's item guard
            return encode(failure(error))


async def _wind_up(desk: Desk) -> None:
    if desk.batches is not None:
        await desk.batches.halt()
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await desk.shut()
