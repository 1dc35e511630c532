"""What is scored for one method, and whether two methods differ, paired over the stories that both have.

Two are compared on the questions that are valid for all compared methods. The difference of STG is that of
the question level; the Wilcoxon test and the effect sizes are of the stories' own gaps. A negative difference
says that the first method loses less.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...validators.resampling import divided
from ..stats.paired import Pair, Paired, paired
from . import columns
from .columns import ambiguity_columns, contrast_columns, moral_columns, twin_columns
from .coverage import Generations
from .definitions import Definitions
from .estimates import Estimates, Key, Sheet
from .items import DIMENSIONS, Items
from .pooling import IMAGE, LEVELS, SETS, Level, Outcomes, SetName, Sums, outcomes_of, sums_of
from .recoverability import METRICS, Rate, Rates, named, values_of
from .votes import UNJUDGED, Board, Verdicts

Floats = NDArray[np.float64]

GROUP_SETS: tuple[SetName, ...] = ("raw", "filtered")
JUDGE_SETS: tuple[SetName, ...] = ("raw", "filtered")
JUDGE_VALUES = METRICS[:3]


@dataclass(frozen=True)
class Method:
    """The verdicts on one method's outputs."""

    name: str  # of the method
    # verdicts of all judges on every question, and the sets of questions
    outcomes: Outcomes = field(repr=False)
    single: Mapping[str, Outcomes] = field(repr=False)  # judge -> the same for this judge alone
    board: Board = field(repr=False)  # verdicts of all judges, and of each, on every question
    labels: Verdicts = field(repr=False)  # labels of every story, shape (seeds, conditions, stories)
    choices: Verdicts = field(repr=False)  # choices between trajectories, shape (seeds, conditions, pairs)
    # the same where the outputs of the pair's variant are shown
    variant_choices: Verdicts = field(repr=False)
    made: Generations = field(repr=False)  # its generations


def methods_of(
    boards: Mapping[str, Mapping[str, Board]],
    made: Mapping[str, Generations],
    items: Items,
    judges: tuple[str, ...],
) -> tuple[Method, ...]:
    """Return the methods of an archive, in order.

    ``boards``: kind -> method -> verdicts. ``made``: method -> its generations.
    """
    questions = boards["question"]
    outcomes = outcomes_of({name: board.together for name, board in questions.items()}, made, items)
    alone = [
        outcomes_of({name: board.single[judge] for name, board in questions.items()}, made, items)
        for judge in range(len(judges))
    ]
    return tuple(
        Method(
            name,
            outcomes[name],
            {
                judge: alone[index][name] if judged(board, index) else _with_nothing(alone[index][name])
                for index, judge in enumerate(judges)
            },
            board,
            boards["moral_label"][name].together,
            boards["contrast"][name].together,
            boards["variant"][name].together,
            made[name],
        )
        for name, board in questions.items()
    )


def judged(board: Board, judge: int) -> bool:
    """Whether a judge, by its place, has a verdict on what a method made; text alone is no method's."""
    return bool((board.single[judge][:, IMAGE:] != UNJUDGED).any())


def _with_nothing(outcomes: Outcomes) -> Outcomes:
    """Return outcomes in which no question counts: of a judge who judged nothing of a method."""
    return replace(outcomes, sets={name: np.zeros_like(chosen) for name, chosen in outcomes.sets.items()})


def compared(methods: Sequence[Method]) -> tuple[Method, ...]:
    """Return methods, also of several archives, whose common sets are those of all of them together."""
    common = np.ones(methods[0].outcomes.requested.shape[1], dtype=bool)
    for method in methods:
        common &= (method.outcomes.sets["filtered"] | ~method.outcomes.requested).all(axis=0)
    return tuple(
        replace(method, outcomes=replace(method.outcomes, sets=_with_common(method.outcomes, common)))
        for method in methods
    )


def _with_common(outcomes: Outcomes, common: NDArray[np.bool_]) -> dict[SetName, NDArray[np.bool_]]:
    return {**outcomes.sets, "common": outcomes.sets["filtered"] & common}


def add_columns(sheet: Sheet, method: Method, items: Items) -> None:
    """Put all that a method is scored by on the sheet."""
    for level in LEVELS:
        for name in SETS:
            sums = sums_of(method.outcomes, method.outcomes.sets[name], items, level)
            add_gaps(sheet, (method.name, level, name), sums)
    for judge, outcomes in method.single.items():
        for name in JUDGE_SETS:
            sums = sums_of(outcomes, outcomes.sets[name], items)
            rates = {f"judge.{judge}.{name}.{rate.name}": rate for rate in JUDGE_VALUES}
            sheet.add((method.name, "judge", judge, name), sums.columns(), rates, _overall)
    _add_ambiguity(sheet, method, items)
    moral = moral_columns(method.labels, method.made, items)
    pairs = contrast_columns(method.choices, method.labels, method.made, items)
    twins = twin_columns(method.choices, method.variant_choices, method.made, items)
    both = np.concatenate([pairs, twins], axis=-1)
    for part, rates_of, own in (("moral", columns.MORAL, moral), ("pairs", columns.PAIRS, both)):
        sheet.add((method.name, part), own, _beside(part, rates_of), partial(values_of, rates_of))


