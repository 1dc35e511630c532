"""Stage: a grid of a shot's frames in which every character and object is boxed and named (Eq. 19).

The paper labels the best box of each entity in each frame, in a colour that no other entity of the shot has;
so does this stage under both definitions. Under ``code`` there are five frames, and the sixth cell is empty.
"""

import colorsys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from unicodedata import combining, normalize

from ...engine.stage import Item, Made, Outcome, Tools, stage
from ...media.images import Picture, open_picture
from ...schemas.canonical import Json
from ..judging.settings import ImageSettings, keep_pictures, prepare_picture
from .looking import GRID_FRAMES, GridSettings

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw


# -- Colours of boxes: as many as there are entities, and no two of them alike

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


# -- A grid of a shot's frames in which every character and object is boxed and named (Eq. 19)

COLUMNS = 3
SHOWN = ("character", "object")
_GAP, _GROUND, _LINE, _TEXT = 8, (32, 32, 32), 2, 12
"""Pixels between cells, their background, the width of lines, and the height of letters."""
_LONGEST = 40  # characters of a label


@dataclass(frozen=True, slots=True)
class Label:
    """What a box of an entity looks like: its colour and the text on it."""

    colour: Colour
    text: str


@stage(
    version=2,
    reads=("shot", "frames", "grounded"),
    writes=("grid",),
    libraries=("pillow",),
    settings=GridSettings,
)
def draw_grids(item: Item, tools: Tools) -> Outcome:
    """Return the file of the grid and who has which colour; null where nobody looked, or nobody judges."""
    settings, frames, grounded = tools.own(GridSettings), item["frames"], item["grounded"]
    if not settings.wanted or frames["invalid"] is not None or grounded is None:
        return Made({"grid": None})
    assert tools.store is not None, "a run keeps its frames in a folder"
    shown = [entity for entity in item["shot"]["entities"] if entity["type"] in SHOWN]
    colours = colours_of(len(shown))
    labels = {
        entity["key"]: Label(colour, label_of(entity["name"], number))
        for number, (entity, colour) in enumerate(zip(shown, colours, strict=True), 1)
    }
    cell = settings.cell_width, settings.cell_height
    cells = []
    for index in frames["grid"]:
        image = open_picture(tools.store / frames["pictures"][str(index)]).image
        if settings.drawing == "code":
            cells.append(draw_as_published(image, _all_boxes(shown, grounded, str(index)), cell))
            continue
        best = {key: boxes[0] for key in labels
                if (boxes := grounded["entities"][key]["boxes"].get(str(index)))}  # fmt: skip
        cells.append(draw_cell(image, best, labels, cell))
    rows = -(-(len(cells) if settings.drawing == "code" else GRID_FRAMES) // COLUMNS)
    grid = tile(cells[: rows * COLUMNS], cell, rows)
    encoding = ImageSettings.model_validate(
        {name: getattr(settings, name) for name in ImageSettings.model_fields}
    )
    picture = prepare_picture(Picture(grid, "PNG"), encoding)
    keep_pictures([picture], tools.store)
    legend = [
        {"key": entity["key"], "name": entity["name"], "color": labels[entity["key"]].colour.name}
        for entity in shown
    ]
    about: dict[str, Json] = {"file": picture.file_name, "width": picture.width, "height": picture.height}
    if settings.drawing == "code":
        about["frames"] = len(cells)
    return Made({"grid": {**about, "legend": legend}})


def _all_boxes(shown: Sequence[Json], grounded: Json, index: str) -> "Iterator[Labelled]":
    """Yield every box of every entity in a frame, in the order of the schedule."""
    for number, entity in enumerate(shown):
        for box in grounded["entities"][entity["key"]]["boxes"].get(index, ()):
            yield entity["name"], box, COLOURS[number % len(COLOURS)]


def draw_cell(
    image: "Image", boxes: Mapping[str, Sequence[float]], labels: Mapping[str, Label], cell: tuple[int, int]
) -> "Image":
    """Return a frame made to fit into a cell, with a labelled box for each entity that has one.

    ``boxes``: key of an entity -> its box in pixels of the frame. ``labels``: key -> how it is drawn.
    """
    from PIL import ImageDraw
    from PIL.Image import Resampling

    scale = min(cell[0] / image.width, cell[1] / image.height)
    small = image.resize(
        (max(1, round(image.width * scale)), max(1, round(image.height * scale))), Resampling.LANCZOS
    )
    across, down = small.width / image.width, small.height / image.height
    draw = ImageDraw.Draw(small)
    for key, (left, top, right, bottom, *_) in boxes.items():
        edges = (round(left * across), round(top * down), round(right * across) - 1, round(bottom * down) - 1)
        _draw_box(draw, edges, labels[key], small.size)
    return small


def _draw_box(
    draw: "ImageDraw", edges: tuple[int, int, int, int], label: Label, size: tuple[int, int]
) -> None:
    left, top = min(max(0, edges[0]), size[0] - 1), min(max(0, edges[1]), size[1] - 1)
    right, bottom = min(max(left, edges[2]), size[0] - 1), min(max(top, edges[3]), size[1] - 1)
    draw.rectangle((left, top, right, bottom), outline=label.colour.rgb, width=_LINE)
    font = _font()
    wide = int(draw.textlength(label.text, font=font)) + 4
    high = _TEXT + 5
    at = (max(0, min(left, size[0] - wide)), top - high if top >= high else top)
    draw.rectangle((*at, at[0] + wide, at[1] + high), fill=label.colour.rgb)
    draw.text((at[0] + 2, at[1] + 1), label.text, fill=ink_on(label.colour), font=font)


def tile(cells: "Sequence[Image]", cell: tuple[int, int], rows: int) -> "Image":
    """Return a grid of rows of three cells, in order; cells without a picture stay empty."""
    from PIL import Image

    size = (COLUMNS * (cell[0] + _GAP) + _GAP, rows * (cell[1] + _GAP) + _GAP)
    grid = Image.new("RGB", size, _GROUND)
    for number, picture in enumerate(cells):
        row, column = divmod(number, COLUMNS)
        left = _GAP + column * (cell[0] + _GAP) + (cell[0] - picture.width) // 2
        top = _GAP + row * (cell[1] + _GAP) + (cell[1] - picture.height) // 2
        grid.paste(picture, (left, top))
    return grid


def label_of(name: str, number: int) -> str:
    """Return what stands on the boxes of an entity: its name, or a number if the font lacks its letters.

    Letters that it lacks with their accents stand there without.
    """
    plain = "".join(char for char in normalize("NFKD", name) if not combining(char))
    return next((text[:_LONGEST] for text in (name, plain) if _is_known(text)), str(number))


def _is_known(text: str) -> bool:
    font = _font()
    nothing = _drawn(font, "\U0010fffd")
    return text.isprintable() and all(char.isspace() or _drawn(font, char) != nothing for char in text)


def _drawn(font: Any, char: str) -> tuple[object, bytes]:  # noqa: ANN401 - Pillow's own
    mask = font.getmask(char)
    return mask.size, bytes(mask)


def _font() -> Any:  # noqa: ANN401 - Pillow's own
    from PIL import ImageFont

    return ImageFont.load_default(_TEXT)


# -- The labelled grid as EntityBench's public code draws it: other colours, letters and boxes than ours
#
# Source: ``evaluate_benchmark.py`` at 3776439. Every box of every entity is drawn in the size of the frame,
# its name on a plate above it; the frame is then made smaller, never larger, and stands in the middle of its
# cell.

COLOURS = (
    (255, 64, 64), (64, 192, 255), (64, 255, 96), (255, 192, 0),
    (224, 64, 224), (255, 128, 0), (128, 255, 255), (255, 96, 160),
)  # fmt: skip
"""Colours of entities in the order of the schedule, again from the first after the last."""
_THICK, _PAD, _HIGH = 3, 2, 12

Labelled: TypeAlias = tuple[str, Sequence[float], tuple[int, int, int]]
"""Name of an entity, a box of it in pixels, and its colour."""


def draw_as_published(image: "Image", boxes: Iterable[Labelled], cell: tuple[int, int]) -> "Image":
    """Return a frame with its boxes, at most as large as a cell."""
    from PIL import ImageDraw, ImageFont
    from PIL.Image import Resampling

    drawn, font = image.convert("RGB").copy(), ImageFont.load_default()
    draw = ImageDraw.Draw(drawn)
    for name, box, colour in boxes:
        left, top, right, bottom = (int(side) for side in box[:4])
        if right < left or bottom < top:
            continue
        for line in range(_THICK):
            draw.rectangle((left - line, top - line, right + line, bottom + line), outline=colour)
        above = max(0, top - _HIGH - 2 * _PAD)
        wide = draw.textlength(name, font=font)
        draw.rectangle((left, above, left + wide + 2 * _PAD, above + _HIGH + 2 * _PAD), fill=colour)
        draw.text((left + _PAD, above + _PAD), name, fill=(0, 0, 0), font=font)
    drawn.thumbnail(cell, Resampling.LANCZOS)
    return drawn
