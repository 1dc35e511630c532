"""Figures of a suite of events: its classes as an UpSet plot, its words as a cloud (StoryEval, Figure 4)."""

import math
import re
from collections import Counter

from ...schemas.events import DIFFICULTIES, ORIGINS, PARTICIPANTS, Suite
from ..figures import COLOURS, LINE, box, document, label, width_of

CLASSES = (*PARTICIPANTS, *ORIGINS, *(name for name in DIFFICULTIES if name != "medium"))
"""The seven classes of the paper, in our usual order."""
_PEOPLE = (
    "person people man men woman women boy boys girl girls child children kid kids human humans someone "
    "he she they him her his their them "
)
PEOPLE = frozenset(_PEOPLE.split())
"""Words for people in general, which the paper leaves out of its cloud."""
_SMALL = (
    "a about above across after again against along also an and another are around as at away back be "
    "been before behind being beside between both but by down during each finally first for from has have "
    "if in inside into is it its itself near next of off on one onto or other out over own past so some "
    "slowly suddenly than that the then there these this through to together toward towards two under "
    "until up upon was were when where which while who whose will with within without "
)
SMALL = frozenset(_SMALL.split())
"""Words that say nothing of what a prompt is about."""
MOST_WORDS = 90
_WIDTH, _HEIGHT = 900, 520
_WORD = re.compile(r"[^\W\d_]{3,}")


def event_figures(suite: Suite) -> dict[str, str]:
    """Return the figures of a suite: file name -> SVG."""
    return {"upset.svg": draw_upset(suite), "words.svg": draw_cloud(word_counts(suite))}


def class_groups(suite: Suite) -> Counter[tuple[str, ...]]:
    """Return how many prompts have exactly these classes and no others of the seven."""
    return Counter(
        tuple(name for name in CLASSES if name in prompt.labels) for prompt in suite.prompts.values()
    )


def word_counts(suite: Suite) -> Counter[str]:
    """Return how often each word stands in the prompts, but for small words and words for people."""
    words = (word for prompt in suite.prompts.values() for word in _WORD.findall(prompt.prompt.casefold()))
    return Counter(word for word in words if word not in SMALL and word not in PEOPLE)


def draw_upset(suite: Suite) -> str:
    """Return the UpSet plot: prompts of each class at the left, of each exact group of classes above."""
    groups = sorted(class_groups(suite).items(), key=lambda pair: (-pair[1], pair[0]))
    totals = Counter({name: sum(count for group, count in groups if name in group) for name in CLASSES})
    rows = sorted((name for name in CLASSES if totals[name]), key=lambda name: totals[name])
    left, top, wide, high, tall = 300.0, 240.0, 26.0, 28.0, 190.0
    most, widest = max((count for _, count in groups), default=1), max([*totals.values(), 1])
    parts = [label(14, 24, f"{len(suite.prompts)} prompts by class", 'font-weight="600"')]
    for row, name in enumerate(rows):
        y, length = top + row * high, 150 * totals[name] / widest
        if row % 2 == 0:
            parts.append(box((100, y), (left - 100 + wide * len(groups), high), "#f4f2ee"))
        parts.append(box((200 - length, y + 6), (length, high - 12), COLOURS[0]))
        parts.append(label(194 - length, y + 18, str(totals[name]), 'text-anchor="end" font-size="11"'))
        parts.append(label(208, y + 18, name.capitalize()))
    for column, (group, count) in enumerate(groups):
        x, length = left + column * wide + wide / 2, tall * count / most
        parts.append(box((x - 8, top - 14 - length), (16, length), COLOURS[0]))
        parts.append(label(x, top - 18 - length, str(count), 'text-anchor="middle" font-size="10"'))
        held = [row for row, name in enumerate(rows) if name in group]
        centre = [top + row * high + high / 2 for row in range(len(rows))]
        if len(held) > 1:
            parts.append(
                f'<path d="M{x:.1f} {centre[held[0]]:.1f}V{centre[held[-1]]:.1f}"'
                f' stroke="{COLOURS[0]}" stroke-width="3"/>'
            )
        for row, y in enumerate(centre):
            colour = COLOURS[0] if row in held else LINE
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
    width, height = left + wide * len(groups) + 20, top + high * len(rows) + 20
    title = "Prompts of each class, and of each exact group of classes: " + "; ".join(
        f"{' and '.join(group) or 'no class'}: {count}" for group, count in groups
    )
    return document(width, height, title, parts)


def draw_cloud(counts: Counter[str]) -> str:
    """Return the most frequent words, the more frequent the larger, each as near the middle as it can be."""
    words = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_WORDS]
    most = words[0][1] if words else 1
    taken: list[tuple[float, float, float, float]] = []
    parts = []
    for number, (word, count) in enumerate(words):
        size = 8 + 40 * count / most
        wide, high = width_of(word, size) + 6, size * 1.15
        spot = _free_spot(wide, high, taken)
        if spot is None:
            continue
        taken.append((*spot, wide, high))
        more = f'font-size="{size:.1f}" style="fill:{COLOURS[number % len(COLOURS)]}"'
        parts.append(label(spot[0] + 3, spot[1] + size * 0.9, word, more))
    title = "Most frequent words: " + ", ".join(f"{word} {count}" for word, count in words)
    return document(_WIDTH, _HEIGHT, title, parts)


def _free_spot(
    wide: float, high: float, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float] | None:
    """Return the upper left corner of the first free spot on a spiral from the middle, if any."""
    for step in range(4000):
        angle, reach = step * 0.12, step * 0.12 * 1.6
        x = _WIDTH / 2 + 1.7 * reach * math.cos(angle) - wide / 2
        y = _HEIGHT / 2 + reach * math.sin(angle) - high / 2
        if not (0 <= x <= _WIDTH - wide and 0 <= y <= _HEIGHT - high):
            continue
        if all(
            x + wide <= left or left + width <= x or y + high <= upper or upper + height <= y
            for left, upper, width, height in taken
        ):
            return x, y
    return None
