"""Every shot of an evaluation with its values, and as a table: one row per shot."""

from collections.abc import Iterable, Sequence

from ..archive import Archive
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
