"""The order of what one person is asked: drawn, neighbours unlike, with checks and repetitions mixed in.

Formula: the order is drawn; then, as long as neighbours are alike and it helps, a stretch that begins or ends
    between them is turned round, which changes two neighbourhoods only. For two methods shown equally often
    that ends in strict alternation. Checks go one into each equal part of the order, repetitions at least
    ``gap`` places behind the first time, both where their neighbours are least alike.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .plan import Unit

Alike = Callable[[int, int], int]
"""Two units, by number -> in how many respects they are alike, such as method and story."""
TRIES = 40
"""Stretches that are turned on trial for each two neighbours that are alike."""


def likeness(shown: Sequence[Unit]) -> Alike:
    """Return in how many respects two units are alike: of one story, and with a method in common."""
    stories = [unit.story for unit in shown]
    methods = [frozenset(unit.treatments) for unit in shown]

    def alike(unit: int, other: int) -> int:
        return (stories[unit] == stories[other]) + (not methods[unit].isdisjoint(methods[other]))

    return alike


class Asked(NamedTuple):
    """A unit in an order; whether it is there for the second time, or as a check."""

    unit: int
    repeat: int = 0
    check: bool = False


def ordered(units: Sequence[int], alike: Alike, draw: random.Random) -> list[int]:
    """Return units in a drawn order with as few alike neighbours as it finds."""
    order = list(units)
    draw.shuffle(order)
    if len(order) < 3:
        return order
    before = len(order)
    while bad := [start for start in range(len(order) - 1) if alike(order[start], order[start + 1])]:
        if len(bad) >= before:
            break
        before = len(bad)
        for start in bad:
            _turn(order, start, alike, draw)
    return order


def _turn(order: list[int], start: int, alike: Alike, draw: random.Random) -> None:
    """Turn a stretch that begins or ends between two neighbours, if that makes fewer neighbours alike."""
    last = len(order) - 1
    for _ in range(TRIES):
        cost = alike(order[start], order[start + 1])
        if not cost:
            return
        end = draw.randrange(-1, last + 1)  # between end and end + 1; -1 and last are the ends of the order
        low, high = sorted((start, end))
        if high - low < 1:
            continue
        if low >= 0:
            cost += alike(order[end], order[end + 1]) if 0 <= end < last else 0
        after = alike(order[low], order[high]) if low >= 0 else 0
        after += alike(order[low + 1], order[high + 1]) if high < last else 0
        if after < cost:
            order[low + 1 : high + 1] = order[low + 1 : high + 1][::-1]


def with_checks(
    order: Sequence[int], checks: Sequence[int], alike: Alike, draw: random.Random
) -> list[Asked]:
    """Return an order with checks spread over it, one in each equal part."""
    asked: list[Asked] = []
    for part, check in enumerate(checks):
        low, high = (len(order) * bound // len(checks) for bound in (part, part + 1))
        stretch = [Asked(unit) for unit in order[low:high]]
        spots = range(1, len(stretch)) if len(stretch) > 1 else range(len(stretch) + 1)
        stretch.insert(_best(stretch, check, spots, alike, draw), Asked(check, check=True))
        asked += stretch
    return asked or [Asked(unit) for unit in order]


def with_repeats(
    asked: list[Asked], repeats: int, gap: int, alike: Alike, draw: random.Random
) -> list[Asked]:
    """Return an order in which some units come a second time, at least ``gap`` places after the first.

    Args:
        asked: the order; checks are not repeated.
        repeats: how many, no more than there are units.
        gap: no more than there are units.
        alike: what neighbours should not be.
        draw: what is random in it.
    """
    asked = list(asked)
    for left in range(repeats, 0, -1):
        shown = {entry.unit for entry in asked if entry.repeat}
        first = {
            spot: entry.unit
            for spot, entry in enumerate(asked)
            if not entry.check and entry.unit not in shown and spot + gap <= len(asked)
        }
        scarce = len(first) < left  # then each has to make room for one more, at the end
        spot = min(first) if scarce else draw.choice(list(first))
        spots = range(len(asked) if scarce else spot + gap, len(asked) + 1)
        asked.insert(_best(asked, first[spot], spots, alike, draw), Asked(first[spot], repeat=1))
    return asked


def _best(asked: Sequence[Asked], unit: int, spots: range, alike: Alike, draw: random.Random) -> int:
    """Return the spot where a unit is least like its neighbours; of equal ones, one that is drawn."""

    def cost(spot: int) -> int:
        return sum(alike(asked[near].unit, unit) for near in (spot - 1, spot) if 0 <= near < len(asked))

    tried = draw.sample(spots, min(TRIES, len(spots)))
    return min(tried, key=cost)
