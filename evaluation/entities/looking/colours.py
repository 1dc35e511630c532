"""Colours of boxes: as many as there are entities, and no two of them alike."""

import colorsys
from dataclasses import dataclass

Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour and how it is called: by a word, or as ``#rrggbb`` where words run out."""

    name: str
    rgb: Rgb


NAMED = (
    Colour("red", (230, 25, 45)), Colour("green", (30, 200, 60)), Colour("blue", (40, 90, 250)),
    Colour("yellow", (255, 225, 25)), Colour("magenta", (240, 50, 230)), Colour("cyan", (50, 235, 240)),
    Colour("orange", (250, 130, 20)), Colour("white", (255, 255, 255)), Colour("brown", (140, 80, 30)),
    Colour("purple", (120, 20, 160)), Colour("pink", (250, 170, 200)), Colour("black", (0, 0, 0)),
)  # fmt: skip
_TURN = 0.6180339887498949
"""Of the circle of hues from one colour to the next: so no two are near each other for long."""
_LEVELS = ((0.9, 0.75), (0.5, 1.0), (0.9, 0.45))
"""Saturation and lightness, in turn."""


def colours_of(count: int) -> tuple[Colour, ...]:
    """Return so many colours, all different: those with names first, then hue after hue."""
    made = list(NAMED[:count])
    taken = {colour.rgb for colour in made}
    step = 0
    while len(made) < count:
        step += 1
        strong, light = _LEVELS[step % len(_LEVELS)]
        parts = colorsys.hsv_to_rgb(step * _TURN % 1, strong, light)
        red, green, blue = (round(255 * part) for part in parts)
        if (red, green, blue) not in taken:
            taken.add((red, green, blue))
            made.append(Colour(f"#{red:02x}{green:02x}{blue:02x}", (red, green, blue)))
    return tuple(made)


def ink_on(colour: Colour) -> Rgb:
    """Return black or white, whichever is read better on a colour."""
    red, green, blue = colour.rgb
    return (0, 0, 0) if 0.299 * red + 0.587 * green + 0.114 * blue > 128 else (255, 255, 255)
