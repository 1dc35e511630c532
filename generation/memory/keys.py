"""Grounds of one colour behind a portrait, and the order in which they are tried (EntityBench, C.2, E.3)."""

from typing import Literal, TypeAlias

from .words import colours_worn

Key: TypeAlias = Literal["green", "magenta", "blue", "orange"]
KEYS: dict[Key, str] = {"green": "#00b140", "magenta": "#ff00b8", "blue": "#0047bb", "orange": "#ff7f00"}
"""Name of a ground -> its colour, in the order in which they are tried."""


def grounds_for(description: str, retries: int) -> tuple[Key, ...]:
    """Return the grounds to try, one for the first try and one for each retry.

    Green, magenta, blue, then orange. A colour that the description has words for is replaced by the next
    one that it has none for; where there is no such colour left, it comes last. From the fifth try on they
    repeat.

    >>> grounds_for("Woman in a red coat.", 2)
    ('green', 'magenta', 'blue')
    >>> grounds_for("Man in an olive coat.", 2)
    ('orange', 'magenta', 'blue')
    """
    worn = colours_worn(description)
    tries = retries + 1
    order: list[Key] = list(KEYS)
    chosen = order[:tries]
    spare = [key for key in order[tries:] if key not in worn]
    kept: list[Key] = []
    late: list[Key] = []
    for key in chosen:
        if key not in worn:
            kept.append(key)
        elif spare:
            kept.append(spare.pop(0))
        else:
            late.append(key)
    rounds = [*kept, *late]
    return tuple(rounds[number % len(rounds)] for number in range(tries))


def rgb_of(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of a colour such as ``#00b140``.

    Raises:
        ValueError: it is none.
    """
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue
