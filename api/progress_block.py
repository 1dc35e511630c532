"""Progress in one block that is drawn anew where it stands: on a terminal, or below a notebook's cell."""

import html
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..engine.hooks import Event, lasting, plain_line, waiting
from ..schemas.text import tallied

INTERVAL = 0.25
"""Least seconds between two drawings."""
WINDOW = 60.0
"""The rate is that of the last so many seconds."""
SETTLED = 2.0
"""Seconds after which a stage's rate says something."""
WIDTH = 99
"""Most columns that the block takes, whatever the terminal has."""


class Standing:
    """Where a run stands, in a few short lines made of its events.

    Args:
        clock: seconds, which only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit: float | None = None
        self.forget()

    def forget(self) -> None:
        """Begin anew: a run has ended."""
        self.stage: str | None = None
        self.done = 0
        self.total: int | None = None
        self._stages: tuple[str, ...] = ()
        self._items: int = 0
        self._money: dict[str, float] = {}
        self._loading: str | None = None  # the model that they wait for
        self._waiting: tuple[int, float] | None = None  # requests under way, and since when the longest is
        self._begun = self._clock()
        self._marks = deque([(self._begun, 0)])
        self._stopping = False

    def note(self, event: Event) -> None:
        """Take note of an event."""
        if event.kind == "plan":
            self._limit = event.data.get("max_cost")
        elif event.kind == "run":
            self.forget()
            self._stages = tuple(event.data["stages"])
        elif event.kind == "stage":
            self._enter(event.stage, 0)
            self._items, self._waiting = event.data["items"], None
        elif event.kind == "progress":
            if event.stage != self.stage and self.done == self.total:  # items that run ahead
                self._enter(event.stage, event.data["done"])
            self._advance(event)
        elif event.kind == "stopping":
            self._stopping = True

    def _enter(self, stage: str | None, done: int) -> None:
        self.stage, self.done, self.total = stage, done, None
        self._marks = deque([(self._clock(), done)])

    def _advance(self, event: Event) -> None:
        now, data = self._clock(), event.data
        names = ("spent", "projected", "expected")
        self._money = {name: data[name] for name in names if name in data} or self._money
        self._waiting = (data["under_way"], now - data["longest"]) if "under_way" in data else None
        self._loading = data.get("loading")
        if event.stage != self.stage:
            return
        self.done, self.total = data["done"], data["total"]
        if now - self._marks[-1][0] >= INTERVAL or len(self._marks) == 1:
            self._marks.append((now, self.done))
        while len(self._marks) > 2 and now - self._marks[1][0] > WINDOW:
            self._marks.popleft()

    def count(self) -> str:
        """Return how far the stage is: 340 of 1,000."""
        if self.total is None:
            return tallied(self._items, "items")
        return f"{self.done:,} of {self.total:,}"

    def lines(self) -> list[str]:
        """Return what stands below the stage's name and count: its pace, and the money."""
        pace = [f"{_duration(self._clock() - self._begun)} since the start"]
        if self.stage in self._stages:
            pace.insert(0, f"stage {self._stages.index(self.stage) + 1} of {len(self._stages)}")
        rate = self._rate()
        if rate and self.total is not None:
            pace[-1:-1] = [
                _pace(rate),
                f"about {_duration((self.total - self.done) / rate)} left of this stage",
            ]
        if self._stopping:
            pace = ["stopping: finishing what is in flight"]
        told = [self._cost()] if self._money else []
        if self._waiting is not None:
            told.insert(0, waiting(self._waiting[0], self._clock() - self._waiting[1], self._loading))
        return [", ".join(pace), *(["; ".join(told)] if told else [])]

    def _rate(self) -> float | None:
        """Return results a second; None while too few came to say."""
        begun, before = self._marks[0]
        seconds = self._clock() - begun
        return (self.done - before) / seconds if self.done > before and seconds >= SETTLED else None

    def _cost(self) -> str:
        money = self._money
        limit = "" if self._limit is None else f" of at most {self._limit:,.2f}"
        text = f"{money['spent']:,.2f} USD spent{limit}, about {money['projected']:,.2f} after this stage"
        return text if "expected" not in money else f"{text}, {money['expected']:,.2f} in all"


