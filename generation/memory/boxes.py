"""A file of boxes: where entities are in the first frames of a method's shots, one line of JSON each.

::

    {"episode_id": "e1", "shot": "1:1", "type": "character", "name": "Ana", "box": [0.1, 0.2, 0.4, 0.9]}

A box is left, top, right, bottom, as shares of the frame.
"""

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, model_validator

from ...errors import InputError, UserError
from ...schemas.entities import EntityType
from ...schemas.plain_files import read_plain, reason_of
from ...schemas.values import Own


class EntityBox(Own):
    """Where one entity is in the first frame of a shot."""

    episode_id: str = Field(description="The episode.")
    shot: str = Field(description="Key of the shot.")
    type: EntityType = Field(description="Type of the entity.")
    name: str = Field(description="Name of the entity.")
    box: tuple[float, float, float, float] = Field(
        description="Left, top, right, bottom as shares of the frame."
    )

    @model_validator(mode="after")
    def _has_an_inside(self) -> "EntityBox":
        left, top, right, bottom = self.box
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            raise ValueError("a box has left < right and top < bottom, all from 0 to 1")
        return self


def read_boxes(path: Path) -> Mapping[str, tuple[EntityBox, ...]]:
    """Return the boxes in a file, by episode.

    Raises:
        InputError: it cannot be read; every line that is no box is listed.
    """
    try:
        lines = read_plain(path, follow=True).splitlines()
    except OSError as error:
        what = f"it cannot be read: {error.strerror}"
        raise InputError([UserError(str(path), what=what, fix="check the path")]) from error
    problems: list[UserError] = []
    boxes: dict[str, list[EntityBox]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            box = EntityBox.model_validate_json(line)
        except ValueError as error:
            what = f"no box of an entity: {reason_of(error)[:300]}"
            problems.append(UserError(f"{path}:{number}", what=what, fix="correct or remove the line"))
            continue
        boxes.setdefault(box.episode_id, []).append(box)
    if problems:
        raise InputError(problems)
    return {episode: tuple(some) for episode, some in boxes.items()}
