"""An evaluation and what becomes of it, as objects: replies, scores, comparison, report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluation.archive.archive import read_manifest
from ..evaluation.protocol import Compared, Shown
from ..evaluation.report.formats import Table, grid_of, long_table
from ..pages.grid import Grid, Tabular
from ..schemas.judgement import EvaluationManifest
from .calling import as_paths

if TYPE_CHECKING:
    import pyarrow as pa

    from ..engine.status import RunReport
    from ..evaluation.report.formats import Written
    from ..pages.figures import Figure

JUDGEMENTS = "judgements"
"""The name of the table with a row for every reply."""


@dataclass(frozen=True, slots=True)
class Evaluation(Tabular):
    """An evaluation: what was judged, by whom, and every reply.

    ``to_pandas()``, ``to_polars()`` and ``to_arrow()`` have a row for every reply; see
    :func:`fabula.api.frames.judgement_table`. ``to_pandas("judges")`` and ``("methods")`` count them.
    """

    folder: Path  # the evaluation folder
    manifest: EvaluationManifest = field(repr=False)  # its ``evaluation.json``
    # how the run ended, where it was made by this call; None where it was loaded
    run: "RunReport | None" = field(default=None, repr=False)

    def grids(self) -> Iterator[Grid]:
        """Yield the methods and the judges, with what was asked and what came back."""
        yield _counted(
            "methods", f"Methods judged ({self.manifest.kind})", self.manifest.subject.get("methods")
        )
        judges = self.manifest.environment.get("judges") or {}
        outcomes = {name: counts.get("outcomes", {}) for name, counts in judges.items()}
        yield _counted("judges", "Replies of judges", outcomes)

    def to_arrow(self, name: str | None = None) -> "pa.Table":
        """Return the replies, a row each; or one of its tables by name.

        Raises:
            InputError: the archive cannot be read.
        """
        if name not in (None, JUDGEMENTS):
            return Tabular.to_arrow(self, name)
        from .frames import judgement_table

        return judgement_table(self.folder)

    def score(self, **options: Any) -> "Scores":  # noqa: ANN401 - as fabula.score has them
        """Return its scores; see :func:`fabula.score`."""
        return scores_of(self.folder, options)


@dataclass(frozen=True, slots=True, repr=False)
class _Scored(Tabular):
    """Numbers of an evaluation that are tables.

    Frames have a number a row, with its interval and what it was counted from; values are fractions.
    """

    tables: tuple[Table, ...]

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(table.name for table in self.tables if table.rows))
        return f"{type(self).__name__}(tables: {names or 'none'})"

    def __str__(self) -> str:
        """Return what the command prints for people."""
        return "\n".join(self._printed().lines())

    def _printed(self) -> Shown:
        raise NotImplementedError

    def grids(self) -> Iterator[Grid]:
        """Yield its tables as people read them."""
        return (grid_of(table) for table in self.tables if table.rows)

    def to_arrow(self, name: str | None = None) -> "pa.Table":
        """Return every number on a row: table, row, measure, value, interval, counts, status and reason.

        Args:
            name: only the tables of this name; all by default.
        """
        return long_table(self.tables, name)


@dataclass(frozen=True, slots=True, repr=False)
class Scores(_Scored):
    """The scores of an evaluation.

    Attributes:
        tables: the scores as tables, the main one first.
        folder: the evaluation folder.
        result: what the protocol's own scoring returned.
    """

    folder: Path
    result: Shown

    def remarks(self) -> tuple[str, ...]:
        """Return what was judged, by whom, with which definitions, and what readers must know."""
        from ..kinds.evaluations import remarks_on

        return remarks_on(self.result, self.folder)

    def _printed(self) -> Shown:
        return self.result

    def as_json(self) -> dict[str, Any]:
        """Return them as ``fabula score --json`` prints them."""
        return self.result.as_json()


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(_Scored):
    """Methods against each other, in paired tests.

    Attributes:
        tables: the comparisons as tables.
        folders: the evaluation folders.
        result: what the protocol's own comparing returned; ``result.comparisons`` are the paired tests.
    """

    folders: tuple[Path, ...]
    result: Compared

    def remarks(self) -> tuple[str, ...]:
        """Return what was judged, by whom, with which definitions, and what readers must know."""
        from ..kinds.evaluations import remarks_on

        return remarks_on(self.result, *self.folders)

    def _printed(self) -> Shown:
        return self.result

    def as_json(self) -> dict[str, Any]:
        """Return them as ``fabula compare --json`` prints them."""
        return self.result.as_json()


@dataclass(frozen=True, slots=True, repr=False)
class Report(_Scored):
    """A report that was written.

    Attributes:
        tables: its tables, the main one first.
        written: the report as data, and its files; the page comes first.
    """

    written: "Written"

    def _printed(self) -> Shown:
        return self.written

    @property
    def page(self) -> Path:
        """The page, one file that needs no network."""
        return next(iter(self.written.files.values()))

    @property
    def figures(self) -> "Mapping[str, Figure]":
        """The figures of the page by name; ``figures["gaps"].save("gaps.pdf")`` writes one for a paper."""
        shown = self.written.document
        return {figure.name: figure for figure in (*shown.plots, *shown.figures, *shown.people_figures)}


def scores_of(folder: Path, options: Mapping[str, Any]) -> Scores:
    """Return the scores of an evaluation; options as :func:`fabula.score` has them."""
    from ..kinds import evaluations as verbs

    made = verbs.score(folder, as_paths(options))
    return Scores(verbs.tables_of(folder, made, options.get("least_coverage")), folder, made)


def open_evaluation(folder: Path, run: "RunReport | None" = None) -> Evaluation:
    """Return an evaluation that lies in a folder.

    Raises:
        InputError: its manifest cannot be read.
    """
    return Evaluation(folder, read_manifest(folder), run)


def _counted(name: str, title: str, rows: Any) -> Grid:  # noqa: ANN401 - a part of a manifest
    """Return counts by row and name; what is no count is left out."""
    parts = rows if isinstance(rows, dict) else {}
    counts = {
        label: {key: value for key, value in part.items() if isinstance(value, int)}
        for label, part in parts.items()
        if isinstance(part, dict)
    }
    columns = tuple(dict.fromkeys(key for part in counts.values() for key in part))
    cells = tuple((label, *(part.get(key, 0) for key in columns)) for label, part in counts.items())
    return Grid(name, title, (name[:-1], *columns), cells)
