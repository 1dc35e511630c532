"""People's ratings of shot images, beside every score of the evaluation.

Question: which scores rank pictures as people do?
Formula: Pearson, Spearman and Kendall between the mean rating of each thing that people rated and its score:
    over stories and over shots as they were rated, and over methods, with means of the same things.
Input: lines of kind ``rating``, 0 to 4 (section G); a story is named by its id, a shot as ``01/shot_03``.
Output: in [-1, 1]; 1 is the same order.
Undefined when: fewer than three things have both a rating and a score, or all of one are the same.
Source: ViStoryBench, supplement section G (stories) and H.5 (shots).
Departures: the supplement leaves out a method by name (StoryGen); nothing is left out here unless the file
    leaves it out. The inception score, of a whole set, is compared over methods alone.
Example: ratings 1, 2 and 4 of three stories with scores 0.2, 0.3 and 0.9: Spearman 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..evaluation.images.per_shot import ShotScore
from ..evaluation.images.scores import ImageScores
from ..evaluation.metrics.registry import metrics
from ..evaluation.stats.correlation import NAMES, correlate
from ..schemas.human import HumanRow
from .consistency import agreements
from .exclude import exclude
from .plain import as_plain
from .preference import preferences
from .ratings import human_ratings
from .study import StudySettings, definitions, people

RATING = (0, 4)
"""Least and greatest rating."""
KINDS = frozenset(("rating", "preference", "attention"))
NONRESPONSE = "excluded"

Thing = tuple[str, str]
"""Method, and story or shot."""


def shot_item(story_id: str, number: int) -> str:
    """Return how a line of people's answers names a shot."""
    return f"{story_id}/shot_{number:02d}"


def study_pictures(
    rows: Sequence[HumanRow], scores: ImageScores, shots: Iterable[ShotScore], settings: StudySettings
) -> dict[str, Any]:
    """Return all that people said about shot images and how scores compare, as plain JSON.

    Args:
        rows: the lines of a file of answers.
        scores: of the evaluation.
        shots: its shots, one by one.
        settings: definitions.
    """
    kept = exclude(rows, settings.exclusion)
    rated = _rated(kept.rows)
    stories, of_shots = _story_values(scores), _shot_values(shots)
    whole = {
        metric.name: {
            one.method: one.scores[metric.name].value for one in scores.methods if metric.name in one.scores
        }
        for metric in metrics()
        if metric.whole
    }
    methods = sorted({row.method for row in kept.rows if row.method is not None})
    return {
        "kind": "images",
        "definitions": {**definitions(settings, NONRESPONSE), "scores": scores.definitions.as_json()},
        "people": people(rows, kept, settings),
        "methods": {
            method: {"ratings": as_plain(human_ratings(kept.rows, method, settings.resampling))}
            for method in methods
        },
        "preferences": as_plain(preferences(kept.rows, settings.resampling)),
        "agreement": as_plain(agreements(kept.rows, {})),
        "judges": {},
        "scores": {
            criterion: {
                **_compared("stories", given, stories),
                **_compared("shots", given, of_shots),
                **_whole(given, whole),
            }
            for criterion, given in rated.items()
        },
    }


def _rated(rows: Iterable[HumanRow]) -> dict[str, dict[Thing, float]]:
    """Return criterion -> the mean rating of everything that was rated."""
    given: dict[str, dict[Thing, list[int]]] = {}
    for row in rows:
        if row.kind == "rating" and not row.repeat and row.value is not None:
            thing = (str(row.method), str(row.item))
            given.setdefault(str(row.criterion), {}).setdefault(thing, []).append(row.value)
    return {
        criterion: {thing: sum(values) / len(values) for thing, values in sorted(things.items())}
        for criterion, things in sorted(given.items())
    }


def _story_values(scores: ImageScores) -> dict[str, dict[Thing, float]]:
    found: dict[str, dict[Thing, float]] = {}
    for method in scores.methods:
        for story in method.stories:
            for name, score in story.scores.items():
                if score.value is not None:
                    found.setdefault(name, {})[method.method, story.story_id] = score.value
    return found


def _shot_values(shots: Iterable[ShotScore]) -> dict[str, dict[Thing, float]]:
    found: dict[str, dict[Thing, float]] = {}
    for shot in shots:
        for name, value in shot.values.items():
            found.setdefault(name, {})[shot.method, shot_item(shot.story_id, shot.number)] = value
    return found


def _compared(
    what: str, given: Mapping[Thing, float], values: Mapping[str, Mapping[Thing, float]]
) -> dict[str, Any]:
    """Return how each score compares over single things, and over the methods' means of them."""
    rated = {thing: value for thing, value in given.items() if ("/" in thing[1]) == (what == "shots")}
    if not rated:
        return {}
    made = {}
    for name, scored in values.items():
        shared = sorted(set(rated) & set(scored))
        if not shared:
            continue
        pairs = np.array([[rated[thing], scored[thing]] for thing in shared])
        methods = sorted({method for method, _ in shared})
        means = np.array([pairs[[thing[0] == method for thing in shared]].mean(axis=0) for method in methods])
        made[name] = {
            what: _correlations(pairs),
            "methods": _correlations(means),
            "without_score": len(rated) - len(shared),
        }
    return {what: made}


def _whole(given: Mapping[Thing, float], scores: Mapping[str, Mapping[str, float | None]]) -> dict[str, Any]:
    """Return how scores of whole sets compare, over methods; of ratings of stories alone."""
    made = {name: told for name, whole in scores.items() if (told := _over_methods(given, whole))}
    return {"sets": made} if made else {}


def _over_methods(given: Mapping[Thing, float], whole: Mapping[str, float | None]) -> dict[str, Any]:
    found: dict[str, list[float]] = {}
    for (method, item), value in given.items():
        if "/" not in item and whole.get(method) is not None:
            found.setdefault(method, []).append(value)
    pairs = [(sum(values) / len(values), whole[method]) for method, values in sorted(found.items())]
    if not pairs:
        return {}
    return {"methods": _correlations(np.array(pairs, dtype=np.float64))}


def _correlations(pairs: Any) -> dict[str, Any]:  # noqa: ANN401 - shape (things, 2)
    return {name: correlate(name, pairs[:, 0], pairs[:, 1]).as_json() for name in NAMES}
