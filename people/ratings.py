"""Ratings of a method, preferences between two with a one-sided test, and how far people agree.

Question: how do people rate the storyboards of a method, and do they prefer those of one method over those
    of the other, criterion by criterion? Do people who saw the same thing say the same?
Formula: mean of all ratings of a criterion (Eq. 54), with their standard deviation beside it; mean preference
    of a criterion (Eq. 69), and of all judgements by the criteria of one dimension (Table 51, Figure 6);
    Wilcoxon signed-rank test of median > 0 (Eq. 64, 70); Bonferroni over the criteria of the pair
    (Eq. 65, 71); rank-biserial correlation (W+ - W-) / (W+ + W-) (Eq. 66, 72). Agreement: share of agreeing
    pairs; Fleiss' kappa (1971, Eq. 76); Krippendorff's alpha (2011), nominal for answers, labels and
    completions, ordinal for ratings and preferences. Not everybody needs to have rated everything.
Input: lines of kind ``rating``, 1 to 5 (of shot images 0 to 4); lines of kind ``preference``, -2 to 2,
    positive for ``method``, negative for ``baseline``. For agreement lines of any kind; a unit is what was
    asked about one output (item, condition, method, seed).
Output: a mean of ratings, higher is better; their standard deviation has N - 1 below and is null for one
    rating; a mean preference in [-2, 2], p-values in [0, 1], r in [-1, 1]. Kappa and alpha are at most 1, 0
    is chance; the share of agreeing pairs in [0, 1].
Undefined when: nobody gave a value. ``unclear`` is counted and left out; 0 (no preference) is a value, but
    drops out of the test, which ranks differences other than zero. No unit has two ratings; for kappa and
    alpha also: all ratings are the same.
Source: KathaTrace, sections A.14, F.3, F.4, F.7, H.2-H.5, H.7, Tables 2, 37, 49-52, Figures 4-9.
Departures: the paper tests single judgements as if they were independent, which those of one person are not;
    the same test on one mean per person stands beside it (``by_person``). Answers are compared as accepted or
    not, as for judges (E.7). Ordinal agreement of compressed ratings says little, as the paper notes itself;
    it is a diagnostic.
Example: ratings 3, 4 and 5 have mean 4 and standard deviation 1. Preferences 2, 1, 1, 0, -1: the ranks of 2,
    1, 1, 1 are 4, 2, 2, 2, so W+ = 8, W- = 2 and r = 0.6. Of the 16 assignments of signs four have W+ >= 8
    (all plus, or one of the three 2s minus): p = 4/16. Two people rate two units (1, 1) and (1, 2): one of
    two pairs agrees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluation.stats.tables import Level, krippendorff_alpha, observed_agreement
from ..evaluation.stats.uncertainty import SignedRank, signed_rank
from ..schemas.judgement import HumanRow
from ..schemas.katha import Question
from ..schemas.values import Score
from ..validators.resampling import fleiss_kappa
from .recoverability import Resampling, Unit, is_right, lines_of, means, score_of

CRITERIA = {
    "Q1": "causality", "Q2": "causality", "Q3": "intention", "Q4": "intention", "Q5": "emotion",
    "Q6": "emotion", "Q7": "consequence", "Q8": "consequence", "Q9": "moral target", "Q10": "moral target",
    "Q11": "trajectory", "Q12": "overall recoverability", "Q13": "visual coherence",
    "Q14": "bridge repair", "Q15": "overall preference",
}  # fmt: skip
"""The paper's 15 criteria (Table 51) and the dimension of each; any other is a dimension of its own."""
STEPS = (-2, -1, 0, 1, 2)
CORRECTION = "bonferroni"
NOTHING = "no unit has two ratings, or all ratings are the same"
NO_PAIR = "no unit has two ratings"


@dataclass(frozen=True)
class Rated:
    """The ratings of one criterion: their mean with its interval, and their standard deviation."""

    mean: Score
    deviation: float | None


