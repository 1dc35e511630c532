"""Human recoverability, human STG, and how often people name the intended moral label (HMR@1, HMR@3).

Question: how much of a story's transition meaning do people recover from text, from pictures, from both;
    and do they recover its moral target?
Formula: M(i, q, z) = 1 if the normalised answer of person i is accepted (Eq. 56); R(k, z) = mean over the
    valid questions of dimension k of the mean of M over the people who answered (Eq. 57); R(z) = mean of
    R(k, z) over the dimensions (Eq. 58); STG = R(text) - R(image) (Eq. 59). HMR@k = share of judgements
    (person, story) with the intended label among the first k (Eq. 52-53).
Input: lines of kind ``answer`` and the questions of a release, with those that are valid for the method;
    lines of kind ``moral_label`` and the moral label of each story.
Output: scores in [0, 1], higher is better; STG in [-1, 1], lower is better. Chance of HMR@k is k/12 for
    somebody who names k different labels blindly.
Undefined when: no valid question was answered under the condition; nobody named a label. Stories without a
    label of their own are left out and counted.
Source: KathaTrace, sections F.2 and F.5, Tables 37 and 38.
Departures: a question that nobody answered under a condition is left out there and counted; STG uses the
    questions answered under both conditions, so that it compares like with like; R(z) is the mean over the
    dimensions that have an answered valid question. With complete data all of it is the paper's. Who names
    one label only, or unclear, counts as naming no others.
Example: one dimension, two questions, three people. Text: 3/3 and 2/3 right; image: 1/3 and 0/3.
    R(text) = (1 + 2/3) / 2 = 5/6, R(image) = (1/3 + 0) / 2 = 1/6, STG = 2/3.
    Labels (kindness, wisdom) and (wisdom), intended kindness and patience: HMR@1 = 1/2, HMR@3 = 1/2.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..evaluation.recoverability.matching import Key, accepted
from ..schemas.judgement import HumanRow
from ..schemas.katha import Question
from ..schemas.text import normalize_answer
from ..schemas.values import Score
from ..validators.resampling import alike, divided, draws, percentile_interval

# -- What people said, and its intervals: the participants are drawn again, with all that each of them said
#
# People differ more than the answers of one of them, so that single answers are not drawn on their own.

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Weights of the participants, shape (replicates, participants) -> values, shape (replicates, statistics)."""

CHUNK = 250
"""Replicates computed at a time: a statistic holds so many values for every question."""


@dataclass(frozen=True)
class Resampling:
    """How often participants are drawn, and from which seed; intervals are of the stated level."""

    replicates: int = 10_000
    seed: int = 42
    level: float = 0.95


@dataclass(frozen=True)
class Estimate:
    """Values with the ends of their intervals; ``nan`` where there is none. Each has shape (statistics,)."""

    values: Floats
    low: Floats
    high: Floats


def lines_of(rows: Sequence[HumanRow], kind: str, **columns: object) -> list[HumanRow]:
    """Return the lines of a kind, without repeated controls, whose columns have the stated values."""
    return [
        row
        for row in rows
        if row.kind == kind
        and not row.repeat
        and all(getattr(row, name) == value for name, value in columns.items())
    ]


def estimate(statistic: Statistic, participants: int, resampling: Resampling) -> Estimate:
    """Return what a statistic is for the participants as they are, and its percentile interval.

    With fewer than two participants there is no interval. Replicates in which a value is undefined, as when
    nobody was drawn who answered, are left out of its interval. None is there where all drawings are equal.
    """
    values = statistic(np.ones((1, participants)))[0]
    nothing = np.full(values.shape, np.nan)
    if participants < 2 or not resampling.replicates:
        return Estimate(values, nothing, nothing)
    drawn = np.concatenate([statistic(weights) for weights in _weights(participants, resampling)])
    low, high = percentile_interval(drawn, resampling.level)
    known = np.isfinite(values) & ~alike(low, high)  # what all say alike shows no spread, and is not certain
    return Estimate(values, np.where(known, low, np.nan), np.where(known, high, np.nan))


def scores(estimated: Estimate, why_undefined: str, counts: Sequence[dict[str, int]]) -> list[Score]:
    """Return estimates as scores, one for each entry of ``counts``."""
    columns = zip(estimated.values, estimated.low, estimated.high, counts, strict=True)
    return [score_of(value, why_undefined, count, (low, high)) for value, low, high, count in columns]


