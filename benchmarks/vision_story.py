"""One drawn story of many shots: which pictures the public code of ViStoryBench encodes, and which we do.

The patterns are read off the public code (January 2026): style vectors are kept for the last twenty files;
the crops of a shot are encoded again for every character expected in it, matched ones once more at the end,
and the first reference of a character twice, the second time with its mirror image.
"""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fabula.releases.shots.tree import FOLDER, SCRIPT
from fabula.testing.drawn_shots import CAST, boxes_in, draw_reference, draw_shot, drawn_script, onstage

if TYPE_CHECKING:
    from PIL.Image import Image

KEPT = 20
"""Style vectors that the public code keeps, first in, first out."""
KEYS = tuple(key for key, *_ in CAST[:2])
"""The two characters of the story, each with one reference, as in the published count of 298 encodings."""
_GRAIN = 20  # pixels of a block of noise
_NOISE = 4  # most by which noise changes a channel: figures stay recognisable


def cast_of(number: int) -> tuple[str, ...]:
    """Return who is on stage in a shot."""
    return tuple(key for key in onstage(number) if key in KEYS)


def write_story_set(folder: Path, stories: int, shots: int) -> Path:
    """Write a set of shot scripts with two characters, and return its folder."""
    script = drawn_script(shots)
    script["Characters"] = {key: script["Characters"][key] for key in KEYS}
    for shot in script["Shots"]:
        keys = list(cast_of(shot["index"]))
        shot["Characters Appearing"] = {"en": keys, "ch": keys}
    for key in KEYS:
        appearances = sum(key in shot["Characters Appearing"]["en"] for shot in script["Shots"])
        script["Characters"][key]["num_of_appearances"] = appearances
    for story in range(1, stories + 1):
        place = folder / FOLDER / f"{story:02d}"
        for number, key in enumerate(KEYS):
            (place / "image" / key).mkdir(parents=True)
            picture = noisy(draw_reference(key), 1_000_000 + 10 * story + number)
            (place / "image" / key / "00.png").write_bytes(picture)
        (place / SCRIPT).write_text(json.dumps(script, ensure_ascii=False), "utf-8")
    return folder


def write_shots(folder: Path, stories: int, shots: int, seed: int = 0) -> Path:
    """Write the outputs of one method, no two pictures alike, and return their folder."""
    for story in range(1, stories + 1):
        place = folder / f"{story:02d}" / "shots"
        place.mkdir(parents=True)
        for number in range(1, shots + 1):
            picture = noisy(draw_shot(cast_of(number), seed), seed * 100_000 + story * 1000 + number)
            (place / f"shot_{number:02d}.png").write_bytes(picture)
    return folder


def noisy(data: bytes, seed: int) -> bytes:
    """Return a drawn picture with a little noise of its own, as a PNG."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.int16)
    height, width, _ = pixels.shape
    blocks = (-(-height // _GRAIN), -(-width // _GRAIN), 3)
    noise = (
        np.random.default_rng(seed).integers(-_NOISE, _NOISE + 1, blocks).repeat(_GRAIN, 0).repeat(_GRAIN, 1)
    )
    changed = np.clip(pixels + noise[:height, :width], 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(changed).save(file, "PNG")
    return file.getvalue()


@dataclass(frozen=True)
class Story:
    """The pictures of the story in memory, by name: shots, references, crops of both, mirror images."""

    shots: "dict[str, Image]"
    references: "dict[str, Image]"
    crops: "dict[str, Image]"

    @property
    def pictures(self) -> "dict[str, Image]":
        """Shots and references."""
        return self.shots | self.references


def read_story(data: Path, outputs: Path, shots: int) -> Story:
    """Return the pictures of the first story; figures are cropped where they were drawn."""
    from PIL import Image, ImageOps

    def opened(file: Path) -> "Image.Image":
        with Image.open(file) as image:
            return image.convert("RGB")

    pictures = {f"shot {n}": opened(outputs / f"01/shots/shot_{n:02d}.png") for n in range(1, shots + 1)}
    references = {key: opened(data / FOLDER / f"01/image/{key}/00.png") for key in KEYS}
    crops = dict(references) | {f"{key} mirrored": ImageOps.mirror(one) for key, one in references.items()}
    for number in range(1, shots + 1):
        keys = cast_of(number)
        for key, box in zip(keys, boxes_in(keys), strict=True):
            crops[f"shot {number} {key}"] = pictures[f"shot {number}"].crop(tuple(map(round, box)))
    return Story(pictures, references, crops)


def style_pattern(shots: int) -> list[str]:
    """Return the pictures that the public code encodes for style, in its order."""
    pairs = [
        (f"shot {one}", f"shot {two}") for one in range(1, shots + 1) for two in range(one + 1, shots + 1)
    ]
    for number in range(1, shots + 1):
        pairs += [(f"shot {number}", key) for key in cast_of(number) or KEYS[:1]]
    kept: list[str] = []
    encoded: list[str] = []
    for name in (name for pair in pairs for name in pair):
        if name not in kept:
            encoded.append(name)
            kept = [*kept, name][-KEPT:]
    return encoded


def crop_pattern(shots: int) -> list[str]:
    """Return the crops that the public code encodes, in its order; every figure is found and matched."""
    encoded = [*KEYS]
    for key in KEYS:
        encoded += [key, f"{key} mirrored"]
    for number in range(1, shots + 1):
        crops = [f"shot {number} {key}" for key in cast_of(number)]
        encoded += [crop for _ in cast_of(number) for crop in crops]
    matched = [
        f"shot {number} {key}" for key in KEYS for number in range(1, shots + 1) if key in cast_of(number)
    ]
    return encoded + matched


def replay(
    names: Sequence[str], pictures: "dict[str, Image]", encode: Callable[[Sequence["Image"]], object]
) -> None:
    """Encode pictures one at a time, in the order given."""
    for name in names:
        encode([pictures[name]])
