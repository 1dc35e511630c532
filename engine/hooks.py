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

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TypeAlias

from ..schemas.plugins import plugins
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
    ours = EntryPoint("mlflow", "fabula.engine.mlflow_log:MlflowLog", GROUP)
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
