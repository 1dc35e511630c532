"""Signs: the tab above an emblem that says what kind of mark it is, to a person who looks at the picture."""

from .canvas import Canvas, Colour, Point, Square
from .layout import EMBLEM, TAB, Slot
from .scene import MarkKind

TABS: dict[MarkKind, Colour] = {
    "character": (112, 112, 118), "object": (120, 92, 68), "place": (72, 138, 84), "action": (206, 88, 56),
    "state": (96, 126, 150), "emotion": (206, 90, 128), "must_show": (84, 84, 128), "cause": (222, 158, 44),
    "intention": (128, 110, 176), "consequence": (58, 132, 120), "change": (60, 132, 172),
    "moral": (168, 140, 40),
}  # fmt: skip
"""Kind of mark -> colour of its tab."""
_WHITE: Colour = (250, 246, 236)
_SHAPES: dict[MarkKind, tuple[tuple[Point, ...], ...]] = {
    "character": (((-1, 2), (-1, -1), (1, -1), (1, 2)), ((-0.6, -1.2), (0, -2.2), (0.6, -1.2))),
    "object": (((-2, 2), (-2, -1), (2, -1), (2, 2)),),
    "place": (((-3, 2), (0, -2), (3, 2)),),
    "action": (((-4, -0.7), (1, -0.7), (1, -2), (4, 0), (1, 2), (1, 0.7), (-4, 0.7)),),
    "state": (((-3, -1.7), (3, -1.7), (3, -0.5), (-3, -0.5)), ((-3, 0.5), (3, 0.5), (3, 1.7), (-3, 1.7))),
    "emotion": (((0, 2), (-2.6, -0.6), (-1.3, -2), (0, -0.8), (1.3, -2), (2.6, -0.6)),),
    "must_show": (((-3.4, 0), (0, -2), (3.4, 0), (0, 2)),),
    "cause": (((1, -2.2), (-2, 0.5), (-0.2, 0.5), (-1, 2.2), (2, -0.4), (0.2, -0.4)),),
    "intention": (((-3, -2), (3, -2), (3, 0.8), (0, 0.8), (-1.6, 2.2), (-1.6, 0.8), (-3, 0.8)),),
    "consequence": (((-1.6, -2.2), (2.6, -1), (-0.8, 0.2), (-0.8, 2.2), (-1.6, 2.2)),),
    "change": (((-4, 0), (-2, -2), (-2, -0.6), (2, -0.6), (2, -2), (4, 0), (2, 2), (2, 0.6), (-2, 0.6),
                (-2, 2)),),
    "moral": (((0, -2.2), (0.7, -0.7), (2.4, -0.6), (1, 0.4), (1.5, 2), (0, 1.1), (-1.5, 2), (-1, 0.4),
               (-2.4, -0.6), (-0.7, -0.7)),),
}  # fmt: skip


def draw_badge(canvas: Canvas, slot: Slot, kind: MarkKind, code: str) -> Square:
    """Draw an emblem with the tab of its kind above it; return the box of both, in pixels."""
    canvas.emblem(slot, kind, code)
    left, top, right, bottom = slot.around(EMBLEM)
    tab = (left, top - TAB * slot.unit, right, top)
    canvas.box(tab, TABS[kind])
    x, y = slot.x, top - TAB / 2 * slot.unit
    for points in _SHAPES[kind]:
        canvas.shape([(x + across * slot.unit, y + down * slot.unit) for across, down in points], _WHITE)
    return (left, tab[1], right, bottom)
