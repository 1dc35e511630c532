"""A scene as a picture: places, figures and things by shape and colour, each mark with its emblem.

Where a scene takes place, as bands of sky, far hills and ground whose colours follow from its name.

Signs: the tab above an emblem that says what kind of mark it is, to a person who looks at the picture.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ....schemas.canonical import Json
from ....schemas.text import contains_phrase, normalize_answer
from .canvas import INK, Canvas, Colour, Point, Square, blank, choice, code_of
from .figures import Feeling, draw_face, draw_figure, draw_thing, feeling_in
from .scene import (
    COLUMNS,
    EMBLEM,
    FIGURES,
    HORIZON,
    TAB,
    Box,
    DrawnScene,
    Mark,
    MarkKind,
    Row,
    Slot,
    in_pixels,
    slot_at,
)

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

    ``name``: of the place; None for a plain ground.
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


_STRIP: Colour = (58, 54, 66)
_KEY: Colour = (0, 177, 64)
_MOST_FIGURES = len(FIGURES) - 1


@dataclass(frozen=True, slots=True)
class DrawnMark:
    """A mark that is in a picture, with its box in pixels."""

    mark: Mark
    box: Box

    def as_json(self) -> dict[str, Json]:
        """Return it as JSON, with the code of its text."""
        return {**_about(self.mark), "box": list(self.box)}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture and what is in it."""

    canvas: Canvas  # the pixels
    marks: tuple[DrawnMark, ...]  # what was drawn
    forgotten: tuple[Mark, ...] = ()  # what was left out, as a renderer that loses things does
    without_room: tuple[Mark, ...] = ()  # what did not fit
    # for each figure with a face its name, its feeling and the box of the head, in pixels
    faces: tuple[tuple[str, Feeling, Box], ...] = ()

    def truth(self) -> dict[str, Json]:
        """Return what the picture shows, as data."""
        return {
            "width": self.canvas.image.width,
            "height": self.canvas.image.height,
            "drawn": [mark.as_json() for mark in self.marks],
            "forgotten": [_about(mark) for mark in self.forgotten],
            "without_room": [_about(mark) for mark in self.without_room],
            "faces": [{"text": text, "feeling": name, "box": list(box)} for text, name, box in self.faces],
        }


def _about(mark: Mark) -> dict[str, Json]:
    return {"kind": mark.kind, "text": mark.text, "code": code_of(mark.text)}


def draw_scene(
    scene: DrawnScene, size: tuple[int, int], forgets: Callable[[Mark], bool] = lambda _: False,
    shift: float = 0.0,
) -> Drawing:  # fmt: skip
    """Draw a scene.

    ``size``: width and height in pixels, 16 or more each. Below 256 of the shorter one, emblems are too small
    to be read.
    """
    kept = [mark for mark in scene.marks if not forgets(mark)]
    forgotten = tuple(mark for mark in scene.marks if forgets(mark))
    sketch = _Sketch(blank(*size, _colour(scene.ground)))
    if scene.form == "portrait":
        _draw_portrait(sketch, kept)
    else:
        _draw_panel(sketch, kept, shift)
    return Drawing(
        sketch.canvas, tuple(sketch.marks), forgotten, tuple(sketch.without_room), tuple(sketch.faces)
    )


@dataclass
class _Sketch:
    """A picture that is being drawn."""

    canvas: Canvas
    marks: list[DrawnMark] = field(default_factory=list)
    without_room: list[Mark] = field(default_factory=list)
    faces: list[tuple[str, Feeling, Box]] = field(default_factory=list)

    def add(self, mark: Mark, square: Square) -> None:
        self.marks.append(DrawnMark(mark, in_pixels(square, self.canvas.frame)))

    def figure(self, slot: Slot, mark: Mark, feeling: Feeling, *, raised: bool) -> None:
        head = draw_figure(self.canvas, slot, mark.text, raised=raised)
        draw_face(self.canvas, head, feeling)
        self.canvas.emblem(slot, mark.kind, code_of(mark.text))
        half, low = 27 * slot.unit, slot.y + 41 * slot.unit
        self.add(mark, (slot.x - half, head[1] - 11 * slot.unit, slot.x + half, low))
        self.faces.append((mark.text, feeling, in_pixels(head, self.canvas.frame)))


def _colour(text: str | None) -> Colour:
    if text is None:
        return _KEY
    red, green, blue = bytes.fromhex(text.removeprefix("#"))
    return red, green, blue


def _draw_portrait(sketch: _Sketch, marks: Sequence[Mark]) -> None:
    """Draw the first mark alone; a feeling among the others shows in its face and needs no room."""
    feelings = [mark.text for mark in marks if mark.kind == "emotion"]
    for mark in marks[:1]:
        slot = slot_at(sketch.canvas.frame, "portrait", 0)
        if mark.kind == "object":
            square = draw_thing(sketch.canvas, slot, mark.text)
            sketch.canvas.emblem(slot, mark.kind, code_of(mark.text))
            sketch.add(mark, square)
        else:
            feeling = feeling_in(feelings[0]) if feelings else "calm"
            sketch.figure(slot, mark, feeling, raised=False)
    sketch.without_room += marks[1:]


