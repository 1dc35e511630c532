"""Aesthetic score.

Question: how pleasing are the pictures?
Formula: the mean over pictures of the predictor's value.
Input: values of Aesthetic Predictor V2.5, one per picture, about 1 to 10; None where it failed.
Output: about 1 to 10 (the predictor has no clamp); higher is better.
Undefined when: no picture has a value.
Source: ViStoryBench, metrics page and public code.
Departures from the source: a picture that cannot be read is counted and left out. How the picture reaches
    the predictor is the adapter's definition, not the metric's.
Example: 5.0 and 6.0: 5.5.
"""

from collections.abc import Sequence

from ...schemas.score import Score
from .spec import Spec

SPEC = Spec(
    "aesthetic", 1, "story", "higher", (float("-inf"), float("inf")), "mean of stories",
    ("values:aesthetic",),
)  # fmt: skip


def aesthetic(values: Sequence[float | None]) -> Score:
    """Return the mean value of one story's pictures."""
    known = [value for value in values if value is not None]
    counts = {"pictures": len(values), "valued": len(known)}
    return Score.ratio(float(sum(known)), len(known), "no picture has a value", **counts)
