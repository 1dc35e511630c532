"""What pages share that load nothing from anywhere: their template, their style, what a browser may load."""

import base64
import hashlib
import logging
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import MissingRequirement, TargetError
from ..schemas.canonical import write_atomic, writing
from .grid import DASH, axis_title, value_text

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawn

# -- Text of others in pages: nothing in it is invisible that changes how the rest is read

LONGEST_TEXT = 600
"""Most characters of a reply or text that a page shows; the JSON and CSV files have all of it."""
# Embeddings, overrides and isolates: they can make text read in an order that is not its own.
_BIDI = frozenset((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_KEPT = "\n\t"


def readable(text: str, longest: int | None = LONGEST_TEXT) -> str:
    """Return text in which nothing is invisible that changes how the rest is read.

    Control characters, bidirectional controls and lone surrogates are replaced by their code point in
    brackets, such as ``[U+202E]``; long text is cut, and says so.
    """
    if longest is not None and len(text) > longest:
        return f"{readable(text[:longest], None)}\N{HORIZONTAL ELLIPSIS} ({len(text):,} characters in all)"
    return "".join(f"[U+{ord(letter):04X}]" if _misleads(letter) else letter for letter in text)


def isolated(text: str, longest: int | None = LONGEST_TEXT) -> "Markup":
    """Return text as a part of a page: escaped, readable, and with a direction of its own."""
    from markupsafe import Markup

    return Markup('<bdi dir="auto">{}</bdi>').format(readable(text, longest))


def broken(text: str) -> "Markup":
    """Return a name as a part of a page, escaped, that may go on in the next line behind its signs."""
    from markupsafe import Markup, escape

    shown = str(escape(readable(text)))
    for sign in "_:/":
        shown = shown.replace(sign, f"{sign}<wbr>")
    if text.startswith("$"):  # a path in JSON
        shown = shown.replace(".", "<wbr>.").replace("[", "<wbr>[")
    return Markup(shown)


def named(text: str) -> "Markup":
    """Return a name as :func:`broken` does, with a direction of its own."""
    from markupsafe import Markup

    return Markup('<bdi dir="auto">{}</bdi>').format(broken(text))


def _misleads(character: str) -> bool:
    if character in _KEPT:
        return False
    return ord(character) in _BIDI or unicodedata.category(character) in ("Cc", "Cs")


# -- What pages share that load nothing from anywhere

Part = tuple[str, str]
"""The name of a template or style sheet, and the package that it lies in."""


def base_style() -> str:
    """Return colours by day and night, text, tables and print: what forms of another design share."""
    return _shared("base.css")


@cache
def _shared(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


@cache
def style_of(name: str = "", folder: str = __package__, *parts: Part) -> str:
    """Return the style that all pages share (base, parts), that of parts from elsewhere, and a page's own."""
    own = (*parts, (name, folder)) if name else parts
    return base_style() + _shared("parts.css") + "".join(map(_read, own))


def _read(part: Part) -> str:
    name, folder = part
    return (files(folder) / name).read_text("utf-8")


def policy_of(style: str, script: str = "") -> str:
    """Return the content security policy of a page: its own style, script and pictures, nothing else."""
    scripts = f" script-src {_hash(script)};" if script else ""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)};{scripts} base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


@cache
def template_of(name: str, folder: str = __package__, *parts: Part) -> Any:  # noqa: ANN401 - jinja2 is imported late
    """Return a page template of a package, this one if no other is named; what it is given is escaped."""
    return environment({part[0]: _read(part) for part in parts}).from_string(_read((name, folder)))


def environment(parts: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - jinja2 is imported late
    """Return what renders pages: with the parts that all import, and others.

    ``parts``: name of a template -> its text.
    """
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.DictLoader({"pages.j2": _shared("pages.j2"), **(parts or {})}),
        undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "readable": readable, "story": isolated, "broken": broken, "named": named,
        "bdi": lambda text: isolated(text, None),
        "numbers": lambda names: [(name, "number") for name in names],
    }  # fmt: skip
    return made


def save_page(path: Path, text: str) -> None:
    """Write a page, with the folders on its way; a file that is there is replaced."""
    with writing(path, "choose another place for --html, or free the disk", what="the file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [text.encode("utf-8")])


# -- What servers of pages bear with: fewer connections than descriptors, and a log that nobody can flood

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


# -- Figures for papers and notebooks: the figures of pages as PNG, SVG or PDF, drawn by matplotlib

Shown: TypeAlias = Any
"""A figure of :mod:`.figures`, which needs this module."""
ENDINGS = (".png", ".svg", ".pdf")
DPI = 200  # of a PNG
INK, SOFT, LINE = "#1d1c1a", "#5b5852", "#e2ded6"
MARKS = "osD^vP"
"""Marks of series, those of pages."""
BAND = 0.62
"""Share of a band's height over which its series are spread."""
STYLE: Any = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.edgecolor": SOFT, "axes.labelcolor": INK, "text.color": INK,
    "xtick.color": SOFT, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": LINE, "legend.frameon": False,
    "text.parse_math": False, "svg.hashsalt": "fabula", "pdf.fonttype": 42,
    "figure.constrained_layout.use": True,
}  # fmt: skip
"""The font comes with matplotlib, and no file depends on the time: equal figures give equal bytes."""


def save_figure(figure: Shown, path: Path, width: float) -> Path:
    """Write a figure, in the form that the ending says; ``width`` in inches."""
    if path.suffix.lower() not in ENDINGS:
        raise TargetError(
            str(path), what=f"a figure cannot be written as {path.suffix or 'a file without an ending'}",
            fix=f"give it a name that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}",
        )  # fmt: skip
    data = figure_bytes(figure, path.suffix.lower()[1:], width)
    with writing(path, "choose another place", what="the figure"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [data])
    return path


def figure_bytes(figure: Shown, form: str, width: float) -> bytes:
    """Return a figure as png, svg or pdf."""
    from matplotlib import rc_context

    drawn, data = drawn_figure(figure, width), BytesIO()
    about: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name in a script that the font has not
        drawn.savefig(data, format=form, dpi=DPI, metadata=about)
    return data.getvalue()


def drawn_figure(figure: Shown, width: float) -> "Drawn":
    """Return a figure as one of matplotlib, to be changed further."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Drawn
    except ImportError as error:
        raise MissingRequirement(
            "matplotlib", what="it is not installed, and it draws figures for papers",
            fix='install it: pip install "fabula[figures]"',
        ) from error  # fmt: skip
    draw, rows = _HOW[type(figure).__name__]
    with rc_context(STYLE):
        drawn = Drawn(figsize=(width, rows(figure)))
        axes = drawn.add_subplot()
        draw(figure, axes)
        axes.set_title(readable(figure.title, 90), pad=10)
        if len(axes.get_legend_handles_labels()[1]) > 1:
            drawn.legend(loc="outside lower center", ncols=3)
    return drawn


def colours() -> list[str]:
    """Return the colours of series by day, as pages have them."""
    return re.findall(r"--c\d: (#[0-9a-f]{6})", base_style())[:8]


def _scale(unit: str) -> float:
    return 100.0 if unit in ("percent", "points") else 1.0


def _bands(axes: "Axes", names: list[str]) -> None:
    axes.set_yticks(range(len(names)), [readable(name, 40) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _plot(figure: Shown, axes: "Axes") -> None:
    names = list(dict.fromkeys(point.series for points in figure.groups.values() for point in points))
    scale, named = _scale(figure.unit), set[str]()
    for row, points in enumerate(figure.groups.values()):
        for position, point in enumerate(points):
            y = row + BAND * ((position + 0.5) / len(points) - 0.5)
            number, score = names.index(point.series), point.score
            if score.value is None:
                axes.text(0, y, f" {DASH} undefined", va="center", fontsize=8, color=SOFT)
                continue
            ends = None
            if score.low is not None and score.high is not None:
                ends = [[scale * (score.value - score.low)], [scale * (score.high - score.value)]]
            axes.errorbar(
                [scale * score.value], [y], xerr=ends, fmt=MARKS[number % len(MARKS)], markersize=5,
                color=colours()[number % 8], elinewidth=1.6,
                label="" if point.series in named else readable(point.series, 60),
            )  # fmt: skip
            named.add(point.series)
    axes.axvline(0, color=SOFT, linewidth=1, zorder=0)
    _bands(axes, list(figure.groups))
    axes.set_xlabel(axis_title(readable(figure.axis, 60), figure.unit))


def _ridges(figure: Shown, axes: "Axes") -> None:
    scale, whole = _scale(figure.unit), figure.unit == "count"
    edges = [scale * (edge - 0.5 * whole) for edge in figure.edges]
    shares = [[count / max(1, sum(ridge.counts)) for count in ridge.counts] for ridge in figure.ridges]
    peak = max((share for some in shares for share in some), default=0.0) or 1.0
    for row, (ridge, some) in enumerate(zip(figure.ridges, shares, strict=True)):
        heights, colour = [row + 0.4 - 0.8 * share / peak for share in some], colours()[row % 8]
        axes.stairs(heights, edges, baseline=row + 0.4, fill=True, alpha=0.4, color=colour)
        axes.stairs(heights, edges, baseline=row + 0.4, color=colour, linewidth=1.2)
        if ridge.middle is not None:
            axes.vlines(scale * ridge.middle, row - 0.4, row + 0.4, color=INK, linewidth=1.2)
    labels = [f"{ridge.label} (n = {sum(ridge.counts):,})" for ridge in figure.ridges]
    _bands(axes, labels)
    axes.set_xlabel(f"{axis_title(readable(figure.axis, 60), figure.unit)}; lines: medians")


def _heat(figure: Shown, axes: "Axes") -> None:
    from matplotlib.colors import LinearSegmentedColormap

    tones = LinearSegmentedColormap.from_list("fabula", ["#ffffff", colours()[0]])
    values = [[float("nan") if value is None else value for value in row.values] for row in figure.rows]
    if values and figure.columns:
        spread = 2 * (figure.high - figure.low) + figure.low  # numbers can be read on the darkest cell
        axes.pcolormesh(values, cmap=tones, vmin=figure.low, vmax=spread, edgecolors="white", linewidth=1.5)
        axes.set_xticks([column + 0.5 for column in range(len(figure.columns))], figure.columns)
        labels = [readable(row.label, 40) for row in figure.rows]
        axes.set_yticks([column + 0.5 for column in range(len(values))], labels)
    for row, line in enumerate(figure.rows):
        for column, value in enumerate(line.values if len(figure.columns) <= 12 else ()):
            text = value_text(value, figure.unit)
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=8)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set_xlabel(readable(figure.axis, 60))
    axes.set_ylabel(readable(figure.heading, 60))


def _scatter(figure: Shown, axes: "Axes") -> None:
    names = list(dict.fromkeys(spot.series for spot in figure.spots))
    for number, name in enumerate(names):
        own = [(100 * spot.across, 100 * spot.up) for spot in figure.spots if spot.series == name]
        axes.scatter(
            [x for x, _ in own], [y for _, y in own], marker=MARKS[number % len(MARKS)],
            color=colours()[number % 8], alpha=0.7, s=26, label=readable(name, 60),
        )  # fmt: skip
    axes.plot([0, 100], [0, 100], color=SOFT, linestyle=(0, (5, 4)), linewidth=1)
    axes.set(xlim=(-3, 103), ylim=(-3, 103), aspect="equal")
    axes.set(xlabel=f"{readable(figure.across, 60)}, %", ylabel=f"{readable(figure.up, 60)}, %")


_HOW: Mapping[str, tuple[Callable[..., None], Callable[[Any], float]]] = {
    "Plot": (_plot, lambda figure: 1.3 + sum(0.14 + 0.16 * len(some) for some in figure.groups.values())),
    "Ridges": (_ridges, lambda figure: 1.2 + 0.6 * len(figure.ridges)),
    "Heat": (_heat, lambda figure: 1.2 + 0.35 * len(figure.rows)),
    "Scatter": (_scatter, lambda _: 5.0),
}
"""Kind of figure -> how it is drawn, and its height in inches."""
