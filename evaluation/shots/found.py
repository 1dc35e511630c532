"""What was found in the pictures of an evaluation: the lines of ``images.jsonl``, read and checked.

Facts about a story come from the set: its type from the script, the tag of a character from its sheet, all
else from ``stories.jsonl``. Where nothing says whether it is realistic, its human characters do, if all
agree.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError

from ...errors import InputError, UserError, mismatch
from ...media.images import open_picture
from ...models.vision.store import Box, Definition, Detector, Rows, cut
from ...schemas.canonical import Json
from ...schemas.paths import format_path
from ...schemas.plain_files import open_plain, parse_json, reason_of, type_reason
from ..metrics.story import FoundStory
from ..outputs.layout import VIDEOS

if TYPE_CHECKING:
    from PIL.Image import Image

_FIX = "give the folder that fabula evaluate images wrote"
_problem = partial(mismatch, fix=_FIX)

MOST_BOXES = 64
"""Boxes of a picture that are kept, those of the highest scores."""
_BOX = 5  # left, top, right, bottom, score


def open_shot(file: str | Path) -> "Image":
    """Return a picture as RGB; of a clip, its first frame."""
    path = Path(file)
    if path.suffix.lower() in VIDEOS:
        from ...media.video import first_frame

        return first_frame(path).image
    return open_picture(path).image


class BoxRows:
    """A detector as a predictor, so that the store keeps its boxes: each picture is looked at once.

    A row holds :data:`MOST_BOXES` boxes of five numbers, ``nan`` behind the last.
    """

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self.card = detector.card

    @property
    def identity(self) -> str:
        """What its results depend on."""
        return f"{self._detector.identity}/boxes-{MOST_BOXES}"

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return the boxes of each picture, shape (images, 320)."""
        rows = np.full((len(images), MOST_BOXES, _BOX), np.nan, dtype=np.float32)
        for row, boxes in zip(rows, self._detector.detect(images), strict=True):
            best = sorted(boxes, key=lambda box: (-box.score, box.left, box.top, box.right, box.bottom))
            for index, box in enumerate(best[:MOST_BOXES]):
                row[index] = (box.left, box.top, box.right, box.bottom, box.score)
        return rows.reshape(len(images), MOST_BOXES * _BOX)


def boxes_of(row: Rows) -> list[list[float]]:
    """Return the boxes in a row of :class:`BoxRows`, highest score first."""
    table = row.reshape(MOST_BOXES, _BOX)
    return [[float(value) for value in line] for line in table[~np.isnan(table[:, 0])]]


def crop_of(image: "Image", box: Sequence[float], definition: Definition = "clamped") -> "Image | None":
    """Return the part of a picture in a box; None where no pixel is."""
    left, top, right, bottom = box[:4]
    return cut(image, Box(left, top, right, bottom), definition)


def boxes_are(value: Json) -> None:
    """Check what an archive says of boxes."""
    for number, boxes in {} if value is None else value["shots"].items():
        if not str(number).isdigit() or any(len(box) != _BOX for box in boxes):
            raise ValueError(f"the boxes of shot {number} are not lists of {_BOX} numbers")


Group = tuple[str, str]
"""What is told apart, such as ``gender``, and the kind, such as ``female``."""

STORY_KINDS = ("realism", "story_type", "culture", "style")
CHARACTER_KINDS = ("tag", "gender", "ethnicity")
UNSTATED = "not stated"
_REALISTIC, _HUMANS = "realistic_human", ("realistic_human", "unrealistic_human")


def kinds_of_story(story: FoundStory) -> dict[str, str]:
    """Return of which kind a story is, in each respect of :data:`STORY_KINDS`."""
    facts = story.facts
    realistic = facts.realistic if facts.realistic is not None else _by_tags(story)
    realism = None if realistic is None else "realistic" if realistic else "unrealistic"
    answers = dict(zip(STORY_KINDS, (realism, facts.story_type, facts.culture, facts.style), strict=True))
    return {name: value or UNSTATED for name, value in answers.items()}


def kinds_of_characters(story: FoundStory) -> Mapping[Group, frozenset[str]]:
    """Return which characters of a story are of each kind, in each respect of :data:`CHARACTER_KINDS`."""
    kinds: dict[Group, set[str]] = {}
    for key, tag in story.characters.items():
        facts = story.facts.characters.get(key)
        answers = (tag, facts.gender if facts else None, facts.ethnicity if facts else None)
        for name, value in zip(CHARACTER_KINDS, answers, strict=True):
            kinds.setdefault((name, value or UNSTATED), set()).add(key)
    return {group: frozenset(keys) for group, keys in sorted(kinds.items())}


def _by_tags(story: FoundStory) -> bool | None:
    humans = {tag == _REALISTIC for tag in story.characters.values() if tag in _HUMANS}
    return humans.pop() if len(humans) == 1 else None


IMAGES = "images.jsonl"
"""One line per method and story: boxes, vectors and values, from which everything but ratings is scored."""


def read_found(folder: str | Path) -> tuple[FoundStory, ...]:
    """Return the stories of an evaluation folder, sorted by method and story."""
    path = Path(folder) / IMAGES
    problems: list[UserError] = []
    stories: dict[tuple[str, str], FoundStory] = {}
    for where, line in _lines(path, problems):
        try:
            story = FoundStory.model_validate(parse_json(line))
            boxes_are(story.boxes)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                field = f"{where} {format_path(detail['loc'])}"
                problems.append(UserError(field, what=type_reason(detail), fix=_FIX))
            continue
        except ValueError as error:
            problems.append(_problem(where, "a line of an evaluation of images", str(error)))
            continue
        if (story.method, story.story_id) in stories:
            problems.append(_problem(where, "each story of a method once", f"{story.story_id} again"))
        stories[story.method, story.story_id] = story
    if problems:
        raise InputError(problems)
    return tuple(stories[key] for key in sorted(stories))


def _lines(path: Path, problems: list[UserError]) -> Iterator[tuple[str, bytes]]:
    try:
        with open_plain(path, follow=True) as handle:
            for number, line in enumerate(handle, 1):
                yield f"{path}:{number}", line
    except OSError as error:
        problems.append(_problem(str(path), f"the file {IMAGES} of an evaluation folder", reason_of(error)))
