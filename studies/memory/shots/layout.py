"""Where everybody stands in a shot, and how the camera moves: a layout, in one or more keyframes.

The frame has seven cells from left to right (EntityBench, E.4, which names the two ends). A cell holds one
character. Objects stand beside who uses them and take no cell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ....schemas.entities import EpisodeShot
from ....schemas.values import Own

if TYPE_CHECKING:
    from PIL.Image import Image

    Pixels = NDArray[np.uint8]

Cell: TypeAlias = Literal["far-left", "left", "centre-left", "centre", "centre-right", "right", "far-right"]
CELLS: tuple[Cell, ...] = ("far-left", "left", "centre-left", "centre", "centre-right", "right", "far-right")
"""The cells, from left to right as the viewer sees them."""
SPREAD: tuple[tuple[int, ...], ...] = (
    (), (3,), (2, 4), (1, 3, 5), (0, 2, 4, 6), (0, 2, 3, 4, 6), (0, 1, 2, 4, 5, 6), (0, 1, 2, 3, 4, 5, 6),
)  # fmt: skip
"""How many characters -> the cells over which they are spread."""
SEATS = (3, 2, 4, 1, 5, 0, 6)
"""Cells in which somebody who comes to others stands, the first free one."""
Angle: TypeAlias = Literal["left", "front", "right"]
ANGLES: tuple[Angle, ...] = ("left", "front", "right")
"""Which third of the place's panorama is behind: left, the centre, or right (E.4)."""
Pan: TypeAlias = Literal["none", "left", "right"]
"""Where the camera turns."""
By: TypeAlias = Literal["rules", "model"]


class Standing(Own):
    """A character in a keyframe."""

    name: str = Field(min_length=1, description="Name, as the schedule has it.")
    cell: Cell = Field(description="Where, as the viewer sees it.")


class Beside(Own):
    """An object in a keyframe."""

    name: str = Field(min_length=1, description="Name, as the schedule has it.")
    user: str | None = Field(default=None, description="Character beside whom it stands; null for nobody.")


class Keyframe(Own):
    """One arrangement of a shot."""

    characters: tuple[Standing, ...] = Field(default=(), description="Who is there, from left to right.")
    objects: tuple[Beside, ...] = Field(default=(), description="What is there.")
    location: str | None = Field(default=None, description="Name of the place behind; null for none.")
    angle: Angle = Field(default="front", description="Which third of its panorama.")
    pan: Pan = Field(default="none", description="How the camera turned on the way here.")
    shows: str = Field(default="", description="What it shows, in a few words.")


class ShotLayout(Own):
    """The arrangements of one shot, with how it follows from the shot before."""

    shot: str = Field(description="Key of the shot, <scene>:<shot>.")
    continues: bool = Field(description="Whether it goes on from the shot before in its scene.")
    retained: tuple[str, ...] = Field(default=(), description="Characters who stay from the shot before.")
    entering: tuple[str, ...] = Field(default=(), description="Characters who were not in its last keyframe.")
    leaving: tuple[str, ...] = Field(default=(), description="Characters of it who are here no more.")
    keyframes: tuple[Keyframe, ...] = Field(min_length=1, description="The arrangements, in order.")
    by: By = Field(default="rules", description="Who planned it.")
    reason: str | None = Field(default=None, description="Why rules stood in for the model.")
    reasoning: str | None = Field(default=None, description="What the model says of the camera's move.")

    @property
    def state(self) -> Keyframe:
        """The arrangement in which it ends, from which the next shot goes on."""
        return self.keyframes[-1]


@dataclass(frozen=True)
class ShotCast:
    """What a layout is made for."""

    shot: str  # key of the shot
    action: str  # what happens in it
    characters: tuple[str, ...] = ()  # the scheduled characters, each once
    locations: tuple[str, ...] = ()  # the scheduled places, each once
    objects: tuple[str, ...] = ()  # the scheduled objects that stand alone, each once
    # the arrangement that it goes on from; None where it begins anew
    before: Keyframe | None = field(default=None)

    @property
    def names_before(self) -> tuple[str, ...]:
        """The characters of the arrangement before, from left to right."""
        return () if self.before is None else names_of(self.before)

    @property
    def retained(self) -> tuple[str, ...]:
        """Those of them who are scheduled here, too, from left to right."""
        return tuple(name for name in self.names_before if name in self.characters)

    @property
    def entering(self) -> tuple[str, ...]:
        """The scheduled characters who were not there, where it goes on; none where it begins anew."""
        return () if self.before is None else self._not_in(self.names_before)

    @property
    def leaving(self) -> tuple[str, ...]:
        """The characters before who are not scheduled here."""
        return tuple(name for name in self.names_before if name not in self.characters)

    def _not_in(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in self.characters if name not in names)


