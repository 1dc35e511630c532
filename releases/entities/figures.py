"""Figures of episodes: overview and registry, persistence strip, timeline (EntityBench, Figures 9 to 15)."""

import html
import re
from collections.abc import Iterator, Sequence

from ...schemas.entities import TYPES, EntityType, EpisodeShot
from ...validators.entities.view import EpisodeView, view_of
from ..figures import COLOURS, SOFT, box, document, label, width_of, wrapped
from .episode import mentions_in, strip_rows, strip_svg
from .tree import EntitySet

TINTS = dict(zip(TYPES, COLOURS, strict=False))
"""Type of an entity -> its colour."""
WIDTH = 900
SHOTS_OF_A_PART = 24
"""Most shots of one timeline; longer episodes have several."""
_LINE = 18


def episode_figures(entity_set: EntitySet) -> dict[str, str]:
    """Return the figures of each episode of a set: file name -> SVG."""
    figures: dict[str, str] = {}
    for number, episode in enumerate(entity_set.episodes, 1):
        view = view_of(episode.episode_id, episode.script)
        name = f"{number:03d}-{re.sub(r'[^A-Za-z0-9._-]+', '_', view.episode_id)[:80]}"
        figures[f"{name}-registry.svg"] = draw_registry(view)
        figures[f"{name}-strip.svg"] = strip_svg(view, TINTS)
        parts = range(0, len(view.shots), SHOTS_OF_A_PART)
        for part, first in enumerate(parts, 1):
            more = "" if len(parts) == 1 else f"-{part}"
            figures[f"{name}-timeline{more}.svg"] = draw_timeline(view, first, part, len(parts))
    return figures


def draw_registry(view: EpisodeView) -> str:
    """Return the story overview under the counts, and the registry as chips in the colours of their types."""
    rows = list(strip_rows(view))
    scenes = f"{len(view.script.scenes)} scenes"
    counts = ", ".join(f"{sum(kind == each for kind, _, _ in rows)} {each}s" for each in TYPES)
    parts = [
        label(20, 30, view.episode_id, 'font-weight="600" font-size="16"'),
        label(
            20,
            52,
            f"{scenes}, {len(view.shots)} shots; {counts}",
            f'style="fill:{SOFT}"',
        ),
    ]
    y = 80.0
    for line in wrapped(view.script.story_overview or "", WIDTH - 40):
        parts.append(label(20, y, line))
        y += _LINE
    x, y = 20.0, y + 8
    for kind, name, _ in rows:
        wide = min(width_of(name) + 20, WIDTH - 40)
        if x + wide > WIDTH - 20:
            x, y = 20.0, y + 30
        colour = TINTS.get(kind or "object", COLOURS[-1])
        parts.append(box((x, y), (wide, 24), colour, 'rx="12" fill-opacity="0.16"'))
        parts.append(label(x + 10, y + 16, name, f'style="fill:{colour}"'))
        x += wide + 8
    title = f"Overview and registry of {view.episode_id}: " + ", ".join(name for _, name, _ in rows)
    return (
        document(WIDTH, y + 44, title, [*parts, *_key(y + 40)]) if rows else document(WIDTH, y, title, parts)
    )


def draw_timeline(view: EpisodeView, first: int, part: int, count: int) -> str:
    """Return a row for each shot with its action; who is scheduled is bold in the colour of the type.

    Args:
        view: the episode.
        first: index of the first shot, from 0.
        part: number of the part, from 1.
        count: how many parts there are.
    """
    heading = view.episode_id if count == 1 else f"{view.episode_id}, part {part} of {count}"
    parts, y = [label(20, 30, heading, 'font-weight="600" font-size="16"')], 46.0
    for number, shot in enumerate(view.shots[first : first + SHOTS_OF_A_PART], first + 1):
        lines = list(_lines(shot))
        height = _LINE * max(1, len(lines)) + 8
        if shot.cut:
            parts.append(box((12, y), (WIDTH - 24, height), "#fdf2d8"))
        weight = 'font-weight="700"' if shot.cut else ""
        parts.append(label(52, y + 17, str(number), f'text-anchor="end" {weight}'))
        parts += [
            f'<text x="64" y="{y + 17 + _LINE * place:.1f}">{line}</text>' for place, line in enumerate(lines)
        ]
        y += height
    title = f"Shots of {heading}; hard cuts are tinted"
    return document(WIDTH, y + 30, title, [*parts, *_key(y + 22)])


def _lines(shot: EpisodeShot) -> Iterator[str]:
    """Yield the lines of an action as SVG."""
    kinds: dict[str, EntityType] = {name: kind for kind in TYPES for name in shot.scheduled.names(kind)}
    words = [
        (word, kind)
        for text, kind in mentions_in(shot.action, kinds)
        for word in re.findall(r"\s*\S+|\s+$", text)
    ]
    line: list[str] = []
    wide = 0.0
    for word, kind in words:
        if line and wide + width_of(word) > WIDTH - 100:
            yield "".join(line)
            line, wide = [], 0.0
        shown = html.escape(word if line else word.lstrip())
        more = f' font-weight="700" style="fill:{TINTS[kind]}"' if kind else ""
        line.append(f'<tspan xml:space="preserve"{more}>{shown}</tspan>')
        wide += width_of(word)
    if line:
        yield "".join(line)


def _key(y: float) -> Sequence[str]:
    """Return what the colours mean."""
    shown: list[str] = []
    x = 20.0
    for kind, colour in TINTS.items():
        shown += [box((x, y - 9), (10, 10), colour), label(x + 15, y, kind, 'font-size="11"')]
        x += 40 + width_of(kind, 11)
    return shown
