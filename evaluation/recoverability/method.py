"""What is scored for one method, and whether two methods differ, paired over the stories that both have.

Two are compared on the questions that are valid for all compared methods. The difference of STG is that of
the question level; the Wilcoxon test and the effect sizes are of the stories' own gaps. A negative difference
says that the first method loses less.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...validators.resampling import divided
from ..stats.tables import rank_correlations, spearman
from ..stats.uncertainty import Pair, Paired, known, paired
from . import columns
from .columns import ambiguity_columns, contrast_columns, moral_columns, trajectory_columns, twin_columns
from .matching import DIMENSIONS, Common, Definitions, Items
from .pooling import (
    IMAGE,
    LEVELS,
    RIGHT_VERDICT,
    SETS,
    UNJUDGED,
    Board,
    GroupScores,
    Outcomes,
    SetName,
    Sums,
    Verdicts,
    counted_where,
    outcomes_of,
    sums_of,
    widely_valid,
    with_common,
)
from .recoverability import METRICS, Estimates, Key, Rate, Rates, Sheet, named, values_of
from .replies import VARIANT_QUESTION, Generations

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
    contrast: Board = field(repr=False)  # verdicts on the questions about variants, by its outputs of stories

    def contrasted(self, items: Items) -> Outcomes | None:
        """Return the outcomes of the questions about variants; None where there are none."""
        if items.contrast is None:
            return None
        boards = {self.name: self.contrast.together}
        return outcomes_of(boards, {self.name: self.made}, items.contrast, self.outcomes.common)[self.name]


def methods_of(
    boards: Mapping[str, Mapping[str, Board]],
    made: Mapping[str, Generations],
    items: Items,
    judges: tuple[str, ...],
    common: Common = "every-seed",
) -> tuple[Method, ...]:
    """Return the methods of an archive, in order.

    ``boards``: kind -> method -> verdicts. ``made``: method -> its generations.
    """
    questions = boards["question"]
    outcomes = outcomes_of({name: board.together for name, board in questions.items()}, made, items, common)
    alone = [
        outcomes_of({name: board.single[judge] for name, board in questions.items()}, made, items, common)
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
            boards[VARIANT_QUESTION][name],
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
    together = with_common([method.outcomes for method in methods])
    return tuple(replace(method, outcomes=own) for method, own in zip(methods, together, strict=True))


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
    both = np.concatenate([pairs, twins, trajectory_columns(method.contrasted(items), items)], axis=-1)
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


def story_gaps(method: Method, chosen: NDArray[np.bool_] | Floats, items: Items) -> Floats:
    """Return the gap of each story over some questions: the mean over its dimensions; ``nan`` without one.

    ``chosen``: which questions count, or how much, shape (seeds, questions).

    Returned: shape (stories,).
    """
    return Rates.of(sums_of(method.outcomes, chosen, items)).mean_gap(DIMENSIONS)


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
        reach=1.0,  # of the same questions, so that both lose from the same texts
    )


# -- Which questions count before and after each of the paper's two filters, and what is common to all methods
#
# The paper calls two things ``raw`` and two things ``common-valid`` (Table 26 and Table 57). A question may
# be left out because it is **ambiguous** (not answered as intended even from text and images together), or
# because its **generation is invalid** (refused, blocked, empty, corrupt, incomplete). So there are six sets:
#
# - ``before_both``: no filter. Questions of invalid generations count as not recovered from images. It is
#   what :mod:`.pooling` calls ``raw``.
# - ``before_ambiguity``: raw in Table 26. All questions of valid generations, ambiguous ones included.
# - ``before_validity``: raw in Table 57. Without ambiguous questions as far as that is known: those of valid
#   generations are filtered, those of invalid ones were never asked under text+image evidence and all count,
#   as not recovered from images.
# - ``filtered``: both filters; the number that is reported, the same in both tables.
# - ``common_questions``: common-valid in Table 26. Those of filtered that are in it for every method and
#   seed, or most seeds (:mod:`.matching`).
# - ``common_stories``: common-valid in Table 57. Those of filtered whose story has, for every method that was
#   asked for it, a generation that is valid.
#
# Text and images are always counted over the same questions of the same generations: one mask is both sides'.
#
# Source: KathaTrace, B.2, G.3, I.6, Tables 26, 42 and 57.
# Departures from the source: the paper says that raw STG is ``computed before validity filtering`` and not
#     what an invalid storyboard then counts as. Here it shows nothing: its questions are not recovered from
#     images.

Mask = NDArray[np.bool_]
ValiditySet = Literal[
    "before_both", "before_ambiguity", "before_validity", "filtered", "common_questions", "common_stories"
]


def validity_sets(methods: Sequence[Method], items: Items) -> dict[str, dict[ValiditySet, Mask | Floats]]:
    """Return method -> set -> which questions are in it, or how much each counts; (seeds, questions)."""
    common = common_stories(methods)[items.story]
    return {method.name: _sets_of(method.outcomes, common) for method in methods}


def common_stories(methods: Sequence[Method]) -> Mask:
    """Return which stories have a valid generation of every method that was asked for them; (stories,)."""
    common = np.ones(methods[0].made.requested.shape[1], dtype=bool)
    for method in methods:
        common &= method.made.valid.any(axis=0) | ~method.made.requested.any(axis=0)
    return common


def common_questions(methods: Sequence[Method]) -> list[Mask | Floats]:
    """Return which common questions count for each method, or how much; shape (seeds, questions).

    Only questions that every method was asked about, with some seed, are among them.
    """
    kept = [widely_valid(each.outcomes) & each.outcomes.requested.any(axis=0) for each in methods]
    common = np.logical_and.reduce(kept)
    return [counted_where(method.outcomes, common) for method in methods]


def _sets_of(outcomes: Outcomes, common: Mask) -> dict[ValiditySet, Mask | Floats]:
    raw, filtered = outcomes.those("raw"), outcomes.those("filtered")
    return {
        "before_both": raw,
        "before_ambiguity": raw & outcomes.valid,
        "before_validity": filtered | (raw & ~outcomes.valid),
        "filtered": filtered,
        "common_questions": outcomes.sets["common"],
        "common_stories": filtered & common,
    }


def narrowed(methods: Sequence[Method], requested: Mapping[str, Mask], items: Items) -> tuple[Method, ...]:
    """Return methods of which some were asked for fewer generations than the evaluation counts.

    An evaluation counts every story of every method. Where a method was never to make some of them, as an
    oracle plan that exists for gold stories only, those are no failures of it.

    ``requested``: method -> which generations were asked for, shape (seeds, stories); others stay.
    """
    made = {
        method.name: _narrower(method.made, requested[method.name])
        if method.name in requested
        else method.made
        for method in methods
    }
    boards = {method.name: method.board for method in methods}
    judges = tuple(methods[0].single) if methods else ()
    common = methods[0].outcomes.common if methods else "every-seed"
    together = outcomes_of({name: board.together for name, board in boards.items()}, made, items, common)
    alone = {
        judge: outcomes_of({name: board.single[index] for name, board in boards.items()}, made, items, common)
        for index, judge in enumerate(judges)
    }
    return tuple(
        replace(
            method,
            outcomes=together[method.name],
            single={judge: alone[judge][method.name] for judge in judges},
            made=made[method.name],
        )
        for method in methods
    )


def _narrower(made: Generations, requested: Mask) -> Generations:
    return Generations(made.requested & requested, made.valid & requested)


def gaps_over(
    parts: Mapping[str, tuple[Method, Mask | Floats]], items: Items, definitions: Definitions
) -> dict[str, Estimates]:
    """Return recoverability and STG over chosen questions, by question, all resampled together.

    ``parts``: name -> method, and which of its questions count, or how much, shape (seeds, questions).

    Returned: name -> its values, called as in :func:`.recoverability.named`.
    """
    sheet = Sheet(items.stories)
    for name, (method, chosen) in parts.items():
        add_gaps(sheet, (name,), sums_of(method.outcomes, chosen, items))
    drawn = sheet.resampled(definitions)
    return {name: sheet.estimates(drawn, name) for name in parts}


# -- Controls of whether STG means what it says, as far as they need no new generation (Tables 4, 72 and 73)
#
# Each control holds against an explanation of the gap other than lost meaning. Rank correlations are between
# methods, and undefined with fewer than three of them.

HALVES = 200
"""How many random halves of the stories the ranking is repeated on."""
FEWEST = 3
"""Fewest methods that can be ranked against each other."""


def filtering_control(estimates: Mapping[str, Estimates]) -> dict[str, Any]:
    """Return rank correlations between raw, filtered and common-valid STG (filtering artifact)."""
    gaps = {
        name: [estimate.values[f"question.{name}.gap"] for estimate in estimates.values()]
        for name in ("raw", "filtered", "common")
    }
    return {
        f"{first}_{second}": spearman(gaps[first], gaps[second], of="methods").as_json()
        for first, second in combinations(gaps, 2)
    }


def judge_control(
    methods: Sequence[Method], estimates: Mapping[str, Estimates], items: Items
) -> list[dict[str, Any]]:
    """Return rank correlations between judges, of methods' and stories' gaps (single-judge artifact)."""
    judges = list(methods[0].single)
    by_method = {
        judge: [estimates[method.name].values[f"judge.{judge}.filtered.gap"] for method in methods]
        for judge in judges
    }
    by_story = {
        judge: np.concatenate([_judge_gaps(method, judge, items) for method in methods]) for judge in judges
    }
    return [
        {
            "judges": [first, second],
            "methods": spearman(by_method[first], by_method[second], of="methods").as_json(),
            "stories": spearman(by_story[first], by_story[second]).as_json(),
        }
        for first, second in combinations(judges, 2)
    ]


def half_data_control(sheet: Sheet, methods: Sequence[Method], definitions: Definitions) -> dict[str, Any]:
    """Return how well halves of the stories keep the ranking by filtered STG (dataset-size artifact)."""
    if len(methods) < FEWEST or sheet.stories < 4:
        return {"mean": None, "lowest": None, "reason": f"fewer than {FEWEST} methods, or than 4 stories"}
    random = np.random.default_rng(definitions.seed)
    size = sheet.stories // 2
    weights = np.zeros((HALVES + 1, sheet.stories))
    weights[0] = 1
    for row in weights[1:]:
        row[random.permutation(sheet.stories)[:size]] = 1
    sums = weights @ sheet.matrix()
    gaps = [
        Rates.of(Sums.of(sheet.part(sums, (method.name, "question", "filtered")))).overall()[2]
        for method in methods
    ]
    table = np.stack(gaps, axis=1)
    kept = np.concatenate([table[:1], table[1:][~np.isnan(table[1:]).any(axis=1)]])
    if np.isnan(table[0]).any():
        return {"mean": None, "lowest": None, "reason": "a method has no STG"}
    ranks = rank_correlations(kept)
    ranks = ranks[~np.isnan(ranks)]
    if not len(ranks):
        return {"mean": None, "lowest": None, "reason": "all methods have the same STG"}
    return {"mean": float(ranks.mean()), "lowest": float(ranks.min()), "halves": len(ranks), "reason": None}


def evidence_control(method: Method, loose: NDArray[np.int8], items: Items) -> list[dict[str, Any]]:
    """Return recoverability and STG with more and more evidence used (Table 73).

    ``loose``: verdicts by the answers alone, shape (seeds, conditions, questions).
    """
    outcomes = method.outcomes
    raw = outcomes.those("raw")
    by_answer = raw & outcomes.valid & (loose[:, 2] == RIGHT_VERDICT)
    rows = [
        ("image only", raw, False),
        ("text and image, no filter", raw, True),
        ("text+image filter, by the answer alone", by_answer, True),
        ("text+image filter, as scored", outcomes.sets["filtered"], True),
    ]
    total = int(outcomes.requested.sum())
    return [_evidence_row(outcomes, *row, total, items) for row in rows]


def range_over(groups: Mapping[str, GroupScores]) -> dict[str, Any]:
    """Return the lowest and highest filtered STG over groups of stories (source-family artifact)."""
    gaps = [group.gaps["filtered"].gap.value for group in groups.values()]
    there = [gap for gap in gaps if gap is not None]
    return {"lowest": min(there, default=None), "highest": max(there, default=None), "groups": len(there)}


def _evidence_row(
    outcomes: Outcomes, setting: str, chosen: NDArray[np.bool_], with_text: bool, total: int, items: Items
) -> dict[str, Any]:
    _, image, gap = Rates.of(sums_of(outcomes, chosen, items).total()).overall()
    return {
        "setting": setting,
        "valid_share": int(chosen.sum()) / total if total else None,
        "image": known(image),
        "gap": known(gap) if with_text else None,
    }


def _judge_gaps(method: Method, judge: str, items: Items) -> Floats:
    outcomes = method.single[judge]
    return Rates.of(sums_of(outcomes, outcomes.sets["filtered"], items)).mean_gap(DIMENSIONS)
