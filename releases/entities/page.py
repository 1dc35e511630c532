"""A set of episodes as one page that loads nothing from anywhere: tables, distributions, every episode.

Episodes are shown as in the EntityBench paper (appendix D): overview and registry, a strip of who is in which
shot, and a timeline with mentions tinted by type. Each is folded, so that the page stays light.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...pages.figures import Ridges, draw_figure, figure_table, ridges
from ...pages.page import policy_of, save_page, style_of, template_of
from ...schemas.entities import ALL, TYPES
from ...validators.entities.measures import value_text
from ...validators.entities.statistics import EntityStatistics, distributions
from ...validators.entities.tables import Table
from ...validators.entities.view import view_of
from .episode import EPISODE_STYLE, EPISODE_TEMPLATE, shown_episode
from .tree import EntitySet


def write_page(path: Path, entity_set: EntitySet, statistics: EntityStatistics, name: str = "") -> None:
    """Write the page of a set."""
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
        figures=[(one, draw_figure(one), figure_table(one)) for one in _figures(statistics)],
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


def _figures(statistics: EntityStatistics) -> Iterator[Ridges]:
    """Yield how episodes, shots and entities are spread (EntityBench, Figures 3 to 8)."""
    counted = {tier: distributions(some) for tier, some in statistics.groups.items()}
    whole = counted[ALL]
    tiers = {tier: found for tier, found in counted.items() if tier != ALL} or counted
    for name, title, unit, values in (
        ("gap", "Widest gap of a recurring entity", "Difference of shot numbers, by tier.",
         {tier: found["max_gap_index"] for tier, found in tiers.items()}),
        ("chain", "Length of continuation chains", "Shots of a chain.", {ALL: whole["chain_length"]}),
        ("load", "Entities that a shot schedules", "By type of entity.",
         {kind: whole[f"load_{kind}"] for kind in TYPES}),
        ("shots", "Shots that schedule an entity", "All of them, and the most in a row.",
         {"shots": whole["appearances"], "in a row": whole["longest_run"]}),
    ):  # fmt: skip
        spread = {label: _values(counts) for label, counts in values.items()}
        ends = [value for some in spread.values() for value in some]
        if ends:
            edges = range(min(ends), max(ends) + 2)
            yield Ridges(
                name=f"distribution-{name}", title=title, unit="count", edges=tuple(edges),
                note=f"{unit} The line is the median, which stands at the right.",
                ridges=ridges(spread, edges),
            )  # fmt: skip


def _values(counts: Mapping[str, int]) -> list[int]:
    return [int(value) for value, count in counts.items() for _ in range(count)]
