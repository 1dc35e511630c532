"""The tiers of difficulty: how many shots an episode of each has.

By default those of the released episodes: easy 10 to 12, medium 15 to 22, hard 50 shots. The paper's text
says otherwise: 8 to 12 for easy episodes in section 3.1, at most 14 and 14 to 30 in section F.6.
"""

from collections.abc import Mapping

Bounds = tuple[int, int]
"""Fewest and most shots."""

RELEASED: Mapping[str, Bounds] = {"easy": (10, 12), "medium": (15, 22), "hard": (50, 50)}
PAPER: Mapping[str, Bounds] = {"easy": (8, 12), "medium": (14, 30), "hard": (50, 50)}
"""As the paper's text has them; 14 shots are medium, as tiers must not share a length."""


def problem_of(tiers: Mapping[str, Bounds]) -> str | None:
    """Return what is wrong with tiers, in one line; None if nothing is."""
    if not tiers:
        return "at least one tier is needed, such as easy = [10, 12]"
    taken: dict[int, str] = {}
    for name, (fewest, most) in tiers.items():
        if not 2 <= fewest <= most <= 1000:
            return f"{name}: expected two numbers of shots, 2 to 1000, the smaller one first"
        for length in range(fewest, most + 1):
            other = taken.setdefault(length, name)
            if other != name:
                return f"{length} shots would be both {other} and {name}"
    return None


def tier_of(length: int, tiers: Mapping[str, Bounds]) -> str | None:
    """Return the tier of an episode with so many shots; None where none has that length."""
    return next((name for name, (fewest, most) in tiers.items() if fewest <= length <= most), None)


def lengths_of(tiers: Mapping[str, Bounds]) -> tuple[int, ...]:
    """Return the lengths that episodes may have, ascending."""
    return tuple(sorted(n for fewest, most in tiers.values() for n in range(fewest, most + 1)))
