"""A hook that logs runs and scores to a folder in the layout of MLflow's file store; MLflow is not needed.

Set ``FABULA_MLFLOW=mlruns``. Each run folder is one MLflow run, whose id follows from the folder's path, so
that a run that goes on is logged on. Parameters are the settings; metrics are scores, and counts of items,
calls, tokens and USD by stage; tags name folder and pipeline. ``mlflow ui --backend-store-uri mlruns``
shows it.
"""

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ..schemas.canonical import canonical_text, write_atomic
from .hooks import MLFLOW
from .manifest import NAME as MANIFEST
from .manifest import read_manifest
from .progress import Event

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
        experiment = self._store / EXPERIMENT / "meta.yaml"
        if not experiment.exists():
            place = (self._store / EXPERIMENT).as_uri()
            about = {"experiment_id": EXPERIMENT, "name": "Default", "lifecycle_stage": "active"}
            _write(experiment, yaml.safe_dump({**about, "artifact_location": place}))
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
