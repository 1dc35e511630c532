"""Cosines of texts with pictures, and reference images that a method drew of the characters itself.

Drawn references (Table S8) lie beside the shots of a story, in a folder whose name is or ends in
``characters`` or ``chars``: one picture per character named by its key or English name, numbered where there
are several (``Mira_2.png``), or a folder of that name with pictures.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...media.images import MediaProblem, open_picture, read_bytes
from ...models.vision.store import VectorStore
from ...models.vision.types import Rows, TextEncoder
from ...releases.shots.tree import ShotStory
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.plain_files import composed
from ...schemas.shots import Shot, ShotScript, TwoTexts
from ..metrics.clip_score import PARTS
from ..outputs.layout import PICTURES
from ..outputs.shot_folders import CHARACTERS, Choice, StoryFolder, story_folders

if TYPE_CHECKING:
    from PIL.Image import Image

LANGUAGE = "en"
"""Of the texts: the published encoder knows English."""


@dataclass(frozen=True)
class TextMeans:
    """The encoder, what keeps its vectors, and how many it gets at once."""

    model: TextEncoder
    store: VectorStore
    batch: int


def compare_texts(story: Json, numbers: Sequence[int], images: "Sequence[Image]", means: TextMeans) -> Json:
    """Return, for each part of the texts, the cosines with the pictures and the tokens that were cut off.

    ``images``: RGB pictures.

    Returned: part -> ``cosines`` and ``cut``, one per picture; null where the shot has no such text.
    """
    shots = {shot.index: shot for shot in ShotScript.model_validate(story["script"]).shots}
    pictures = means.store.rows(means.model, images, means.batch)
    return {
        part: _compared([_text(shots[number], part) for number in numbers], pictures, means) for part in PARTS
    }


def _compared(texts: Sequence[str], pictures: Rows, means: TextMeans) -> Json:
    there = [index for index, text in enumerate(texts) if text]
    cosines: list[float | None] = [None] * len(texts)
    cut: list[int | None] = [None] * len(texts)
    if there:
        encoded = means.store.texts(means.model, [texts[index] for index in there], means.batch)
        for index, row, lost in zip(there, encoded.rows, encoded.cut, strict=True):
            cosines[index], cut[index] = _cosine(pictures[index], row), lost
    return {"cosines": cosines, "cut": cut}


def _cosine(picture: Rows, text: Rows) -> float | None:
    """Return the cosine of two unit vectors, summed exactly; None where there is no vector."""
    value = math.fsum(float(x) * float(other) for x, other in zip(picture, text, strict=True))
    return None if math.isnan(value) else min(1.0, max(-1.0, value))


def _text(shot: Shot, part: str) -> str:
    texts: TwoTexts | None = getattr(shot, part)
    return "" if texts is None else texts.of(LANGUAGE).strip()


_MARKS = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"[\s_-]+[0-9]{1,3}$")


def generated_references(root: Path, choice: Choice) -> dict[int, dict[str, list[Path]]]:
    """Return number of a story -> name of a character, as it is compared -> its pictures, sorted."""
    return {int(folder.story_id): _pictures(folder) for folder in story_folders(root, choice)}


def references_of(story: ShotStory, drawn: dict[str, list[Path]]) -> dict[str, list[Json]]:
    """Return the pictures of each character of a story; none where there is none that can be decoded."""
    references: dict[str, list[Json]] = {}
    for key, sheet in story.script.characters.items():
        names = dict.fromkeys(filter(None, (compared(key), compared(sheet.name_en or ""))))
        files = [file for name in names for file in drawn.get(name, ())]
        references[key] = [*filter(None, map(_usable, dict.fromkeys(files)))]
    return references


def compared(name: str) -> str:
    """Return a name as names are compared: case, spaces, marks and forms of Unicode do not count."""
    return _MARKS.sub(" ", composed(name)).strip().casefold()


def _pictures(story: StoryFolder) -> dict[str, list[Path]]:
    drawn: dict[str, list[Path]] = {}
    for folder in _folders(story):
        for entry in sorted(folder.iterdir()):
            inside = sorted(entry.iterdir()) if entry.is_dir() else [entry]
            name = entry.name if entry.is_dir() else entry.stem
            for file in inside:
                if file.is_file() and file.suffix.lower() in PICTURES and not file.name.startswith("."):
                    for spelt in dict.fromkeys((compared(name), compared(_NUMBER.sub("", name)))):
                        drawn.setdefault(spelt, []).append(file)
    return drawn


def _folders(folder: StoryFolder) -> Iterator[Path]:
    """Yield the folders of characters: in the folder with the shots, or beside it where it is named so."""
    places = [folder.folder]
    if folder.folder.name.lower().endswith(("shots", "shot")):
        places.append(folder.folder.parent)
    for parent in places:
        yield from sorted(
            path for path in parent.iterdir() if path.is_dir() and CHARACTERS.fullmatch(path.name)
        )


def _usable(file: Path) -> Json | None:
    try:
        data = read_bytes(file)
        open_picture(data, name=file.name)
    except MediaProblem:
        return None
    return {"file": str(file.absolute()), "sha256": sha256_bytes(data)}
