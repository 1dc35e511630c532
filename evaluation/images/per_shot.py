"""What is known of every single shot: the values behind a story's scores, and whom its boxes show."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..metrics.alignment import DIMENSIONS
from ..metrics.cids import Match
from ..metrics.clip_score import clip_value
from ..metrics.occm import shot_occm
from ..metrics.style import shot_style
from ..metrics.vectors import Floats, unit
from .definitions import Definitions
from .found import FoundShot, FoundStory
from .ratings import Panel
from .score_story import StoryScore, likeness
from .vectors import doubles

SHOT_SCORES = ("cids_cross", "occm", "csd_cross", "aesthetic", "clip_score", *DIMENSIONS)
"""Scores that a single shot has, in order."""
NO_PICTURE = "no picture"

Key = tuple[str, str]
"""Method and story."""


@dataclass(frozen=True)
class ShotScore:
    """One shot of one method.

    Attributes:
        method: the method.
        story_id: the story.
        number: of the shot, from 1.
        sha256: hash of its picture; None where there is none.
        onstage: how many characters the script puts on stage.
        boxes: left, top, right, bottom and score of what was detected; None where nobody looked.
        matches: one per expected character.
        values: score -> value.
        missing: score -> why it has no value here, of those that the method has.
    """

    method: str
    story_id: str
    number: int
    sha256: str | None
    onstage: int
    boxes: tuple[tuple[float, ...], ...] | None
    matches: tuple[Match, ...]
    values: Mapping[str, float]
    missing: Mapping[str, str] = field(default_factory=dict)


def score_shots(
    found: FoundStory, scored: StoryScore, panels: Sequence[Panel], definitions: Definitions
) -> tuple[ShotScore, ...]:
    """Return every shot of a story, in order.

    ``cids_cross`` of a shot is the mean over its matched characters; a rating is the mean over judges and
    votes, that of actions over characters too. The others are the terms whose mean is the story's score.

    Args:
        found: the story's line in the archive.
        scored: its scores, with the matches.
        panels: the ratings of the method's judges.
        definitions: the named definitions.
    """
    styles, values = _styles(found, definitions), _aesthetics(found)
    rated = _ratings(found.story_id, panels)
    matches: dict[int, list[Match]] = {}
    for match in scored.matches:
        matches.setdefault(match.shot, []).append(match)
    made = []
    for shot in found.shots:
        looked = None if found.boxes is None else found.boxes["shots"].get(str(shot.number))
        boxes = None if looked is None or shot.sha256 is None else tuple(tuple(one) for one in looked)
        mine = tuple(matches.get(shot.number, ()))
        told: dict[str, float | str] = {}
        if found.crops is not None:
            told["cids_cross"] = _cids(mine)
        if found.boxes is not None:
            told["occm"] = _occm(shot, boxes, definitions)
        if styles is not None:
            told["csd_cross"] = styles.get(shot.number, NO_PICTURE if shot.sha256 is None else "undefined")
        if values is not None:
            told["aesthetic"] = values.get(shot.number, NO_PICTURE if shot.sha256 is None else "undefined")
        if (close := clip_of(found, shot.number, definitions)) is not None:
            told["clip_score"] = close
        for name in DIMENSIONS if panels else ():
            ratings = rated.get((shot.number, name))
            told[name] = _mean(ratings) if ratings is not None else _unasked(shot, name)
        made.append(
            ShotScore(
                found.method, found.story_id, shot.number, shot.sha256, shot.onstage, boxes, mine,
                {name: one for name, one in told.items() if not isinstance(one, str)},
                {name: one for name, one in told.items() if isinstance(one, str)},
            )
        )  # fmt: skip
    return tuple(made)


def style_table(found: FoundStory) -> tuple[tuple[int, ...], Floats] | None:
    """Return the numbers of a story's pictures and the cosines of their styles; None where nobody looked.

    Shape (pictures, pictures), in [-1, 1]; ``nan`` for a picture that the model made nothing of.
    """
    if found.pictures is None or found.pictures["style"] is None:
        return None
    rows = unit(doubles(found.pictures["style"]))
    table: Floats = np.clip(rows @ rows.T, -1.0, 1.0)
    return tuple(int(number) for number in found.pictures["numbers"]), table


def _cids(matches: Sequence[Match]) -> float | str:
    known = [match.cross for match in matches if match.cross is not None]
    if known:
        return sum(known) / len(known)
    if not matches:
        return "nobody expected"
    return matches[0].missed.replace("image", "picture") if matches[0].missed else "not matched"


def _occm(shot: FoundShot, boxes: Sequence[object] | None, definitions: Definitions) -> float | str:
    if boxes is None:
        return NO_PICTURE
    value = shot_occm(shot.onstage, len(boxes), definitions.occm)
    return "nobody on stage" if value is None else value


def _styles(found: FoundStory, definitions: Definitions) -> dict[int, float] | None:
    pictures = found.pictures
    if pictures is None or pictures["style"] is None:
        return None
    rows = unit(doubles(pictures["style"]))
    references = {}
    for key in found.characters:
        if pictures["references"].get(key) is not None:
            table = unit(doubles(pictures["references"][key]))
            references[key] = table[~np.isnan(table).any(axis=1)]
    expected = {shot.number: shot.expected for shot in found.shots}
    made = {}
    for place, number in enumerate(pictures["numbers"]):
        if number in expected and not np.isnan(rows[place]).any():
            value, _ = shot_style(rows[place], expected[number], references, definitions.csd)
            if value is not None:
                made[int(number)] = value
    return made


def _aesthetics(found: FoundStory) -> dict[int, float] | None:
    pictures = found.pictures
    if pictures is None or pictures["aesthetic"] is None:
        return None
    rows = doubles(pictures["aesthetic"])
    pairs = zip(pictures["numbers"], rows, strict=True)
    return {int(number): float(row[0]) for number, row in pairs if not np.isnan(row).any()}


def clip_of(found: FoundStory, number: int, definitions: Definitions) -> float | str | None:
    """Return how close a shot and its text are, or why nobody knows; None where nobody compared them."""
    if found.pictures is None or found.pictures.get("clip") is None:
        return None
    cosines, _ = likeness(found, number)
    if cosines is None:
        return NO_PICTURE
    value = clip_value(cosines, definitions.clip_text, definitions.clip_score)
    return "no English text" if value is None else value


def _ratings(story: str, panels: Sequence[Panel]) -> dict[tuple[int, str], list[list[int | None]]]:
    """Return shot and dimension -> per judge and vote the ratings."""
    found: dict[tuple[int, str], list[list[int | None]]] = {}
    for panel in panels:
        told: dict[tuple[int, str], list[int | None]] = {}
        for _, stories in sorted(panel.runs.items()):
            for (number, name, _), rating in sorted(
                stories.get(story, {}).items(), key=lambda one: (one[0][0], one[0][1], one[0][2] or "")
            ):
                told.setdefault((number, name), []).append(rating)
        for key, ratings in told.items():
            found.setdefault(key, []).append(ratings)
    return found


def _mean(judges: Iterable[Sequence[int | None]]) -> float | str:
    """Return the mean over judges of the mean of what each said."""
    means = []
    for ratings in judges:
        known = [one for one in ratings if one is not None]
        if known:
            means.append(sum(known) / len(known))
    return sum(means) / len(means) if means else "no rating"


def _unasked(shot: FoundShot, name: str) -> str:
    if shot.sha256 is None:
        return NO_PICTURE
    if name == "interaction" and len(shot.expected) < 2:
        return "fewer than two characters"
    if name == "action" and not shot.expected:
        return "nobody expected"
    return "not asked"
