"""What servers of pages bear with: fewer connections than descriptors, and a log that nobody can flood."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

LINES, MINUTE = 20, 60.0
"""So many lines are logged in so many seconds."""
WAIT = 20.0
"""Seconds in which the head of a request must have come, or something of an answer must have been taken."""
_FILES = 64  # descriptors that a process needs besides those of connections


def most_connections(wanted: int) -> int:
    """Return how many connections a server may have at once: each may need a file besides its socket.

    The process takes as many descriptors as that needs, where it may.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * wanted + _FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, (soft - _FILES) // 2))


class FewLines(logging.Filter):
    """Lets so many lines through in a minute; of the others the next line says how many they were."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock, self._begun, self._count = clock, clock(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is logged."""
        now = self._clock()
        if now - self._begun >= MINUTE:
            left_out, self._begun, self._count = self._count - LINES, now, 0
            if left_out > 0:
                record.msg = f"{record.getMessage()} ({left_out:,} more lines before were left out)"
                record.args = ()
        self._count += 1
        return self._count <= LINES


@contextmanager
def few_lines(*loggers: str) -> Iterator[None]:
    """Keep what some loggers log to a few lines a minute each, while the block lasts."""
    filters = {name: FewLines() for name in loggers}
    for name, few in filters.items():
        logging.getLogger(name).addFilter(few)
    try:
        yield
    finally:
        for name, few in filters.items():
            logging.getLogger(name).removeFilter(few)
