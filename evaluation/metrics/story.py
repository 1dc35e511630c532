"""A story of a method as an archive keeps it (a line of ``images.jsonl``), and as metrics see it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import Field

from ...schemas.canonical import Json
from ...schemas.shots import CharacterFacts
from ...schemas.values import Own
from .vectors import Floats, doubles, unit


class FoundShot(Own):
    """A shot of a script, and whether there is a picture of it."""

    number: int
    onstage: int
    expected: tuple[str, ...]
    sha256: str | None


class FoundFacts(Own):
    """What a set says of a story and its characters, for scores by kind (:mod:`.images.scores`)."""

    story_type: str | None = None
    style: str | None = None
    culture: str | None = None
    realistic: bool | None = None
    characters: dict[str, CharacterFacts] = Field(default_factory=dict)


class FoundStory(Own):
    """One line: a story of a method."""

    method: str
    story_id: str
    characters: dict[str, str | None]
    facts: FoundFacts = Field(default_factory=FoundFacts)
    references: dict[str, tuple[str, ...]]
    shots: tuple[FoundShot, ...]
    boxes: dict[str, Any] | None
    crops: dict[str, Any] | None
    pictures: dict[str, Any] | None
    views: dict[str, Any] = Field(default_factory=dict)

    def shots_json(self) -> list[Json]:
        return [shot.as_json() for shot in self.shots]


@dataclass(frozen=True)
class Story:
    """A story as metrics see it: what was found in its pictures, shot by shot."""

    line: FoundStory  # what the archive keeps
    # keys of the characters that count, for scores by kind of character; None: all of them
    among: frozenset[str] | None = None
    # what metrics of this story share, such as who was matched
    kept: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def shots(self) -> tuple[FoundShot, ...]:
        """The shots of the script, in order."""
        return self.line.shots

    def over(self, characters: frozenset[str]) -> "Story":
        """Return the story with only some characters counting; who is who was decided among all."""
        return replace(self, among=characters)

    def boxes(self) -> "list[Sequence[Sequence[float]] | None] | None":
        """Return what was detected in each shot, None without a picture; None where nobody looked.

        A box is left, top, right, bottom in pixels, and its score.
        """
        if self.line.boxes is None:
            return None
        there = self.line.boxes["shots"]
        return [None if shot.sha256 is None else there.get(str(shot.number)) for shot in self.shots]

    def looked(self, part: str) -> Any:  # noqa: ANN401 - any JSON
        """Return what a model of whole pictures found, as the archive keeps it; None where nobody looked."""
        return None if self.line.pictures is None else self.line.pictures.get(part)

    def places(self) -> "list[int | None]":
        """Return the place of each shot's picture among those that were looked at; None without a picture."""
        numbers = [] if self.line.pictures is None else self.line.pictures["numbers"]
        where = {number: index for index, number in enumerate(numbers)}
        return [where.get(shot.number) for shot in self.shots]

    def rows(self, part: str, *, units: bool = False) -> "list[Floats | None] | None":
        """Return the row of numbers that a model of whole pictures gave each shot; None where nobody looked.

        Returned: shape (values,) each; None without a picture, or where the model made nothing of it.
        """
        packed = self.looked(part)
        if packed is None:
            return None
        table = unit(doubles(packed)) if units else doubles(packed)
        lost = {int(row) for row in np.flatnonzero(np.isnan(table).any(axis=1))}
        return [None if row is None or row in lost else table[row] for row in self.places()]

    def without_row(self) -> list[str]:
        """Return, for each shot, why it has no row where it has none."""
        return ["no picture" if shot.sha256 is None else "undefined" for shot in self.shots]

    def references(self) -> dict[str, Floats]:
        """Return character -> unit vectors of the style of its references, in the order of the script."""
        rows = self.looked("references") or {}
        return {
            key: without_lost(unit(doubles(rows[key])))
            for key in self.line.characters
            if rows.get(key) is not None
        }

    def scenes(self) -> "list[int] | None":
        """Return a number for each shot's setting, alike where settings are; None where none was kept."""
        scenes = self.looked("scenes")
        return None if scenes is None else [int(scene) for scene in scenes]


def without_lost(rows: Floats) -> Floats:
    """Return the rows without those that a model made nothing of."""
    known: Floats = rows[~np.isnan(rows).any(axis=1)]
    return known
