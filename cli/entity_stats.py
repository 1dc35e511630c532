"""What ``fabula stats`` prints of episodes: the tables of the EntityBench paper, by tier, and their page."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .common import emit, say
from .entity_sets import usable_set

if TYPE_CHECKING:
    from ..validators.entities.statistics import EntityStatistics
    from ..validators.entities.tables import Row, Table

_LABEL, _CELL = 52, 19


def entity_stats(folder: Path, html: Path | None, split: str | None, *, as_json: bool) -> int | None:
    """Print the statistics of the episodes in a folder; return the exit code, None where there are none."""
    from ..releases.entity_statistics import statistics_of_set
    from ..releases.entity_tree import holds_episodes

    if not holds_episodes(folder):
        return None
    entity_set, code = usable_set(folder)
    statistics = statistics_of_set(entity_set, split)
    if html is not None:
        from ..releases.entity_page import write_page

        write_page(html, entity_set, statistics, folder.absolute().name)
    if as_json:
        emit(statistics.as_json())
        return code
    for line in lines(statistics):
        say(line)
    if html is not None:
        say(f"page: {html}")
    return code


def lines(statistics: "EntityStatistics") -> Iterator[str]:
    """Yield the tables as text; below a row stands what the paper prints of its own data."""
    for table in statistics.tables:
        yield from _table(table)
        yield ""
    yield "Lines with 'paper' are the paper's numbers for its own data; --json says how each row is counted."


def _table(table: "Table") -> Iterator[str]:
    tiers = list(table.rows[0].values)
    yield f"{table.title:<{_LABEL}}" + "".join(f"{tier:>{_CELL}}" for tier in tiers)
    for row in table.rows:
        yield from _row(row, tiers)


def _row(row: "Row", tiers: list[str]) -> Iterator[str]:
    from ..validators.entities.numbers import value_text

    yield f"  {row.label:<{_LABEL - 2}}" + "".join(
        f"{value_text(row.values[tier]):>{_CELL}}" for tier in tiers
    )
    if row.published:
        cells = "".join(f"{row.published.get(tier, ''):>{_CELL}}" for tier in tiers)
        yield f"    {'paper':<{_LABEL - 4}}{cells}".rstrip()
