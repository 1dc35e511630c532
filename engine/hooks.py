"""Hooks: what packages are told of runs, calls and scores, by the entry-point group ``fabula.hooks``.

An entry point names what is called with the folder of a run or evaluation, and returns what is called with
each event. Events are those of :class:`.hooks.Event`, and three that only hooks are told of:

=========  ==================================================================================
kind       data
=========  ==================================================================================
item-done  ``item``, ``status``, ``code``, ``reason`` of an item that a map stage has finished
call       of one call of a model whose reply is on disk, also where it came in a batch: ``model``,
           ``outcome``, ``attempts``, ``input_tokens``, ``output_tokens``, ``cost`` (USD; None where it is
           not known)
score      of scores that were computed: ``rows``, each with the columns of ``fabula score --format csv``
=========  ==================================================================================

They are called in the thread that executes the run, one after the other. One that raises never stops a run:
that is told once in a warning, and the hook hears nothing more of this run.
"""

import errno
import hashlib
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeAlias

from ..errors import MissingRequirement
from ..schemas.canonical import canonical_text
from ..schemas.plugins import plugins
from ..schemas.text import counted
from .manifest import NAME as MANIFEST
from .manifest import read_manifest

# -- Telling how a run goes: a block on a terminal, plain lines elsewhere, JSON lines for scripts


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


# --

GROUP = "fabula.hooks"
"""The entry-point group in which a package names its own: ``log = "house.hooks:Log"``."""
MLFLOW = "FABULA_MLFLOW"
"""Environment variable with the folder or the address that :class:`MlflowLog` logs to; unset for none."""
Hook: TypeAlias = Callable[[Event], object]


class Hooks:
    """The hooks of one run or evaluation.

    ``folder``: of the run or evaluation. ``warn``: told in one line of a hook that failed.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder, warn
        self._hooks: dict[str, Hook] = {}
        for entry in _entries():
            self._try(entry.name, partial(self._open, entry))

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def tell(self, event: Event) -> None:
        for name, hook in list(self._hooks.items()):
            self._try(name, partial(hook, event))

    def _open(self, entry: EntryPoint) -> None:
        self._hooks[entry.name] = entry.load()(self._folder)

    def _try(self, name: str, step: Callable[[], object]) -> None:
        try:
            step()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a hook does, the run goes on
            self._hooks.pop(name, None)
            said = f"{type(error).__name__}: {error}"
            self._warn(f"the hook {name} failed and is told nothing more of this run: {said}")


def _entries() -> tuple[EntryPoint, ...]:
    ours = EntryPoint("mlflow", "fabula.engine.hooks:MlflowLog", GROUP)
    return (*((ours,) if os.environ.get(MLFLOW) else ()), *plugins(GROUP))


class Hooked:
    """A reporter whose events hooks are told as well.

    ``folder``: of the run.
    """

    def __init__(self, reporter: Reporter, folder: Path) -> None:
        self._reporter = reporter
        self.hooks = Hooks(folder, lambda text: reporter.emit(Event("warning", data={"message": text})))

    def emit(self, event: Event) -> None:
        self._reporter.emit(event)
        self.hooks.tell(event)

    def close(self) -> None:
        """Leave the display in order."""
        self._reporter.close()


# -- A hook that logs runs and scores to MLflow, through ``mlflow-skinny``
#
# Set ``FABULA_MLFLOW=mlruns``, or to the address of a server. Each run folder is one MLflow run, known by the
# folder's path, so that a run that goes on is logged on. Parameters are the settings; metrics are scores, and
# counts of items, calls, tokens and USD by stage; tags name folder and pipeline.

EXPERIMENT = "0"
"""Id of the experiment that MLflow calls Default."""
FOLDER = "fabula.folder"
"""The tag with the path of the run folder."""
LONGEST, TOGETHER = 6000, 100
"""Most characters of a parameter in MLflow, and most parameters, metrics or tags of one request."""
_OTHERS = re.compile(r"[^\w\-./ ]")


class MlflowLog:
    """Logs what is told of one run.

    ``folder``: the run folder. ``store``: a folder, or a server's address; None for that of the environment.
    """

    def __init__(self, folder: Path, store: str | None = None) -> None:
        # A store of files has to be allowed since 3.7, and nothing is to be told to MLflow's makers.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise MissingRequirement(
                MLFLOW, what="mlflow is not installed", fix='pip install "fabula[mlflow]"'
            ) from error
        address = os.environ[MLFLOW] if store is None else store
        self._folder = folder.absolute()
        self._client = MlflowClient(address if "://" in address else Path(address).absolute().as_uri())
        self._id: str | None = None
        self._used: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        if event.kind == "run":
            self._begin(event.data)
        elif event.kind == "stage-done":
            counts = {name: event.data[name] for name in ("made", "rejected", "failed", "reused", "ran")}
            self._metrics({f"{event.stage}/{name}": value for name, value in counts.items()})
            used = {name: value for name, value in self._used.items() if name.startswith(f"{event.stage}/")}
            self._metrics(used)
        elif event.kind == "call":
            for name in ("input_tokens", "output_tokens", "cost"):
                self._used[f"{event.stage}/{name}"] += event.data[name] or 0
            self._used[f"{event.stage}/calls"] += 1
        elif event.kind == "run-done":
            self._metrics({f"items/{name}": value for name, value in event.data["totals"].items()})
            self._end("FINISHED")
        elif event.kind == "score":
            self._begin({})
            rows = [row for row in event.data["rows"] if isinstance(row["value"], int | float)]
            names = [f"score/{row['table']}/{row['row']}/{row['measure']}" for row in rows]
            self._metrics({name: row["value"] for name, row in zip(names, rows, strict=True)})
            self._end("FINISHED")
        elif event.kind == "stopping":
            self._end("KILLED")

    def _begin(self, data: Mapping[str, Any]) -> None:
        from mlflow.entities import Param, RunTag

        # By the hash: a path may hold what the language of filters has no way to write.
        name, known = "fabula.run", hashlib.sha256(str(self._folder).encode()).hexdigest()
        runs = self._client.search_runs([EXPERIMENT], filter_string=f"tags.`{name}` = '{known}'")
        run = runs[0] if runs else self._client.create_run(EXPERIMENT, run_name=self._folder.name)
        self._id = run.info.run_id
        self._client.update_run(self._id, status="RUNNING")
        tags = {name: known, FOLDER: str(self._folder), "fabula.pipeline": str(data.get("pipeline", ""))}
        params = {}
        if (self._folder / MANIFEST).exists():
            for full, value in _flat(read_manifest(self._folder).as_json()["settings"]):
                text = (value if isinstance(value, str) else canonical_text(value))[:LONGEST]
                setting = _OTHERS.sub("_", full)
                logged = run.data.params.get(setting)
                if logged is None:
                    params[setting] = text
                elif logged != text:  # MLflow lets no parameter change: what counts since is a tag
                    tags[setting] = text
        for some in _some([RunTag(key, text) for key, text in tags.items() if text]):
            self._client.log_batch(self._id, tags=some)
        for some in _some([Param(key, text) for key, text in params.items()]):
            self._client.log_batch(self._id, params=some)

    def _metrics(self, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(_OTHERS.sub("_", name), float(value), now, 0) for name, value in values.items()]
        for some in _some(metrics):
            self._client.log_batch(self._id, metrics=some)

    def _end(self, status: str) -> None:
        self._client.set_terminated(self._id, status)


def _some(entries: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (entries[at : at + TOGETHER] for at in range(0, len(entries), TOGETHER))


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flat(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, value
