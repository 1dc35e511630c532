"""Storyboards drawn from nothing but numbers: each panel says by its colours which story and panel it is.

They stand in for the outputs of a generator: tests and the scripted judge can tell them apart, also after
they were resized and encoded again.
"""

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..releases.loading import Release, load
from ..schemas.canonical import Json, pretty_bytes
from ..schemas.katha import StoryRecord
from ..schemas.paths import RELEASE
from .drawn import picture_bytes
from .katha_folders import write_release
from .katha_samples import sample_bundles

SIDE = 96
_LEVELS = 8
_STEP = 256 // _LEVELS
_COLOURS = _LEVELS**3
MOST_STORIES = 8 * _COLOURS


def draw_panel(story: int, panel: int, side: int = SIDE) -> bytes:
    """Return a PNG whose left half says which story it is, and whose right half which panel.

    Of stories from 512 on, the left half has two colours, one above the other.
    """
    from PIL import Image

    if not (0 <= story < MOST_STORIES and 0 <= panel < _COLOURS):
        raise ValueError(
            f"stories below {MOST_STORIES} and panels below {_COLOURS} can be drawn, not {story} and {panel}"
        )
    image = Image.new("RGB", (side, side), _colour(panel))
    turn, colour = divmod(story, _COLOURS)
    image.paste(_colour(colour), (0, 0, side // 2, side))
    image.paste(_colour((colour + turn) % _COLOURS), (0, side // 2, side // 2, side))
    return picture_bytes(image)


def numbers_in(data: bytes) -> tuple[int, int]:
    """Return the numbers of story and panel that a drawn picture shows."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        pixels = image.convert("RGB")
        width, height = pixels.size
        places = ((1, 1), (1, 3), (3, 1))
        parts = (pixels.getpixel((width * x // 4, height * y // 4)) for x, y in places)
        upper, lower, panel = (_number(colour) for colour in parts if isinstance(colour, tuple))
    return upper + _COLOURS * ((lower - upper) % _COLOURS), panel


def draw_outputs(
    folder: Path, records: Sequence[StoryRecord], seeds: Iterable[int] = (), *, side: int = SIDE
) -> Path:
    """Write a storyboard for every record, as a generator would; return the folder.

    The number of a story is its place among the records; other sides give other pictures, in pixels.
    """
    for number, record in enumerate(records):
        places = [folder / record.story_id / f"seed_{seed}" for seed in seeds] or [folder / record.story_id]
        for place in places:
            place.mkdir(parents=True, exist_ok=True)
            for panel in range(1, len(record.scenes) + 1):
                (place / f"{panel:02d}.png").write_bytes(draw_panel(number, panel, side))
    return folder


def _colour(number: int) -> tuple[int, int, int]:
    digits = (number // _LEVELS**2, number // _LEVELS % _LEVELS, number % _LEVELS)
    red, green, blue = (digit * _STEP + _STEP // 2 for digit in digits)
    return red, green, blue


def _number(colour: tuple[int, ...]) -> int:
    red, green, blue = (value // _STEP for value in colour[:3])
    return (red * _LEVELS + green) * _LEVELS + blue


def drawn_release(folder: Path, count: int = 6) -> Release:
    """Write a small release of made-up stories into a folder, and return it.

    Of so many stories, those of the hidden test are left out: 5 of 6.
    """
    return judged_release(folder, sample_bundles(count))


def judged_release(folder: Path, bundles: Sequence[Json]) -> Release:
    """Write bundles as a release that judges can be asked about, complete or not, and return it."""
    write_release(folder, bundles)
    document = json.loads((folder / RELEASE).read_bytes()) | {"version": "0.1.0"}
    (folder / RELEASE).write_bytes(pretty_bytes(document))
    return load(folder)
