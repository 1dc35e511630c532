"""A set of episodes as one page that loads nothing from anywhere: tables, distributions, every episode.

Episodes are shown as in the EntityBench paper (appendix D): overview and registry, a strip of who is in which
shot, and a timeline with mentions tinted by type. Each is folded, so that the page stays light.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...pages.curves import Plot, Points
from ...pages.page import policy_of, save_page, style_of, template_of
from ...schemas.canonical import Json
from ...schemas.entities import ALL, TYPES
from ...validators.entities.counting import value_text
from ...validators.entities.statistics import EntityStatistics, distributions
from ...validators.entities.tables import Table
from ...validators.entities.view import view_of
from .episode import EPISODE_STYLE, EPISODE_TEMPLATE, shown_episode
from .tree import EntitySet


def write_page(path: Path, entity_set: EntitySet, statistics: EntityStatistics, name: str = "") -> None:
    """Write the page of a set.

    Args:
        path: where; a file that is there is replaced.
        entity_set: the episodes.
        statistics: their statistics.
        name: how the page calls the set; without one by the number of its episodes.

    Raises:
        TargetError: the file cannot be written.
    """
    save_page(path, render_page(entity_set, statistics, name))


def render_page(entity_set: EntitySet, statistics: EntityStatistics, name: str = "") -> str:
    """Return the page of a set. All texts of episodes are escaped and isolated in their direction."""
    style = style_of("page.css", __package__, EPISODE_STYLE)
    tier_of = {
        one.episode_id: tier for tier, some in statistics.groups.items() if tier != ALL for one in some
    }
    document = statistics.as_json()
    page: str = template_of("page.j2", __package__, EPISODE_TEMPLATE).render(
        style=style,
        policy=policy_of(style),
        name=name or f"{len(entity_set.episodes)} in all",
        totals=document["totals"],
        tables=[_table(table) for table in statistics.tables],
        plots=[_plot(plot, number) for number, plot in enumerate(_plots(statistics))],
        episodes=[
            shown_episode(view_of(one.episode_id, one.script), number, tier_of.get(one.episode_id, "no tier"))
            for number, one in enumerate(entity_set.episodes, 1)
        ],
    )
    return page


def _table(table: Table) -> dict[str, Any]:
    tiers = list(table.rows[0].values)
    return {
        "title": table.title,
        "tiers": tiers,
        "rows": [
            {
                "label": row.label,
                "convention": row.convention,
                "values": [value_text(row.values[tier]) for tier in tiers],
                "published": [row.published.get(tier, "") for tier in tiers] if row.published else [],
            }
            for row in table.rows
        ],
    }


def _plots(statistics: EntityStatistics) -> Iterator[Plot]:
    counted = {tier: distributions(some) for tier, some in statistics.groups.items()}
    whole = counted[ALL]
    tiers = {tier: found for tier, found in counted.items() if tier != ALL} or counted
    yield Plot(
        "Widest gap of a recurring entity: share with so wide a gap or a wider one",
        "widest gap, shots between",
        "share",
        {tier: _at_least(found["max_gap_index"]) for tier, found in tiers.items()},
    )
    yield Plot(
        "Length of continuation chains", "shots of a chain", "chains (log)",
        {ALL: _points(whole["chain_length"])}, bars=True, log=True,
    )  # fmt: skip
    yield Plot(
        "Entities that registries declare", "entities of the type", "episodes",
        {kind: _points(whole[f"declared_{kind}"]) for kind in TYPES},
    )  # fmt: skip
    yield Plot(
        "Entities that shots schedule", "entities of the type", "shots",
        {kind: _points(whole[f"load_{kind}"]) for kind in TYPES},
    )  # fmt: skip
    yield Plot(
        "Shots that schedule an entity", "shots", "entities (log)",
        {ALL: _points(whole["appearances"])}, bars=True, log=True,
    )  # fmt: skip
    yield Plot(
        "Longest run of shots that schedule an entity", "shots in a row", "entities (log)",
        {ALL: _points(whole["longest_run"])}, bars=True, log=True,
    )  # fmt: skip
    yield Plot(
        "New entities by shot, mean of the episodes that are so long", "number of the shot", "new entities",
        {tier: _introduced(found, "mean") for tier, found in tiers.items()},
    )  # fmt: skip
    yield Plot(
        "Episodes that are so long", "number of the shot", "episodes",
        {tier: _introduced(found, "episodes") for tier, found in tiers.items()},
    )  # fmt: skip


def _introduced(found: Mapping[str, Json], what: str) -> Points:
    return [(row["shot"], row[what]) for row in found["introduced"]]


def _points(counts: Mapping[str, int]) -> Points:
    return [(int(value), count) for value, count in counts.items()]


def _at_least(counts: Mapping[str, int]) -> Points:
    """Return the complementary distribution of gaps, counted in shots between."""
    values = {int(value) - 1: count for value, count in counts.items()}
    total = sum(values.values())
    gaps = range(max(values, default=-1) + 2)
    return [(gap, sum(count for one, count in values.items() if one >= gap) / total) for gap in gaps if total]


def _plot(plot: Plot, number: int) -> dict[str, Any]:
    from markupsafe import Markup

    columns = [dict(points) for points in plot.series.values()]
    places = sorted({x for column in columns for x in column})
    return {
        "title": plot.title,
        "across": plot.across,
        "names": list(plot.series),
        "svg": plot.svg(number),
        "legend": Markup(plot.legend()),
        "rows": [[f"{x:g}", *(_cell(column.get(x)) for column in columns)] for x in places],
    }


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() and value > 1 else f"{value:.3g}"
