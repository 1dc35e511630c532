"""What judges got, laid out as people's answers are; and how far it follows what people chose.

Question: does a judge name the moral label that people name, do its scores order two storyboards of a story
    as people prefer them, and how much should its vote count?
Formula: share of stories where the judge's label is the one that most people put first (Eq. 45, 60); share
    of pairs where sign(R(method) - R(baseline)) of image-only recoverability is that of the mean preference
    (Eq. 75). Weight of a judge: the logarithm of the odds that it agrees with the majority of people,
    log((a + 1) / (d + 1)) with a questions agreed and d disagreed on; 0 where that is negative. With
    independent judges this is the weight that makes the weighted majority most likely right (Nitzan and
    Paroush 1982).
Input: lines of kind ``moral_label``, ``preference`` or ``answer``; a judge's replies.
Output: shares in [0, 1], higher is better; weights >= 0.
Undefined when: no story, or no pair, has both; a judge that shares no question with people gets no weight.
Source: KathaTrace, sections D.5, F.6, H.6; section 3.8 names calibrated weighting without a formula, so that
    this one is ours.
Departures: a story for which two labels were put first equally often has no majority and is left out; a
    judge without an answer disagrees. No preference on average agrees only with equal recoverability, as
    Eq. 75 has it.
Example: people (kindness, kindness, wisdom), judge kindness: 1. Preferences 1 and -2 (mean -0.5) and
    recoverabilities 0.6 against 0.8: both signs are negative, so the pair agrees. A judge that agrees on 8
    of 10 questions has weight log(9 / 3) = 1.0986.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..evaluation.archive.replies import last_attempts
from ..evaluation.recoverability.definitions import Nonresponse
from ..evaluation.recoverability.matching import Key, Marker, accepted
from ..schemas.judgement import HumanRow, Judgement
from ..schemas.katha import Question
from ..schemas.values import Score
from ..validators.resampling import divided
from .participants import Floats, Resampling, estimate, lines_of, scores
from .recoverability import Unit, majorities, majority

Flags = NDArray[np.bool_]
ENSEMBLE = "ensemble"
NO_LABEL = "no story has a label of the judge and a majority label of people"
NO_PAIR = "no pair of storyboards has a preference and the judge's scores"


@dataclass
class Judged:
    """The replies of one judge, or of the ensemble; a unit is condition, method, seed and item."""

    right: dict[Unit, bool] = field(default_factory=dict)  # unit -> whether the answer was accepted
    # unit -> the stated levels, one for each vote that stated one
    confidence: dict[Unit, tuple[str, ...]] = field(default_factory=dict)
    # unit -> the moral label; None where there is no majority, or no answer that counts as wrong
    labels: dict[Unit, str | None] = field(default_factory=dict)
    # units that were asked about and have no answer, where these are excluded
    silent: set[Unit] = field(default_factory=set)


def unit_of(line: HumanRow | Judgement) -> Unit:
    """Return what a person's line, or a judgement, is about."""
    return (line.condition, line.method, line.seed, line.item)


def judged(
    judgements: Iterable[Judgement],
    questions: Mapping[str, Question],
    nonresponse: Nonresponse = "excluded",
) -> dict[str, Judged]:
    """Return judge -> its replies, votes combined by majority; and ``ensemble`` where judges are several.

    Replies are matched as ``fabula score`` does by default. Ties count as wrong (KathaTrace, E.6 and E.7).

    ``questions``: question id -> question.
    """
    votes: dict[str, dict[Unit, list[Judgement]]] = {}
    for reply in last_attempts(judgements):
        if reply.kind == "moral_label" or (reply.kind == "question" and reply.item in questions):
            given = votes.setdefault(reply.judge.spec, {}).setdefault(unit_of(reply), [])
            if nonresponse == "incorrect" or reply.parsed is not None:
                given.append(reply)
    keys = {name: Key.of(question) for name, question in questions.items()}
    marker = Marker(accepted)
    judges = {spec: _judge(units, keys, marker) for spec, units in sorted(votes.items())}
    return {ENSEMBLE: _ensemble(list(judges.values())), **judges} if len(judges) > 1 else judges


def _judge(units: Mapping[Unit, Sequence[Judgement]], keys: Mapping[str, Key], marker: Marker) -> Judged:
    judge = Judged()
    for unit, votes in units.items():
        if not votes:
            judge.silent.add(unit)
            continue
        said = [vote.parsed for vote in votes if vote.parsed is not None]
        if votes[0].kind == "moral_label":
            judge.labels[unit] = mode([str(reply.get("answer")) for reply in said])
        else:
            key = keys[votes[0].item]
            right = sum(marker.marks(key, votes[0].condition, reply)[0] for reply in said)
            judge.right[unit] = 2 * right > len(votes)
            if stated := tuple(str(reply["confidence"]) for reply in said if "confidence" in reply):
                judge.confidence[unit] = stated
    return judge


