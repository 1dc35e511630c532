"""Tables of scores and counts as text for others: CSV for scripts, Markdown and LaTeX for papers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...errors import ConfigError
from ...pages.grid import Cell, Grid, Unit, count_text, interval_text, latex_of, value_text
from ...pages.page import readable
from ...schemas.canonical import csv_text
from ...schemas.text import counted
from ...schemas.values import Score
from ..stats.paired import Paired
from .model import CountTable, Measure, ScoreRow, ScoreTable
from .people import plain_score

if TYPE_CHECKING:
    import pyarrow as pa

Table: TypeAlias = ScoreTable | CountTable
Format = Literal["text", "json", "csv", "markdown", "latex"]
"""How a result is printed: for people, whole for scripts, or its tables in one of three forms."""
Row: TypeAlias = tuple[Cell, ...]

COLUMNS = ("table", "row", "measure", "value", "low", "high", "numerator", "denominator", "status", "reason")
"""Columns of the CSV: a score or a count on a line, values as fractions."""
NUMBERS = ("value", "low", "high", "numerator", "denominator")
REMARK = "Remark"
_MARKDOWN = str.maketrans({"|": r"\|", "\n": " ", "\\": r"\\", "*": r"\*", "_": r"\_", "<": "&lt;"})


def written(tables: Iterable[Table], form: Format) -> str:
    """Return tables as CSV, Markdown or LaTeX.

    ``tables``: in order; those without a row are left out.
    """
    some = [table for table in tables if table.rows]
    if form == "csv":
        return csv_text(COLUMNS, (row for table in some for row in score_rows(table)))
    if form == "latex":
        return latex_of(map(grid_of, some))
    return "\n".join(map(_markdown, some))


def score_rows(table: Table) -> Iterator[Row]:
    """Yield the lines of a table under :data:`COLUMNS`."""
    if isinstance(table, CountTable):
        for row in table.rows:
            yield from ((table.name, row.label, name, *plain(count)) for name, count in row.values.items())
        return
    for scored in table.rows:
        yield from (
            (table.name, scored.label, name, *numbers(score)) for name, score in scored.scores.items()
        )


def long_table(tables: Iterable[Table], name: str | None = None) -> "pa.Table":
    """Return tables as one Arrow table, a number a row, under :data:`COLUMNS`; values as fractions.

    A value that is a text stands in a last column, ``text``, and has no number.

    ``tables``: in order.
    """
    import pyarrow as pa

    some = [table for table in tables if name in (None, table.name)]
    if not some and name is not None:
        fix = "use one of the names in the column table of to_pandas()"
        raise ConfigError(f"table {name}", what="there is no such table", fix=fix)
    rows = [row for table in some for row in score_rows(table)]
    texts = [row[3] if isinstance(row[3], str) else None for row in rows]
    cells = {column: [row[number] for row in rows] for number, column in enumerate(COLUMNS)}
    cells["value"] = [None if isinstance(value, str) else value for value in cells["value"]]
    kinds = {column: pa.float64() if column in NUMBERS else pa.string() for column in COLUMNS}
    return pa.table(
        {column: pa.array(values, kinds[column]) for column, values in cells.items()}
        | {"text": pa.array(texts, pa.string())}
    )


def numbers(score: Score) -> Row:
    """Return the last seven columns of a score."""
    return (
        score.value, score.low, score.high, score.numerator, score.denominator, score.status, score.reason,
    )  # fmt: skip


def plain(value: Cell) -> Row:
    """Return the last seven columns of a count or another plain value."""
    return (value, None, None, None, None, "undefined" if value is None else "ok", None)


def comparison_table(pairs: Sequence[Paired], unit: Unit, difference: str = "") -> ScoreTable:
    """Return paired comparisons as a table, p-values and effect sizes as they are.

    ``difference``: of what the differences are, for readers; empty where the rows say it.
    """
    of = f"Differences of {difference}. " if difference else ""
    units, corrections = ({getattr(pair, name) for pair in pairs} for name in ("unit", "correction"))
    ends = "; in brackets 95 % intervals" if any(pair.low is not None for pair in pairs) else ""
    return ScoreTable(
        name="comparison", title="Methods against each other", heading="First less second",
        note=f"{of}Paired by {', '.join(sorted(units))}{ends}; "
        f"p-values corrected ({', '.join(sorted(corrections))}).",
        measures=(
            Measure(name="difference", label="Difference", unit=unit),
            *p_measures(pairs),
            Measure(name="cohen_d", label="Cohen's d", unit="plain"),
            Measure(name="rank_biserial", label="Rank-biserial", unit="plain"),
        ),
        rows=tuple(_compared(pair) for pair in pairs),
    )  # fmt: skip


def p_measures(pairs: Iterable[Paired]) -> tuple[Measure, ...]:
    """Return the columns of the p-values of comparisons: signed ranks, and by which test the other is."""
    tests = sorted({pair.resampled_test for pair in pairs if pair.p_bootstrap is not None})
    return (
        Measure(name="p_wilcoxon", label="p, Wilcoxon", unit="p"),
        Measure(name="p_bootstrap", label=f"p, {' or '.join(tests) or 'bootstrap'}", unit="p"),
    )


def _compared(pair: Paired) -> ScoreRow:
    why = "undefined for these pairs"
    difference = plain_score(pair.difference, "nothing that both have")
    tests = {
        "p_wilcoxon": pair.p_wilcoxon_corrected, "p_bootstrap": pair.p_bootstrap_corrected,
        "cohen_d": pair.cohen_d, "rank_biserial": pair.rank_biserial,
    }  # fmt: skip
    return ScoreRow(
        label=" ".join([*(f"{what}:" for what in pair.about.values()), pair.first, "less", pair.second]),
        scores={
            "difference": difference.model_copy(update={"low": pair.low, "high": pair.high}),
            **{name: plain_score(value, why) for name, value in tests.items()},
        },
        note=counted(pair.n, pair.unit),
    )


def _cells(table: Table) -> Iterator[list[str]]:
    """Yield head and rows as text; remarks about rows are the last column, where there are some."""
    noted = isinstance(table, ScoreTable) and any(row.note for row in table.rows)
    if isinstance(table, CountTable):
        yield [table.heading, *table.columns.values()]
        for row in table.rows:
            yield [row.label, *(count_text(row.values.get(name)) for name in table.columns)]
        return
    yield [table.heading, *(_named(measure) for measure in table.measures), *[REMARK] * noted]
    for scored in table.rows:
        told = (
            _value(scored.scores.get(measure.name), measure.unit, scored.marks.get(measure.name, ""))
            for measure in table.measures
        )
        yield [scored.label, *told, *[scored.note or ""] * noted]


def _named(measure: Measure) -> str:
    return f"{measure.label}, %" if measure.unit == "percent" else measure.label


def _value(score: Score | None, unit: Unit, mark: str = "") -> str:
    if score is None:
        return ""
    return f"{value_text(score.value, unit)}{mark} {interval_text(score, unit)}".strip()


def _markdown(table: Table) -> str:
    head, *rows = ([readable(cell).translate(_MARKDOWN) for cell in row] for row in _cells(table))
    rule = ["---", *("---" if name == REMARK else "---:" for name in head[1:])]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
    note = [readable(table.note).translate(_MARKDOWN), ""] if table.note else []
    return "\n".join([f"**{readable(table.title).translate(_MARKDOWN)}**", "", *lines, "", *note])


def grid_of(table: Table) -> Grid:
    """Return a table as people read it: every cell a text."""
    head, *rows = (tuple(readable(cell) for cell in row) for row in _cells(table))
    remark = tuple(number for number, name in enumerate(head) if number and name == REMARK)
    return Grid(table.name, readable(table.title), head, tuple(rows), readable(table.note), remark)
