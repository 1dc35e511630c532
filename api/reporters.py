"""Which way a run tells how it goes: to scripts, on a terminal, in a notebook, or line by line."""

import logging
import os
import sys
from typing import TextIO

from ..engine.progress import Event, JsonReporter, PlainReporter, Reporter


class Quiet(PlainReporter):
    """Writes warnings only; chosen where the logger ``fabula`` is set to errors, as by ``fabula -q``."""

    def emit(self, event: Event) -> None:
        """Write a line for a warning."""
        if event.kind == "warning":
            super().emit(event)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def choose_reporter(*, as_json: bool = False, stream: TextIO | None = None) -> Reporter:
    """Return the reporter that fits: JSON when asked, a block where one can be drawn, else plain lines.

    Args:
        as_json: one JSON event a line.
        stream: where to; standard error by default, so that standard output stays free for results.
    """
    target = stream if stream is not None else sys.stderr
    if as_json:
        return JsonReporter(target)
    if stream is None and logging.getLogger("fabula").getEffectiveLevel() >= logging.ERROR:
        return Quiet(target)
    if stream is None and in_notebook():
        from .progress_block import NotebookReporter

        return NotebookReporter()
    if not can_redraw(target):
        return PlainReporter(target)
    from .progress_block import BlockReporter

    return BlockReporter(target)


def can_redraw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which lines can be drawn anew."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
