"""A set of episodes as one page that loads nothing from anywhere: tables, distributions, every episode.

Episodes are shown as in the EntityBench paper (appendix D): overview and registry, a strip of who is in which
shot, and a timeline with mentions tinted by type. Each is folded, so that the page stays light.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...pages.figures import Ridges, draw_figure, figure_table, ridges
from ...pages.page import policy_of, save_page, style_of, template_of
from ...schemas.canonical import Json
from ...schemas.entities import ALL, TYPES, EntityType, EpisodeShot
from ...schemas.text import tallied
from ...validators.entities.measures import value_text
from ...validators.entities.statistics import EntityStatistics, distributions
from ...validators.entities.tables import Table
from ...validators.entities.view import EpisodeView, view_of
from .tree import EntitySet

# -- An episode as pages show it: overview and registry, who is in which shot, a timeline with mentions tinted
#
# The parts are those of the EntityBench paper (appendix D). Pages import ``episode.j2`` and ``episode.css``.

EPISODE_TEMPLATE = ("episode.j2", __package__)
EPISODE_STYLE = ("episode.css", __package__)

_CELL = 14
"""Width of a shot in a strip, in pixels; narrower in long episodes."""
_WIDEST = 700
_HIGH = 16
_ALL_NUMBERED = 25
"""Most shots of an episode whose strip numbers them all; else every fifth."""
_NAMES, _LETTERS = 210, 32
"""Width of the names beside a strip, in pixels, and most letters of one."""

StripRow = tuple[EntityType | None, str, Sequence[int]]
"""Type, name and shots of an entity."""


def shown_episode(view: EpisodeView, number: int = 1, tier: str = "") -> dict[str, Json]:
    """Return what ``episode.j2`` shows of an episode.

    ``number``: which of the page it is, from 1.
    """
    scenes, shots = len(view.script.scenes), len(view.shots)
    rows = list(strip_rows(view))
    return {
        "id": view.episode_id,
        "number": number,
        "about": ", ".join(filter(None, (tier, tallied(scenes, "scenes"), tallied(shots, "shots")))),
        "overview": view.script.story_overview or "",
        "strip": _strip(view, rows, number),
        "entities": [
            {
                "name": name,
                "kind": kind or "object",
                "type": (kind or "unknown") + ("" if name in view.labels else ", not in the registry"),
                "shots": ", ".join(_runs(found)) or "none",
                "description": view.descriptions.get(name, ""),
            }
            for kind, name, found in rows
        ],
        "shots": [_shot(place, shot) for place, shot in enumerate(view.shots, 1)],
    }


def strip_rows(view: EpisodeView) -> Iterator[StripRow]:
    """Yield type, name and shots of the registry in its order, then of what only the schedule has."""
    listed = dict.fromkeys((view.type_of(name), name) for name in view.labels)
    for kind, name in (*listed, *(key for key in view.appearances if key[1] not in view.labels)):
        yield kind, name, () if kind is None else view.appearances.get((kind, name), ())


def _runs(shots: Sequence[int]) -> Iterator[str]:
    for first, last in _spans(shots):
        yield str(first) if first == last else f"{first}–{last}"


def _spans(shots: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for place, shot in enumerate(shots):
        if place + 1 == len(shots) or shots[place + 1] != shot + 1:
            yield shots[start], shot
            start = place + 1


def _strip(view: EpisodeView, rows: Sequence[StripRow], number: int) -> str:
    """Return who is in which shot as SVG: a row per entity, a column per shot."""
    wide = min(_CELL, max(4, _WIDEST // max(1, len(view.shots))))
    high, width = (len(rows) + 1) * _HIGH, _NAMES + len(view.shots) * wide + 2
    parts = [
        f'<svg class="strip" role="img" width="{width}" height="{high}" aria-labelledby="strip{number}">',
        f'<title id="strip{number}">Entities by shot; the table below says the same in words.</title>',
    ]
    every = 1 if len(view.shots) <= _ALL_NUMBERED else 5
    for shot in range(every, len(view.shots) + 1, every):
        x = _NAMES + (shot - 1) * wide + wide / 2
        parts.append(f'<text x="{x:g}" y="{_HIGH - 4}" text-anchor="middle">{shot}</text>')
    for place, (kind, name, shots) in enumerate(rows, 1):
        short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
        parts.append(f'<text x="0" y="{place * _HIGH + _HIGH - 4}">{html.escape(short)}</text>')
        path = "".join(
            f"M{_NAMES + (first - 1) * wide + 1} {place * _HIGH + 1}h{(last - first + 1) * wide - 1}"
            f"v{_HIGH - 2}h-{(last - first + 1) * wide - 1}z"
            for first, last in _spans(shots)
        )
        if path:
            parts.append(f'<path class="{kind or "object"}" d="{path}"/>')
    return "".join(parts) + _rules(view.shots, wide, high) + "</svg>"


def _rules(shots: Sequence[EpisodeShot], wide: int, high: int) -> str:
    """Return the lines between scenes, solid, and at cuts within a scene, dashed."""
    scenes, hard = [], []
    for place, shot in enumerate(shots):
        if place and shot.scene != shots[place - 1].scene:
            scenes.append(place)
        elif place and shot.cut:
            hard.append(place)
    drawn = []
    for name, places in (("scene", scenes), ("hard", hard)):
        path = "".join(f"M{_NAMES + place * wide}.5 {_HIGH}V{high}" for place in places)
        drawn.append(f'<path class="{name}" d="{path}"/>' if path else "")
    return "".join(drawn)


def _shot(number: int, shot: EpisodeShot) -> dict[str, Json]:
    kinds = {name: kind for kind in TYPES for name in shot.scheduled.names(kind)}
    return {
        "number": number,
        "key": shot.key,
        "cut": shot.cut,
        "action": _tinted(shot.action, kinds),
        "scheduled": [(kind, name) for name, kind in kinds.items()],
    }


def _tinted(text: str, kinds: Mapping[str, EntityType]) -> str:
    """Return a text, escaped, with the mentions of names marked by type, whatever their case."""
    return "".join(
        f'<mark class="{kind}">{html.escape(part)}</mark>' if kind else html.escape(part)
        for part, kind in mentions_in(text, kinds)
    )


def mentions_in(text: str, kinds: Mapping[str, EntityType]) -> Iterator[tuple[str, EntityType | None]]:
    """Yield the parts of a text, each mention of a name with its type, the rest with None."""
    names = sorted((name for name in kinds if name), key=lambda name: (-len(name), name))
    if not names:
        yield text, None
        return
    folded = {name.casefold(): kind for name, kind in kinds.items()}
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", re.IGNORECASE)
    start = 0
    for match in pattern.finditer(text):
        yield text[start : match.start()], None
        yield match[0], folded.get(match[0].casefold(), "object")
        start = match.end()
    yield text[start:], None


# -- The page of a set


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
                name=f"distribution-{name}", title=title, axis=title, unit="count", edges=tuple(edges),
                note=f"{unit} The line is the median, which stands at the right.",
                ridges=ridges(spread, edges),
            )  # fmt: skip


def _values(counts: Mapping[str, int]) -> list[int]:
    return [int(value) for value, count in counts.items() for _ in range(count)]
