"""Who holds a run: one writer at a time, its owner only where there are secrets, until asked to stop.

The first Ctrl-C or SIGTERM lets the work in flight finish, the second does not.
"""

import errno
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ..errors import RunBusy
from ..schemas.canonical import canonical_bytes
from ..schemas.plain_files import read_json
from .journal_file import unwritable

LOCK, HOLDER = "run.lock", "run.holder.json"


@contextmanager
def hold(folder: Path, *, to_read: bool = False) -> Iterator[None]:
    """Hold a run folder for writing.

    ``to_read``: whether nothing of it will be changed; a medium that cannot be written needs no lock then.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise _busy(folder) from error
    except OSError as error:
        if to_read and error.errno in (errno.EROFS, errno.EACCES):
            yield
            return
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


OTHERS = 0o077
"""The rights of everybody but the owner."""


def is_private(path: Path) -> bool:
    """Whether only its owner may use a file or folder; False for one that is not there."""
    with suppress(OSError):
        return not path.stat().st_mode & OTHERS
    return False


def keep_private(folder: Path) -> None:
    """Take a folder, and all that is in it, from everybody but their owner, whatever the umask says.

    What belongs to somebody else, or lies on a file system without rights, stays as it is.
    """
    for path in (folder, *_below(folder)):
        with suppress(OSError):  # a file may go meanwhile: the journal's side files do
            if not path.is_symlink() and not is_private(path):
                path.chmod(0o700 if path.is_dir() else 0o600)


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent) / name for name in (*folders, *files))


HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""What a terminal that closes sends; Windows has no such signal."""


class Stopper:
    """Whether the run was asked to stop. Call it to know.

    ``notify``: called once, by the first call that finds the run asked to stop. Never from a signal handler:
    it may have interrupted a write to the very stream that the notice goes to.
    """

    def __init__(self, notify: Callable[[], None] = lambda: None) -> None:
        self.asked = False
        self._notify = notify
        self._told = False

    def __call__(self) -> bool:
        """Return whether the run was asked to stop."""
        if self.asked and not self._told:
            self._told = True
            self._notify()
        return self.asked

    def ask(self) -> None:
        """Ask the run to stop as soon as what is in flight has been committed."""
        self.asked = True


@contextmanager
def stop_on_signals(stopper: Stopper) -> Iterator[None]:
    """Listen to SIGINT, SIGTERM and SIGHUP while the block runs; outside the main thread, do nothing.

    The first signal asks the stopper; later ones raise KeyboardInterrupt, but for SIGHUP. A SIGHUP that was
    ignored before stays so, and one that was heard is the last: those that follow would end us before we
    have said how the run ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    terminals = _terminals()

    hung_up = False

    def handle(number: int, _: object) -> None:
        nonlocal hung_up
        if number == HANGUP:
            hung_up = True
            _let_go(terminals)
        elif stopper.asked:
            raise KeyboardInterrupt
        stopper.ask()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN:
        numbers.append(HANGUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            last = number == HANGUP and hung_up
            signal.signal(number, signal.SIG_IGN if last else handler or signal.SIG_DFL)


def _terminals() -> tuple[int, ...]:
    """Return the file numbers of our output that are terminals."""
    numbers = []
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):  # closed, or none at all
            numbers.append(stream.fileno())  # type: ignore[union-attr]
    return tuple(number for number in numbers if os.isatty(number))


def _let_go(terminals: Iterable[int]) -> None:
    """Write to nowhere what would go to a terminal that is gone, and would fail."""
    for number in terminals:
        if not os.isatty(number):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)
