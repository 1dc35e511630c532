"""From estimates to the scores that are reported."""

from collections.abc import Mapping

import numpy as np

from ...schemas.values import Score
from ..stats.ranks import TOLERANCE
from . import columns
from .columns import CHANCE, NO_LABEL, majority_share, moral_columns, question_counts
from .definitions import Definitions
from .estimates import Estimates, Sheet
from .items import DIMENSIONS, GROUPINGS, Items
from .method import (
    GROUP_SETS,
    JUDGE_SETS,
    JUDGE_VALUES,
    Method,
    add_group_columns,
    counted_in,
    group_estimates_of,
    story_gaps,
)
from .pooling import LEVELS, SETS, Level, Mask, SetName, Sums, sums_of, triples_of
from .recoverability import METRICS
from .robustness import evidence_control
from .scores import GapScores, GroupScores, MethodScores
from .votes import UNJUDGED, Verdicts


def method_scores(
    method: Method, estimates: Estimates, loose: Verdicts, groups: Mapping[str, Mapping[str, GroupScores]],
    items: Items,
) -> MethodScores:  # fmt: skip
    """Return the scores of one method.

    ``loose``: verdicts by the answers alone, shape (seeds, conditions, questions).
    """
    gaps = {
        level: {name: gap_scores(method, estimates, level, name, items) for name in SETS} for level in LEVELS
    }
    judges = {
        judge: {
            name: {rate.name: estimates.score(f"judge.{judge}.{name}.{rate.name}") for rate in JUDGE_VALUES}
            for name in JUDGE_SETS
        }
        for judge in method.single
    }
    return MethodScores(
        generations=method.made.as_json(),
        questions=question_counts(method.outcomes),
        ambiguity=estimates.score("ambiguity", counts=_checked(method)),
        ambiguity_by_dimension={name: estimates.score(f"ambiguity.{name}") for name in DIMENSIONS},
        gaps=gaps,
        moral_target=_moral(method, estimates, items),
        pairs={
            rate.name: estimates.score(f"pairs.{rate.name}", counts=counts)
            for rates, counts in ((columns.CONTRASTS, _pairs(method)), (columns.TWINS, _twins(method, items)))
            for rate in rates
        },
        triples=triples_of(method.outcomes),
        judges=judges,
        groups=groups,
        negative=_negative(method, gaps, items),
        evidence=tuple(evidence_control(method, loose, items)),
    )


def gap_scores(method: Method, estimates: Estimates, level: Level, name: SetName, items: Items) -> GapScores:
    """Return recoverability and gaps of one level and set, with what they stand on."""
    sums = sums_of(method.outcomes, method.outcomes.sets[name], items, level).total()
    return _gap_scores(estimates, f"{level}.{name}", sums, counted_in(method, level, name, items))


def group_scores(
    methods: tuple[Method, ...], items: Items, definitions: Definitions
) -> dict[str, dict[str, dict[str, GroupScores]]]:
    """Return method -> grouping -> group -> scores, resampled within each group."""
    scores_of_groups: dict[str, dict[str, dict[str, GroupScores]]] = {method.name: {} for method in methods}
    sheet = Sheet(items.stories)
    for method in methods:
        add_group_columns(sheet, method, items)
    for grouping in GROUPINGS:
        for group, stories in items.groups(grouping).items():
            drawn = sheet.resampled(definitions, stories)
            for method in methods:
                values = group_estimates_of(sheet, method, drawn)
                gaps = {name: _group_gaps(method, values, name, stories, items) for name in GROUP_SETS}
                scores = GroupScores(int(stories.sum()), gaps, values.score("ambiguity"))
                scores_of_groups[method.name].setdefault(grouping, {})[group] = scores
    return scores_of_groups


def _group_gaps(
    method: Method, estimates: Estimates, name: SetName, stories: Mask, items: Items
) -> GapScores:
    chosen = method.outcomes.sets[name]
    part = sums_of(method.outcomes, chosen, items)
    sums = Sums(part.text[stories], part.image[stories], part.counted[stories])
    counts = {
        "questions": int(chosen[:, stories[items.story]].sum()),
        "stories": int(sums.counted.any(axis=1).sum()),
        "dimensions": int(sums.counted.any(axis=0).sum()),
    }
    return _gap_scores(estimates, f"question.{name}", sums.total(), counts)


def _gap_scores(estimates: Estimates, prefix: str, sums: Sums, counts: dict[str, int]) -> GapScores:
    return GapScores(
        **{rate.name: estimates.score(f"{prefix}.{rate.name}", counts=counts) for rate in METRICS},
        dimensions={
            dimension: _dimension(estimates, f"{prefix}.{{}}.{dimension}", sums, index)
            for index, dimension in enumerate(DIMENSIONS)
        },
    )


def _dimension(estimates: Estimates, pattern: str, sums: Sums, index: int) -> dict[str, Score]:
    counted = float(sums.counted[index])
    over = {"text": float(sums.text[index]), "image": float(sums.image[index])}
    over["gap"] = over["text"] - over["image"]
    return {
        value: estimates.score(pattern.format(value), numerator=number, denominator=counted)
        for value, number in over.items()
    }


def _moral(method: Method, estimates: Estimates, items: Items) -> dict[str, Score]:
    stories = moral_columns(method.labels, method.made, items)[:, 2] > 0
    counts = {"stories": int(stories.sum()), "with_label": int((items.moral >= 0).sum())}
    scores = {rate.name: estimates.score(f"moral.{rate.name}", counts=counts) for rate in columns.MORAL}
    most, number = majority_share(items, stories)
    scores["chance"] = Score(value=CHANCE, status="ok")
    scores["majority"] = Score.ratio(most, number, NO_LABEL)
    return scores


def _checked(method: Method) -> dict[str, int]:
    return {"ambiguous": int(method.outcomes.ambiguous.sum()), "checked": int(method.outcomes.checked.sum())}


def _pairs(method: Method) -> dict[str, int]:
    return {"judged": int((method.choices[:, 1] != UNJUDGED).sum())}


def _twins(method: Method, items: Items) -> dict[str, int]:
    """Return how many outputs of variants were judged, and how many pairs there are."""
    judged = method.variant_choices[:, 1] != UNJUDGED
    return {"judged": int(judged.sum()), "pairs": len(judged) * len(items.pairs)}


def _negative(
    method: Method, gaps: Mapping[Level, Mapping[SetName, GapScores]], items: Items
) -> dict[str, object]:
    """Return the names of the scores below zero, and the stories whose raw gap is."""
    named = []
    for level, sets in gaps.items():
        for name, scores in sets.items():
            parts = {"overall": scores.gap} | {
                name: dimension["gap"] for name, dimension in scores.dimensions.items()
            }
            named += [
                f"{level}.{name}.{part}"
                for part, score in parts.items()
                if score.value is not None and score.value < -TOLERANCE
            ]
    below = story_gaps(method, method.outcomes.sets["raw"], items) < -TOLERANCE
    stories = [items.records[index].story_id for index in np.flatnonzero(below)]
    return {"scores": named, "stories": stories}
