"""``fabula stats``: counts and distributions beside the published targets."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from .command import command
from .common import chosen_form, released, show_tables
from .exports import usable_set

if TYPE_CHECKING:
    from ..evaluation.report.model import CountTable
    from ..releases.katha.reviews import ShownTable
    from ..validators.entities.statistics import EntityStatistics
    from ..validators.entities.tables import Row, Table


@command("stats", owners="cli.stats:owners_of_counts")
def stats(
    path: Path,
    *,
    html: Path | None = None,
    split: str | None = None,
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Count records and compare each distribution with its target.

    Of a release that people reviewed, print the tables of the review, too. For episodes, print the tables of
    the EntityBench paper by tier, and below each the paper's own numbers.

    Options:
        path: Run, release, JSONL file, suite (.json), shot scripts, episodes.
        html: Also write tables and distributions as one page here.
        split: Split file of the tiers [that of most episodes].

    Examples:
        fabula stats runs/mine
        fabula stats dist/mine-0.1.0 --json
        fabula stats all_prompts.json
        fabula stats runs/eb --html eb.html
        fabula stats runs/eb --format latex
    """
    from ..kinds.verbs import count

    form = chosen_form(form, as_json=as_json)
    folder = released(path)
    code = entity_stats(folder, html, split, form)
    if code is not None:
        return code
    wrong = [f"--{name}" for name in owners_of_counts() if {"html": html, "split": split}[name] is not None]
    if wrong:
        raise ConfigError(", ".join(wrong), what=f"only for episodes; {path} holds none", fix="leave it out")
    counted = Counted(count(folder))
    show_tables(counted, lambda: counted.tables(for_people=form != "csv"), form)
    return 0


def owners_of_counts() -> dict[str, tuple[str, ...]]:
    """Return whose options those are that not all have."""
    return dict.fromkeys(("html", "split"), ("episodes",))


@dataclass(frozen=True)
class Counted:
    """Counts of a run, release or file of one kind."""

    document: dict[str, Any]  # name -> count, or counts within it

    def as_json(self) -> dict[str, Any]:
        """Return the counts as plain JSON."""
        return self.document

    def lines(self) -> Iterable[str]:
        """Return the tables as text."""
        from ..evaluation.report.formats import grid_of
        from ..pages.grid import text_of

        return text_of(map(grid_of, self.tables(for_people=True)))

    def tables(self, *, for_people: bool) -> "list[CountTable]":
        """Return them as tables, in order, and those of a review as its card has them.

        Args:
            for_people: write shares in per cent, and say what a sum of splits is.
        """
        from ..evaluation.report.model import CountRow, CountTable

        counts, tables = _apart(self.document)
        return [
            *(_for_people(table) if for_people else table for table in _tables(counts)),
            *(
                CountTable(
                    name=table.name, title=table.title, heading=table.heading, columns=dict(table.columns),
                    rows=tuple(CountRow(label=label, values=dict(values)) for label, values in table.rows),
                )
                for table in tables
            ),
        ]  # fmt: skip


def _for_people(table: "CountTable") -> "CountTable":
    """Return a table with shares in per cent, and a name for the sum of the test splits."""
    rows = tuple(
        row.model_copy(
            update={
                "label": _SUMS.get((table.name, row.label), row.label),
                "values": {name: _per_cent(name, value) for name, value in row.values.items()},
            }
        )
        for row in table.rows
    )
    return table.model_copy(update={"rows": rows})


_SUMS = {("splits", "test"): "public_test + hidden_test"}


