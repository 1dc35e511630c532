"""Every command that takes a folder, given one in which a file is a pipe, a device, huge or far too deep."""

import os
import random
import resource
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from fabula.cli.folders import TAKES
from fabula.testing.endurance import rounds
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth
from fabula.tests.cli.test_wrong_folders import ARGUMENTS, filled, folders

__all__ = ["folders"]
MEMORY = 3 << 30
"""Bytes of data that a command may have: a device or a file without end would take more."""
HOSTILE = ("pipe", "zero", "sparse", "deep")
DATA = (".json", ".jsonl", ".parquet", ".toml", ".md", ".csv", ".sqlite", ".yaml", ".txt", ".png", "")
SLOW = ("publish", "release verify", "release diff", "release pack", "build")
"""Commands whose readers have such tests of their own, or that read no folder of data."""
ARCHIVE = ("score", "report", "compare", "calibrate")


def put(path: Path, how: str) -> None:
    path.unlink()
    if how == "pipe":
        os.mkfifo(path)
    elif how == "zero":
        path.symlink_to("/dev/zero")
    elif how == "sparse":
        with path.open("wb") as file:
            file.truncate(5 << 30)
    else:
        path.write_bytes(b'{"a":' * 50_000 + b"1" + b"}" * 50_000)


@pytest.fixture(scope="module")
def all_folders(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind, and an archive of judged stories."""
    judged = write_simulated(tmp_path_factory.mktemp("judged"), 6, (("alpha", Truth()), ("beta", Truth())))
    return {**folders, "judged": judged.run}


def cases(folders: dict[str, Path]) -> list[tuple[str, str, str, str]]:
    """Parameter, kind of folder, file in it and what becomes of the file: every case there is."""
    found = []
    for parameter in ARGUMENTS:
        for kind in TAKES[parameter]:
            if kind in ("file", "folder") or parameter.startswith(SLOW):
                continue
            folder = folder_of(folders, parameter, kind)
            files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in DATA]
            names = [str(path.relative_to(folder)) for path in files]
            found += [(parameter, kind, name, how) for name in names for how in HOSTILE]
    return found


def folder_of(folders: dict[str, Path], parameter: str, kind: str) -> Path:
    return folders["judged" if kind == "archive" and parameter.startswith(ARCHIVE) else kind]


def call(starter: Any, arguments: list[str], here: Path) -> tuple[int | str, str]:
    with TemporaryFile() as out:
        started = starter.start(arguments, stdout=out, stderr=out, cwd=here)
        code: int | str = "hung"
        try:
            resource.prlimit(started.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
            with suppress(subprocess.TimeoutExpired):
                code = started.wait(120)
        finally:
            started.kill()
            started.wait()
        out.seek(0)
        return code, out.read().decode("utf-8")


@pytest.mark.endurance
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of another process")
def test_command_when_a_file_in_a_folder_is_none_or_has_no_end_says_so_at_once(
    all_folders: dict[str, Path], tmp_path: Path, starter: Any
) -> None:
    wrong, every = [], cases(all_folders)
    for number, (parameter, kind, name, how) in enumerate(spread(every, rounds(200))):
        folder = tmp_path / f"{number}"
        shutil.copytree(folder_of(all_folders, parameter, kind), folder)
        put(folder / name, how)
        names = {"": str(folder), "new": str(tmp_path / f"new-{number}")}
        names |= {one: str(path) for one, path in all_folders.items()}
        code, text = call(starter, [filled(part, names) for part in ARGUMENTS[parameter]], tmp_path)
        if code not in (0, 1, 2, 3, 5) or "Traceback" in text:
            wrong.append((parameter, kind, name, how, code, text[-1500:]))
        shutil.rmtree(folder)
    assert wrong == []


def spread(every: list[tuple[str, str, str, str]], count: int) -> list[tuple[str, str, str, str]]:
    """As many as asked for, from the whole list, the same ones each time."""
    return random.Random(1).sample(every, min(count, len(every)))