def _draw_panel(sketch: _Sketch, marks: Sequence[Mark], shift: float) -> None:
    by_row = _rows(marks)
    frame = sketch.canvas.frame
    where = next((mark.text for row in ("top", "ground") for mark in by_row[row]), None)
    draw_place(sketch.canvas, where, shift)
    columns = FIGURES[len(by_row["chest"])]
    people = {mark: column for mark, column in zip(by_row["chest"], columns, strict=True)}
    feelings = [mark.text for mark in by_row["air"] if mark.kind == "emotion"]
    actions = [mark.text for mark in by_row["air"] if mark.kind == "action"]
    for mark, column in people.items():
        slot = slot_at(frame, "chest", column)
        acts = any(_names(text, mark.text) for text in actions)
        sketch.figure(slot, mark, _feeling(mark, people, feelings), raised=acts)
    for mark, column in zip(by_row["ground"], _ground_columns(columns, len(by_row["ground"])), strict=True):
        slot = slot_at(frame, "ground", column)
        square = draw_thing(sketch.canvas, slot, mark.text)
        sketch.canvas.emblem(slot, mark.kind, code_of(mark.text))
        sketch.add(mark, square)
    for number, mark in enumerate(by_row["top"]):
        sketch.add(
            mark, draw_badge(sketch.canvas, slot_at(frame, "top", number), mark.kind, code_of(mark.text))
        )
    _draw_air(sketch, by_row["air"], people)
    _draw_strip(sketch, by_row["lower"])
    sketch.without_room += by_row["portrait"]


def _rows(marks: Sequence[Mark]) -> dict[Row, list[Mark]]:
    """Return row -> its marks, in order; what no longer fits into its row goes to the strip, then nowhere."""
    rows: dict[Row, list[Mark]] = {row: [] for row in ("top", "air", "chest", "ground", "lower", "portrait")}
    room: dict[Row, int] = {"top": COLUMNS // 2, "air": COLUMNS, "chest": _MOST_FIGURES,
                            "ground": COLUMNS, "lower": 2 * COLUMNS}  # fmt: skip
    own: dict[str, Row] = {"place": "top", "action": "air", "emotion": "air", "character": "chest",
                           "object": "ground"}  # fmt: skip
    for mark in marks:
        row = own.get(mark.kind, "lower")
        if len(rows[row]) >= room[row]:
            row = "lower" if len(rows["lower"]) < room["lower"] else "portrait"
        rows[row].append(mark)
    return rows


def _names(text: str, name: str) -> bool:
    return contains_phrase(normalize_answer(text), normalize_answer(name))


def _feeling(mark: Mark, people: Mapping[Mark, int], feelings: Sequence[str]) -> Feeling:
    """Return what is in a figure's face: the first feeling that names it, or that names nobody."""
    for text in feelings:
        if _names(text, mark.text) or not any(_names(text, other.text) for other in people):
            return feeling_in(text)
    return "calm"


def _ground_columns(figures: Sequence[int], count: int) -> list[int]:
    """Return the columns of so many things: between the figures first, spread over the width."""
    free = [column for column in range(COLUMNS) if column not in figures]
    if count > len(free):
        return sorted([*free, *figures[: count - len(free)]])
    return [free[(2 * number + 1) * len(free) // (2 * count)] for number in range(count)]


def _draw_air(sketch: _Sketch, marks: Sequence[Mark], people: Mapping[Mark, int]) -> None:
    """Draw what is done and felt above the heads, near the figure that it names and with a pointer to it."""
    taken: set[int] = set()
    frame = sketch.canvas.frame
    for mark in marks:
        columns = [column for name, column in people.items() if _names(mark.text, name.text)]
        meant = columns[0] if columns else next(iter(people.values()), COLUMNS // 2)
        free = [column for column in range(COLUMNS) if column not in taken]
        column = min(free, key=lambda column: (abs(column - meant), column))
        taken.add(column)
        slot = slot_at(frame, "air", column)
        if people and abs(column - meant) <= 1:
            unit = slot.unit
            tip = (frame.x(meant) + (slot.x - frame.x(meant)) / 4, frame.up(170))
            below = slot.y + EMBLEM / 2 * unit
            sketch.canvas.shape([(slot.x - 3 * unit, below), (slot.x + 3 * unit, below), tip], INK)
        sketch.add(mark, draw_badge(sketch.canvas, slot, mark.kind, code_of(mark.text)))


def _draw_strip(sketch: _Sketch, marks: Sequence[Mark]) -> None:
    """Draw what has no shape of its own as badges in one or two rows at the bottom."""
    if not marks:
        return
    frame = sketch.canvas.frame
    top = (29.0 if len(marks) <= COLUMNS else 56.0) if marks else 0.0
    sketch.canvas.box((0, frame.up(top), frame.width, frame.height), _STRIP)
    first = marks[:COLUMNS] if len(marks) <= COLUMNS else marks[: (len(marks) + 1) // 2]
    rows: tuple[tuple[Row, Sequence[Mark]], ...] = (("lower", first), ("upper", marks[len(first) :]))
    for row, shown in rows:
        start = (COLUMNS - len(shown)) // 2
        for number, mark in enumerate(shown):
            slot = slot_at(frame, row, start + number)
            sketch.add(mark, draw_badge(sketch.canvas, slot, mark.kind, code_of(mark.text)))