def score_of(
    value: float, why_undefined: str, counts: dict[str, int], ends: tuple[float, float] = (np.nan, np.nan)
) -> Score:
    """Return a number as a score, undefined where it is ``nan``; so are the ends of its interval."""
    if np.isnan(value):
        return Score(value=None, status="undefined", reason=why_undefined, counts=counts)
    low, high = (None if np.isnan(end) else float(end) for end in ends)
    return Score(value=float(value), status="ok", low=low, high=high, counts=counts)


def means(
    said: Sequence[tuple[str, Sequence[float]]],
    resampling: Resampling,
    why_undefined: str,
    counts: Sequence[dict[str, int]],
) -> list[Score]:
    """Return the means of numbers over all judgements, with participant-level intervals."""
    people = {rater: index for index, rater in enumerate(sorted({rater for rater, _ in said}))}
    sums, numbers = np.zeros((len(people), len(counts))), np.zeros((len(people), 1))
    for rater, values in said:
        sums[people[rater]] += values
        numbers[people[rater]] += 1
    return scores(estimate(ratio(sums, numbers), len(people), resampling), why_undefined, counts)


def ratio(sums: Floats, numbers: Floats) -> Statistic:
    """Return the statistic that is a sum over a number.

    ``sums``: shape (participants, statistics), what is summed for each participant. ``numbers``: how many
    were summed, the same shape or a single column.
    """
    return lambda weights: divided(weights @ sums, weights @ numbers)


def _weights(participants: int, resampling: Resampling) -> Iterator[Floats]:
    for block in draws(participants, resampling.replicates, resampling.seed):
        for start in range(0, len(block), CHUNK):
            yield block[start : start + CHUNK]


# --

Unit = tuple[object, ...]
CONDITIONS = ("text", "image", "text_image")
RANKS = (1, 3)
NO_LABEL = "nobody named a moral label under this condition"
NOBODY = "no valid question was answered under this condition"
NOT_BOTH = "no valid question was answered both under text and under image"


@dataclass(frozen=True)
class Answered:
    """Who was right about what under one condition."""

    # shape (people, questions), how many answers of the person were accepted (several with seeds)
    right: Floats
    given: Floats  # the same shape, how many there are

    def of(self, places: NDArray[np.int64]) -> "Answered":
        """Return the same for some of the questions."""
        return Answered(self.right[:, places], self.given[:, places])


@dataclass(frozen=True)
class HumanRecovery:
    """Human recoverability of one method."""

    recoverability: Mapping[str, Mapping[str, Score]]  # condition -> ``overall`` or dimension -> score
    stg: Mapping[str, Score]  # ``overall`` or dimension -> the gap between text and image
    valid: int  # how many of the questions that were asked are valid


@cache
def _key(gold: str, answers: tuple[str, ...]) -> Key:
    return Key("", gold, frozenset(map(normalize_answer, (gold, *answers))) - {""}, frozenset())


def is_right(row: HumanRow, question: Question) -> bool:
    """Return whether an answer is accepted after normalisation (KathaTrace, Eq. 56).

    Unclear is not, unless it is among the accepted answers.
    """
    return accepted(_key(question.gold_answer, question.accepted_answers), row.answer or "")


def lines_under(rows: Sequence[HumanRow], kind: str, condition: str, method: str) -> list[HumanRow]:
    """Return the lines of a kind about a method under a condition; under text they name no method."""
    return lines_of(rows, kind, condition=condition, method=None if condition == "text" else method)


def tabulated(
    rows: Iterable[HumanRow],
    questions: Mapping[str, Question],
    people: Sequence[str],
    units: Sequence[Unit],
    key: Callable[[HumanRow], Unit] = lambda row: (row.item,),
) -> Answered:
    """Return answers as tables of people and units; those about other units are left out.

    ``questions``: question id -> question.
    """
    who = {name: index for index, name in enumerate(people)}
    what = {unit: index for index, unit in enumerate(units)}
    right, given = np.zeros((len(people), len(units))), np.zeros((len(people), len(units)))
    for row in rows:
        unit = what.get(key(row))
        if unit is not None:
            given[who[row.rater], unit] += 1
            right[who[row.rater], unit] += is_right(row, questions[str(row.item)])
    return Answered(right, given)


def majority(votes: Sequence[bool]) -> bool | None:
    """Return what more than half say; None at a tie or without votes."""
    lead = 2 * sum(votes) - len(votes)
    return None if lead == 0 else lead > 0


