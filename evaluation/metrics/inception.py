"""Inception score.

Question: are the pictures each of something distinct, and of many different things?
Formula: exp(mean_i KL(p(y | x_i) || mean_j p(y | x_j))), natural logarithm. Of k splits each has n // k
    pictures; what is left over at the end counts in none.
Input: class probabilities of every picture of the set, shape (pictures, classes), rows adding to 1.
Output: 1 to the number of classes; higher is better. With splits, mean and standard deviation over them.
Undefined when: there is no picture, or fewer pictures than splits.
Source: ViStoryBench, metrics page and public code (one split); Salimans et al. 2016.
Departures from the source: the set is that of the stories under evaluation, where the code takes every image
    under a time stamp (none more where a method drew what it was asked for; every further picture counts
    there as one of n). Without pictures, or with fewer than splits, there is no value where the code writes
    0. The value depends on the number of pictures; compare sets of equal size only.
Example: two pictures, two classes, each sure of another class: KL = ln 2 for both, score 2.
"""

from collections.abc import Sequence

import numpy as np

from ...schemas.values import Score
from .metric import Choices, Metric, of_pictures
from .story import Story
from .vectors import Floats

FEW = 32
"""Below so many pictures the public code warns that the value means little."""


def inception_score(probabilities: Floats, splits: int = 1) -> tuple[Score, float | None]:
    """Return the score of a set, and its standard deviation over splits (None with one split).

    Args:
        probabilities: shape (pictures, classes); rows are made to add to 1.
        splits: parts of equal size, in order of the rows; the score is the mean over them, and rows that
            do not fill another part are left out.

    Raises:
        ValueError: splits is below 1, or a probability is negative.
    """
    if splits < 1:
        raise ValueError("there is at least one split")
    if (probabilities < 0).any():
        raise ValueError("probabilities are 0 or more")
    pictures = len(probabilities)
    if pictures < splits or not pictures:
        return Score.ratio(0.0, 0, "fewer pictures than splits", pictures=pictures), None
    size = pictures // splits
    values = [_score(probabilities[size * part : size * (part + 1)]) for part in range(splits)]
    score = Score.ratio(float(sum(values)), splits, "no picture", pictures=pictures)
    return score, float(np.std(values)) if splits > 1 else None


def _score(rows: Floats) -> float:
    shares = rows / rows.sum(axis=1, keepdims=True)
    whole = shares.mean(axis=0)
    # 0 log 0 is 0; where a share is above 0 the mean is too.
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    means = np.log(whole, out=np.zeros_like(whole), where=whole > 0)
    return float(np.exp((shares * (logs - means)).sum(axis=1).mean()))


def _whole(stories: Sequence[Story], chosen: Choices) -> tuple[Score, float | None] | None:
    rows = [some for story in stories if (some := story.rows("inception")) is not None]
    if not rows:
        return None
    known = [row for some in rows for row in some if row is not None]
    table = np.array(known) if known else np.empty((0, 1))
    score, deviation = inception_score(table, chosen.splits)
    shots = sum(len(story.shots) for story in stories)
    counts = {**score.counts, "shots": shots, "without_image": shots - len(table)}
    return score.model_copy(update={"counts": counts}), deviation


METRIC = Metric(
    name="inception", version=2,
    label="Inception", group="Diversity", direction="higher", range=(1.0, 1000.0), digits=2,
    column=11, needs=(of_pictures("inception", "inception-v3"),), whole=_whole, few=FEW,
    meaning="Inception score of all pictures together, 1 or more; it grows with their number, so that "
    "only sets of equal size can be compared. It has no interval over stories.",
)  # fmt: skip
