"""Stopping on request: the first Ctrl-C or SIGTERM lets the work in flight finish, the second does not.

A terminal that closes, or a connection that breaks, sends SIGHUP: often several times, and never because
somebody insists. The first one asks to stop, and the others mean nothing. Under ``nohup`` none is heard.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""What a terminal that closes sends; Windows has no such signal."""


class Stopper:
    """Whether the run was asked to stop. Call it to know.

    Args:
        notify: called once, by the first call that finds the run asked to stop. Never from a signal handler:
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
