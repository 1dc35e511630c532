"""Shares over things that belong to stories, with intervals over resampled stories."""

from collections.abc import Iterable, Mapping

import numpy as np

from ...evaluation.stats.bootstrap import divided, resampled_sums
from ...evaluation.stats.uncertainty import Uncertainty
from ...schemas.values import Score


def share_score(
    rows: Iterable[tuple[str, float, float]],
    uncertainty: Uncertainty,
    why_undefined: str,
    counts: Mapping[str, int] | None = None,
) -> Score:
    """Return the sum of one number over the sum of another.

    Args:
        rows: story, how much of what was counted, how much was counted; a story may have several.
        uncertainty: how the interval is made.
        why_undefined: the reason where nothing was counted.
        counts: coverage, beside the number of stories.

    Returns:
        A share in [0, 1], with both sums.
    """
    stories: dict[str, list[float]] = {}
    for story, part, whole in rows:
        sums = stories.setdefault(story, [0.0, 0.0])
        sums[0] += part
        sums[1] += whole
    columns = np.array([sums for sums in stories.values() if sums[1] > 0], dtype=np.float64).reshape(-1, 2)
    counts = {"stories": len(columns), **(counts or {})}
    if not len(columns):
        return Score(value=None, status="undefined", reason=why_undefined, counts=counts)
    part, whole = columns.sum(axis=0)
    drawn = resampled_sums(columns, uncertainty.resamples if len(columns) > 1 else 0, uncertainty.seed)
    replicates = divided(drawn[:, 0], drawn[:, 1])
    low, high = uncertainty.ends(divided(part, whole), replicates, len(columns), (0.0, 1.0))
    return Score(
        value=float(part / whole), status="ok", numerator=float(part), denominator=float(whole),
        low=end_of(low), high=end_of(high), counts=counts,
    )  # fmt: skip


def end_of(value: object) -> float | None:
    """Return an end of an interval, None where there is none; ten digits are the same on every machine."""
    number = float(np.asarray(value))
    return None if np.isnan(number) else round(number, 10)


def undefined(reason: str, **counts: int) -> Score:
    """Return the score of what has no value, with the reason."""
    return Score(value=None, status="undefined", reason=reason, counts=counts)
