"""One writer per run: a file lock that the system releases when its holder dies, and who that is."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ..errors import RunBusy
from ..schemas.canonical import canonical_bytes
from ..schemas.plain_files import read_json
from .journal_file import unwritable

LOCK, HOLDER = "run.lock", "run.holder.json"


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold a run folder for writing.

    Raises:
        RunBusy: another process holds it; the message says which.
        TargetError: the lock file cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise _busy(folder) from error
    except OSError as error:
        raise unwritable(folder / LOCK, error) from error
    try:
        note = {"pid": os.getpid(), "host": platform.node()}
        try:
            (folder / HOLDER).write_bytes(canonical_bytes(note) + b"\n")
        except OSError as error:
            raise unwritable(folder / HOLDER, error) from error
        yield
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink(missing_ok=True)
        lock.release()


def holder(folder: Path) -> dict[str, str | int] | None:
    """Return who holds a run (``pid``, ``host``, ``since``), or None. Takes no lock.

    The note of a process that was killed stays behind; on this machine it does not count.
    """
    import psutil

    if not (folder / HOLDER).exists():
        return None
    note = _note(folder)
    gone = note["host"] == platform.node() and not psutil.pid_exists(int(note["pid"]))
    return None if gone else note


def _note(folder: Path) -> dict[str, str | int]:
    path = folder / HOLDER
    try:
        note = read_json(path, follow=True)
        # When the note was written is kept by the file system; nobody here reads a clock for it.
        since = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"pid": int(note["pid"]), "host": str(note["host"]), "since": since}
    except (OSError, ValueError, KeyError, TypeError):
        return {"pid": 0, "host": "an unknown host", "since": "a moment ago"}


def _busy(folder: Path) -> RunBusy:
    note = _note(folder)
    who = f"process {note['pid']}" if note["pid"] else "a process"
    return RunBusy(
        str(folder),
        what=f"{who} on {note['host']} has been working on this run since {note['since']}",
        fix="wait until it is done, or stop that process and start again",
    )
