"""What a page with shots needs beside the general parts: numbers, boxes, polar charts, words."""

from collections.abc import Callable, Mapping
from math import cos, pi, sin
from typing import Any

from markupsafe import Markup

from ...pages.grid import DASH, MINUS
from ...pages.page import readable
from ...schemas.text import counted
from ...schemas.values import Score
from .model import DrawnBox, Polar, PolarChart, Sector, ShotCard

WARMEST = 7
_FLAG = 15  # width and height of a box's number, in pixels of the embedded picture
_COLOURS = 6
_CENTRE, _RADIUS = (160.0, 125.0), 88
"""Middle of a polar chart and its radius, in units of its own; names stand around it."""
_RINGS = (0.25, 0.5, 0.75, 1.0)
_FILLED = 0.94  # share of a sector's angle that is coloured
_LINE, _LETTERS = 13, 13
"""Of a name beside a sector: from line to line, and most letters of a line where it can be broken."""
_NOUNS = {"pictures": "picture", "pairs": "pair", "runs": "run", "judgements": "rating"}


def digits_text(value: float | None, digits: int) -> str:
    """Return a number with so many digits; a dash where there is none."""
    if value is None:
        return DASH
    text = f"{value:,.{digits}f}"
    return (text.lstrip("-") if float(text.replace(",", "")) == 0 else text).replace("-", MINUS)


def warmth(value: float) -> int:
    """Return how dark the cell of a cosine is: 0 for none or less, to 7 for 1."""
    return min(WARMEST, max(0, int(value * (WARMEST + 1))))


def covered(score: Score) -> str:
    """Return what a score stands on: of the set how many stories, of a story what it was made from.

    What was missed is said in both.
    """
    counts = score.counts
    if "stories" not in counts:
        return _covered_story(counts)
    stories, valued = counts["stories"], counts.get("stories_counted", 0)
    parts = [counted(stories, "story") if valued == stories else f"{valued:,} of {stories:,} stories"]
    if counts.get("expected", 0) > counts.get("matched", counts.get("expected", 0)):
        parts.append(f"{counts['expected'] - counts['matched']:,} of {counts['expected']:,} not matched")
    if counts.get("asked", 0) > counts.get("answered", counts.get("asked", 0)):
        parts.append(f"{counts['asked'] - counts['answered']:,} of {counts['asked']:,} ratings missing")
    if "one_reference" in counts and counts.get("counted", 0) < counts.get("characters", 0):
        parts.append(f"{counts['counted']:,} of {counts['characters']:,} characters")
    if counts.get("without_image"):
        parts.append(f"{counted(counts['without_image'], 'shot')} without picture")
    return ", ".join(parts)


def _covered_story(counts: Mapping[str, int]) -> str:
    for part, whole, what in (
        ("matched", "expected", "matched"), ("answered", "asked", "ratings"),
        ("valued", "pictures", "pictures"), ("counted", "shots", "shots"),
        ("counted", "characters", "counted"),
    ):  # fmt: skip
        if part in counts and whole in counts:
            return f"{counts[part]:,} of {counts[whole]:,} {what}"
    if "without_image" in counts and "shots" in counts:
        return f"{counts['shots'] - counts['without_image']:,} of {counts['shots']:,} shots"
    return next((counted(counts[name], noun) for name, noun in _NOUNS.items() if name in counts), "")


def told(card: ShotCard) -> str:
    """Return a shot in words, for those who cannot see its picture."""
    parts = []
    for who in card.cast:
        name = readable(who.character, 80)
        parts.append(f"{name} {who.missed}" if who.box is None else f"{name} in box {who.box}")
    shown = "; ".join(parts) or "nobody expected"
    return (
        f"Shot {card.number} of story {readable(card.story_id, 60)} by {readable(card.method, 80)}: {shown}"
    )


def drawn_boxes(card: ShotCard) -> Markup:
    """Return the boxes of a shot as SVG, in pixels of its embedded picture; dashed where it is nobody."""
    width, height = card.picture.width, card.picture.height
    return Markup("").join(_box(box, width, height) for box in reversed(card.boxes))


def _box(box: DrawnBox, width: int, height: int) -> Markup:
    left, top = box.left * width, box.top * height
    edges = Markup('x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"').format(
        left, top, box.width * width, box.height * height
    )
    colour = f"b{(box.number - 1) % _COLOURS}"
    nobody = "" if box.character is not None else " nobody"
    x, y = min(left, width - _FLAG), min(top, height - _FLAG)
    return Markup(
        '<rect class="box under" {0}/><rect class="box over {1}{2}" {0}/>'
        '<rect class="flag {1}" x="{3:.1f}" y="{4:.1f}" width="{5}" height="{5}"/>'
        '<text class="flagtext" x="{6:.1f}" y="{7:.1f}" text-anchor="middle">{8}</text>'
    ).format(edges, colour, nobody, x, y, _FLAG, x + _FLAG / 2, y + _FLAG - 4, box.number)


