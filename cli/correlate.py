"""``fabula correlate``: how two tables of numbers correlate."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .command import command
from .common import chosen_form, show_tables

if TYPE_CHECKING:
    from ..evaluation.report.formats import Table
    from ..evaluation.stats.tables import TableCorrelations


@command("correlate")
def correlate(
    first: Path,
    second: Path,
    *,
    on: str,
    columns: str = "",
    alias: Sequence[str] = (),
    exclude: Sequence[str] = (),
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Correlate the columns of two tables.

    Rows that only one table has are left out, and so are columns with cells that are no numbers, which are
    named. Gives Pearson, Spearman and Kendall correlations with
    intervals.

    Options:
        first: A table: TSV, or CSV.
        second: Another.
        on: Columns that name a row in both tables, with commas.
        columns: FIRST:SECOND pairs of columns, with commas [those of the same name].
        alias: NAME=OTHER, for a name that the tables spell differently; or a file with such lines.
        exclude: Leave out rows of this name, or pattern such as Story*.

    Examples:
        fabula correlate judge-a.tsv judge-b.tsv --on model
        fabula correlate lite.tsv qwen.tsv --on method,model --columns pa_avg:lite_avg
    """
    from ..evaluation.stats.tables import correlate_tables, read_aliases, read_table

    form = chosen_form(form, as_json=as_json)
    tables = read_table(first), read_table(second)
    names = read_aliases(alias)
    correlations = correlate_tables(*tables, _names(on), _pairs(columns), names, exclude)
    show_tables(correlations, lambda: [_table(correlations)], form)
    return 0


def _table(made: "TableCorrelations") -> "Table":
    from ..evaluation.report.model import Measure, ScoreRow, ScoreTable
    from ..evaluation.report.people import plain_score

    names = list(dict.fromkeys(result.name for pairing in made.pairings for result in pairing.correlations))
    return ScoreTable(
        name="correlations", title="Correlations", heading="Columns",
        note=" ".join([
            f"Over {made.shared} rows shared by {', '.join(made.on)}; in brackets 95 % intervals.",
            *(f"{column}." for column in made.unread),
        ]),
        measures=tuple(Measure(name=name, label=name.capitalize(), unit="number") for name in names),
        rows=tuple(
            ScoreRow(
                label=f"{pairing.first} and {pairing.second}",
                scores={
                    result.name: plain_score(result.value, result.reason).model_copy(
                        update={"low": result.low, "high": result.high}
                    )
                    for result in pairing.correlations
                },
            )
            for pairing in made.pairings
        ),
    )  # fmt: skip


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in _names(text):
        left, colon, right = part.partition(":")
        pairs.append((left.strip(), right.strip() if colon else left.strip()))
    return pairs
