"""Judges against people's moral labels and preferences.

Question: does a judge name the moral label that people name, and do its scores order two storyboards of a
    story as people prefer them?
Formula: share of stories where the judge's label is the one that most people put first (Eq. 45, 60); share
    of pairs where sign(R(method) - R(baseline)) of image-only recoverability is that of the mean preference
    (Eq. 75).
Input: lines of kind ``moral_label`` or ``preference``; a judge's replies.
Output: shares in [0, 1], higher is better.
Undefined when: no story, or no pair, has both.
Source: KathaTrace, sections D.5, F.6, H.6.
Departures: a story for which two labels were put first equally often has no majority and is left out; a
    judge without an answer disagrees. No preference on average agrees only with equal recoverability, as
    Eq. 75 has it.
Example: people (kindness, kindness, wisdom), judge kindness: 1. Preferences 1 and -2 (mean -0.5) and
    recoverabilities 0.6 against 0.8: both signs are negative, so the pair agrees.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ..evaluation.stats.bootstrap import divided
from ..schemas.human import HumanRow
from ..schemas.katha import Question
from ..schemas.score import Score
from .judged import Judged, Unit, mode, unit_of
from .resample import Floats, Resampling, estimate, scores

NO_LABEL = "no story has a label of the judge and a majority label of people"
NO_PAIR = "no pair of storyboards has a preference and the judge's scores"


def label_agreement(rows: Sequence[HumanRow], judge: Judged, resampling: Resampling) -> Score:
    """Return how often a judge's moral label is that of most people, with a participant-level interval.

    Args:
        rows: lines of kind ``moral_label`` under one condition, without repeated controls.
        judge: the judge's replies.
        resampling: how the interval is made.
    """
    told = [row for row in rows if unit_of(row) in judge.labels]
    units = list(dict.fromkeys(unit_of(row) for row in told))
    people = sorted({row.rater for row in told})
    labels = sorted({row.labels[0] for row in told})
    votes = np.zeros((len(labels), len(people), len(units)))
    for row in told:
        votes[labels.index(row.labels[0]), people.index(row.rater), units.index(unit_of(row))] += 1
    said = [judge.labels[unit] for unit in units]
    named = np.array([labels.index(label) if label in labels else -1 for label in said], dtype=np.int64)

    def statistic(weights: Floats) -> Floats:
        counts = np.einsum("bp,lpu->blu", weights, votes)
        best = counts.max(axis=1, initial=0.0)
        known = ((counts == best[:, None]).sum(axis=1) == 1) & (best > 0)
        first = counts.argmax(axis=1) if len(labels) else np.zeros(known.shape, dtype=np.int64)
        agrees = (known & (first == named)).sum(axis=1).astype(np.float64)
        return divided(agrees, known.sum(axis=1).astype(np.float64))[:, None]

    by_story: dict[Unit, list[str]] = {}
    for row in told:
        by_story.setdefault(unit_of(row), []).append(row.labels[0])
    divided_stories = sum(mode(given) is None for given in by_story.values())
    counts = {"stories": len(units) - divided_stories, "divided": divided_stories}
    return scores(estimate(statistic, len(people), resampling), NO_LABEL, [counts])[0]


def preference_agreement(
    rows: Sequence[HumanRow], questions: Mapping[str, Question], judge: Judged
) -> dict[str, Score]:
    """Return criterion -> how often a judge's image-only recoverability orders pairs as people prefer."""
    recovered = _recovered(questions, judge)
    given: dict[tuple[str, Unit], list[int]] = {}
    for row in rows:
        if row.kind == "preference" and row.value is not None and not row.repeat:
            pair = (row.method, row.baseline, row.seed, row.item)
            given.setdefault((str(row.criterion), pair), []).append(row.value)
    agrees: dict[str, list[bool]] = {}
    for (criterion, (method, baseline, seed, story)), values in given.items():
        first, second = recovered.get((method, seed, story)), recovered.get((baseline, seed, story))
        found = agrees.setdefault(criterion, [])
        if first is not None and second is not None:
            found.append(bool(np.sign(sum(values)) == np.sign(round(first - second, 12))))
    return {
        criterion: Score.ratio(sum(found), len(found), NO_PAIR, pairs=len(found))
        for criterion, found in sorted(agrees.items())
    }


def _recovered(questions: Mapping[str, Question], judge: Judged) -> dict[Unit, float]:
    """Return (method, seed, story) -> the share of questions that the judge got from the pictures."""
    got: dict[Unit, list[bool]] = {}
    for (condition, method, seed, item), right in judge.right.items():
        if condition == "image":
            got.setdefault((method, seed, questions[str(item)].story_id), []).append(right)
    return {board: sum(found) / len(found) for board, found in got.items()}
