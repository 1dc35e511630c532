"""The worker pool for map stages: survives workers that crash or hang, and names the item that did it.

Workers are spawned, not forked: that works the same on every system, copies no locks or threads of the caller
(notebooks have many), and costs a third of a second per worker once a run. Items travel in chunks. A chunk
that crashes its worker or takes longer than one item may is run again item by item: the guilty one fails with
``crashed`` or ``timeout``, the others succeed.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any, Protocol, Self

from ..errors import MissingRequirement, PlaceUnavailable, RunError
from .journal import Encoded, encode, gather_fields
from .pipeline import Stage, load_stage
from .stage import UNAVAILABLE, Failed, Item, Made, Outcome, Rejected, StageSpec, Tools

# -- What runs inside a worker process: one stage on a few items at a time
#
# Imported by every worker, so it imports only what all stages need; a stage brings its own libraries.

Parts = tuple[tuple[bytes, tuple[str, ...]], ...]
"""Fields of an item as the journal keeps them: blobs, and which fields of each are meant."""


STOPPING = (MissingRequirement, RunError)
"""What is no outcome of an item: something is not installed, or the journal is damaged."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is the same for all items of a stage: where the stage is, its tools, and its patience."""

    path: str
    tools: Tools
    patience: float = 1.0


@dataclass(frozen=True, slots=True)
class Task:
    """One item to work on, and the key that its result will have."""

    item: str
    key: str
    parts: Parts
    step: int = 0  # which of several jobs it is for


def watch_parent() -> None:
    """Make this worker die with the process that started it, even when that is killed with -9.

    While a stage holds the interpreter lock inside a C function, the worker lives on until that returns.
    """
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent-watcher", daemon=True).start()


def run_chunk(job: Job, tasks: Sequence[Task]) -> tuple[list[Encoded], float]:
    """Run a stage on some items; return the kept outcomes in the same order, and the seconds that it took.

    The seconds only decide how many items the next chunk has.
    """
    stage = _stage(job.path)
    began = time.monotonic()
    return run_items(stage, job.tools, tasks), time.monotonic() - began


def run_items(stage: Stage, tools: Tools, tasks: Sequence[Task]) -> list[Encoded]:
    """Run a stage on some items, all at once where it takes several; return the outcomes in their order."""
    if not stage.batched:
        return [run_item(stage, tools, task) for task in tasks]
    try:
        outcomes = stage.run([Item(task.item, gather_fields(task.parts)) for task in tasks], tools)
        if len(outcomes) != len(tasks):
            raise ValueError(f"stage {stage.name} gave {len(outcomes)} outcomes for {len(tasks)} items")
        return [encode(checked(stage.spec, outcome)) for outcome in outcomes]
    except STOPPING:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the runner's item guard
        if len(tasks) == 1:
            return [encode(failure(error))]
    return [encoded for task in tasks for encoded in run_items(stage, tools, [task])]


@cache
def _stage(path: str) -> Stage:
    return load_stage(path)


def run_item(stage: Stage, tools: Tools, task: Task) -> Encoded:
    """Run a stage on one item. Whatever goes wrong in it is an outcome of this item."""
    try:
        outcome = stage.run(Item(task.item, gather_fields(task.parts)), tools)
        return encode(checked(stage.spec, _finished(outcome) if isinstance(outcome, Coroutine) else outcome))
    except STOPPING:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the runner's item guard
        return encode(failure(error))


def _finished(work: Coroutine[object, None, Outcome]) -> Outcome:
    """Return what a model stage that asks no model comes to: it has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
    work.close()
    raise RuntimeError("a stage whose settings name no model waited for something")


def failure(error: BaseException) -> Failed:
    """Return the outcome that stands for an exception; its traceback is the evidence."""
    if isinstance(error, PlaceUnavailable):
        return Failed(UNAVAILABLE, str(error))
    reason = "".join(traceback.format_exception_only(error)).strip()
    return Failed("exception", reason, evidence="".join(traceback.format_exception(error)))


def checked(spec: StageSpec, outcome: Outcome) -> Outcome:
    """Return the outcome if it keeps to the stage's declaration."""
    if isinstance(outcome, Made) and set(outcome.fields) != set(spec.writes):
        raise ValueError(
            f"stage {spec.name} declares the fields {sorted(spec.writes)} and made {sorted(outcome.fields)}"
        )
    if isinstance(outcome, Rejected) and outcome.code not in spec.reject_codes:
        raise ValueError(f"stage {spec.name} rejected with {outcome.code!r}, which it does not declare")
    if not isinstance(outcome, Made | Rejected | Failed):
        raise TypeError(f"stage {spec.name} returned {type(outcome).__name__}, not an outcome")
    return outcome