def _ensemble(judges: Sequence[Judged]) -> Judged:
    together = Judged()
    for unit in dict.fromkeys(unit for judge in judges for unit in judge.right):
        right = [judge.right[unit] for judge in judges if unit in judge.right]
        together.right[unit] = majority(right) is True
        if stated := tuple(level for judge in judges for level in judge.confidence.get(unit, ())):
            together.confidence[unit] = stated
    for unit in dict.fromkeys(unit for judge in judges for unit in judge.labels):
        labels = [judge.labels[unit] for judge in judges if unit in judge.labels]
        together.labels[unit] = mode([label for label in labels if label is not None])
    silent = {unit for judge in judges for unit in judge.silent}
    together.silent = silent - set(together.right) - set(together.labels)
    return together


def mode(labels: Sequence[str]) -> str | None:
    """Return the label given most often; None where there is none, or two as often."""
    counts = Counter(labels).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def label_agreement(rows: Sequence[HumanRow], judge: Judged, resampling: Resampling) -> Score:
    """Return how often a judge's moral label is that of most people, with a participant-level interval."""
    compared = [row for row in rows if unit_of(row) in judge.labels]
    units = list(dict.fromkeys(map(unit_of, compared)))
    people = sorted({row.rater for row in compared})
    labels = sorted({row.labels[0] for row in compared})
    votes = np.zeros((len(labels), len(people), len(units)))
    for row in compared:
        votes[labels.index(row.labels[0]), people.index(row.rater), units.index(unit_of(row))] += 1
    said = [judge.labels[unit] for unit in units]
    named = np.array([labels.index(label) if label in labels else -1 for label in said], dtype=np.int64)

    def majority_of(weights: Floats) -> tuple[Floats, Flags]:
        """Return the votes for each label and unit, and where one label has more than each other."""
        counts = np.einsum("bp,lpu->blu", weights, votes)
        best = counts.max(axis=1, initial=0.0)
        return counts, ((counts == best[:, None]).sum(axis=1) == 1) & (best > 0)

    def statistic(weights: Floats) -> Floats:
        counts, known = majority_of(weights)
        first = counts.argmax(axis=1) if len(labels) else np.zeros(known.shape, dtype=np.int64)
        agrees = (known & (first == named)).sum(axis=1).astype(np.float64)
        return divided(agrees, known.sum(axis=1).astype(np.float64))[:, None]

    clear = int(majority_of(np.ones((1, len(people))))[1].sum())
    counts = {"stories": clear, "divided": len(units) - clear}
    return scores(estimate(statistic, len(people), resampling), NO_LABEL, [counts])[0]


def preference_agreement(
    rows: Sequence[HumanRow], questions: Mapping[str, Question], judge: Judged
) -> dict[str, Score]:
    """Return criterion -> how often a judge's image-only recoverability orders pairs as people prefer."""
    got: dict[Unit, list[bool]] = {}
    for (condition, method, seed, item), right in judge.right.items():
        if condition == "image":
            got.setdefault((method, seed, questions[str(item)].story_id), []).append(right)
    recovered = {board: sum(right) / len(right) for board, right in got.items()}
    preferred: dict[tuple[str, Unit], list[int]] = {}
    for row in lines_of(rows, "preference"):
        if row.value is not None:
            pair = (row.method, row.baseline, row.seed, row.item)
            preferred.setdefault((str(row.criterion), pair), []).append(row.value)
    agrees: dict[str, list[bool]] = {}
    for (criterion, (method, baseline, seed, story)), values in preferred.items():
        first, second = recovered.get((method, seed, story)), recovered.get((baseline, seed, story))
        agreed = agrees.setdefault(criterion, [])
        if first is not None and second is not None:
            agreed.append(bool(np.sign(sum(values)) == np.sign(round(first - second, 12))))
    return {
        criterion: Score.ratio(sum(agreed), len(agreed), NO_PAIR, pairs=len(agreed))
        for criterion, agreed in sorted(agrees.items())
    }


def fitted_weights(
    rows: Sequence[HumanRow], questions: Mapping[str, Question], judges: Mapping[str, Judged]
) -> dict[str, float]:
    """Return judge -> weight, from the answers given; the caller keeps to those of one split."""
    people = majorities(lines_of(rows, "answer"), questions, unit_of)
    weights = {}
    for name, judge in judges.items():
        agrees = [
            judge.right[unit] == right
            for unit, right in people.items()
            if right is not None and unit in judge.right
        ]
        if agrees and name != ENSEMBLE:
            weights[name] = max(0.0, math.log((sum(agrees) + 1) / (len(agrees) - sum(agrees) + 1)))
    return weights