def majorities(
    rows: Iterable[HumanRow],
    questions: Mapping[str, Question],
    key: Callable[[HumanRow], Unit] = lambda row: (row.item,),
) -> dict[Unit, bool | None]:
    """Return unit -> whether the majority of people who answered was right, None at a tie."""
    votes: dict[Unit, list[bool]] = {}
    for row in rows:
        votes.setdefault(key(row), []).append(is_right(row, questions[str(row.item)]))
    return {unit: majority(right) for unit, right in votes.items()}


def human_moral(
    rows: Sequence[HumanRow],
    morals: Mapping[str, str | None],
    condition: str,
    method: str,
    resampling: Resampling,
) -> dict[str, Score]:
    """Return ``HMR@1`` and ``HMR@3`` of a method under a condition, with participant-level intervals."""
    named = lines_under(rows, "moral_label", condition, method)
    judged = [row for row in named if morals.get(str(row.item)) is not None]
    hits = [(row.rater, [morals[str(row.item)] in row.labels[:rank] for rank in RANKS]) for row in judged]
    counts = {"judgements": len(judged), "without_intended_label": len(named) - len(judged)}
    rates = means(hits, resampling, NO_LABEL, [counts] * len(RANKS))
    return {f"HMR@{rank}": rate for rank, rate in zip(RANKS, rates, strict=True)}


def human_recovery(
    rows: Sequence[HumanRow],
    questions: Mapping[str, Question],
    method: str,
    valid: Collection[str],
    resampling: Resampling,
) -> HumanRecovery:
    """Return human recoverability of a method over its valid questions, with participant-level intervals."""
    people = sorted({row.rater for row in rows if row.kind == "answer"})
    answers = {condition: lines_under(rows, "answer", condition, method) for condition in CONDITIONS}
    items = sorted({str(row.item) for under in answers.values() for row in under} & set(valid))
    names = sorted({questions[item].question_type for item in items})
    member = np.array([[questions[item].question_type == name for name in names] for item in items])
    member = member.reshape(len(items), len(names)).astype(np.float64)
    tables = {
        condition: tabulated(under, questions, people, [(item,) for item in items])
        for condition, under in answers.items()
    }

    def scored(statistic: Statistic, why_undefined: str, counts: list[dict[str, int]]) -> dict[str, Score]:
        estimated = estimate(statistic, len(people), resampling)
        return dict(zip(("overall", *names), scores(estimated, why_undefined, counts), strict=True))

    recoverability = {
        condition: scored(recoverability_of(table, member), NOBODY, _coverage(table, member))
        for condition, table in tables.items()
    }
    text, image = tables["text"], tables["image"]
    both = np.flatnonzero((text.given.sum(axis=0) > 0) & (image.given.sum(axis=0) > 0))
    gap = gap_of(text.of(both), image.of(both), member[both])
    sizes = [{"questions": int(size)} for size in (len(both), *member[both].sum(axis=0))]
    return HumanRecovery(recoverability, scored(gap, NOT_BOTH, sizes), len(items))


def recoverability_of(table: Answered, member: Floats) -> Statistic:
    """Return recoverability as a function of the people's weights: overall, then each dimension.

    ``member``: shape (questions, dimensions), 1 where the question is of the dimension.
    """
    present = np.flatnonzero((table.given.sum(axis=0) > 0) @ member)

    def statistic(weights: Floats) -> Floats:
        given = weights @ table.given
        shares = np.nan_to_num(divided(weights @ table.right, given))
        dimensions = divided(shares @ member, (given > 0) @ member)
        overall = dimensions[:, present].mean(axis=1) if len(present) else np.full(len(weights), np.nan)
        return np.column_stack([overall, dimensions])

    return statistic


def gap_of(text: Answered, image: Answered, member: Floats) -> Statistic:
    """Return the semantic trajectory gap as a function of the people's weights: overall, then dimensions."""
    first, second = recoverability_of(text, member), recoverability_of(image, member)
    return lambda weights: first(weights) - second(weights)


def _coverage(table: Answered, member: Floats) -> list[dict[str, int]]:
    """Return counts for the overall score, then for each dimension."""
    answers = table.given.sum(axis=0)
    columns = np.column_stack([np.ones(len(member)), member])
    sums = (columns.sum(axis=0), (answers > 0) @ columns, answers @ columns)
    rows = [
        dict(zip(("valid", "answered", "answers"), map(int, column), strict=True))
        for column in zip(*sums, strict=True)
    ]
    rows[0]["dimensions"] = int((((answers > 0) @ member) > 0).sum())
    return rows