def _per_cent(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever a cell holds
    if not isinstance(value, float) or name not in ("share", "target_share", "deviation"):
        return value
    shown = f"{100 * value:+.1f} %" if name == "deviation" else f"{100 * value:.1f} %"
    return shown.replace("-", "−")


def _apart(document: Mapping[str, Any]) -> "tuple[dict[str, Any], list[ShownTable]]":
    """Return counts without the tables of a review, and these."""
    review = document.get("review")
    if not isinstance(review, dict) or "validation" not in review:
        return dict(document), []
    from ..releases.katha.reviews import review_tables_shown

    tables = review_tables_shown(review)
    names = {*(table.name for table in tables), "confidence"}
    counts = {name: value for name, value in review.items() if name not in names}
    return {**document, "review": counts}, tables


def _tables(node: Mapping[str, Any], *above: str) -> "Iterator[CountTable]":
    """Yield counts as tables: neighbours that count the same are its rows, and so are those of one part."""
    values = {key: {"value": value} for key, value in node.items() if not isinstance(value, dict)}
    if values:
        yield _table(above or ("counts",), values)
    parts = [(key, value) for key, value in node.items() if isinstance(value, dict) and value]
    for names, group in groupby(parts, lambda part: tuple(part[1]) if _is_row(part[1]) else part[0]):
        rows = dict(group)
        name, part = next(iter(rows.items()))
        if isinstance(names, tuple) and len(rows) > 1:
            yield _table((*above, ", ".join(rows)), rows)
        elif isinstance(part, dict) and all(_is_row(row) for row in part.values()):
            yield _table((*above, name), part)
        else:
            yield from _tables(part, *above, name)


def _is_row(node: object) -> bool:
    return isinstance(node, dict) and not any(isinstance(value, dict) for value in node.values())


def _table(names: tuple[str, ...], rows: Mapping[str, Mapping[str, Any]]) -> "CountTable":
    from ..evaluation.report.model import CountRow, CountTable

    columns = dict.fromkeys(name for values in rows.values() for name in values)
    return CountTable(
        name=".".join(names), title=_readable(": ".join(names)), heading="",
        columns={name: _readable(name) for name in columns},
        rows=tuple(
            CountRow(label=label, values={name: _cell(value) for name, value in values.items()})
            for label, values in rows.items()
        ),
    )  # fmt: skip


def _cell(value: object) -> int | float | str | None:
    return value if value is None or isinstance(value, int | float | str) else ", ".join(map(str, value))  # type: ignore[call-overload]


def _readable(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


_LABEL, _CELL = 52, 19


def entity_stats(folder: Path, html: Path | None, split: str | None, form: str) -> int | None:
    """Print the statistics of the episodes in a folder; return the exit code, None where there are none."""
    from ..kinds.entities import MARKS

    if not MARKS.match(folder):
        return None
    from ..releases.entities.tree import statistics_of_set

    entity_set, code = usable_set(folder)
    statistics = statistics_of_set(entity_set, split)
    if html is not None:
        from ..releases.entities.tree import write_page

        write_page(html, entity_set, statistics, folder.absolute().name)
    show_tables(CountedEpisodes(statistics, html), lambda: map(_count_table, statistics.tables), form)
    return code


@dataclass(frozen=True)
class CountedEpisodes:
    """Statistics of episodes, and the page that was written of them, if one was."""

    statistics: "EntityStatistics"
    page: Path | None

    def as_json(self) -> dict[str, Any]:
        """Return the statistics as plain JSON."""
        return self.statistics.as_json()

    def lines(self) -> Iterable[str]:
        """Return the tables as text."""
        return chain(lines(self.statistics), () if self.page is None else (f"page: {self.page}",))


def _count_table(table: "Table") -> "CountTable":
    from ..evaluation.report.model import CountRow, CountTable
    from ..validators.entities.measures import value_text

    rows = []
    for row in table.rows:
        rows.append(
            CountRow(label=row.label, values={tier: value_text(value) for tier, value in row.values.items()})
        )
        if row.published:
            rows.append(CountRow(label=f"{row.label}, as printed in the paper", values=dict(row.published)))
    columns = {tier: tier for tier in table.rows[0].values} if table.rows else {}
    return CountTable(name=table.key, title=table.title, heading="Of", columns=columns, rows=tuple(rows))


def lines(statistics: "EntityStatistics") -> Iterator[str]:
    """Yield the tables as text; below a row stands what the paper prints of its own data."""
    for table in statistics.tables:
        yield from _by_tier(table)
        yield ""
    yield "Lines with 'paper' are the paper's numbers for its own data; --json says how each row is counted."


def _by_tier(table: "Table") -> Iterator[str]:
    tiers = list(table.rows[0].values)
    yield f"{table.title:<{_LABEL}}" + "".join(f"{tier:>{_CELL}}" for tier in tiers)
    for row in table.rows:
        yield from _row(row, tiers)


def _row(row: "Row", tiers: list[str]) -> Iterator[str]:
    from ..validators.entities.measures import value_text

    yield f"  {row.label:<{_LABEL - 2}}" + "".join(
        f"{value_text(row.values[tier]):>{_CELL}}" for tier in tiers
    )
    if row.published:
        cells = "".join(f"{row.published.get(tier, ''):>{_CELL}}" for tier in tiers)
        yield f"    {'paper':<{_LABEL - 4}}{cells}".rstrip()
