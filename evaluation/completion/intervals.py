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
    """Return scores with their 95 % intervals over drawings of the prompts.

    All scores see the same drawings.

    Args:
        scores: score by name; one that is not ok stays as it is.
        videos: the prompts.
        members: name -> for each prompt whether it belongs to that score's class; of :data:`SILENT` unused.
        definitions: how prompts without an answer count.
    """
    import numpy as np

    from ..stats.bootstrap import divided, resampled_sums

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
    replicates = divided(sums[:, ::2], sums[:, 1::2])
    values = np.array([np.nan if one.value is None else one.value for one in scores.values()])
    prompts = (np.stack(columns[1::2], axis=1) > 0).sum(axis=0)
    low, high = definitions.ends(values, replicates, prompts, (0.0, 1.0))
    ends = {name: (low[place], high[place]) for place, name in enumerate(scores)}
    return {
        name: score
        if score.status != "ok" or np.isnan(ends[name][0])
        else score.model_copy(update={"low": float(ends[name][0]), "high": float(ends[name][1])})
        for name, score in scores.items()
    }
