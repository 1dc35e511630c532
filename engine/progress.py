"""Telling how a run goes: a block on a terminal, plain lines elsewhere, JSON lines for scripts."""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO

from ..schemas.canonical import canonical_text
from ..schemas.text import counted


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run.

    ============  =============================================================================
    kind          data
    ============  =============================================================================
    plan          before a run that asks models: ``calls`` and ``cost`` (None: unknown price) to come in a
                  new one, with the cost of each of its ``stages``, ``answered`` and ``spent`` so far in one
                  that goes on, with ``uncertain`` the part of it that requests without a reply cost at
                  most, and ``unpriced`` calls; ``max_cost`` if limited
    run           ``folder``, ``pipeline``, ``stages`` (names), ``workers``
    stage         ``items``: how many reach the stage
    progress      ``done`` of ``total`` results of the stage are on disk; where it asks models, USD
                  ``spent`` by the run so far, ``before`` or beside this stage and ``projected`` for its end,
                  and requests ``under_way``, with the seconds that the ``longest`` waits, and a model that
                  is ``loading``; where there was a plan also ``expected`` for the end of the run and the
                  ``factor`` by which the plan of stages to come was corrected. It comes before the stage
                  begins where items run ahead, and now and then while nothing is done.
    item          ``item``, ``status``, ``code``, ``reason`` of an item that was not made
    stage-done    ``made``, ``rejected``, ``failed``, ``reused``, ``ran``
    sources       ``gone``, ``corrected`` and ``added`` ids of the run that other sources have made, in a
                  ``message``
    warning       ``message``: what a person should know before the run goes on
    batch         ``message``: what happened to a ``batch`` (the service's id) of ``requests`` to a ``model``
    note          ``message``: what is being done, where there is no run
    stopping      nothing: the user asked to stop, the work in flight is being finished
    outputs       ``written``: whether the output files were written, or were up to date
    run-done      ``totals``
    ============  =============================================================================
    """

    kind: str
    stage: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


class Reporter(Protocol):
    """Who is told about events. ``emit`` is called from the thread that runs the pipeline."""

    def emit(self, event: Event) -> None:
        """Take note of an event."""

    def close(self) -> None:
        """Leave the display in order."""


class SilentReporter:
    """Tells nothing."""

    def emit(self, event: Event) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class JsonReporter:
    """Writes every event as one JSON line: ``{"event": kind, "stage": ..., ...data}``."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr

    def emit(self, event: Event) -> None:
        """Write one line."""
        line = {"event": event.kind, **({"stage": event.stage} if event.stage else {}), **event.data}
        _write(self._stream, canonical_text(line))

    def close(self) -> None:
        """Do nothing."""


def _write(stream: TextIO, line: str) -> None:
    with lasting(stream):
        stream.write(line + "\n")
        stream.flush()


@contextmanager
def lasting(stream: TextIO) -> Iterator[None]:
    """A reader that has gone away, as ``| head`` or a terminal that was closed, does not stop the run."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        # What is still buffered would fail again wherever somebody flushes, the start of a worker included.
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def waiting(under_way: int, longest: float, loading: str | None = None) -> str:
    """Return in words what requests are under way, or which model they wait for."""
    if loading is not None:
        return f"{loading} is being loaded, {longest:.0f} s so far"
    return f"{under_way:,} under way, longest {longest:.0f} s"


def _standing(event: Event) -> str:
    data = event.data
    under_way = ""
    if "under_way" in data:
        under_way = f", {waiting(data['under_way'], data['longest'], data.get('loading'))}"
    return f"{event.stage}: {data['done']} of {data['total']}{under_way}{_cost(event)}"


def _cost(event: Event) -> str:
    data = event.data
    if "spent" not in data:
        return ""
    text = f", {data['spent']:.2f} USD spent, about {data['projected']:.2f} at the end of the stage"
    if "expected" not in data:
        return text
    basis = f"from {data['done']} of {data['total']} items"
    if data["expected"] != data["projected"]:
        basis += f"; later stages as planned, times {data['factor']:.2f} as so far"
    return f"{text}, {data['expected']:.2f} in all ({basis})"


def _spent(data: Mapping[str, Any]) -> str:
    text = f"{data['spent']:.4f} USD spent"
    if data.get("uncertain"):
        text += f" or reserved for requests without a reply, which may cost up to {data['uncertain']:.4f}"
    if data.get("unpriced"):
        text += f", without {data['unpriced']} calls at a price that is not known"
    return text


def _plan_line(data: Mapping[str, Any]) -> str:
    limit = f"; the limit is {data['max_cost']:g} USD in all" if "max_cost" in data else ""
    if "answered" in data:
        return f"{data['answered']} model calls are answered, {_spent(data)}{limit}"
    cost = "at prices that are not known" if data["cost"] is None else f"about {data['cost']:.4f} USD"
    return f"about {counted(data['calls'], 'model call')} to come, {cost}{limit}"


def plain_line(event: Event) -> str | None:
    """Return what an event means in one line for people, or None where it is not worth one."""
    data = event.data
    if event.kind == "item":
        return f"  {event.stage}: {data['item']} {data['status']} ({data['code']}): {data['reason']}"
    if event.kind == "stage-done":
        problems = "".join(f", {data[name]} {name}" for name in ("rejected", "failed") if data[name])
        return f"{event.stage}: {data['made']} made{problems} ({data['ran']} run, {data['reused']} reused)"
    if event.kind == "plan":
        return _plan_line(data)
    if event.kind in ("warning", "sources", "batch", "note", "stopping", "outputs"):
        return _note(event.kind, data)
    return None


def _note(kind: str, data: Mapping[str, Any]) -> str:
    if kind == "warning":
        return f"warning: {data['message']}"
    if kind in ("sources", "batch", "note"):
        return str(data["message"])
    if kind == "stopping":
        return "stopping: finishing what is in flight; once more to stop at once"
    return "outputs written" if data["written"] else "outputs up to date"


class PlainReporter:
    """Writes lines for people, without any control characters."""

    EVERY = 10  # a progress line for every tenth of a stage
    STILL = 60.0  # seconds without a line after which what is under way is told
    WORTH = 100  # items that make progress lines worth while
    WORTH_ASKING = 50  # the same where a model is asked, which takes longer

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._told: dict[str | None, int] = {}
        self._last = clock()

    def emit(self, event: Event) -> None:
        """Write a line where the event is worth one."""
        line = plain_line(event)
        if event.kind == "stage":
            self._told.pop(event.stage, None)
        elif event.kind == "progress":
            step = event.data["done"] * self.EVERY // event.data["total"]
            worth = event.data["total"] >= (self.WORTH if "spent" not in event.data else self.WORTH_ASKING)
            still = "under_way" in event.data and self._clock() - self._last >= self.STILL
            if still or (worth and self._told.get(event.stage, 0) < step < self.EVERY):
                self._told[event.stage] = step
                line = _standing(event)
        if line is not None:
            self._last = self._clock()
            _write(self._stream, line)

    def close(self) -> None:
        """Do nothing."""
