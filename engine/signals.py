"""Stopping on request: the first Ctrl-C or SIGTERM lets the work in flight finish, the second does not."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopper:
    """Whether the run was asked to stop. Call it to know."""

    def __init__(self) -> None:
        self._asked = False

    def __call__(self) -> bool:
        """Return whether the run was asked to stop."""
        return self._asked

    def ask(self) -> None:
        """Ask the run to stop as soon as what is in flight has been committed."""
        self._asked = True


@contextmanager
def stop_on_signals(stopper: Stopper, notify: Callable[[], None]) -> Iterator[None]:
    """Listen to SIGINT and SIGTERM while the block runs; outside the main thread, do nothing.

    The first signal asks the stopper and calls ``notify``, later ones raise KeyboardInterrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(*_: object) -> None:
        if stopper():
            raise KeyboardInterrupt
        stopper.ask()
        notify()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
