"""Figures, their faces and things, drawn so that a name has the same shape and colour in every picture."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ....schemas.canonical import Json
from ....schemas.text import contains_phrase, normalize_answer
from .scene import (
    COLUMNS,
    EMBLEM,
    FEET,
    FIGURES,
    HORIZON,
    INK,
    TAB,
    Box,
    Canvas,
    Colour,
    DrawnScene,
    Mark,
    MarkKind,
    Point,
    Row,
    Slot,
    Square,
    blank,
    choice,
    code_of,
    in_pixels,
    slot_at,
)

Feeling = Literal["joy", "sadness", "fear", "anger", "calm"]
Family = Literal["person", "bird", "beast", "insect", "fish"]

_FEELINGS: tuple[tuple[Feeling, str], ...] = (
    ("fear", "fear fright afraid scared terror terrif alarm panic worr anxi shock dread trembl startl "
             "danger"),
    ("anger", "ang rage fury furious envy envi jealous scorn impatien stubborn annoy greed contempt"),
    ("sadness", "sad grief griev sorrow despair disappoint asham shame lonel regret pain mourn miser unhapp "
                "tired weary hurt"),
    ("joy", "joy happ glad relie grat delight content pleas proud pride hope comfort cheer love thank "
            "excit triumph"),
)  # fmt: skip
_FAMILIES: tuple[tuple[Family, str], ...] = (
    ("bird", "bird dove crow raven heron eagle hawk owl goose swan crane sparrow parrot hen cock duck stork "
             "peacock pigeon cuckoo"),
    ("insect", "ant bee wasp fly grasshopper cricket beetle spider mosquito scorpion"),
    ("fish", "fish crocodile frog turtle tortoise crab snake serpent dolphin otter"),
    ("beast", "lion tiger fox wolf bear hare rabbit mouse mice rat dog cat donkey ass horse ox bull cow goat "
              "sheep ram lamb deer monkey elephant jackal mongoose squirrel camel boar pig mule leopard"),
)  # fmt: skip
_CLOTH: tuple[Colour, ...] = (
    (190, 70, 58), (58, 104, 168), (72, 138, 84), (214, 152, 52), (128, 82, 150), (60, 142, 148),
    (168, 98, 62), (206, 110, 136), (104, 120, 62), (84, 84, 128), (150, 58, 92), (112, 112, 118),
)  # fmt: skip
_SKIN: tuple[Colour, ...] = ((244, 212, 178), (226, 180, 138), (196, 144, 102), (150, 104, 70))
_COATS: tuple[Colour, ...] = (
    (206, 128, 62), (150, 118, 88), (122, 122, 126), (92, 74, 62), (220, 200, 160), (78, 84, 92),
    (236, 232, 222), (176, 92, 60),
)  # fmt: skip
_THINGS: tuple[Colour, ...] = (
    (196, 78, 60), (76, 122, 178), (96, 150, 92), (226, 176, 64), (140, 96, 158), (92, 160, 164),
    (178, 118, 78), (214, 214, 206), (120, 92, 68), (228, 136, 96),
)  # fmt: skip
_SHAPES = 8


def feeling_in(text: str) -> Feeling:
    """Return the feeling that a text names first, by parts of English words; calm where it names none."""
    words = re.findall(r"[a-z]+", text.casefold())
    for word in words:
        for feeling, stems in _FEELINGS:
            if any(word.startswith(stem) or (len(stem) > 4 and stem in word) for stem in stems.split()):
                return feeling
    return "calm"


def family_of(name: str) -> Family:
    """Return what sort of figure a name is drawn as, by its English words; a person where none is known."""
    words = {word.removesuffix("s") for word in re.findall(r"[a-z]+", name.casefold())}
    for family, names in _FAMILIES:
        if words & {animal.removesuffix("s") for animal in names.split()}:
            return family
    return "person"


def draw_figure(canvas: Canvas, slot: Slot, name: str, *, raised: bool) -> Square:
    """Draw who bears a name, with the chest at a place for an emblem.

    Returned: the box of the head, in pixels: where the face belongs.
    """
    unit, x, family = slot.unit, slot.x, family_of(name)
    base = slot.y + (124.0 - FEET) * unit
    cloth = _CLOTH[choice(name, "cloth", len(_CLOTH))]
    skin = _SKIN[choice(name, "skin", len(_SKIN))]
    coat = skin if family == "person" else _COATS[choice(name, "coat", len(_COATS))]
    width = 17 + choice(name, "width", 5)
    for side in (-1, 1):
        canvas.box(
            (x + side * 7 * unit - 3 * unit, base - 9 * unit, x + side * 7 * unit + 3 * unit, base), INK
        )
    _draw_limbs(canvas, slot, coat, raised=raised, family=family)
    top, bottom = base - 58 * unit, base - 5 * unit
    body: list[Point]
    if choice(name, "body", 2):
        body = [
            (x - 11 * unit, top),
            (x + 11 * unit, top),
            (x + width * unit, bottom),
            (x - width * unit, bottom),
        ]
    else:
        body = [(x - 9 * unit, top), (x + 9 * unit, top), (x + 14 * unit, top + 7 * unit),
                (x + 15 * unit, bottom), (x - 15 * unit, bottom),
                (x - 14 * unit, top + 7 * unit)]  # fmt: skip
    canvas.shape(body, cloth, outline=unit)
    head = (x - 13 * unit, base - 83 * unit, x + 13 * unit, base - 57 * unit)
    _draw_behind(canvas, head, family, coat, unit)
    canvas.disc(head, coat, outline=unit)
    _draw_before(canvas, head, family, cloth, choice(name, "hat", 3), unit)
    return head


def _draw_limbs(canvas: Canvas, slot: Slot, coat: Colour, *, raised: bool, family: Family) -> None:
    unit, x, shoulder = slot.unit, slot.x, slot.y - 13 * slot.unit
    for side in (-1, 1):
        if family == "bird":
            tip = shoulder - 12 * unit if raised else shoulder + 26 * unit
            wing = [
                (x + side * 8 * unit, shoulder),
                (x + side * 26 * unit, tip),
                (x + side * 12 * unit, shoulder + 24 * unit),
            ]
            canvas.shape(wing, coat, outline=unit)
            continue
        hand = shoulder - 16 * unit if raised and side == 1 else shoulder + 24 * unit
        points = [(x + side * 9 * unit, shoulder), (x + side * 22 * unit, hand)]
        canvas.line(points, 7 * unit)
        canvas.line(points, 5 * unit, coat)
        if family == "insect":
            canvas.line(
                [(x + side * 10 * unit, shoulder + 20 * unit), (x + side * 24 * unit, shoulder + 34 * unit)],
                2 * unit,
            )


def _draw_behind(canvas: Canvas, head: Square, family: Family, coat: Colour, unit: float) -> None:
    left, top, right, _ = head
    middle = (left + right) / 2
    for side in (-1, 1):
        if family == "beast":
            ear = [
                (middle + side * 12 * unit, top + 12 * unit),
                (middle + side * 13 * unit, top - 6 * unit),
                (middle + side * 3 * unit, top + 3 * unit),
            ]
            canvas.shape(ear, coat, outline=unit)
        elif family == "insect":
            canvas.line(
                [(middle + side * 4 * unit, top + 3 * unit), (middle + side * 9 * unit, top - 8 * unit)],
                1.5 * unit,
            )
        elif family == "fish":
            canvas.disc(
                (
                    middle + side * 8 * unit - 4 * unit,
                    top - 3 * unit,
                    middle + side * 8 * unit + 4 * unit,
                    top + 5 * unit,
                ),
                coat,
                outline=unit,
            )


def _draw_before(canvas: Canvas, head: Square, family: Family, cloth: Colour, hat: int, unit: float) -> None:
    left, top, right, bottom = head
    middle = (left + right) / 2
    if family == "bird":
        beak = [
            (middle + 12 * unit, bottom - 13 * unit),
            (middle + 21 * unit, bottom - 9 * unit),
            (middle + 12 * unit, bottom - 6 * unit),
        ]
        canvas.shape(beak, (232, 166, 52), outline=unit)
    if family != "person":
        return
    if hat == 0:
        canvas.shape(
            [
                (left - 4 * unit, top + 7 * unit),
                (right + 4 * unit, top + 7 * unit),
                (middle, top - 10 * unit),
            ],
            cloth,
            outline=unit,
        )
    elif hat == 1:
        canvas.box((left + unit, top - 2 * unit, right - unit, top + 6 * unit), INK)
        canvas.box((left + 2 * unit, top - unit, right - 2 * unit, top + 5 * unit), cloth)
    else:
        canvas.shape(
            [
                (left, top + 7 * unit),
                (left + 3 * unit, top),
                (middle, top - 3 * unit),
                (right - 3 * unit, top),
                (right, top + 7 * unit),
                (middle, top + 4 * unit),
            ],
            INK,
        )


def draw_face(canvas: Canvas, head: Square, feeling: Feeling) -> None:
    """Draw eyes and mouth into the box of a head."""
    left, top, right, _ = head
    unit = (right - left) / 26
    middle, eyes = (left + right) / 2, top + 12 * unit
    for side in (-1, 1):
        x = middle + side * 5 * unit
        size = 2.6 if feeling == "fear" else 1.8
        canvas.disc((x - size * unit, eyes - size * unit, x + size * unit, eyes + size * unit), INK)
        inner, outer = {"anger": (0.6, -1.8), "fear": (-1.8, 0.0), "sadness": (-1.8, 0.4)}.get(
            feeling, (0.0, 0.0)
        )
        if inner or outer:
            brow = [
                (x - side * 3 * unit, eyes - 3 * unit + inner * unit),
                (x + side * 3 * unit, eyes - 3 * unit + outer * unit),
            ]
            canvas.line(brow, 1.3 * unit)
    mouth = top + 19 * unit
    if feeling == "fear":
        canvas.disc((middle - 2.5 * unit, mouth - 2 * unit, middle + 2.5 * unit, mouth + 4 * unit), INK)
    elif feeling in ("joy", "sadness"):
        drop = -4 if feeling == "joy" else 1
        start, end = (20, 160) if feeling == "joy" else (200, 340)
        square = (middle - 6 * unit, mouth + drop * unit, middle + 6 * unit, mouth + (drop + 7) * unit)
        canvas.arc(square, start, end, 1.6 * unit)
    else:
        canvas.line([(middle - 4 * unit, mouth + unit), (middle + 4 * unit, mouth + unit)], 1.6 * unit)


def draw_thing(canvas: Canvas, slot: Slot, name: str) -> Square:
    """Draw a thing above a place for an emblem; return its box with that of the emblem, in pixels."""
    unit, x = slot.unit, slot.x
    colour = _THINGS[choice(name, "thing", len(_THINGS))]
    low, high = slot.y - EMBLEM / 2 * unit, slot.y - 35 * unit
    y = (low + high) / 2
    radius = 11 * unit
    square = (x - radius, y - radius, x + radius, y + radius)
    number = choice(name, "shape", _SHAPES)
    if number == 0:
        canvas.disc(square, colour, outline=unit)
    else:
        canvas.shape(
            [(x + across * radius, y + down * radius) for across, down in _OUTLINES[number - 1]],
            colour,
            outline=unit,
        )
    return (x - EMBLEM / 2 * unit, high, x + EMBLEM / 2 * unit, slot.y + EMBLEM / 2 * unit)


_OUTLINES: tuple[tuple[tuple[float, float], ...], ...] = (
    ((-0.9, -0.7), (0.9, -0.7), (0.9, 0.9), (-0.9, 0.9)),
    ((0.0, -1.0), (1.0, 0.9), (-1.0, 0.9)),
    ((0.0, -1.0), (0.9, 0.0), (0.0, 1.0), (-0.9, 0.0)),
    ((-0.4, -1.0), (0.4, -1.0), (0.4, -0.5), (0.9, 0.1), (0.6, 1.0), (-0.6, 1.0), (-0.9, 0.1), (-0.4, -0.5)),
    ((-0.5, -0.9), (0.5, -0.9), (1.0, 0.0), (0.5, 0.9), (-0.5, 0.9), (-1.0, 0.0)),
    ((0.0, -1.0), (0.3, -0.35), (1.0, -0.3), (0.45, 0.2), (0.65, 0.95), (0.0, 0.5), (-0.65, 0.95),
     (-0.45, 0.2), (-1.0, -0.3), (-0.3, -0.35)),
    ((-1.0, -0.3), (1.0, -0.3), (0.6, 0.9), (-0.6, 0.9)),
)  # fmt: skip
"""Outlines of things: box, cone, lozenge, jar, hexagon, star, bowl; of a radius of 1, y downwards."""


def flatten_face(canvas: Canvas, head: Square) -> None:
    """Take the feeling out of a face that was drawn: eyes and mouth are drawn anew, calm.

    ``head``: box of the head, in pixels, as the truth of a picture gives it.
    """
    left, top, right, _ = head
    unit, middle = (right - left) / 26, (left + right) / 2
    at = (
        min(canvas.image.width - 1, int(left + 3 * unit)),
        min(canvas.image.height - 1, int(top + 13 * unit)),
    )
    pixel = canvas.image.getpixel(at)
    assert isinstance(pixel, tuple)
    skin = (int(pixel[0]), int(pixel[1]), int(pixel[2]))
    for half, high, low in ((9.0, 6.4, 15.5), (6.5, 14.0, 22.5), (3.0, 14.0, 23.6)):
        canvas.box((middle - half * unit, top + high * unit, middle + half * unit, top + low * unit), skin)
    draw_face(canvas, head, "calm")


# -- A scene as a picture: places, figures and things by shape and colour, each mark with its emblem
#
# Where a scene takes place, as bands of sky, far hills and ground whose colours follow from its name.
#
# Signs: the tab above an emblem that says what kind of mark it is, to a person who looks at the picture.

TABS: dict[MarkKind, Colour] = {
    "character": (112, 112, 118), "object": (120, 92, 68), "place": (72, 138, 84), "action": (206, 88, 56),
    "state": (96, 126, 150), "emotion": (206, 90, 128), "must_show": (84, 84, 128), "cause": (222, 158, 44),
    "intention": (128, 110, 176), "consequence": (58, 132, 120), "change": (60, 132, 172),
    "moral": (168, 140, 40),
}  # fmt: skip
"""Kind of mark -> colour of its tab."""
_WHITE: Colour = (250, 246, 236)
_DRAWN_SHAPES: dict[MarkKind, tuple[tuple[Point, ...], ...]] = {
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
    for points in _DRAWN_SHAPES[kind]:
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