# --

CHUNK_SECONDS = 0.25  # work that one chunk should hold: long against its transport, short against a drain
CHUNK_ITEMS, CHUNK_BYTES = 64, 1_000_000
CHUNKS_PER_WORKER = 2  # one at work and one waiting, so that no worker idles and memory stays bounded
LOST_TRIES = 3  # how often an item may be lost with the whole pool before it is called crashed
IDLE, STALL_GRACE = 0.25, 60.0  # seconds

Result = tuple[Task, Encoded]


def default_workers() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool(Protocol):
    """Where map stages run. One interface, whatever the workers are: processes here, or actors elsewhere."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """Stop its workers."""
        ...

    def run(self, job: Job, tasks: Iterable[Task], stopping: Callable[[], bool]) -> Iterator[list[Result]]:
        """Yield results in small groups as they come, in no particular order; empty ones while nothing comes.

        Whatever happens to a worker is an outcome of its item, or a new try. Once ``stopping()`` is true, no
        task is drawn any more and the work in flight is finished.

        Raises MissingRequirement: the stage needs something that is not installed.
        """
        ...


class WorkerPool:
    """Runs map stages on items. With ``workers=0`` everything runs in this process: no isolation, no timeout.

    ``workers``: worker processes; they start with the first item. ``item_timeout``: seconds that one item may
    take, times the patience of its stage.
    """

    def __init__(self, workers: int, item_timeout: float) -> None:
        self.workers = workers
        self.item_timeout = item_timeout
        self._pool: Any = None

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers; what they are at is given up."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
            pool.join()

    def run(self, job: Job, tasks: Iterable[Task], stopping: Callable[[], bool]) -> Iterator[list[Result]]:
        """Yield results in small groups as they come, in no particular order; empty ones while nothing comes.

        Tasks are drawn only as fast as workers take them. Once ``stopping()`` is true, none is drawn any more
        and the work in flight is finished.
        """
        if self.workers == 0:
            yield from run_inline(job, tasks, stopping)
            return
        flight = Flight(job, iter(tasks))
        idle = 0.0
        while True:
            while len(flight.flying) < self.workers * CHUNKS_PER_WORKER and not stopping():
                chunk = flight.next_chunk()
                if not chunk:
                    break
                flight.flying[self._schedule(job, chunk)] = chunk
            if not flight.flying:
                return
            done, _ = wait(flight.flying, IDLE, FIRST_COMPLETED)
            stopping()  # tells the user at once that a stop was heard
            idle = 0.0 if done else idle + IDLE
            if idle > self.item_timeout * job.patience + STALL_GRACE:
                self.close()  # a worker was lost in a way that nobody noticed
                flight.recall()
            yield [result for future in done for result in flight.land(future, stopping())]

    def _schedule(self, job: Job, chunk: Sequence[Task]) -> "Future[Any]":
        for _ in range(LOST_TRIES):
            if self._pool is None:
                self._pool = _new_pool(self.workers)
            try:
                future: Future[Any] = self._pool.schedule(
                    run_chunk, args=(job, chunk), timeout=self.item_timeout * job.patience
                )
            except RuntimeError:  # the pool broke down and takes nothing any more
                self.close()
            else:
                return future
        raise RuntimeError("worker processes cannot be started")


class Flight:
    """The items of one stage on their way through a pool; ``alone`` has those that must run by themselves."""

    def __init__(self, job: Job, tasks: Iterator[Task]) -> None:
        self.job = job
        self.flying: dict[Future[Any], list[Task]] = {}
        self._tasks = tasks
        self.alone: deque[Task] = deque()
        self._lost: dict[str, int] = {}
        self._size = 1

    def next_chunk(self) -> list[Task]:
        """Return the next items to send: one that has to run alone, or as many as make a good chunk."""
        if self.alone:
            return [self.alone.popleft()]
        chunk: list[Task] = []
        volume = 0
        for task in self._tasks:
            chunk.append(task)
            volume += sum(len(blob) for blob, _ in task.parts)
            if len(chunk) >= self._size or volume >= CHUNK_BYTES:
                break
        return chunk

    def recall(self) -> None:
        """Take back everything in flight, to be run again one by one."""
        for chunk in self.flying.values():
            self.alone.extend(chunk)
        self.flying.clear()

    def land(self, future: "Future[Any]", stopping: bool) -> list[Result]:
        """Return what a chunk brought: outcomes, or nothing when its items have to run again."""
        from pebble import ProcessExpired

        chunk = self.flying.pop(future)
        error = future.exception()
        if error is None:
            outcomes, seconds = future.result()
            self.pace(seconds / len(chunk))
            return list(zip(chunk, outcomes, strict=True))
        if isinstance(error, TimeoutError):
            outcome = Failed("timeout", "took longer than the time that one item may take")
        elif isinstance(error, ProcessExpired):
            outcome = Failed("crashed", f"the worker died with {_ending(error.exitcode)}")
        elif isinstance(error, BrokenProcessPool):
            outcome = Failed("crashed", "the worker died")
        else:
            raise error
        if stopping:  # may be the stop itself that killed it; the next run will tell
            return []
        if len(chunk) > 1 or self._innocent(chunk[0], error):
            self.alone.extend(chunk)
            return []
        return [(chunk[0], encode(outcome))]

    def _innocent(self, task: Task, error: BaseException) -> bool:
        """Whether an item may have gone down with others: then it gets another chance."""
        if not isinstance(error, BrokenProcessPool):
            return False
        self._lost[task.item] = self._lost.get(task.item, 0) + 1
        return self._lost[task.item] < LOST_TRIES

    def pace(self, seconds: float) -> None:
        """Choose how many items the next chunks have, from the seconds that one took."""
        fitting = int(CHUNK_SECONDS / max(seconds, 1e-6))
        self._size = max(1, min(CHUNK_ITEMS, fitting, self._size * 2))


def run_inline(job: Job, tasks: Iterable[Task], stopping: Callable[[], bool]) -> Iterator[list[Result]]:
    """Run a stage in this process, item by item."""
    from .pipeline import load_stage

    stage = load_stage(job.path)
    for task in chain(tasks):
        if stopping():
            return
        yield list(zip([task], run_items(stage, job.tools, [task]), strict=True))


def _ending(exit_code: int) -> str:
    if exit_code < 0:
        try:
            return signal.Signals(-exit_code).name
        except ValueError:
            return f"signal {-exit_code}"
    return f"exit code {exit_code}"


# -- starting workers

_starting = threading.Lock()


class _Worker(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: ANN401, N802 - the signature of multiprocessing
        with _clean_start():
            return SpawnProcess._Popen(process_obj)


class _Context(SpawnContext):
    Process = _Worker


@contextmanager
def _clean_start() -> Iterator[None]:
    """Start a worker deaf to Ctrl-C and a closed terminal, and without running the caller's script again.

    A spawned process normally imports the main module, so a script without a ``__main__`` guard would start
    the whole build once more. Stages are importable by name: nothing in the main module is needed.
    """
    maskable = hasattr(signal, "pthread_sigmask")
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {}) if maskable else set()
        try:
            if maskable:
                _be_deaf()
            yield
        finally:
            sys.modules["__main__"] = main
            if maskable:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _be_deaf() -> None:
    from multiprocessing import resource_tracker

    unheard = {signal.SIGINT, signal.SIGHUP}  # they come to the whole process group
    signal.pthread_sigmask(signal.SIG_BLOCK, unheard)
    resource_tracker.ensure_running()  # it lives as long as we do, and lifts the mask of SIGINT
    signal.pthread_sigmask(signal.SIG_BLOCK, unheard)


def _new_pool(workers: int) -> Any:  # noqa: ANN401 - pebble is loaded on use
    from pebble import ProcessPool

    return ProcessPool(max_workers=workers, initializer=watch_parent, context=_Context())
