"""How outputs are evaluated against a kind: the part that the verbs of evaluation take."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from typing import Protocol as Interface

from ..releases.loading import Release, load
from .archive.archive import ArchiveForm

if TYPE_CHECKING:
    from ..engine.running import RunKind
    from ..pages.grid import Unit
    from .report.formats import Table
    from .report.model import ReportDocument
    from .stats.uncertainty import Paired

UNCERTAINTY = ("seed", "interval", "correction")
"""Options of :class:`.stats.uncertainty.Uncertainty` that every protocol has, besides ``resamples``."""


class Shown(Interface):
    """A result that can be shown to people and to scripts."""

    def as_json(self) -> dict[str, Any]: ...

    def lines(self) -> Iterable[str]: ...


class Compared(Shown, Interface):
    """Methods against each other."""

    @property
    def comparisons(self) -> "tuple[Paired, ...]":
        """The paired comparisons, corrected together."""
        ...


class StillValid(Shown, Interface):
    """Which judgements stay valid, as a table as well."""

    def table(self) -> list[list[str]]:
        """Return the counts as rows of text, the head first."""
        ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the user chose of how an evaluation is scored, compared or shown."""

    # option -> its value, of those that were given; ``split`` is that of ``--split``
    options: Mapping[str, Any] = field(default_factory=dict)
    # reads a release of any kind as stories with recoverability questions
    stories: Callable[[Path], Release] = load

    def of(self, *names: str) -> dict[str, Any]:
        """Return those of some options that were given."""
        return {name: self.options[name] for name in names if name in self.options}


def later(place: str) -> Callable[..., Any]:
    """Return the function ``module:name`` below :mod:`fabula.evaluation`, imported at its first call.

    What makes pages and tables is not needed to score.
    """

    def call(*given: Any) -> Any:  # noqa: ANN401 - as the function has it
        module, _, name = place.partition(":")
        return getattr(import_module(f".{module}", __package__), name)(*given)

    return call


@dataclass(frozen=True, slots=True)
class Scoring:
    """How evaluations under a protocol become numbers and a page; no model is asked."""

    title: str  # what is judged, for people, with the name of the protocol: ``videos (events)``
    score: Callable[[Path, Chosen], Shown]  # evaluation folder -> its scores
    # two folders, and what may differ -> their methods against each other
    compare: Callable[[Path, Path, Chosen, Collection[str]], Compared]
    # evaluation folder -> what its page shows; None where there is no page
    report: Callable[[Path, Chosen], "ReportDocument"] | None = None
    # evaluation folder, release that it judged, another version -> which judgements stay valid; None where
    # nobody can say
    affected: Callable[[Path, Path, Path, Chosen], "StillValid"] | None = None
    options: tuple[str, ...] = ()  # options of scoring and comparing that it has and not every protocol
    of_report: tuple[str, ...] = ("release", "outputs")  # those of the page
    # scores -> them as tables, for papers and spreadsheets
    tables: Callable[[Any], Iterable["Table"]] | None = None
    # scores -> the main ones as a table with a row for each method, as leaderboards show them; None where
    # that is the first table
    by_method: Callable[[Any], "Table"] | None = None
    # methods against each other -> as tables; None for one table of the paired comparisons
    compared: Callable[[Any], Iterable["Table"]] | None = None
    # what ``fabula calibrate`` found, as JSON -> it as tables
    of_people: Callable[[Mapping[str, Any]], Iterable["Table"]] | None = None
    unit: "Unit" = "points"  # how differences of methods are printed
    # published protocol that judges were asked under -> options that have its code's definitions of scores;
    # one that is given wins
    published: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # evaluation folder -> the methods in it against each other; None where comparing a folder with itself
    # gives that
    within: Callable[[Path, Chosen], Compared] | None = None
    difference: str = ""  # of what the differences of methods are, for readers; empty where there are several
    # measure of its first table by whose differences methods are compared; empty where there are several
    compared_by: str = ""


def _not_scored() -> Scoring:
    raise NotImplementedError("neither the kind nor its protocol says how archives are scored")


@dataclass(frozen=True, slots=True)
class Protocol:
    """How outputs are evaluated against the records of a kind."""

    run: "RunKind"  # what executes its evaluations
    archive: ArchiveForm  # what its archives have besides judgements and manifest
    # how an archive becomes numbers and a page, where the kind does not say so
    scoring: Callable[[], Scoring] = _not_scored
    # sections of a settings file that it reads besides those of its stages
    sections: frozenset[str] = frozenset()