def cast_of(shot: EpisodeShot, objects: Sequence[str], before: Keyframe | None) -> ShotCast:
    """Return what the layout of a shot is made for.

    ``before``: the arrangement that it goes on from; None where it begins anew.
    """
    unique = [
        tuple(dict.fromkeys(shot.scheduled.names(kind))) for kind in ("character", "location", "object")
    ]
    standing = tuple(name for name in unique[2] if name in objects)
    return ShotCast(shot.key, shot.action, unique[0], unique[1], standing, before)


def goes_on(shot: EpisodeShot, before: EpisodeShot | None) -> bool:
    """Return whether a shot goes on from the one before it: no cut, and in the same scene."""
    return before is not None and not shot.cut and shot.scene == before.scene


def names_of(keyframe: Keyframe) -> tuple[str, ...]:
    """Return the names of the characters of a keyframe, from left to right."""
    return tuple(sorted(places_of(keyframe), key=places_of(keyframe).__getitem__))


def places_of(keyframe: Keyframe) -> dict[str, int]:
    """Return character -> number of its cell, 0 to 6 from the left."""
    return {standing.name: CELLS.index(standing.cell) for standing in keyframe.characters}


def standing_at(places: Mapping[str, int]) -> tuple[Standing, ...]:
    """Return characters in their cells, from left to right."""
    ordered = sorted(places, key=places.__getitem__)
    return tuple(Standing(name=name, cell=CELLS[places[name]]) for name in ordered)


def plain_layout(cast: ShotCast) -> ShotLayout:
    """Return the layout of a shot that needs nobody to read it: valid for every schedule.

    Who stays from the shot before stands where they stood, the others have the free cells or, where nobody
    stays, are spread over the frame as they are scheduled. Nobody moves and the camera does not turn; more
    bodies than cells, and a second place, make a further keyframe. Objects stand beside nobody.
    """
    keyframes: list[Keyframe] = []
    arrangements, locations = list(_arrangements(cast)), _locations(cast)
    for number in range(max(len(arrangements), len(locations), 1)):
        location = locations[min(number, len(locations) - 1)] if locations else None
        before = keyframes[-1] if keyframes else cast.before
        stays = before is not None and before.location == location
        keyframes.append(
            Keyframe(
                characters=standing_at(arrangements[min(number, len(arrangements) - 1)]),
                objects=tuple(Beside(name=name) for name in cast.objects),
                location=location, angle=before.angle if before is not None and stays else "front",
            )
        )  # fmt: skip
    return ShotLayout(
        shot=cast.shot, continues=cast.before is not None, retained=cast.retained, entering=cast.entering,
        leaving=cast.leaving, keyframes=tuple(keyframes),
    )  # fmt: skip


def _arrangements(cast: ShotCast) -> Iterator[dict[str, int]]:
    """Yield character -> cell for each keyframe, until all have been in one."""
    before = {} if cast.before is None else places_of(cast.before)
    places = {name: before[name] for name in cast.retained}
    comers = [name for name in cast.characters if name not in places]
    free = [cell for cell in SEATS if cell not in places.values()]
    if not places:
        free = list(SPREAD[min(len(comers), len(CELLS))])
    places |= zip(comers, free, strict=False)
    yield places
    for start in range(len(free), len(comers), len(CELLS)):
        group = comers[start : start + len(CELLS)]
        yield dict(zip(group, SPREAD[len(group)], strict=True))


def _locations(cast: ShotCast) -> list[str]:
    """Return the places of a shot as they are scheduled, the one in which it goes on first."""
    here = None if cast.before is None else cast.before.location
    return sorted(cast.locations, key=lambda name: name != here)


# -- The compositor: cut-outs of equal height on a ground line, objects beside their users, a place behind
#
# Everything is whole-number arithmetic on 8-bit pixels but for one resampling, Pillow's ``BILINEAR`` (a
# triangle as wide as the reduction; no function of the system's library is in it), on colours multiplied by
# their opacity. The same pictures give the same pixels everywhere; PNG files are those of the installed zlib.