@dataclass(frozen=True)
class Preferred:
    """What people preferred between two methods by one criterion."""

    method: str  # the one that positive values favour
    baseline: str  # the one that negative values favour
    criterion: str  # what they compared
    dimension: str  # what the criterion is about
    mean: Score  # mean preference with its participant-level interval
    values: tuple[int, ...]  # how often each of -2, -1, 0, 1 and 2 was given
    unclear: int  # how often a person could not decide
    test: SignedRank  # over single judgements, as the paper does
    by_person: SignedRank  # over one mean per person
    tests: int  # how many criteria of this pair were tested; p-values are corrected for it
    groups: Mapping[str, Score]  # group of participants -> their mean, where groups are named
    correction: str  # which correction that is
    p_corrected: float  # the test's p-value, corrected (Eq. 65).
    p_corrected_by_person: float  # that of the test over people
    rank_biserial: float  # effect size of the test
    rank_biserial_by_person: float  # that of the test over people


@dataclass(frozen=True)
class PreferredDimension:
    """What people preferred between two methods by all criteria of one dimension together."""

    method: str  # the one that positive values favour
    baseline: str  # the one that negative values favour
    dimension: str  # what the criteria are about
    criteria: tuple[str, ...]  # the criteria, in order
    mean: Score  # mean of all their judgements, with its participant-level interval
    groups: Mapping[str, Score]  # group of participants -> their mean, where groups are named


def methods_of(rows: Sequence[HumanRow]) -> list[str]:
    """Return the methods that lines are about, sorted."""
    return sorted({row.method for row in rows if row.method is not None})


def human_ratings(rows: Sequence[HumanRow], method: str, resampling: Resampling) -> dict[str, Rated]:
    """Return criterion -> the ratings of a method, with participant-level intervals."""
    ratings = lines_of(rows, "rating", method=method)
    return {
        criterion: _rated(lines_of(ratings, "rating", criterion=criterion), resampling)
        for criterion in sorted({str(row.criterion) for row in ratings})
    }


def _rated(rows: Sequence[HumanRow], resampling: Resampling) -> Rated:
    values = np.array([row.value for row in rows], dtype=np.float64)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return Rated(_mean(rows, resampling, stories=len({row.item for row in rows})), deviation)


def _mean(rows: Sequence[HumanRow], resampling: Resampling, **counts: int) -> Score:
    """Return the mean value of lines that have one, with its participant-level interval."""
    coverage = {"judgements": len(rows), "people": len({row.rater for row in rows}), **counts}
    values = [(row.rater, [row.value or 0]) for row in rows]
    return means(values, resampling, "there is no judgement", [coverage])[0]


def preferences(rows: Sequence[HumanRow], resampling: Resampling) -> tuple[Preferred, ...]:
    """Return what people preferred, for each pair of methods and each criterion, in order.

    Every pair is a set of tests of its own: it is corrected for the criteria of that pair alone.
    """
    return tuple(
        _preferred(said, len(criteria), resampling)
        for criteria in _by_pair(rows).values()
        for said in criteria.values()
    )


def preferred_dimensions(rows: Sequence[HumanRow], resampling: Resampling) -> tuple[PreferredDimension, ...]:
    """Return what people preferred by dimension, for each pair of methods, in the order of the criteria."""
    return tuple(
        _preferred_dimension(pair, dimension, criteria, resampling)
        for pair, criteria in _by_pair(rows).items()
        for dimension in dict.fromkeys(map(dimension_of, criteria))
    )


def dimension_of(criterion: str) -> str:
    """Return what a criterion of preferences is about (Table 51); one of your own is about itself."""
    return CRITERIA.get(criterion, criterion)


def _by_pair(rows: Sequence[HumanRow]) -> dict[tuple[str, str], dict[str, list[HumanRow]]]:
    """Return method and baseline -> criterion -> its lines: the paper's criteria first, then all others."""
    pairs: dict[tuple[str, str], dict[str, list[HumanRow]]] = {}
    for row in lines_of(rows, "preference"):
        criteria = pairs.setdefault((str(row.method), str(row.baseline)), {})
        criteria.setdefault(str(row.criterion), []).append(row)
    order = {name: number for number, name in enumerate(CRITERIA)}

    def position(criterion: str) -> tuple[int, str]:
        return order.get(criterion, len(order)), criterion

    return {
        pair: {name: criteria[name] for name in sorted(criteria, key=position)}
        for pair, criteria in sorted(pairs.items())
    }


