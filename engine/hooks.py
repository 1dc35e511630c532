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
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, TypeAlias

from ..schemas.canonical import canonical_text, write_atomic
from ..schemas.plugins import plugins
from .manifest import NAME as MANIFEST
from .manifest import read_manifest
from .progress import Event, Reporter

GROUP = "fabula.hooks"
"""The entry-point group in which a package names its own: ``log = "house.hooks:Log"``."""
MLFLOW = "FABULA_MLFLOW"
"""Environment variable with the folder that :mod:`.mlflow_log` writes to; unset for none."""
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


# -- A hook that logs runs and scores to a folder in the layout of MLflow's file store; MLflow is not needed
#
# Set ``FABULA_MLFLOW=mlruns``. Each run folder is one MLflow run, whose id follows from the folder's path, so
# that a run that goes on is logged on. Parameters are the settings; metrics are scores, and counts of items,
# calls, tokens and USD by stage; tags name folder and pipeline. ``mlflow ui --backend-store-uri mlruns``
# shows it.

EXPERIMENT = "0"
"""Id of the experiment that MLflow calls Default."""
LONGEST = 6000
"""Most characters of a parameter in MLflow."""
RUNNING, FINISHED, STOPPED = 1, 3, 5
"""MLflow's numbers of a run's states."""
_OTHERS = re.compile(r"[^\w\-./ ]")


class MlflowLog:
    """Logs what is told of one run.

    Args:
        folder: the run folder.
        store: the folder of the store; None for that of the environment.
    """

    def __init__(self, folder: Path, store: Path | None = None) -> None:
        self._folder = folder.absolute()
        self._id = hashlib.sha256(str(self._folder).encode()).hexdigest()[:32]
        self._store = Path(os.environ[MLFLOW]).absolute() if store is None else store.absolute()
        self._run = self._store / EXPERIMENT / self._id
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
            self._state(FINISHED)
        elif event.kind == "score":
            self._begin({})
            rows = [row for row in event.data["rows"] if isinstance(row["value"], int | float)]
            names = [f"score/{row['table']}/{row['row']}/{row['measure']}" for row in rows]
            self._metrics({name: row["value"] for name, row in zip(names, rows, strict=True)})
            self._state(FINISHED)
        elif event.kind == "stopping":
            self._state(STOPPED)

    def _begin(self, data: Mapping[str, Any]) -> None:
        import yaml

        experiment = self._store / EXPERIMENT / "meta.yaml"
        if not experiment.exists():
            uri = (self._store / EXPERIMENT).as_uri()
            about = {"experiment_id": EXPERIMENT, "name": "Default", "lifecycle_stage": "active"}
            _write(experiment, yaml.safe_dump({**about, "artifact_location": uri}))
        for part in ("params", "metrics", "tags", "artifacts"):
            (self._run / part).mkdir(parents=True, exist_ok=True)
        if not (self._run / "meta.yaml").exists() or data:
            self._state(RUNNING)
        tags = {"mlflow.runName": self._folder.name, "fabula.folder": str(self._folder)}
        for name, text in {**tags, "fabula.pipeline": str(data.get("pipeline", ""))}.items():
            if text:
                _write(self._run / "tags" / name, text)
        if (self._folder / MANIFEST).exists():
            for name, value in _flat(read_manifest(self._folder).as_json()["settings"]):
                text = value if isinstance(value, str) else canonical_text(value)
                _write(self._run / "params" / _OTHERS.sub("_", name), text[:LONGEST])

    def _metrics(self, values: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        for name, value in values.items():
            path = self._run / "metrics" / _OTHERS.sub("_", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="ascii") as file:
                file.write(f"{now} {float(value)!r} 0\n")

    def _state(self, status: int) -> None:
        import yaml

        path, now = self._run / "meta.yaml", int(time.time() * 1000)
        begun = yaml.safe_load(path.read_text("utf-8"))["start_time"] if path.exists() else now
        about: dict[str, Any] = {
            "run_id": self._id, "run_uuid": self._id, "run_name": self._folder.name, "status": status,
            "experiment_id": EXPERIMENT, "artifact_uri": (self._run / "artifacts").as_uri(),
            "start_time": begun, "end_time": None if status == RUNNING else now, "lifecycle_stage": "active",
            "user_id": "", "source_name": "", "source_type": 4, "source_version": "", "entry_point_name": "",
            "tags": [],
        }  # fmt: skip
        _write(path, yaml.safe_dump(about))


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flat(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, [text.encode()])
