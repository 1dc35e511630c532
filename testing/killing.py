"""Killing a command at a moment of its own telling, for tests of what a kill leaves."""

import json
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any


def kill_after(start: Callable[..., Any], events: int) -> tuple[int, list[dict[str, Any]]]:
    """Start a command, kill it after so many lines of its progress; return exit code and what it told."""
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


# Comparing the folders of two runs, byte for byte; a difference is told by the names of files.

_OWN = ("journal.sqlite", ".lock", "run.lock")


def differing(first: Path, second: Path, without: Collection[str] = ()) -> list[str]:
    """Return the names of files that two runs do not have alike."""
    files = [_files_of(folder, without) for folder in (first, second)]
    if not all(files):
        raise ValueError(f"there is nothing to compare in {first} or {second}")
    return sorted(
        name for name in files[0].keys() | files[1].keys() if files[0].get(name) != files[1].get(name)
    )


def _files_of(run: Path, without: Collection[str]) -> dict[str, bytes]:
    return {
        name: path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and not path.name.startswith(_OWN)
        if (name := path.relative_to(run).as_posix()) not in without
    }