def _preferred_dimension(
    pair: tuple[str, str], dimension: str, criteria: Mapping[str, Sequence[HumanRow]], resampling: Resampling
) -> PreferredDimension:
    names = tuple(name for name in criteria if dimension_of(name) == dimension)
    decided = [row for name in names for row in criteria[name] if row.value is not None]
    mean = _mean(decided, resampling, stories=len({row.item for row in decided}))
    return PreferredDimension(*pair, dimension, names, mean, _by_group(decided, resampling))


def _by_group(decided: Sequence[HumanRow], resampling: Resampling) -> dict[str, Score]:
    """Return group of participants -> the mean of their judgements; nothing where no group is named."""
    groups = sorted({row.group for row in decided if row.group is not None})
    return {name: _mean([row for row in decided if row.group == name], resampling) for name in groups}


def _preferred(rows: Sequence[HumanRow], tests: int, resampling: Resampling) -> Preferred:
    decided = [row for row in rows if row.value is not None]
    values = np.array([row.value for row in decided], dtype=np.float64)
    people: dict[str, list[float]] = {}
    for row, value in zip(decided, values, strict=True):
        people.setdefault(row.rater, []).append(float(value))
    over_judgements = signed_rank(values)
    over_people = signed_rank(np.array([np.mean(said) for _, said in sorted(people.items())]))
    criterion = str(rows[0].criterion)
    return Preferred(
        method=str(rows[0].method), baseline=str(rows[0].baseline), criterion=criterion,
        dimension=dimension_of(criterion),
        mean=_mean(decided, resampling, stories=len({row.item for row in decided})),
        values=tuple(int((values == step).sum()) for step in STEPS), unclear=len(rows) - len(decided),
        test=over_judgements, by_person=over_people, tests=tests,
        groups=_by_group(decided, resampling), correction=CORRECTION,
        p_corrected=min(1.0, over_judgements.p_value * tests),
        p_corrected_by_person=min(1.0, over_people.p_value * tests),
        rank_biserial=over_judgements.rank_biserial, rank_biserial_by_person=over_people.rank_biserial,
    )  # fmt: skip


@dataclass(frozen=True)
class Agreed:
    """Agreement of one kind of lines."""

    what: str  # the kind, and for ratings and preferences the criterion
    level: Level  # nominal or ordinal
    pairs: Score  # share of agreeing pairs of people, mean over units
    kappa: Score | None  # Fleiss' kappa; only for nominal ones
    alpha: Score  # Krippendorff's alpha


def agreements(rows: Sequence[HumanRow], questions: Mapping[str, Question]) -> tuple[Agreed, ...]:
    groups: dict[tuple[str, Level], list[tuple[Unit, object]]] = {}

    def add(what: str, level: Level, unit: Unit, value: object) -> None:
        groups.setdefault((what, level), []).append((unit, value))

    for row in rows:
        unit = (row.item, row.condition, row.method, row.seed, row.baseline)
        if row.repeat:
            continue
        if row.kind == "answer":
            add(f"answer, {row.condition}", "nominal", unit, is_right(row, questions[str(row.item)]))
        elif row.kind == "moral_label":
            add(f"moral_label, {row.condition}", "nominal", unit, row.labels[0])
        elif row.kind == "completion":
            for number, done in enumerate(row.completion):
                add("completion", "nominal", (*unit, number), done)
        elif row.value is not None:
            add(f"{row.kind}, {row.criterion}", "ordinal", unit, row.value)
    return tuple(_agreed(what, level, said) for (what, level), said in sorted(groups.items()))


def _agreed(what: str, level: Level, said: Sequence[tuple[Unit, object]]) -> Agreed:
    values = sorted({value for _, value in said})  # type: ignore[type-var]
    units = {unit: index for index, unit in enumerate(dict.fromkeys(unit for unit, _ in said))}
    table = np.zeros((len(units), len(values)))
    for unit, value in said:
        table[units[unit], values.index(value)] += 1
    two = int((table.sum(axis=1) >= 2).sum())
    counts = {"units": len(units), "units_with_two": two, "ratings": len(said)}
    return Agreed(
        what, level,
        pairs=score_of(observed_agreement(table), NO_PAIR, counts),
        kappa=score_of(fleiss_kappa(table), NOTHING, counts) if level == "nominal" else None,
        alpha=score_of(krippendorff_alpha(table, level), NOTHING, counts),
    )  # fmt: skip
