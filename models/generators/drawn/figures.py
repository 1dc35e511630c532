"""Figures, their faces and things, drawn so that a name has the same shape and colour in every picture."""

import re
from typing import Literal

from .canvas import INK, Canvas, Colour, Point, Square, choice
from .scene import EMBLEM, FEET, Slot

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

    Returns:
        The box of the head, in pixels: where the face belongs.
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
