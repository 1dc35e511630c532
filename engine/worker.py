"""What runs inside a worker process: one stage on a few items at a time.

Imported by every worker, so it imports only what all stages need; a stage brings its own libraries.
"""

import os
import threading
import time
import traceback
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import parent_process

from ..errors import MissingRequirement, PlaceUnavailable, RunError
from .journal import Encoded, encode, gather_fields
from .pipeline import Stage, load_stage
from .stage import UNAVAILABLE, Failed, Item, Made, Outcome, Rejected, StageSpec, Tools

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
