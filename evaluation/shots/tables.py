"""Scores of shot images as tables: per method, story and metric; by kind of story and character; per shot."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...errors import TargetError
from ...schemas.canonical import csv_text, write_atomic
from ..archive.archive import Archive
from ..metrics.alignment import DIMENSIONS
from ..metrics.cids import Match
from ..metrics.metric import metrics
from ..metrics.story import FoundShot, FoundStory, Story
from ..metrics.vectors import Floats, doubles, unit
from .ratings import Panel, collect_panels
from .scores import ImageScores, StoryScore

NO_PICTURE = "no picture"

Key = tuple[str, str]
"""Method and story."""


@dataclass(frozen=True)
class ShotScore:
    """One shot of one method."""

    method: str  # the method
    story_id: str  # the story
    number: int  # of the shot, from 1
    sha256: str | None  # hash of its picture; None where there is none
    onstage: int  # how many characters the script puts on stage
    # left, top, right, bottom and score of what was detected; None where nobody looked
    boxes: tuple[tuple[float, ...], ...] | None
    matches: tuple[Match, ...]  # one per expected character
    values: Mapping[str, float]  # score -> value
    # score -> why it has no value here, of those that the method has
    missing: Mapping[str, str] = field(default_factory=dict)


def score_shots(story: FoundStory, scored: StoryScore, panels: Sequence[Panel]) -> tuple[ShotScore, ...]:
    """Return every shot of a story, in order.

    ``cids_cross`` of a shot is the mean over its matched characters; a rating is the mean over judges and
    votes, that of actions over characters too. The others are the terms whose mean is the story's score.
    """
    rated = _ratings(story.story_id, panels)
    looked = Story(story).boxes() or [None] * len(story.shots)
    names = [name for name in shot_scores() if name in scored.terms]
    made = []
    for index, (shot, found_boxes) in enumerate(zip(story.shots, looked, strict=True)):
        values = {name: scored.terms[name].of_shot(index) for name in names}
        for name in DIMENSIONS if panels else ():
            ratings = rated.get((shot.number, name))
            values[name] = _mean(ratings) if ratings is not None else _unasked(shot, name)
        made.append(
            ShotScore(
                story.method, story.story_id, shot.number, shot.sha256, shot.onstage,
                None if found_boxes is None else tuple(tuple(box) for box in found_boxes),
                tuple(match for match in scored.matches if match.shot == shot.number),
                {name: value for name, value in values.items() if isinstance(value, float)},
                {name: value for name, value in values.items() if isinstance(value, str)},
            )
        )  # fmt: skip
    return tuple(made)


def shot_scores() -> tuple[str, ...]:
    """Return the scores that a single shot has, in order."""
    return tuple(metric.name for metric in metrics() if metric.per_shot)


def style_table(story: FoundStory) -> tuple[tuple[int, ...], Floats] | None:
    """Return the numbers of a story's pictures and the cosines of their styles; None where nobody looked.

    Shape (pictures, pictures), in [-1, 1]; ``nan`` for a picture that the model made nothing of.
    """
    if story.pictures is None or story.pictures["style"] is None:
        return None
    rows = unit(doubles(story.pictures["style"]))
    table: Floats = np.clip(rows @ rows.T, -1.0, 1.0)
    return tuple(int(number) for number in story.pictures["numbers"]), table


def _ratings(story: str, panels: Sequence[Panel]) -> dict[tuple[int, str], list[list[int | None]]]:
    """Return shot and dimension -> per judge and vote the ratings."""
    by_shot: dict[tuple[int, str], list[list[int | None]]] = {}
    for panel in panels:
        votes: dict[tuple[int, str], list[int | None]] = {}
        for _, stories in sorted(panel.runs.items()):
            for (number, name, _), rating in sorted(
                stories.get(story, {}).items(),
                key=lambda entry: (entry[0][0], entry[0][1], entry[0][2] or ""),
            ):
                votes.setdefault((number, name), []).append(rating)
        for key, ratings in votes.items():
            by_shot.setdefault(key, []).append(ratings)
    return by_shot


def _mean(judges: Iterable[Sequence[int | None]]) -> float | str:
    means = []
    for ratings in judges:
        known = [rating for rating in ratings if rating is not None]
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


NAMES = ("method", "story_id", "shot")
"""Columns that name a row."""


def scored_shots(
    archive: Archive, stories: Sequence[FoundStory], scores: ImageScores
) -> tuple[ShotScore, ...]:
    """Return the shots of all methods, as they were scored."""
    panels = sorted(collect_panels(archive.judgements, stories).items())
    scored = {(method.method, story.story_id): story for method in scores.methods for story in method.stories}
    return tuple(
        shot
        for story in stories
        for shot in score_shots(
            story,
            scored[story.method, story.story_id],
            [panel for (method, _), panel in panels if method == story.method],
        )
    )


def shot_rows(shots: Iterable[ShotScore]) -> list[dict[str, str | int | float | None]]:
    """Return one row per shot: who, which, and a column for every score that any shot has."""
    every = list(shots)
    names = [name for name in shot_scores() if any(name in shot.values for shot in every)]
    return [
        {
            **dict(zip(NAMES, (shot.method, shot.story_id, shot.number), strict=True)),
            **{name: shot.values.get(name) for name in names},
        }
        for shot in every
    ]


TABLE = "scores.csv"
STRATA = "strata.csv"
SHOTS = "shots.csv"


def write_scores(folder: Path, scores: ImageScores, shots: Iterable[ShotScore]) -> tuple[Path, ...]:
    """Write ``scores.csv``, ``strata.csv`` and ``shots.csv`` into a folder, made if missing; return them.

    An empty story is the whole set. An empty cell of a shot is a score that it does not have.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / TABLE, [_csv(scores.rows(), ())])
        write_atomic(folder / STRATA, [_csv(scores.strata_rows(), ("method", "by", "kind", "metric"))])
        write_atomic(folder / SHOTS, [_csv(shot_rows(shots), NAMES)])
    except OSError as error:
        raise TargetError(
            str(folder), what=f"the folder cannot be written: {error.strerror or error}",
            fix="choose another with --tables",
        ) from error  # fmt: skip
    return folder / TABLE, folder / STRATA, folder / SHOTS


def _csv(rows: Iterable[Mapping[str, object]], names: Iterable[str]) -> bytes:
    every = list(rows)
    columns = list(dict.fromkeys([*names, *(name for row in every for name in row)]))
    return csv_text(columns, ([row.get(name, "") for name in columns] for row in every)).encode("utf-8")
