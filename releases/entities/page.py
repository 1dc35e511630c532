"""A set of episodes as one page that loads nothing from anywhere: tables, distributions, every episode.

Episodes are shown as in the EntityBench paper (appendix D): overview and registry, a strip of who is in which
shot, and a timeline with mentions tinted by type. Each is folded, so that the page stays light.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...pages.curves import Plot, Points
from ...pages.page import policy_of, save_page, style_of, template_of
from ...schemas.canonical import Json
from ...schemas.entities import ALL, TYPES, EntityType, EpisodeShot
from ...validators.entities.counting import value_text
from ...validators.entities.statistics import EntityStatistics, distributions
from ...validators.entities.tables import Table
from ...validators.entities.view import EpisodeView, view_of
from .tree import EntitySet

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
    style = style_of("page.css", __package__)
    tier_of = {
        one.episode_id: tier for tier, some in statistics.groups.items() if tier != ALL for one in some
    }
    document = statistics.as_json()
    page: str = template_of("page.j2", __package__).render(
        style=style,
        policy=policy_of(style),
        name=name or f"{len(entity_set.episodes)} in all",
        totals=document["totals"],
        tables=[_table(table) for table in statistics.tables],
        plots=[_plot(plot, number) for number, plot in enumerate(_plots(statistics))],
        episodes=[
            _episode(view_of(one.episode_id, one.script), tier_of.get(one.episode_id), number)
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


def _episode(view: EpisodeView, tier: str | None, number: int) -> dict[str, Json]:
    scenes, shots = len(view.script.scenes), len(view.shots)
    rows = list(strip_rows(view))
    return {
        "id": view.episode_id,
        "about": f"{'no tier' if tier is None else tier}, {scenes} scenes, {shots} shots",
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


def strip_svg(view: EpisodeView, colours: Mapping[EntityType, str]) -> str:
    """Return the strip of an episode as a file of its own, with a colour for each type."""
    style = "".join(f".{kind}{{fill:{colour}}}" for kind, colour in colours.items())
    style += (
        "svg{background:#fff;font:11px system-ui,Arial,'Noto Sans',sans-serif}"
        ".scene{stroke:#1d1c1a}.hard{stroke:#5b5852;stroke-dasharray:2 2}"
    )
    drawn = _strip(view, list(strip_rows(view)), 1)
    opened = drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return opened.replace("<title", f"<style>{style}</style><title", 1) + "\n"


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