def _pace(rate: float) -> str:
    unit, seconds = ("s", 1) if rate >= 1 else ("min", 60) if rate >= 1 / 60 else ("h", 3600)
    return f"{rate * seconds:,.{0 if rate * seconds >= 100 else 1}f}/{unit}"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class _Terminal(Console):
    """A terminal that keeps its cursor: whoever is killed could not give it back."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002 - the signature of rich
        """Leave the cursor as it is."""
        return False


class BlockReporter:
    """Shows the stage at work in a block of a few lines, and above it lines for what is done or went wrong.

    A thread draws it a few times a second at most, and only where something changed. What happens in
    between costs the run nothing.

    Args:
        stream: a terminal; standard error by default.
        clock: seconds, which only grow.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._console = _Terminal(file=self._stream, highlight=False)
        self._standing = Standing(clock)
        self._lines: deque[str] = deque()  # appended to by whoever emits, a handler of signals among them
        self._live: Live | None = None
        self._drawer: threading.Thread | None = None
        self._ending = threading.Event()
        self._shown: object = None

    def emit(self, event: Event) -> None:
        """Take note of an event; it is shown within a moment."""
        self._standing.note(event)
        line = plain_line(event)
        if line is not None:
            self._lines.append(line)
        if self._drawer is None:
            if event.kind == "stage":
                self._start()
            else:
                self._draw()

    def close(self) -> None:
        """Show the lines that are left, and take the block away."""
        if self._drawer is not None:
            self._ending.set()
            self._drawer.join()
            self._drawer = None
        self._draw()
        if self._live is not None:
            with lasting(self._stream):
                self._live.stop()
            self._live = None
        self._standing.forget()

    def _start(self) -> None:
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, get_renderable=self._block,
            redirect_stdout=sys.stdout.isatty(), vertical_overflow="crop",
        )  # fmt: skip
        with lasting(self._stream):
            self._live.start()
        self._ending.clear()
        self._drawer = threading.Thread(target=self._keep_drawing, name="progress", daemon=True)
        self._drawer.start()

    def _keep_drawing(self) -> None:
        while not self._ending.wait(INTERVAL):
            self._draw()

    def _draw(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        shown = (self._standing.count(), *self._standing.lines(), self._console.size)
        if not lines and (self._live is None or shown == self._shown):
            return
        self._shown = shown
        with lasting(self._stream), self._console:
            if lines:
                self._console.print("\n".join(lines), markup=False, soft_wrap=True)
            if self._live is not None:
                self._live.refresh()

    def _block(self) -> Group:
        standing = self._standing
        head = Table.grid(padding=(0, 1))
        for _ in range(3):
            head.add_column(no_wrap=True, overflow="crop")
        bar = ProgressBar(standing.total or 1, standing.done, width=max(4, min(40, self._width() - 50)))
        head.add_row(standing.stage, *([bar] if standing.total else []), standing.count())
        lines = [Text(line[: self._width()], no_wrap=True, overflow="crop") for line in standing.lines()]
        return Group(head, *lines)

    def _width(self) -> int:
        return max(1, min(WIDTH, self._console.width - 1))


class NotebookReporter:
    """Shows the stage at work below the last lines, in the output of a notebook's cell.

    It draws in the thread that tells it, a few times a second at most: a notebook puts what another thread
    shows into whatever cell runs by then.
    """

    SHOWN = 12  # lines

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        shown: Any = import_module("IPython.display")
        self._html, self._lines = shown.HTML, list[str]()
        self._shown = shown.display(shown.HTML(""), display_id=True)
        self._standing, self._clock, self._drawn = Standing(clock), clock, -INTERVAL

    def emit(self, event: Event) -> None:
        """Move the bar, or add a line."""
        self._standing.note(event)
        line = plain_line(event)
        if line is not None:
            self._lines.append(line)
        if line is not None or (event.kind == "progress" and self._clock() - self._drawn >= INTERVAL):
            self._draw(at_work=event.kind != "stage-done")

    def close(self) -> None:
        """Take the bar away; the lines stay."""
        self._draw(at_work=False)

    def _draw(self, *, at_work: bool) -> None:
        self._drawn = self._clock()
        lines = html.escape("\n".join(self._lines[-self.SHOWN :]))
        text = f'<pre style="margin: 0">{lines}</pre>'
        standing = self._standing
        if at_work and standing.total:
            bar = f'<progress value="{standing.done}" max="{standing.total}"></progress>'
            said = html.escape("; ".join([f"{standing.stage}: {standing.count()}", *standing.lines()]))
            text += f"{bar} {said}"
        self._shown.update(self._html(text))
