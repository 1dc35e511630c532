"""The metrics of one story of one method, from what was found in its pictures; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...schemas.score import Score
from ..metrics.aesthetic import aesthetic
from ..metrics.cids import Character, Cids, Match, Settings, cids, similarity_of
from ..metrics.clip_score import clip_score
from ..metrics.copy_paste import copy_paste
from ..metrics.occm import occm
from ..metrics.style import style_cross, style_self
from ..metrics.vectors import Floats, Vectors, unit
from .definitions import Definitions
from .found import FoundStory
from .groups import Group, kinds_of_characters
from .vectors import characters_of, doubles, mirrors_of, shots_of


@dataclass(frozen=True)
class StoryScore:
    """The values of one story.

    Attributes:
        story_id: the story.
        scores: metric -> value; only those whose models looked.
        matches: which crop was taken for whom, shot by shot; none where nobody looked for characters.
        of_characters: kind of character -> those of the metrics that are about single characters, over the
            characters of that kind.
    """

    story_id: str
    scores: Mapping[str, Score]
    matches: tuple[Match, ...] = ()
    of_characters: Mapping[Group, Mapping[str, Score]] = field(default_factory=dict)


def score_story(found: FoundStory, definitions: Definitions) -> StoryScore:
    """Return the metrics of a story that need no judge."""
    scores: dict[str, Score] = {}
    matches: tuple[Match, ...] = ()
    of_characters: dict[Group, Mapping[str, Score]] = {}
    if found.crops is not None:
        characters = characters_of(found.crops)
        settings = Settings(definitions.cids, definitions.least, definitions.weights)
        told = cids(characters, shots_of(found.shots_json(), found.crops), settings)
        matched = _Matched(told, settings, mirrors_of(found.crops), definitions)
        scores |= matched.over(characters)
        kinds = kinds_of_characters(found)
        by_keys = {
            keys: matched.over([one for one in characters if one.key in keys]) for keys in {*kinds.values()}
        }
        of_characters = {group: by_keys[keys] for group, keys in kinds.items()}
        matches = told.matches
    if found.boxes is not None:
        boxes = found.boxes["shots"]
        counted = [
            (shot.onstage, None if there is None or shot.sha256 is None else len(there))
            for shot in found.shots
            for there in (boxes.get(str(shot.number)),)
        ]
        scores["occm"] = occm(counted, definitions.occm)
    if found.pictures is not None:
        scores |= _pictures(found, definitions)
    return StoryScore(found.story_id, scores, matches, of_characters)


@dataclass(frozen=True)
class _Matched:
    """Who was matched in a story, and what else the metrics of single characters need."""

    cids: Cids
    settings: Settings
    mirrors: Mapping[str, Vectors]
    definitions: Definitions

    def over(self, characters: Sequence[Character]) -> dict[str, Score]:
        """Return the metrics over some characters; all of them were matched together."""
        cross, self_ = similarity_of(characters, self.cids.matches, self.cids.crops, self.settings)
        rate = copy_paste(
            characters, self.cids.crops, self.mirrors, self.definitions.copy_paste, self.settings.weights
        )
        return {"cids_cross": cross, "cids_self": self_, "copy_paste_rate": rate}


def _pictures(found: FoundStory, definitions: Definitions) -> dict[str, Score]:
    pictures = found.pictures or {}
    places = {number: place for place, number in enumerate(pictures["numbers"])}
    scores: dict[str, Score] = {}
    if pictures["style"] is not None:
        rows = unit(doubles(pictures["style"]))
        references = {
            key: _known(unit(doubles(pictures["references"][key])))
            for key in found.characters
            if pictures["references"].get(key) is not None
        }
        shots = [(_row(rows, places.get(shot.number)), shot.expected) for shot in found.shots]
        scores["csd_cross"] = style_cross(shots, references, definitions.csd)
        scores["csd_self"] = style_self(_known(rows), len(found.shots))
    if pictures["aesthetic"] is not None:
        values = doubles(pictures["aesthetic"])
        told = [_row(values, places.get(one.number)) for one in found.shots]
        scores["aesthetic"] = aesthetic([None if row is None else float(row[0]) for row in told])
    if pictures.get("clip") is not None:
        told_of = [likeness(found, one.number) for one in found.shots]
        scores["clip_score"] = clip_score(told_of, definitions.clip_text, definitions.clip_score)
    return scores


def likeness(found: FoundStory, number: int) -> tuple[dict[str, float | None] | None, dict[str, int]]:
    """Return a shot's cosines with the parts of its text, None without a picture, and what was cut off."""
    pictures = found.pictures or {}
    if number not in pictures["numbers"]:
        return None, {}
    place = pictures["numbers"].index(number)
    parts = pictures["clip"].items()
    cosines = {part: told["cosines"][place] for part, told in parts}
    return cosines, {part: told["cut"][place] or 0 for part, told in parts}


def probabilities_of(found: FoundStory) -> Floats | None:
    """Return the class probabilities of a story's pictures; None where nobody gave them."""
    pictures = found.pictures
    if pictures is None or pictures["inception"] is None:
        return None
    return _known(doubles(pictures["inception"]))


def _row(rows: Floats, place: int | None) -> Floats | None:
    """Return a picture's row; None where there is no picture, or its model made nothing of it."""
    if place is None or np.isnan(rows[place]).any():
        return None
    found: Floats = rows[place]
    return found


def _known(rows: Floats) -> Floats:
    """Return the rows without those that a model made nothing of."""
    known: Floats = rows[~np.isnan(rows).any(axis=1)]
    return known
