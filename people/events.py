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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..evaluation.archive.archive import Archive, check_hash
from ..evaluation.events.score import PanelScore, score_archive, subject_methods
from ..evaluation.events.votes import Definitions, NonResponse
from ..evaluation.stats.tables import Correlation, kendall, spearman
from ..releases.events.form import SUITE, load_suite
from ..schemas.events import Suite
from ..schemas.judgement import HumanRow
from ..schemas.text import tallied
from .read import Known, read_human, read_key
from .recoverability import lines_of
from .study import Evaluated, Followed, Json, Study, StudySettings, as_plain, common_parts, number_text

Verified = Mapping[tuple[str, str], float | None]
"""Model and video -> the judge's rate; null where it has no answer."""
ALL = "all"
Rates = Mapping[tuple[str, str], float]
"""Model and video -> completion rate, in [0, 1]."""


@dataclass(frozen=True)
class Aligned:
    """One class of prompts."""

    models: Mapping[str, tuple[float, float, int]]  # model -> (rate by people, rate by the verifier, videos)
    spearman: Correlation  # over the models
    kendall: Correlation  # over the models
    difference: float | None  # mean absolute difference of the two rates of a model; None without a model
    video_difference: float | None  # the same over the single videos


def human_rates(rows: Sequence[HumanRow]) -> dict[tuple[str, str], float]:
    """Return model and video -> mean over people of the share of events that they saw completed."""
    given: dict[tuple[str, str], list[float]] = {}
    for row in lines_of(rows, "completion"):
        share = sum(row.completion) / len(row.completion)
        given.setdefault((str(row.method), str(row.item)), []).append(share)
    return {video: sum(shares) / len(shares) for video, shares in given.items()}


def alignment(people: Rates, verifier: Rates, classes: Mapping[str, tuple[str, ...]]) -> dict[str, Aligned]:
    """Return class -> how the verifier's rates of models follow people's; ``all`` comes last.

    ``classes``: video -> classes of its prompt.
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
    first, second = np.array([rates[:2] for rates in models.values()], dtype=np.float64).reshape(-1, 2).T
    difference = float(np.abs(first - second).mean()) if models else None
    apart = [abs(people[video] - verifier[video]) for video in videos]
    by_video = sum(apart) / len(apart) if apart else None
    return Aligned(models, spearman(first, second), kendall(first, second), difference, by_video)


def compare_videos(evaluated: Evaluated, settings: StudySettings) -> dict[str, Any]:
    """Return all that people said about videos and how verifiers compare, as plain JSON."""
    path = evaluated.source or evaluated.folder / SUITE
    suite = load_suite(path)
    check_hash(evaluated.archive, "suite", suite.sha256(), str(path))
    known = Known(
        methods=frozenset(subject_methods(evaluated.archive.manifest)),
        events={name: len(prompt.event_list) for name, prompt in suite.prompts.items()},
        classes={name: prompt.labels for name, prompt in suite.prompts.items()},
        kinds=frozenset(("completion", "attention")),
    )
    rows = read_human(evaluated.human, known, None if evaluated.key is None else read_key(evaluated.key))
    nonresponse: NonResponse = "excluded" if settings.nonresponse == "excluded" else "zero"
    kept, document = common_parts("events", rows, settings, nonresponse)
    rates = human_rates(kept.rows)
    verifiers, ways = _verified(evaluated.archive, suite, Definitions(nonresponse=nonresponse, resamples=0))
    return document | {
        "judges": {
            judge: {
                "nonresponse": nonresponse,
                "videos": sum(video in own for video in rates),
                "not_answered": sum(video in own and own[video] is None for video in rates),
                "not_judged": sum(video not in own for video in rates),
                "classes": as_plain(alignment(rates, _counted(own, nonresponse), known.classes)),
                "alternatives": {
                    way: as_plain(alignment(rates, _counted(combined[judge], nonresponse), {})[ALL])
                    for way, combined in ways.items()
                },
            }
            for judge, own in sorted(verifiers.items())
        },
    }


def _verified(
    archive: Archive, suite: Suite, definitions: Definitions
) -> tuple[dict[str, Verified], dict[str, dict[str, Verified]]]:
    """Return judge -> its rate of each video; and the same for every way to combine votes (Table 4)."""
    panels = score_archive(archive, suite, definitions).panels
    ways = list(dict.fromkeys(way for panel in panels for way in panel.alternatives))
    return _by_judge(panels), {
        way: _by_judge(score_archive(archive, suite, replace(definitions, voting=way)).panels) for way in ways
    }


def _by_judge(panels: Iterable[PanelScore]) -> dict[str, Verified]:
    rates: dict[str, dict[tuple[str, str], float | None]] = {}
    for panel in panels:
        own = rates.setdefault(panel.panel.judge, {})
        own |= {(panel.panel.method, video.unit): video.rate for video in panel.videos}
    return dict(rates)


def _counted(rates: Verified, nonresponse: NonResponse) -> dict[tuple[str, str], float]:
    """Return the rates that count: of a video without an answer zero, or none."""
    silent = 0.0 if nonresponse == "zero" else None
    counted = {video: silent if rate is None else rate for video, rate in rates.items()}
    return {video: rate for video, rate in counted.items() if rate is not None}


def result_lines(document: Json) -> Iterator[str]:
    """Return how verifiers follow people, class by class, as lines."""
    for judge, parts in document["judges"].items():
        yield from ("", f"{judge} against people")
        counted = {"zero": "count as zero", "excluded": "left out"}[parts["nonresponse"]]
        silent = f"{parts['not_answered']} without an answer of the judge ({counted})"
        yield f"  {tallied(parts['videos'], 'videos')} that people judged, {silent}"
        if parts["not_judged"]:
            yield f"  {parts['not_judged']} more that the judge was not asked about"
        for name, aligned in parts["classes"].items():
            difference = f"mean difference {number_text(aligned['difference'])}"
            models = tallied(len(aligned["models"]), "models")
            yield f"  {name}: {models}, {_correlated(aligned)}, {difference}"
        if parts["alternatives"]:
            yield "  all prompts, by how votes are combined (mean difference of models; of single videos)"
        for way, aligned in parts["alternatives"].items():
            apart = f"{number_text(aligned['difference'])}; {number_text(aligned['video_difference'])}"
            yield f"    {way}: {_correlated(aligned)}, {apart}"


def _correlated(aligned: Json) -> str:
    ranks, pairs = (number_text(aligned[name]["value"]) for name in ("spearman", "kendall"))
    return f"Spearman {ranks}, Kendall {pairs}"


def followed(document: Json) -> Iterator[Followed]:
    """Yield how each verifier ranks models as people do."""
    for judge, parts in document["judges"].items():
        for name, aligned in parts["classes"].items():
            ranks = aligned["spearman"]
            yield Followed(f"{judge}, models on {name}", ranks["value"], len(aligned["models"]), ranks=True)


STUDY = Study(compare_videos, lambda _method, _about: iter(()), result_lines, followed)