def add_group_columns(sheet: Sheet, method: Method, items: Items) -> None:
    """Put on the sheet what a method is scored by within a group of stories."""
    for name in GROUP_SETS:
        sums = sums_of(method.outcomes, method.outcomes.sets[name], items)
        add_gaps(sheet, (method.name, "question", name), sums)
    _add_ambiguity(sheet, method, items)


def add_gaps(sheet: Sheet, key: Key, sums: Sums) -> None:
    """Put recoverability and gaps on the sheet; values bear the parts of ``key`` behind its first."""
    prefix = "".join(f"{part}." for part in key[1:])
    rates = {f"{prefix}{name}": rate for name, rate in named().items()}
    sheet.add(key, sums.columns(), rates, lambda sums: Rates.of(Sums.of(sums)).everything())


def _overall(sums: Floats) -> Floats:
    return np.stack(Rates.of(Sums.of(sums)).overall(), axis=-1)


def _add_ambiguity(sheet: Sheet, method: Method, items: Items) -> None:
    names = ("ambiguity", *(f"ambiguity.{name}" for name in DIMENSIONS))
    rates = dict.fromkeys(names, columns.AMBIGUITY)
    sheet.add((method.name, "ambiguity"), ambiguity_columns(method.outcomes, items), rates, _ambiguity)


def versions() -> dict[str, int]:
    """Return the version of every score of storyboards."""
    rates = {f"recoverability.{rate.name}": rate for rate in METRICS} | {"ambiguity": columns.AMBIGUITY}
    rates |= _beside("moral", columns.MORAL) | _beside("pairs", columns.PAIRS)
    return {name: rate.version for name, rate in rates.items()}


def story_gaps(method: Method, chosen: NDArray[np.bool_], items: Items) -> Floats:
    """Return the gap of each story over some questions: the mean over its dimensions; ``nan`` without one.

    ``chosen``: which questions count, shape (seeds, questions).

    Returned: shape (stories,).
    """
    return Rates.of(sums_of(method.outcomes, chosen, items)).mean_gap(DIMENSIONS)


def counted_in(method: Method, level: Level, name: SetName, items: Items) -> dict[str, int]:
    """Return what the values of a set stand on: questions (seeds counted apart), stories and dimensions."""
    chosen = method.outcomes.sets[name]
    counted = sums_of(method.outcomes, chosen, items, level).counted
    return {
        "questions": int(chosen.sum()),
        "stories": int(counted.any(axis=1).sum()),
        "dimensions": int(counted.any(axis=0).sum()),
    }


def _ambiguity(totals: Floats) -> Floats:
    ambiguous, checked = np.split(totals, 2, axis=-1)
    overall = divided(ambiguous.sum(axis=-1), checked.sum(axis=-1))
    return np.concatenate([overall[..., None], divided(ambiguous, checked)], axis=-1)


def _beside(prefix: str, rates: Iterable[Rate]) -> dict[str, Rate]:
    """Return scores that are not of scored questions, by name."""
    return {f"{prefix}.{rate.name}": rate for rate in rates}


VALUE = "question.common.gap"
DIFFERENCE = "STG over the questions that are valid for all methods (negative: the first loses less)"
"""Of what methods are compared by, for readers."""


def comparisons(
    pairs: Sequence[tuple[Method, Method]],
    estimates: Mapping[str, Estimates],
    items: Items,
    definitions: Definitions,
) -> tuple[Paired, ...]:
    """Return one comparison of STG per pair of methods, corrected together.

    ``pairs``: the methods to compare; their sets of common questions must be those of all of them together.
    ``estimates``: method -> its values; all resampled together.
    """
    return paired([_pair(first, second, estimates, items) for first, second in pairs], "story", definitions)


def _pair(first: Method, second: Method, estimates: Mapping[str, Estimates], items: Items) -> Pair:
    ours, theirs = estimates[first.name], estimates[second.name]
    gaps = [story_gaps(method, method.outcomes.sets["common"], items) for method in (first, second)]
    differences = gaps[0] - gaps[1]
    return Pair(
        first.name,
        second.name,
        differences[~np.isnan(differences)],
        value=ours.values[VALUE] - theirs.values[VALUE],
        replicates=ours.replicates[VALUE] - theirs.replicates[VALUE],
    )
