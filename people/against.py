"""Judges against people: agreement, calibration error, rank correlation, distance, pairwise agreement.

Question: do a judge's verdicts follow what people recover from the same evidence?
Formula: share of questions where the judge is right exactly when the majority of people is (Eq. 45, 60, 73);
    expected calibration error of the confidence stated in that (Eq. 48, 62); Spearman's and Kendall's
    correlation and mean absolute difference of recoverability per storyboard (Eq. 46, 61, 74); share of the
    pairs of storyboards that both order alike (Eq. 47, 75).
Input: people's answers and a judge's replies to the same questions about the same outputs, one condition.
Output: shares and errors in [0, 1], correlations in [-1, 1].
Undefined when: nothing is shared; fewer than three storyboards, or all alike, for a correlation.
Source: KathaTrace, sections D.5, F.6 and H.6, Table 39, Figure 10.
Departures: answers are compared as accepted or not (E.7). A question on which people are divided half and
    half has no majority and is left out of agreement and calibration error. Confidence is verbal: the
    values that its levels stand for are ours and are stated. A single answer falls into the bin of its
    level; the mean confidence of several judges or votes falls into one of ten bins of equal width. Pairs
    are storyboards of the same story where stories have several, of different stories otherwise.
Example: people's majorities right, right, wrong; the judge right, wrong, wrong: agreement 2/3. With
    confidence 0.9 each, the calibration error is |2/3 - 0.9| = 0.2333.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..evaluation.archive.replies import last_attempts
from ..evaluation.recoverability.matching import Key, Marker, Nonresponse, accepted
from ..evaluation.stats.tables import Correlation, kendall, spearman
from ..evaluation.stats.uncertainty import DIGITS
from ..schemas.judgement import HumanRow, Judgement
from ..schemas.katha import Question
from ..schemas.values import Score
from ..validators.resampling import divided
from .recoverability import (
    Answered,
    Estimate,
    Floats,
    Resampling,
    Statistic,
    Unit,
    estimate,
    lines_of,
    majorities,
    majority,
    scores,
    tabulated,
)

# -- What judges got, laid out as people's answers are; and how far it follows what people chose
#
# Question: does a judge name the moral label that people name, do its scores order two storyboards of a story
#     as people prefer them, and how much should its vote count?
# Formula: share of stories where the judge's label is the one that most people put first (Eq. 45, 60); share
#     of pairs where sign(R(method) - R(baseline)) of image-only recoverability is that of the mean preference
#     (Eq. 75). Weight of a judge: the logarithm of the odds that it agrees with the majority of people,
#     log((a + 1) / (d + 1)) with a questions agreed and d disagreed on; 0 where that is negative. With
#     independent judges this is the weight that makes the weighted majority most likely right (Nitzan and
#     Paroush 1982).
# Input: lines of kind ``moral_label``, ``preference`` or ``answer``; a judge's replies.
# Output: shares in [0, 1], higher is better; weights >= 0.
# Undefined when: no story, or no pair, has both; a judge that shares no question with people gets no weight.
# Source: KathaTrace, sections D.5, F.6, H.6; section 3.8 names calibrated weighting without a formula,
#     so that this one is ours.
# Departures: a story for which two labels were put first equally often has no majority and is left out; a
#     judge without an answer disagrees. No preference on average agrees only with equal recoverability, as
#     Eq. 75 has it.
# Example: people (kindness, kindness, wisdom), judge kindness: 1. Preferences 1 and -2 (mean -0.5) and
#     recoverabilities 0.6 against 0.8: both signs are negative, so the pair agrees. A judge that agrees on 8
#     of 10 questions has weight log(9 / 3) = 1.0986.

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


# --

NAMES = ("agreement", "calibration_error", "mean_absolute_difference", "spearman", "pairwise_agreement")
"""The values of a judge, in the order of the statistic."""
LEVELS = {"low": 0.25, "medium": 0.5, "high": 0.9}
"""Probabilities that the verbal levels of confidence stand for, unless others are stated."""
BINS = 10
TOO_LITTLE = "people and the judge share too little"
MOST_PAIRS = 5000
"""Pairs of storyboards up to which pairwise agreement gets an interval."""
MOST_STORYBOARDS = 1000
"""Up to so many storyboards are kept one by one; of more, so many at even distances. All are counted."""

Ints = NDArray[np.int64]
Board = tuple[str | None, int | None, str]
"""Method, seed and story."""


@dataclass(frozen=True)
class Bin:
    """One bin of answers: how many, their mean confidence, and the share of them that agrees with people."""

    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Storyboard:
    """What people and a judge recover from one storyboard under one condition."""

    method: str | None  # whose storyboard it is; None under text-only evidence
    seed: int | None  # of the generation
    story: str  # the story
    people: float  # mean over its questions of the share of people who were right
    judge: float  # share of its questions that the judge got right
    questions: int  # how many were answered by both


@dataclass(frozen=True)
class Against:
    """One judge against people under one condition."""

    values: Mapping[str, Score]  # the five scores of :data:`NAMES`, with participant-level intervals
    spearman: Correlation  # the correlation with its p-value and analytic interval
    kendall: Correlation  # Kendall's tau-b, as well
    # of the questions that the majority of people did not get, the share that the judge did (what Tables 61
    # and 72 call false acceptance; they do not say how they count)
    false_acceptance: Score
    false_rejection: Score  # of those that it did get, the share that the judge did not
    bins: tuple[Bin, ...]  # the bins of confidence
    pairs: str  # ``within_story`` or ``between_stories``
    not_judged: int  # units that people answered and the judge was not asked
    silent: int = 0  # units that both were asked, left out because the judge gave no answer
    # the storyboards that the correlation stands on (Figure 10), at most :data:`MOST_STORYBOARDS` of them
    storyboards: tuple[Storyboard, ...] = ()


@dataclass(frozen=True)
class Shared:
    """What people and some judges, who were asked the same, say about the same units."""

    table: Answered  # who was right, shape (people, units); the units of a storyboard stand together
    starts: Ints  # the first unit of each storyboard
    boards: tuple[Board, ...]  # method, seed and story of each storyboard
    verdict: Floats  # 1 where the judge is right, shape (judges, units)
    confidence: Floats  # what the judge's confidence stands for, ``nan`` where none is stated, the same shape
    bins: tuple[Ints, ...]  # for each judge, the bin that each unit's confidence falls into
    pairs: Ints  # places of the storyboards that are compared, shape (pairs, 2)


def against(
    rows: Sequence[HumanRow],
    questions: Mapping[str, Question],
    judges: Mapping[str, Judged],
    levels: Mapping[str, float],
    resampling: Resampling,
) -> dict[str, Against]:
    """Return judge -> how far it follows people's answers.

    ``questions``: question id -> question. ``levels``: level of confidence -> probability.
    """

    def board(unit: Unit) -> Board:
        _, method, seed, item = unit
        return (
            None if method is None else str(method),
            seed if isinstance(seed, int) else None,
            questions[str(item)].story_id,
        )

    asked = dict.fromkeys(map(unit_of, rows))
    ordered = sorted(asked, key=lambda unit: (str(board(unit)), str(unit)))
    alike: dict[tuple[Unit, ...], list[str]] = {}
    for name, judge in judges.items():
        alike.setdefault(tuple(unit for unit in ordered if unit in judge.right), []).append(name)
    people = sorted({row.rater for row in rows})
    compared: dict[str, Against] = {}
    for units, names in alike.items():  # judges who were asked the same share all that people said
        boards = [board(unit) for unit in units]
        pairs, kind = _pairs(list(dict.fromkeys(boards)))
        stated = [_confidence(units, judges[name], levels) for name in names]
        starts = [n for n, here in enumerate(boards) if not n or boards[n - 1] != here]
        right = [[judges[name].right[unit] for unit in units] for name in names]
        shared = Shared(
            table=tabulated(rows, questions, people, units, unit_of),
            starts=np.array(starts, dtype=np.int64),
            boards=tuple(boards[start] for start in starts),
            verdict=np.array(right, dtype=np.float64),
            confidence=np.array([means for means, _ in stated]).reshape(len(names), len(units)),
            bins=tuple(bins for _, bins in stated),
            pairs=pairs,
        )
        values = _estimated(shared, len(people), resampling)
        for number, name in enumerate(names):
            silent = len(asked.keys() & judges[name].silent)
            compared[name] = _against(shared, number, values, kind, len(asked) - len(units) - silent, silent)
    return {name: compared[name] for name in judges}


def _against(shared: Shared, judge: int, values: Estimate, kind: str, unseen: int, silent: int) -> Against:
    lead = (2 * shared.table.right - shared.table.given).sum(axis=0)
    agrees = (lead > 0) == (shared.verdict[judge] > 0)
    counted = (lead != 0) & np.isfinite(shared.confidence[judge])
    share = divided(shared.table.right.sum(axis=0), shared.table.given.sum(axis=0))
    machine, human = board_means(np.stack([shared.verdict[judge], share]), shared.starts)
    boards = {"storyboards": len(shared.starts)}
    counts = [
        {"questions": int((lead != 0).sum()), "divided": int((lead == 0).sum())},
        {"answers": int(counted.sum())}, boards, boards, {"pairs": len(shared.pairs)},
    ]  # fmt: skip
    judged = shared.verdict[judge] > 0
    own = Estimate(values.values[judge], values.low[judge], values.high[judge])
    return Against(
        dict(zip(NAMES, scores(own, TOO_LITTLE, counts), strict=True)),
        spearman(machine, human), kendall(machine, human),
        _share(judged, lead < 0), _share(~judged, lead > 0),
        bins_of(shared.confidence[judge][counted], agrees[counted], shared.bins[judge][counted]),
        kind, unseen, silent, _storyboards(shared, machine, human),
    )  # fmt: skip


def _storyboards(shared: Shared, machine: Floats, human: Floats) -> tuple[Storyboard, ...]:
    """Return what each storyboard tells people and the judge; of many, some at even distances."""
    number = len(shared.starts)
    sizes = np.diff([*shared.starts, shared.verdict.shape[1]])
    kept = np.linspace(0, number - 1, min(number, MOST_STORYBOARDS)).round().astype(np.int64)
    return tuple(
        Storyboard(
            *shared.boards[n], people=float(human[n]), judge=float(machine[n]), questions=int(sizes[n])
        )
        for n in map(int, kept)
    )


def _share(marked: NDArray[np.bool_], among: NDArray[np.bool_]) -> Score:
    """Return the share of some questions that are marked."""
    return Score.ratio(float((marked & among).sum()), int(among.sum()), "there is no such question")


def _estimated(shared: Shared, people: int, resampling: Resampling) -> Estimate:
    """Return the values of all judges, shape (judges, values)."""
    values = estimate(statistic_of(shared, pairwise=True), people, Resampling(0))
    if shared.verdict.size:
        often = estimate(statistic_of(shared, pairwise=len(shared.pairs) <= MOST_PAIRS), people, resampling)
        values = Estimate(values.values, often.low, often.high)
    shape = (len(NAMES), len(shared.verdict))
    return Estimate(*(part.reshape(shape).T for part in (values.values, values.low, values.high)))


def _pairs(boards: Sequence[Board]) -> tuple[Ints, str]:
    stories: dict[object, list[int]] = {}
    for number, board in enumerate(boards):
        stories.setdefault(board[-1], []).append(number)
    within = [pair for numbers in stories.values() for pair in combinations(numbers, 2)]
    chosen = within or list(combinations(range(len(boards)), 2))
    kind = "within_story" if within else "between_stories"
    return np.array(chosen, dtype=np.int64).reshape(len(chosen), 2), kind


def _confidence(units: Sequence[Unit], judge: Judged, levels: Mapping[str, float]) -> tuple[Floats, Ints]:
    """Return the mean stated confidence of each unit, ``nan`` where none is, and the bin it falls into."""
    stated = [
        [levels[level] for level in judge.confidence.get(unit, ()) if level in levels] for unit in units
    ]
    means = np.array([sum(values) / len(values) if values else np.nan for values in stated], dtype=np.float64)
    return means, bins_by(means, single=all(len(values) <= 1 for values in stated))


def bins_by(confidence: Floats, *, single: bool) -> Ints:
    """Return the bin of each confidence: one per level where levels are single, else ten of equal width."""
    if single:
        return np.unique(confidence, return_inverse=True)[1].astype(np.int64)
    return np.minimum(np.nan_to_num(confidence) * BINS, BINS - 1).astype(np.int64)


def bins_of(confidence: Floats, right: NDArray[np.bool_], bins: Ints) -> tuple[Bin, ...]:
    """Return the bins that hold an answer, in order, from the bin of each answer."""
    counts = np.bincount(bins)
    sums, hits = np.bincount(bins, weights=confidence), np.bincount(bins, weights=right)
    return tuple(
        Bin(int(count), float(total / count), float(hit / count))
        for count, total, hit in zip(counts, sums, hits, strict=True)
        if count
    )


def statistic_of(shared: Shared, *, pairwise: bool) -> Statistic:
    """Return the values of :data:`NAMES` as a function of the people's weights.

    The values have shape (replicates, values x judges): the first value of every judge, then the second, and
    so on. Without ``pairwise`` the last is left undefined, as it is costly for many pairs.
    """
    verdict, stated = shared.verdict, np.isfinite(shared.confidence)
    confidence = np.where(stated, shared.confidence, 0.0)
    columns = [
        np.eye(bins.max(initial=-1) + 1)[bins] * there[:, None]
        for bins, there in zip(shared.bins, stated, strict=True)
    ]
    owner = np.repeat(np.eye(len(verdict)), [part.shape[1] for part in columns], axis=0)
    binned = np.concatenate(columns, axis=1)
    right_in = np.concatenate([c * v[:, None] for c, v in zip(columns, verdict, strict=True)], axis=1)
    stated_in = np.concatenate([c * s[:, None] for c, s in zip(columns, confidence, strict=True)], axis=1)
    machine = board_means(verdict, shared.starts)

    def statistic(weights: Floats) -> Floats:
        given, right = weights @ shared.table.given, weights @ shared.table.right
        more, less = (2 * right > given).astype(np.float64), (2 * right < given).astype(np.float64)
        known = more + less
        agreed = more @ verdict.T + less @ (1 - verdict).T
        gaps = np.abs(more @ right_in + less @ (binned - right_in) - known @ stated_in)
        human = board_means(divided(right, given), shared.starts)
        parts = [
            divided(agreed, known.sum(axis=1)[:, None]),
            divided(gaps @ owner, (known @ binned) @ owner),
            _distance(human, machine),
            spearman_of(human, machine),
            _pairwise(human, machine, shared.pairs)
            if pairwise
            else np.full((len(weights), len(verdict)), np.nan),
        ]
        return np.concatenate(parts, axis=1)

    return statistic


def board_means(values: Floats, starts: Ints) -> Floats:
    """Return the mean of values over each storyboard, ``nan`` where none is known.

    ``values``: shape (rows, units), ``nan`` where unknown.

    Returned: shape (rows, storyboards), rounded, so that thirds added in another order tie.
    """
    if not len(starts):
        return np.zeros((len(values), 0))
    there = np.isfinite(values)
    sums = np.add.reduceat(np.where(there, values, 0.0), starts, axis=1)
    numbers = np.add.reduceat(there.astype(np.float64), starts, axis=1)
    return np.round(divided(sums, numbers), DIGITS)


def spearman_of(rows: Floats, fixed: Floats) -> Floats:
    """Return Spearman's correlation of each row with each fixed one, where the row has numbers.

    ``rows``: shape (replicates, places), ``nan`` where there is no number. ``fixed``: shape (judges, places).

    Returned: shape (replicates, judges); ``nan`` with fewer than three places, or where all values are alike.
    """
    from scipy.stats import rankdata

    there = np.isfinite(rows)
    if not rows.shape[1]:
        return np.full((len(rows), len(fixed)), np.nan)
    middle = (there.sum(axis=1)[:, None] + 1) / 2
    first = np.where(there, rankdata(np.where(there, rows, np.inf), axis=1) - middle, 0.0)
    spread = (first**2).sum(axis=1)
    correlations = np.empty((len(rows), len(fixed)))
    for judge, numbers in enumerate(fixed):
        if there.all():  # the usual case, in which the ranks of the fixed one are always the same
            second = rankdata(numbers) - middle[0]
            product, size = first @ second, np.full(len(rows), (second**2).sum())
        else:
            ranked = np.where(there, rankdata(np.where(there, numbers, np.inf), axis=1) - middle, 0.0)
            product, size = (first * ranked).sum(axis=1), (ranked**2).sum(axis=1)
        correlations[:, judge] = divided(product, np.sqrt(spread * size))
    correlations[there.sum(axis=1) < 3] = np.nan
    return correlations


def _distance(human: Floats, machine: Floats) -> Floats:
    there = np.isfinite(human)
    apart = np.abs(np.where(there, human, 0.0)[:, None, :] - machine[None]) * there[:, None, :]
    return divided(apart.sum(axis=2), there.sum(axis=1)[:, None].astype(np.float64))


def _pairwise(human: Floats, machine: Floats, pairs: Ints) -> Floats:
    first, second = pairs[:, 0], pairs[:, 1]
    signs = np.sign(human[:, first] - human[:, second])
    own = np.sign(machine[:, first] - machine[:, second])
    same = sum(
        (signs == sign).astype(np.float32) @ (own == sign).astype(np.float32).T for sign in (-1.0, 0.0, 1.0)
    )
    number = np.isfinite(signs).sum(axis=1)[:, None].astype(np.float64)
    return divided(np.asarray(same, dtype=np.float64), number)
