"""Hooks: what packages are told of runs, calls and scores, by the entry-point group ``fabula.hooks``.

An entry point names what is called with the folder of a run or evaluation, and returns what is called with
each event. Events are those of :class:`.progress.Event`, and three that only hooks are told of:

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

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import MissingRequirement
from ..schemas.canonical import canonical_text
from ..schemas.plugins import plugins
from .manifest import NAME as MANIFEST
from .manifest import read_manifest
from .progress import Event, Reporter

GROUP = "fabula.hooks"
"""The entry-point group in which a package names its own: ``log = "house.hooks:Log"``."""
MLFLOW = "FABULA_MLFLOW"
"""Environment variable with the folder or the address that :class:`MlflowLog` logs to; unset for none."""
Hook: TypeAlias = Callable[[Event], object]


class Hooks:
    """The hooks of one run or evaluation.

    Args:
        folder: of the run or evaluation.
        warn: told in one line of a hook that failed.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder, warn
        self._hooks: dict[str, Hook] = {}
        for entry in _entries():
            self._try(entry.name, partial(self._open, entry))

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def tell(self, event: Event) -> None:
        """Tell every hook of an event."""
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

    Args:
        reporter: who is told.
        folder: of the run.
    """

    def __init__(self, reporter: Reporter, folder: Path) -> None:
        self._reporter = reporter
        self.hooks = Hooks(folder, lambda text: reporter.emit(Event("warning", data={"message": text})))

    def emit(self, event: Event) -> None:
        """Pass an event on."""
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

    Args:
        folder: the run folder.
        store: a folder, or a server's address; None for that of the environment.
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
        """Log an event."""
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
