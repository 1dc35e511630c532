"""Killing a command at a moment of its own telling, for tests of what a kill leaves."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def kill_after(start: Callable[..., Any], events: int) -> tuple[int, list[dict[str, Any]]]:
    """Start a command, kill it after so many lines of its progress; return exit code and what it told.

    Args:
        start: starts the command, with ``--json``, given ``stdout`` and ``stderr``. Its workers follow it.
        events: lines on its standard error before it is killed.
    """
    told = []
    read, write = os.pipe()
    with Path(os.devnull).open("wb") as nowhere:
        child = start(stdout=nowhere, stderr=write)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if line.startswith("{"):
                told.append(json.loads(line))
            if number >= events:
                break
        with suppress(ProcessLookupError):  # it has ended by itself
            child.kill()
        return child.wait(), told
