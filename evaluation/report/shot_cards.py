"""What a page with shots needs beside the general parts: numbers, boxes, words."""

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from ...pages.text import readable
from ...schemas.text import counted
from ...schemas.values import Score
from .model import DrawnBox, ShotCard
from .plots import draw_polar, polar_key
from .showing import DASH, MINUS

WARMEST = 7
_FLAG = 15  # width and height of a box's number, in pixels of the embedded picture
_COLOURS = 6
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


SHOT_FILTERS: dict[str, Callable[..., Any]] = {
    "digits": digits_text,
    "warmth": warmth,
    "covered": covered,
    "told": told,
    "boxes": drawn_boxes,
    "polar": draw_polar,
    "polarkey": polar_key,
}
