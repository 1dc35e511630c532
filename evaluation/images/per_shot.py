"""What is known of every single shot: the values behind a story's scores, and whom its boxes show."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..metrics.alignment import DIMENSIONS
from ..metrics.cids import Match
from ..metrics.registry import metrics
from ..metrics.story import FoundShot, FoundStory, Story
from ..metrics.vectors import Floats, doubles, unit
from .ratings import Panel
from .score_story import StoryScore

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


def score_shots(found: FoundStory, scored: StoryScore, panels: Sequence[Panel]) -> tuple[ShotScore, ...]:
    """Return every shot of a story, in order.

    ``cids_cross`` of a shot is the mean over its matched characters; a rating is the mean over judges and
    votes, that of actions over characters too. The others are the terms whose mean is the story's score.

    Args:
        found: the story's line in the archive.
        scored: its scores, with the matches.
        panels: the ratings of the method's judges.
    """
    rated = _ratings(found.story_id, panels)
    looked = Story(found).boxes() or [None] * len(found.shots)
    names = [name for name in shot_scores() if name in scored.terms]
    made = []
    for place, (shot, found_boxes) in enumerate(zip(found.shots, looked, strict=True)):
        told = {name: scored.terms[name].of_shot(place) for name in names}
        for name in DIMENSIONS if panels else ():
            ratings = rated.get((shot.number, name))
            told[name] = _mean(ratings) if ratings is not None else _unasked(shot, name)
        made.append(
            ShotScore(
                found.method, found.story_id, shot.number, shot.sha256, shot.onstage,
                None if found_boxes is None else tuple(tuple(box) for box in found_boxes),
                tuple(match for match in scored.matches if match.shot == shot.number),
                {name: value for name, value in told.items() if isinstance(value, float)},
                {name: value for name, value in told.items() if isinstance(value, str)},
            )
        )  # fmt: skip
    return tuple(made)


def shot_scores() -> tuple[str, ...]:
    """Return the scores that a single shot has, in order."""
    return tuple(metric.name for metric in metrics() if metric.per_shot)


def style_table(found: FoundStory) -> tuple[tuple[int, ...], Floats] | None:
    """Return the numbers of a story's pictures and the cosines of their styles; None where nobody looked.

    Shape (pictures, pictures), in [-1, 1]; ``nan`` for a picture that the model made nothing of.
    """
    if found.pictures is None or found.pictures["style"] is None:
        return None
    rows = unit(doubles(found.pictures["style"]))
    table: Floats = np.clip(rows @ rows.T, -1.0, 1.0)
    return tuple(int(number) for number in found.pictures["numbers"]), table


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
