"""``fabula stats``: counts and distributions beside the published targets."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError
from .command import command
from .common import answer, released
from .exports import usable_set

if TYPE_CHECKING:
    from ..validators.entities.statistics import EntityStatistics
    from ..validators.entities.tables import Row, Table


@command("stats")
def stats(path: Path, *, html: Path | None = None, split: str | None = None, as_json: bool = False) -> int:
    """Count records and compare each distribution with its target.

    For episodes, print the tables of the EntityBench paper by tier, and below each the paper's own numbers.

    Options:
        path: Run, release, JSONL file, suite (.json), shot scripts, episodes.
        html: Episodes: also write tables and plots as one page here.
        split: Episodes: split file of the tiers [that of most episodes].

    Examples:
        fabula stats runs/mine
        fabula stats dist/mine-0.1.0 --json
        fabula stats all_prompts.json
        fabula stats runs/eb --html eb.html
    """
    from ..kinds.verbs import count

    folder = released(path)
    code = entity_stats(folder, html, split, as_json=as_json)
    if code is not None:
        return code
    for option, value in (("--html", html), ("--split", split)):
        if value is not None:
            raise ConfigError(
                option, what=f"this option is for episodes, and {path} holds none", fix="leave it out"
            )
    document = count(folder)
    return answer(document, _tree(document, ""), as_json=as_json)


def _tree(node: Mapping[str, object], indent: str) -> Iterator[str]:
    for key, value in node.items():
        if isinstance(value, dict):
            yield f"{indent}{key}"
            yield from _tree(value, indent + "  ")
        else:
            yield f"{indent}{key}: {value}"


_LABEL, _CELL = 52, 19


def entity_stats(folder: Path, html: Path | None, split: str | None, *, as_json: bool) -> int | None:
    """Print the statistics of the episodes in a folder; return the exit code, None where there are none."""
    from ..kinds.entities import MARKS

    if not MARKS.match(folder):
        return None
    from ..releases.entities.tree import statistics_of_set

    entity_set, code = usable_set(folder)
    statistics = statistics_of_set(entity_set, split)
    if html is not None:
        from ..releases.entities.page import write_page

        write_page(html, entity_set, statistics, folder.absolute().name)
    page = () if html is None else (f"page: {html}",)
    answer(statistics.as_json(), chain(lines(statistics), page), as_json=as_json)
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
    from ..validators.entities.counting import value_text

    yield f"  {row.label:<{_LABEL - 2}}" + "".join(
        f"{value_text(row.values[tier]):>{_CELL}}" for tier in tiers
    )
    if row.published:
        cells = "".join(f"{row.published.get(tier, ''):>{_CELL}}" for tier in tiers)
        yield f"    {'paper':<{_LABEL - 4}}{cells}".rstrip()
