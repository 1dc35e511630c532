"""Where a scene takes place, as bands of sky, far hills and ground whose colours follow from its name."""

from dataclasses import dataclass

from .canvas import Canvas, Colour
from .codes import choice
from .layout import HORIZON


@dataclass(frozen=True, slots=True)
class Look:
    """Colours of a place: sky, far hills, near hills, ground, and ground in front."""

    sky: Colour
    far: Colour
    near: Colour
    ground: Colour
    front: Colour


LOOKS = (
    Look((188, 220, 236), (150, 186, 190), (128, 172, 128), (196, 206, 140), (178, 188, 118)),
    Look((246, 222, 190), (214, 176, 150), (186, 146, 110), (224, 196, 146), (206, 176, 124)),
    Look((206, 214, 236), (160, 164, 200), (120, 136, 168), (176, 186, 196), (154, 166, 178)),
    Look((250, 232, 206), (226, 196, 166), (150, 170, 120), (198, 190, 130), (180, 172, 112)),
    Look((176, 206, 206), (126, 166, 150), (88, 138, 106), (158, 182, 126), (138, 164, 108)),
    Look((232, 206, 214), (196, 160, 176), (158, 124, 148), (212, 184, 172), (192, 162, 150)),
)
"""Looks of places."""
PLAIN = Look((236, 232, 220), (222, 216, 200), (210, 202, 182), (226, 214, 186), (212, 198, 166))
"""Look where no place is given."""


def draw_place(canvas: Canvas, name: str | None, shift: float = 0.0) -> None:
    """Fill the picture with a place.

    Args:
        canvas: what to fill.
        name: of the place; None for a plain ground.
        shift: by how many units the camera has moved to the right: hills move to the left, far ones less.
    """
    frame = canvas.frame
    unit, width, height = frame.unit, frame.width, frame.height
    look = PLAIN if name is None else LOOKS[choice(name, "look", len(LOOKS))]
    horizon = frame.up(HORIZON)
    canvas.box((0, 0, width, horizon), look.sky)
    if name is not None:
        x, y = width * (0.62 + choice(name, "sun", 30) / 100), horizon - 108 * unit
        canvas.disc((x - 12 * unit, y - 12 * unit, x + 12 * unit, y + 12 * unit), (252, 240, 200))
    for number, (colour, tall, moves) in enumerate(((look.far, 44, 0.4), (look.near, 24, 0.8))):
        offset = choice(name or "", f"hills {number}", 80) - shift * moves
        step = 92 + 30 * number
        left = offset % step - 2 * step
        while left * unit < width:
            lift = tall + choice(f"{name}{round((left - offset) / step)}", "hill", 14)
            middle = left + step * 0.55
            points = [
                (left * unit, horizon),
                (middle * unit, horizon - lift * unit),
                ((left + step * 1.3) * unit, horizon),
            ]
            canvas.shape(points, colour)
            left += step
    canvas.box((0, horizon, width, height), look.ground)
    canvas.box((0, frame.up(FRONT), width, height), look.front)


FRONT = 84.0
"""Where the ground in front begins, in units from the bottom: figures stand there."""