NO_PLACE = (128, 128, 128)
"""Colour behind everybody where a shot has no place, or the place no picture."""
FIGURE, THING = 0.72, 0.30
"""Height of a character and of an object of relative height 1, as shares of the frame's height."""
GROUND = 0.95
"""Where feet are, as a share of the frame's height from the top."""
WIDEST = 0.45
"""Most of the frame's width that anything takes."""
TALLEST = 0.93
"""Most of the frame's height that anything takes."""
ANCHOR = (3, 4)
"""Share of the rows that do not fit that are cut off the top of a place: three quarters."""
CLOSEST, SMALLEST = 1.3, 0.6
"""Where neighbours would hide each other, all characters of a keyframe are drawn smaller, in one measure:
until the widest has at most 1.3 times the room between the two who stand closest, but never below 0.6."""
OPAQUE = 16
"""Least opacity, of 255, of a pixel that counts as part of a cut-out whose bounds nobody gave."""

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; right and bottom are outside."""


@dataclass(frozen=True, slots=True)
class Cutout:
    """A subject without its ground."""

    image: "Image" = field(repr=False)  # mode RGBA
    bounds: Box | None = None  # of the subject in it; None to find them
    height: float = 1.0  # relative to others of its type; 1 is the usual height


@dataclass(frozen=True, slots=True)
class Composed:
    """A keyframe as a picture."""

    image: "Image" = field(repr=False)  # mode RGB
    boxes: Mapping[str, Box]  # key of an entity -> its box; what is hidden behind others counts


def compose(
    keyframe: Keyframe, cutouts: Mapping[str, Cutout], view: "Image | None", size: tuple[int, int]
) -> Composed:
    """Return a keyframe as a picture; who has no cut-out is left out of it.

    ``cutouts``: ``character:NAME`` or ``object:NAME`` -> the cut-out. ``view``: the third of the place that
    is behind, mode RGB; None for a plain ground. ``size``: width and height in pixels.
    """
    canvas = np.asarray(_behind(view, size)).astype(np.int32)
    cells, boxes = places_of(keyframe), {}
    figure = FIGURE * _crowding(cells, cutouts, size)
    for name, cell in sorted(cells.items(), key=lambda row: row[1]):
        cutout = cutouts.get(f"character:{name}")
        if cutout is not None:
            middle = (2 * cell + 1) * size[0] // (2 * len(CELLS))
            boxes[f"character:{name}"] = _stand(canvas, cutout, middle, figure)
    free = [thing.name for thing in keyframe.objects if thing.user is None]
    taken: dict[str, int] = {}
    for thing in keyframe.objects:
        cutout = cutouts.get(f"object:{thing.name}")
        if cutout is None:
            continue
        if thing.user is None:
            middle = (free.index(thing.name) + 1) * size[0] // (len(free) + 1)
        else:
            rank = taken[thing.user] = taken.get(thing.user, 0) + 1
            width = _fitted(cutout, size, THING)[0]
            middle = _beside(cells, thing.user, rank, boxes.get(f"character:{thing.user}"), (width, size[0]))
        boxes[f"object:{thing.name}"] = _stand(canvas, cutout, middle, THING)
    from PIL import Image

    return Composed(Image.fromarray(canvas.astype(np.uint8)), boxes)


def soft(alpha: "Pixels") -> "Pixels":
    """Return the opacity of a cut-out with a soft edge: one pixel less, then the mean of each 3 x 3 pixels.

    ``alpha``: 0 to 255, shape (height, width).
    """
    around = _neighbours(alpha)
    less = around.min(axis=0)
    mean: Pixels = ((_neighbours(less).astype(np.int32).sum(axis=0) + 4) // 9).astype(np.uint8)
    return mean


def _neighbours(values: "Pixels") -> "Pixels":
    """Return the nine values around each, shape (9, height, width); outside there is 0."""
    padded = np.pad(values, 1)
    height, width = values.shape
    return np.stack([padded[y : y + height, x : x + width] for y in range(3) for x in range(3)])


def _behind(view: "Image | None", size: tuple[int, int]) -> "Image":
    """Return a place that fills the frame: enlarged as little as needed, cut at its sides and at the top."""
    from PIL import Image
    from PIL.Image import Resampling

    width, height = size
    if view is None:
        return Image.new("RGB", size, NO_PLACE)
    across = max(width, -(-view.width * height // view.height))
    down = max(height, -(-view.height * width // view.width))
    large = view.convert("RGB").resize((across, down), Resampling.BILINEAR)
    left, top = (across - width) // 2, (down - height) * ANCHOR[0] // ANCHOR[1]
    return large.crop((left, top, left + width, top + height))


def _fitted(cutout: Cutout, size: tuple[int, int], share: float) -> tuple[int, int]:
    """Return width and height of a subject in the frame, in pixels."""
    left, top, right, bottom = _bounds(cutout)
    wide, tall = right - left, bottom - top
    height = min(share * cutout.height, TALLEST) * size[1]
    height = min(height, WIDEST * size[0] * tall / wide)
    return max(1, round(height * wide / tall)), max(1, round(height))


def _crowding(cells: Mapping[str, int], cutouts: Mapping[str, Cutout], size: tuple[int, int]) -> float:
    """Return by how much smaller all characters are drawn, 0.6 to 1."""
    shown = [name for name in sorted(cells, key=cells.__getitem__) if f"character:{name}" in cutouts]
    if len(shown) < 2:
        return 1.0
    gap = min(cells[right] - cells[left] for left, right in pairwise(shown)) * size[0] / len(CELLS)
    widest = max(_fitted(cutouts[f"character:{name}"], size, FIGURE)[0] for name in shown)
    return max(SMALLEST, min(1.0, CLOSEST * gap / widest))


def _bounds(cutout: Cutout) -> Box:
    if cutout.bounds is not None:
        return cutout.bounds
    alpha = np.asarray(cutout.image.getchannel("A")) >= OPAQUE
    rows, columns = np.flatnonzero(alpha.any(axis=1)), np.flatnonzero(alpha.any(axis=0))
    if not rows.size:
        return (0, 0, *cutout.image.size)
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _stand(canvas: NDArray[np.int32], cutout: Cutout, middle: int, share: float) -> Box:
    """Lay a subject over the canvas, its feet on the ground line, and return its box."""
    from PIL.Image import Resampling

    height, width = canvas.shape[:2]
    across, down = _fitted(cutout, (width, height), share)
    subject = cutout.image.crop(_bounds(cutout)).convert("RGBa").resize((across, down), Resampling.BILINEAR)
    pixels = np.asarray(subject.convert("RGBA"))
    left = min(max(middle - across // 2, 0), max(0, width - across))
    top = max(0, round(GROUND * height) - down)
    opacity = soft(pixels[:, :, 3])[: height - top, : width - left, None].astype(np.int32)
    colours = pixels[: height - top, : width - left, :3].astype(np.int32)
    region = canvas[top : top + opacity.shape[0], left : left + opacity.shape[1]]
    region[:] = (colours * opacity + region * (255 - opacity) + 127) // 255
    return left, top, min(left + across, width), min(top + down, height)


def _beside(cells: Mapping[str, int], user: str, rank: int, box: Box | None, widths: tuple[int, int]) -> int:
    """Return the middle of an object beside its user: where the next cell is free, right before left.

    ``cells``: character -> number of the cell. ``rank``: the how many-th object of the user it is, from 1;
    they alternate, further out each time. ``box``: of the user; None where the user has no cut-out.
    ``widths``: of the object and of the frame, in pixels.
    """
    wide, frame = widths
    cell = cells[user]
    middle = (2 * cell + 1) * frame // (2 * len(CELLS))
    half = (box[2] - box[0]) // 2 if box is not None else frame // (2 * len(CELLS))
    taken = set(cells.values())
    right_first = cell + 1 < len(CELLS) and (cell + 1 not in taken or cell - 1 in taken or cell == 0)
    way = 1 if right_first == bool(rank % 2) else -1
    step = (rank + 1) // 2
    at = middle + way * (half + (2 * step - 1) * wide // 2 - wide // 4)
    return min(max(at, wide // 2), frame - wide // 2)


def listed(boxes: Mapping[str, Box]) -> dict[str, Sequence[int]]:
    """Return boxes as JSON has them."""
    return {key: list(box) for key, box in boxes.items()}
