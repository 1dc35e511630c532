"""Every shot of an evaluation with its values, and as a table: one row per shot.

Scores of shot images as tables: per method, story and metric; by kind of story and character; per shot.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ...errors import TargetError
from ...schemas.canonical import write_atomic
from ...schemas.csv_text import csv_text
from ..archive.archive import Archive
from ..metrics.story import FoundStory
from .per_shot import ShotScore, score_shots, shot_scores
from .ratings import collect_panels
from .scores import ImageScores

NAMES = ("method", "story_id", "shot")
"""Columns that name a row."""


def scored_shots(archive: Archive, found: Sequence[FoundStory], scores: ImageScores) -> tuple[ShotScore, ...]:
    """Return the shots of all methods, as they were scored.

    Raises:
        InputError: a rating is about a shot that was not evaluated.
    """
    panels = sorted(collect_panels(archive.judgements, found).items())
    scored = {(method.method, one.story_id): one for method in scores.methods for one in method.stories}
    return tuple(
        shot
        for one in found
        for shot in score_shots(
            one,
            scored[one.method, one.story_id],
            [panel for (method, _), panel in panels if method == one.method],
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

    Raises:
        TargetError: the folder cannot be written.
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
