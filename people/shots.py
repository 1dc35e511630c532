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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.metrics.metric import metrics
from ..evaluation.shots.looking import read_found
from ..evaluation.shots.ratings import read_definitions
from ..evaluation.shots.scores import ImageScores, score_archive
from ..evaluation.shots.scoring import ShotScore, scored_shots
from ..evaluation.stats.tables import NAMES, correlate
from ..schemas.judgement import HumanRow
from .ratings import human_ratings, methods_of, preferences
from .read import Known, read_human
from .recoverability import lines_of
from .study import (
    Evaluated,
    Followed,
    Json,
    Study,
    StudySettings,
    as_plain,
    common_parts,
    number_text,
    rating_lines,
)

RATING = (0, 4)
"""Least and greatest rating."""
KINDS = frozenset(("rating", "preference", "attention"))
NONRESPONSE = "excluded"

Thing = tuple[str, str]
"""Method, and story or shot."""
Values = Mapping[str, Mapping[Thing, float]]
"""Criterion or score -> value of each thing."""


def shot_item(story_id: str, number: int) -> str:
    """Return how a line of people's answers names a shot."""
    return f"{story_id}/shot_{number:02d}"


def compare_pictures(evaluated: Evaluated, settings: StudySettings) -> dict[str, Any]:
    """Return all that people said about shot images and how scores compare, as plain JSON."""
    stories = read_found(evaluated.folder)
    definitions = read_definitions(evaluated.define, resamples=0)
    scores = score_archive(evaluated.archive, stories, definitions)
    shots = scored_shots(evaluated.archive, stories, scores)
    named = {shot_item(story.story_id, shot.number) for story in stories for shot in story.shots}
    known = Known(
        methods=frozenset(story.method for story in stories),
        pictures=frozenset(story.story_id for story in stories) | named,
        rating=RATING,
        kinds=KINDS,
    )
    kept, document = common_parts("images", read_human(evaluated.human, known), settings, NONRESPONSE)
    document["definitions"]["scores"] = scores.definitions.as_json()
    of_stories, of_shots = _story_values(scores), _shot_values(shots)
    return document | {
        "methods": {
            method: {"ratings": as_plain(human_ratings(kept.rows, method, settings.resampling))}
            for method in methods_of(kept.rows)
        },
        "preferences": as_plain(preferences(kept.rows, settings.resampling)),
        "judges": {},
        "scores": {
            criterion: {
                **_compared("stories", rated, of_stories),
                **_compared("shots", rated, of_shots),
                **_whole(rated, scores),
            }
            for criterion, rated in _rated(kept.rows).items()
        },
    }


def _rated(rows: Sequence[HumanRow]) -> Values:
    """Return criterion -> the mean rating of everything that was rated."""
    ratings: dict[str, dict[Thing, list[int]]] = {}
    for row in lines_of(rows, "rating"):
        if row.value is not None:
            thing = (str(row.method), str(row.item))
            ratings.setdefault(str(row.criterion), {}).setdefault(thing, []).append(row.value)
    return {
        criterion: {thing: sum(values) / len(values) for thing, values in sorted(things.items())}
        for criterion, things in sorted(ratings.items())
    }


def _story_values(scores: ImageScores) -> Values:
    by_score: dict[str, dict[Thing, float]] = {}
    for method in scores.methods:
        for story in method.stories:
            for name, score in story.scores.items():
                values = by_score.setdefault(name, {})
                if score.value is not None:
                    values[method.method, story.story_id] = score.value
    return by_score


def _shot_values(shots: Iterable[ShotScore]) -> Values:
    by_score: dict[str, dict[Thing, float]] = {}
    for shot in shots:
        for name in shot.missing:
            by_score.setdefault(name, {})
        for name, value in shot.values.items():
            by_score.setdefault(name, {})[shot.method, shot_item(shot.story_id, shot.number)] = value
    return by_score


def _compared(what: str, ratings: Mapping[Thing, float], scores: Values) -> dict[str, Any]:
    """Return how each score compares over single things, and over the methods' means of them."""
    rated = {thing: value for thing, value in ratings.items() if ("/" in thing[1]) == (what == "shots")}
    if not rated:
        return {}
    compared = {}
    for name, scored in scores.items():
        shared = sorted(set(rated) & set(scored))
        pairs = np.array([[rated[thing], scored[thing]] for thing in shared], dtype=np.float64)
        methods = sorted({method for method, _ in shared})
        means = [pairs[[thing[0] == method for thing in shared]].mean(axis=0) for method in methods]
        compared[name] = {
            what: _correlations(pairs),
            "methods": _correlations(np.array(means, dtype=np.float64)),
            "without_score": len(rated) - len(shared),
        }
    return {what: compared}


def _whole(ratings: Mapping[Thing, float], scores: ImageScores) -> dict[str, Any]:
    """Return how scores of whole sets compare, over methods; of ratings of stories alone."""
    compared = {}
    for metric in metrics():
        of_method = {
            method.method: method.scores[metric.name].value
            for method in scores.methods
            if metric.whole and metric.name in method.scores
        }
        rated: dict[str, list[float]] = {}
        for (method, item), value in ratings.items():
            if "/" not in item and of_method.get(method) is not None:
                rated.setdefault(method, []).append(value)
        if of_method and any("/" not in item for _, item in ratings):
            pairs = [(sum(values) / len(values), of_method[name]) for name, values in sorted(rated.items())]
            compared[metric.name] = {"methods": _correlations(np.array(pairs, dtype=np.float64))}
    return {"sets": compared} if compared else {}


def _correlations(pairs: NDArray[np.float64]) -> dict[str, Any]:
    pairs = pairs.reshape(-1, 2)  # also where nothing has both; that is told as 0 pairs
    return {name: correlate(name, pairs[:, 0], pairs[:, 1]).as_json() for name in NAMES}


def method_lines(method: str, about: Json) -> Iterator[str]:
    yield from ("", method)
    yield from rating_lines(about)


def result_lines(document: Json) -> Iterator[str]:
    """Return how scores of shot images go with each criterion that people rated, as lines."""
    for criterion, parts in document["scores"].items():
        yield from ("", f"{criterion} against scores (Pearson, Spearman)")
        for name, compared in ((name, scored[name]) for scored in parts.values() for name in scored):
            over = [
                f"over {compared[things]['pearson']['pairs']} {things}"
                f" {number_text(compared[things]['pearson']['value'])},"
                f" {number_text(compared[things]['spearman']['value'])}"
                for things in ("stories", "shots", "methods")
                if things in compared
            ]
            lost = compared.get("without_score", 0)
            yield f"  {name}: {'; '.join(over)}" + (f"; {lost} rated without a score" if lost else "")


def followed(document: Json) -> Iterator[Followed]:
    """Yield how each score ranks what people rated, over the most things that there are."""
    for criterion, parts in document["scores"].items():
        for name, compared in ((name, scored[name]) for scored in parts.values() for name in scored):
            things = next(over for over in ("stories", "shots", "methods") if over in compared)
            ranks = compared[things]["spearman"]
            what = f"{name} for {criterion}, over {things}"
            yield Followed(what, ranks["value"], ranks["pairs"], ranks=True)


STUDY = Study(compare_pictures, method_lines, result_lines, followed, ("define",))
