"""Stopping on request: the first Ctrl-C or SIGTERM lets the work in flight finish, the second does not."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
    """Listen to SIGINT and SIGTERM while the block runs; outside the main thread, do nothing.

    The first signal asks the stopper, later ones raise KeyboardInterrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(*_: object) -> None:
        if stopper.asked:
            raise KeyboardInterrupt
        stopper.ask()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
