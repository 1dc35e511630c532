"""StoryEval's human alignment, class by class.

Question: do completion rates by people and by the verifier order the video models alike?
Formula: completion rate of a video = share of its events that were completed, for people the mean over
    those who judged it; rate of a model in a class = mean over its videos there; Spearman's and Kendall's
    correlation over the models, for every class and for all prompts.
Input: lines of kind ``completion``; the verifier's rate of each video.
Output: correlations in [-1, 1]; mean absolute difference of the rates in [0, 1], of the models and of the
    single videos (which of them Table 4 prints is not said).
Undefined when: fewer than three models are in a class, or all have the same rate.
Source: StoryEval, sections 2.3, 3.1.2 and 3.1.4, Figure 6, Table 4 (ways to combine votes).
Departures: both rates are over the videos that both judged, as each model has its own sample of prompts.
    Videos without an answer of the verifier have the rate zero, as in its scores, or are left out.
Example: people rate models 0.2, 0.4, 0.6, the verifier 0.1, 0.5, 0.3: ranks 1, 2, 3 and 1, 3, 2, Spearman
    0.5, Kendall 1/3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluation.stats.correlation import Correlation, kendall, spearman
from ..schemas.human import HumanRow

ALL = "all"
Rates = Mapping[tuple[str, str], float]
"""Model and video -> completion rate, in [0, 1]."""


@dataclass(frozen=True)
class Aligned:
    """One class of prompts.

    Attributes:
        models: model -> (rate by people, rate by the verifier, videos).
        spearman: over the models.
        kendall: over the models.
        difference: mean absolute difference of the two rates of a model; None without a model.
        video_difference: the same over the single videos.
    """

    models: Mapping[str, tuple[float, float, int]]
    spearman: Correlation
    kendall: Correlation
    difference: float | None
    video_difference: float | None


def human_rates(rows: Sequence[HumanRow]) -> dict[tuple[str, str], float]:
    """Return model and video -> mean over people of the share of events that they saw completed."""
    given: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.kind == "completion" and not row.repeat:
            share = sum(row.completion) / len(row.completion)
            given.setdefault((str(row.method), str(row.item)), []).append(share)
    return {video: sum(shares) / len(shares) for video, shares in given.items()}


def alignment(people: Rates, verifier: Rates, classes: Mapping[str, tuple[str, ...]]) -> dict[str, Aligned]:
    """Return class -> how the verifier's rates of models follow people's; ``all`` comes last.

    Args:
        people: rates by people.
        verifier: rates by the verifier; a video that is not there was not judged or not answered.
        classes: video -> classes of its prompt.
    """
    shared = [video for video in people if video in verifier]
    names = list(dict.fromkeys(name for _, item in sorted(shared) for name in classes.get(item, ())))
    members = {name: [video for video in shared if name in classes.get(video[1], ())] for name in names}
    return {name: _aligned(people, verifier, videos) for name, videos in [*members.items(), (ALL, shared)]}


def _aligned(people: Rates, verifier: Rates, videos: Sequence[tuple[str, str]]) -> Aligned:
    models: dict[str, tuple[float, float, int]] = {}
    for model in sorted({model for model, _ in videos}):
        own = [video for video in videos if video[0] == model]
        models[model] = (
            float(np.mean([people[video] for video in own])),
            float(np.mean([verifier[video] for video in own])),
            len(own),
        )
    first = np.round([rates[0] for rates in models.values()], 12)
    second = np.round([rates[1] for rates in models.values()], 12)
    difference = float(np.abs(first - second).mean()) if models else None
    apart = [abs(people[video] - verifier[video]) for video in videos]
    by_video = sum(apart) / len(apart) if apart else None
    return Aligned(models, spearman(first, second), kendall(first, second), difference, by_video)
