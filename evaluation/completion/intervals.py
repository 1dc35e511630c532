"""Bootstrap intervals of completion rates: prompts are drawn, videos and votes stay as they are."""

from collections.abc import Mapping, Sequence

from ...schemas.score import Score
from .scores import Video
from .voting import Definitions

SILENT = "non_response"
"""Name of the share of prompts without any answer, which needs no members."""


def with_intervals(
    scores: Mapping[str, Score],
    videos: Sequence[Video],
    members: Mapping[str, Sequence[bool]],
    definitions: Definitions,
) -> dict[str, Score]:
    """Return scores with their 95 % percentile intervals over drawings of the prompts.

    All scores see the same drawings.

    Args:
        scores: score by name; one that is not ok stays as it is.
        videos: the prompts.
        members: name -> for each prompt whether it belongs to that score's class; of :data:`SILENT` unused.
        definitions: how prompts without an answer count.
    """
    import numpy as np

    from ..stats.bootstrap import percentile_interval, resampled_sums

    answered = np.array([one.rate is not None for one in videos])
    rates = np.array([one.rate or 0.0 for one in videos])
    counted = np.ones(len(videos)) if definitions.nonresponse == "zero" else answered.astype(float)
    columns = []
    for name in scores:
        member = np.ones(len(videos)) if name == SILENT else np.array(members[name], dtype=float)
        top, bottom = (~answered, member) if name == SILENT else (rates * member, counted * member)
        columns += [np.asarray(top, dtype=float), bottom]
    if not videos or not definitions.resamples:
        return dict(scores)
    sums = resampled_sums(np.stack(columns, axis=1), definitions.resamples, definitions.seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = percentile_interval(sums[:, ::2] / sums[:, 1::2])
    return {
        name: score.model_copy(update={"low": float(low[place]), "high": float(high[place])})
        if score.status == "ok"
        else score
        for place, (name, score) in enumerate(scores.items())
    }
