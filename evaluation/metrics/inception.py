"""Inception score.

Question: are the pictures each of something distinct, and of many different things?
Formula: exp(mean_i KL(p(y | x_i) || mean_j p(y | x_j))), natural logarithm.
Input: class probabilities of every picture of the set, shape (pictures, classes), rows adding to 1.
Output: 1 to the number of classes; higher is better.
Undefined when: there is no picture.
Source: ViStoryBench, metrics page and public code; Salimans et al. 2016.
Departures from the source: the set is that of the stories under evaluation, where the code takes every image
    under a time stamp (none more where a method drew what it was asked for; every further picture counts
    there as one of n). Without pictures there is no value where the code writes 0. The value depends on the
    number of pictures; compare sets of equal size only.
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


def inception_score(probabilities: Floats) -> Score:
    """Return the score of a set.

    ``probabilities``: shape (pictures, classes); rows are made to add to 1.
    """
    if (probabilities < 0).any():
        raise ValueError("probabilities are 0 or more")
    pictures = len(probabilities)
    value = _score(probabilities) if pictures else 0.0
    return Score.ratio(value, min(1, pictures), "no picture", pictures=pictures)


def _score(rows: Floats) -> float:
    shares = rows / rows.sum(axis=1, keepdims=True)
    whole = shares.mean(axis=0)
    # 0 log 0 is 0; where a share is above 0 the mean is too.
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    means = np.log(whole, out=np.zeros_like(whole), where=whole > 0)
    return float(np.exp((shares * (logs - means)).sum(axis=1).mean()))


def _whole(stories: Sequence[Story], _chosen: Choices) -> Score | None:
    rows = [some for story in stories if (some := story.rows("inception")) is not None]
    if not rows:
        return None
    known = [row for some in rows for row in some if row is not None]
    score = inception_score(np.array(known) if known else np.empty((0, 1)))
    shots = sum(len(story.shots) for story in stories)
    counts = {**score.counts, "shots": shots, "without_image": shots - len(known)}
    return score.model_copy(update={"counts": counts})


METRIC = Metric(
    name="inception", version=2,
    label="Inception", group="Diversity", direction="higher", range=(1.0, 1000.0), digits=2,
    column=11, needs=(of_pictures("inception", "inception-v3"),), whole=_whole, few=FEW,
    meaning="Inception score of all pictures together, 1 or more; it grows with their number, so that "
    "only sets of equal size can be compared. It has no interval over stories.",
)  # fmt: skip