def draw_polar(chart: PolarChart, polar: Polar, number: int) -> Markup:
    """Return a method's chart as SVG: a sector per score, anti-clockwise from the top, its name beside it.

    What it shows is said in words, too, for those who cannot see it.
    """
    groups = list(dict.fromkeys(axis.group for axis in polar.axes))
    count = len(polar.axes)
    rings = Markup("").join(
        Markup('<circle class="ring" cx="{:g}" cy="{:g}" r="{:g}"/>').format(*_CENTRE, _RADIUS * ring)
        for ring in _RINGS
    )
    parts, words = [], []
    for index, (axis, sector) in enumerate(zip(polar.axes, chart.sectors, strict=True)):
        middle = pi / 2 + 2 * pi * index / count
        parts.append(_wedge(sector, middle, pi / count * _FILLED, groups.index(axis.group)))
        parts.append(_sector_name(readable(axis.label, 60), middle))
        share = DASH if sector.radius is None else f"{100 * sector.radius:.0f} % of the outer circle"
        words.append(f"{readable(axis.label)} {share}")
    return Markup(
        '<svg class="polar" viewBox="0 0 {:g} {:g}" role="img" aria-labelledby="polar-{n}-t polar-{n}-d" '
        'focusable="false"><title id="polar-{n}-t">{}</title><desc id="polar-{n}-d">{}</desc>{}{}</svg>'
    ).format(
        2 * _CENTRE[0], 2 * _CENTRE[1], f"Scores of {readable(chart.method, 80)}", "; ".join(words), rings,
        Markup("").join(parts), n=number,
    )  # fmt: skip


def polar_key(polar: Polar) -> list[tuple[Markup, str]]:
    """Return the legend: what the colours stand for."""
    groups = dict.fromkeys(axis.group for axis in polar.axes)
    mark = Markup(
        '<svg width="16" height="16" aria-hidden="true" focusable="false">'
        '<rect class="c{}" x="2" y="2" width="12" height="12"/></svg>'
    )
    return [(mark.format(index % 8), group) for index, group in enumerate(groups)]


def _wedge(sector: Sector, middle: float, half: float, colour: int) -> Markup:
    """Return a sector around an angle, and its interval as a line across it."""
    if sector.radius is None:
        text = Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>')
        return text.format(*_point(middle, _RADIUS * 0.3, down=4), DASH)
    length = _RADIUS * sector.radius
    start, end = _point(middle - half, length), _point(middle + half, length)
    wedge = Markup(
        '<path class="wedge c{}" d="M{:g} {:g}L{:.1f} {:.1f}A{:.2f} {:.2f} 0 {} 0 {:.1f} {:.1f}Z"/>'
    ).format(colour % 8, *_CENTRE, *start, length, length, int(half * 2 > pi), *end)
    if sector.low is None or sector.high is None:
        return wedge
    inner, outer = _point(middle, _RADIUS * sector.low), _point(middle, _RADIUS * sector.high)
    line = Markup('<line class="whisker" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')
    return wedge + line.format(*inner, *outer)


def _sector_name(name: str, middle: float) -> Markup:
    """Return a name outside the circle, its words in lines, away from the circle to the side."""
    x, y = _point(middle, _RADIUS + 8)
    side = "middle" if abs(cos(middle)) < 0.2 else "start" if cos(middle) > 0 else "end"
    lines = _lines(name)
    # Text hangs below the lower half and stands on the upper; at the sides it is centred.
    first = y - (len(lines) - 1) * _LINE * (1 + sin(middle)) / 2 + 4 * (1 - sin(middle))
    spans = Markup("").join(
        Markup('<tspan x="{:.1f}" y="{:.1f}">{}</tspan>').format(x, first + _LINE * number, line)
        for number, line in enumerate(lines)
    )
    return Markup('<text text-anchor="{}">{}</text>').format(side, spans)


def _lines(name: str) -> list[str]:
    """Return a name in lines that fit beside the circle."""
    lines: list[str] = []
    for word in name.split():
        if lines and len(lines[-1]) + len(word) < _LETTERS:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _point(angle: float, length: float, down: float = 0.0) -> tuple[float, float]:
    """Return a place on the page; angles turn anti-clockwise, the page's second axis points down."""
    return _CENTRE[0] + length * cos(angle), _CENTRE[1] - length * sin(angle) + down


SHOT_FILTERS: dict[str, Callable[..., Any]] = {
    "digits": digits_text,
    "warmth": warmth,
    "covered": covered,
    "told": told,
    "boxes": drawn_boxes,
    "polar": draw_polar,
    "polarkey": polar_key,
}
