"""What the functions share: options from keywords, places as paths, who takes the progress."""

import difflib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TextIO, TypeAlias, TypeVar

from ..engine.hooks import Event, JsonReporter, PlainReporter, Reporter
from ..errors import ConfigError

Place: TypeAlias = Path | str
Progress: TypeAlias = "bool | Reporter"
Options = TypeVar("Options")


def chosen(kind: type[Options], options: Options | None, given: Mapping[str, Any]) -> Options:
    """Return options of a type: those given as an object, those given by keyword before them.

    Raises:
        ConfigError: a keyword is no option, or one that the type cannot do without is missing.
    """
    check_names(given, [option.name for option in fields(kind)])  # type: ignore[arg-type]
    try:
        return kind(**given) if options is None else replace(options, **given)  # type: ignore[type-var]
    except TypeError as error:
        raise ConfigError(kind.__name__, what=str(error), fix=f"see help(fabula.{kind.__name__})") from None


def check_names(given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Check keywords against the names of options.

    Raises:
        ConfigError: one is no option; says which is like it.
    """
    for name in given:
        if name not in names:
            alike = difflib.get_close_matches(name, names, 1)
            fix = f"use {alike[0]}" if alike else f"use one of: {', '.join(sorted(names))}"
            raise ConfigError(name, what="there is no such option", fix=fix)


def listed(places: Sequence[Place] | Place) -> list[Path]:
    """Return one place or several as paths."""
    return [Path(places)] if isinstance(places, str | Path) else list(map(Path, places))


def reporter_of(progress: Progress) -> "Reporter | None":
    """Return who takes the progress: of True what fits a terminal, notebook or file, of False nobody."""
    if isinstance(progress, bool):
        return choose_reporter() if progress else None
    return progress


def teller_of(progress: Progress) -> Callable[[str], None]:
    """Return who is told in one line what is being done, where there is no run."""
    from ..engine.hooks import Event

    reporter = reporter_of(progress)
    if reporter is None:
        return lambda _: None
    return lambda line: reporter.emit(Event("note", data={"message": line}))


def released(release: Place, progress: Progress = False) -> Path:
    """Return the folder of a release: the one given, a version on a Hub, or the set of a benchmark by name.

    A version is fetched into the cache first; a benchmark must have been got before.
    """
    from ..kinds.benchmarks.getting import named_set
    from ..releases.hub.fetch import release_folder

    if (judged_by := named_set(str(release))) is not None:
        return judged_by
    return release_folder(release, teller_of(progress))


def as_paths(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options whose places are paths, the release fetched where it is a version on a Hub."""
    paths = {name: Path(options[name]) for name in ("suite", "weights", "tables") if options.get(name)}
    release = {"release": released(options["release"])} if options.get("release") else {}
    several = ("split", "define", "alias")
    lists = {name: (options[name],) for name in several if isinstance(options.get(name), str)}
    return {**options, **paths, **release, **lists}


# -- Which way a run tells how it goes: to scripts, on a terminal, in a notebook, or line by line


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
