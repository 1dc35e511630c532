"""What the pages of a leaderboard show, as plain data: sections of tables, plots, charts, cases and links."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..evaluation.report.formats import Table
from ..evaluation.report.model import (
    Cases,
    CountRow,
    CountTable,
    Measure,
    Plot,
    PlotPoint,
    Polar,
    PolarAxis,
    PolarChart,
    ScoreRow,
    ScoreTable,
    Sector,
)
from ..schemas.text import counted
from ..schemas.values import Score
from .board import Board, seeds_of
from .checking import Checked
from .hidden import HiddenRow
from .standing import Standing

SPLIT = " · "
"""What stands between a method and a part in the rows of a table by parts."""
UNDECLARED = "undeclared"
DRAWN = ("percent", "points", "number", "plain")
"""Units of measures that a polar chart has."""


@dataclass(frozen=True)
class Line:
    """A row of the table of a board.

    Attributes:
        label: the method.
        href: its page.
        rank: its range of ranks; empty where it has none.
        best: by what the column of ranks is sorted.
        note: what stands below its name.
        declared: whether everything is declared.
        scores: by column.
        cells: other columns, in order.
    """

    label: str
    href: str
    rank: str
    best: int
    note: str
    declared: bool
    scores: tuple[Score | None, ...]
    cells: tuple[str, ...]


CELLS = (
    "Subset", "Seeds", "Outputs and replies", "Panels", "Judge calls", "Judges", "Conditions", "Model",
    "Prompt rewriting", "Overlap with training data", "Run by",
)  # fmt: skip


@dataclass(frozen=True)
class Ranking:
    """The table of a board.

    Attributes:
        id: of the table.
        title: caption.
        note: how ranks were made.
        measures: columns of scores.
        lines: rows, the best first.
    """

    id: str
    title: str
    note: str
    measures: tuple[Measure, ...]
    lines: tuple[Line, ...]
    cells: tuple[str, ...] = CELLS


@dataclass(frozen=True)
class Section:
    """A section of a page; what is empty is left out.

    Attributes:
        name: in links.
        title: of the section.
        note: what it is about.
        subset: public or hidden, for the filter; empty where it is neither.
        facts: label -> text.
        ranking: the table of a board.
        filtered: whether the filter stands before it.
        plots: in order.
        polar: polar charts.
        tables: of scores or counts.
        cases: what is behind scores.
        links: text -> address.
    """

    name: str
    title: str
    note: str = ""
    subset: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    ranking: Ranking | None = None
    plots: tuple[Plot, ...] = ()
    polar: Polar | None = None
    tables: tuple[Table, ...] = ()
    cases: Cases | None = None
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        file: where it lies in the site.
        title: its title.
        kind: what stands above the title.
        about: benchmarks and their versions.
        sections: in order.
        facts: label -> text, below the title.
        warnings: what readers must know first.
        filters: whether rows can be filtered.
        home: address of the first page; empty on it.
    """

    file: str
    title: str
    kind: str
    sections: tuple[Section, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    filters: bool = False
    home: str = ""
    about: str = ""

    @property
    def heading(self) -> str:
        """Title of the window: the benchmark is in it."""
        return self.title if self.about in self.title else f"{self.title} \N{MIDDLE DOT} {self.about}"


def board_facts(board: Board) -> dict[str, str]:
    """Return what every row of a board has in common."""
    prompts = board.protocol.get("prompts")
    count = len(prompts) if isinstance(prompts, Mapping | list) else 0
    preset = board.protocol.get("preset")
    named = preset.get("name") if isinstance(preset, Mapping) else None
    splits = ", ".join(f"{count:,} {split.replace('_', ' ')}" for split, count in board.splits.items())
    return {
        "Version": board.version,
        "Subset": subset_of(board),
        **({"Splits": splits} if splits else {}),
        "Judges": ", ".join(board.judges) or "none",
        "Conditions": conditions_of(board),
        "Prompts": str(named or (counted(count, "prompt") if count else "not recorded")),
        "Panels": "–" if board.panels is None else f"{board.panels:,}",
        "Judge calls": f"{sum(board.asked.values()):,}",
        "Least coverage": f"{board.least_coverage:.0%}",
    }


def subset_of(board: Board) -> str:
    """Return which part of a benchmark a board is about, and how large it is."""
    return f"{board.subset}, {board.units:,}"


def conditions_of(board: Board) -> str:
    """Return the evidence conditions of a board."""
    named = board.protocol.get("conditions") or sorted({what.rpartition("/")[2] for what in board.asked})
    return ", ".join(str(each).replace("_", "+") for each in named) or "–"


def ranking_of(standing: Standing) -> Ranking:
    """Return the table of a board."""
    board = standing.board
    better = {"low": ", lower is better", "high": ", higher is better"}.get(board.ranking.better or "", "")
    return Ranking(
        f"table-{board.name}",
        f"Ranked by {board.ranking.label}{better}",
        "Ranks are ranges: a method is surely better than another where the 95 % interval of their paired "
        "difference excludes zero; others share ranks. In brackets 95 % intervals.",
        board.columns,
        tuple(_line(row, standing) for row in standing.rows),
    )


def _line(row: Checked, standing: Standing) -> Line:
    submission, board, rank = row.submission, standing.board, standing.ranks[row.name]
    assert submission is not None
    missing = submission.undeclared
    note = f"{len(missing)} of {len(submission.declared())} {UNDECLARED}" if missing else "all declared"
    version = " ".join(text for text in (submission.model, submission.model_version) if text)
    dated = f"{version} ({submission.model_date})" if version and submission.model_date else version
    return Line(
        submission.method, page_of(row) or "", str(rank), rank.low, note, not missing,
        tuple(row.scores.get(measure.name) for measure in board.columns),
        (
            *_taken(board, submission.seeds, row.coverage), dated or UNDECLARED,
            submission.prompt_rewriting or UNDECLARED, submission.training_overlap or UNDECLARED,
            submission.ran_by or UNDECLARED,
        ),
    )  # fmt: skip


def _taken(board: Board, seeds: int, coverage: float | None) -> tuple[str, ...]:
    """Return what every row states: subset, seeds, coverage, panels, calls, judges, conditions."""
    calls = sum(count * seeds_of(what, seeds) for what, count in board.asked.items())
    panels = "–" if board.panels is None else f"{board.panels * seeds:,}"
    shown = (subset_of(board), str(seeds), _percent(coverage), panels, f"{calls:,}")
    return (*shown, ", ".join(board.judges) or "none", conditions_of(board))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def unranked_table(rows: Sequence[Checked]) -> CountTable:
    """Return the rows that are not ranked, with their reasons."""
    return CountTable(
        name="unranked", title="Submissions with their reasons", heading="Submission",
        note="These rows stay visible with what was found. A finding is no proof of intent.",
        columns={"board": "Board", "code": "Finding", "why": "Reason"},
        rows=tuple(_unranked(row) for row in rows),
    )  # fmt: skip


def _unranked(row: Checked) -> CountRow:
    errors = {issue.code: issue for issue in reversed(row.issues) if issue.level == "error"}
    codes = list(reversed(errors))
    shown = [f"{errors[code].message} ({errors[code].where})" for code in codes]
    if row.retraction is not None:
        shown.insert(0, f"retracted on {row.retraction.date}: {row.retraction.reason}")
        codes.insert(0, "retracted")
    board = row.board.name if row.board is not None else "none"
    return CountRow(
        label=row.name, href=page_of(row) or "",
        values={"board": board, "code": ", ".join(codes), "why": "; ".join(shown)},
    )  # fmt: skip


def page_of(row: Checked) -> str | None:
    """Return the page of a submission; None where nothing of it could be scored."""
    scored = row.submission is not None and row.board is not None and bool(row.tables)
    return f"methods/{row.name}.html" if scored else None


def interval_plot(name: str, title: str, measure: Measure, rows: Mapping[str, Score | None]) -> Plot:
    """Return the values of one measure with their intervals, one method a band."""
    better = {"low": " Further left is better.", "high": " Further right is better."}.get(
        measure.better or "", ""
    )
    return Plot(
        name=name, title=title, unit=measure.unit, note=f"Values with 95 % intervals.{better}",
        groups={
            label: (PlotPoint(series=measure.label, score=score),)
            for label, score in rows.items() if score is not None
        },
    )  # fmt: skip


def parts_of(row: Checked) -> Iterator[tuple[str, str, ScoreTable, ScoreRow]]:
    """Yield table and part, such as a dimension, with the row of the submission's method in it."""
    assert row.submission is not None
    for table in row.tables:
        if isinstance(table, ScoreTable) and table.name.startswith("by_"):
            for scored in table.rows:
                method, _, part = scored.label.partition(SPLIT)
                if part and method == row.submission.method:
                    yield table.name, part, table, scored


def first_parts(standing: Standing) -> dict[str, dict[str, ScoreRow]]:
    """Return part -> submission -> its scores, of the first table by parts that has the ranking's measure."""
    parts: dict[str, dict[str, ScoreRow]] = {}
    chosen = ""
    for row in standing.rows:
        for name, part, table, scored in parts_of(row):
            if not any(measure.name == standing.board.rank_by for measure in table.measures):
                continue
            chosen = chosen or name
            if name == chosen:
                parts.setdefault(part, {})[row.name] = scored
    return parts


def polar_of(standing: Standing) -> Polar | None:
    """Return a polar chart of each method: by parts, such as dimensions, or measures; None below three."""
    board, parts = standing.board, first_parts(standing)
    measure = board.ranking
    if len(parts) >= 3:
        values = {
            row.name: {
                part: scored[row.name].scores.get(board.rank_by)
                for part, scored in parts.items() if row.name in scored
            }
            for row in standing.rows
        }  # fmt: skip
        axes = [(part, measure) for part in parts]
        what = f"{measure.label} by part"
    else:
        axes = [
            (measured.label, measured)
            for measured in board.measures
            if measured.better and measured.unit in ("percent", "points", "number", "plain")
        ]
        values = {
            row.name: {measured.label: row.scores.get(measured.name) for _, measured in axes}
            for row in standing.rows
        }
        what = "The measures that have a good end"
    if len(axes) < 3 or not standing.rows:
        return None
    ends = {name: _ends(name, values) for name, _ in axes}
    return Polar(
        note=f"{what}; a longer sector is better. Shares reach the outer circle at their best possible "
        "value, other numbers at the best of all ranked methods. Lines across are 95 % intervals.",
        axes=tuple(
            PolarAxis(name=name, label=name, group=measured.label, digits=2, full=_full(measured, ends[name]))
            for name, measured in axes
        ),
        charts=tuple(
            PolarChart(
                method=row.submission.method if row.submission else row.name,
                sectors=tuple(
                    _sector(name, measured, values[row.name].get(name), ends[name]) for name, measured in axes
                ),
                values={name: score for name, score in values[row.name].items() if score is not None},
            )
            for row in standing.rows
        ),
    )  # fmt: skip


def _ends(name: str, values: Mapping[str, Mapping[str, Score | None]]) -> tuple[float, float]:
    there = [score.value for of in values.values() if (score := of.get(name)) and score.value is not None]
    return min(there, default=0.0), max(there, default=1.0)


def _full(measure: Measure, ends: tuple[float, float]) -> float:
    if measure.unit in ("percent", "points"):
        return 0.0 if measure.better == "low" else 1.0
    return ends[0] if measure.better == "low" else ends[1]


def _sector(name: str, measure: Measure, score: Score | None, ends: tuple[float, float]) -> Sector:
    def share(value: float | None) -> float | None:
        if value is None:
            return None
        if measure.unit in ("percent", "points"):
            length = 1 - value if measure.better == "low" else value
        else:
            length = ends[0] / value if measure.better == "low" and value else value / (ends[1] or 1.0)
        return min(1.0, max(0.0, length))

    if score is None:
        return Sector(name=name, radius=None)
    low, high = share(score.low), share(score.high)
    return Sector(name=name, radius=share(score.value), low=high if measure.better == "low" else low,
                  high=low if measure.better == "low" else high)  # fmt: skip


def hidden_ranking(board: Board, rows: Sequence[HiddenRow]) -> Ranking:
    """Return the table of a board whose rows the maintainer made with the hidden test."""
    lines = tuple(
        Line(
            row.method, "", row.rank, index, f"run by the maintainer on {row.date}", True,
            tuple(row.scores.get(measure.name) for measure in board.columns),
            (
                *_taken(board, row.seeds, row.coverage), row.model or UNDECLARED,
                row.prompt_rewriting or UNDECLARED, row.training_overlap or UNDECLARED, "the maintainer",
            ),
        )
        for index, row in enumerate(rows, 1)
    )  # fmt: skip
    better = {"low": ", lower is better", "high": ", higher is better"}.get(board.ranking.better or "", "")
    return Ranking(
        f"table-{board.name}", f"Hidden test, ranked by {board.ranking.label}{better}",
        "The maintainer ran each generator's command on the hidden stories; no archive is published. In "
        "brackets 95 % intervals.", board.columns, lines,
    )  # fmt: skip
