"""Controls of whether STG means what it says, as far as they need no new generation (Tables 4, 72 and 73).

Each control holds against an explanation of the gap other than lost meaning. Rank correlations are between
methods, and undefined with fewer than three of them.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stats.correlation import rank_correlations, spearman
from .definitions import Definitions
from .estimates import Estimates, Sheet
from .items import DIMENSIONS, Items
from .method import Method
from .pooling import Outcomes, Sums, sums_of
from .recoverability import Rates
from .scores import GroupScores
from .votes import RIGHT_VERDICT

Floats = NDArray[np.float64]
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
    raw = outcomes.sets["raw"]
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
    known = [gap for gap in gaps if gap is not None]
    return {"lowest": min(known, default=None), "highest": max(known, default=None), "groups": len(known)}


def _evidence_row(
    outcomes: Outcomes, setting: str, chosen: NDArray[np.bool_], with_text: bool, total: int, items: Items
) -> dict[str, Any]:
    _, image, gap = Rates.of(sums_of(outcomes, chosen, items).total()).overall()
    return {
        "setting": setting,
        "valid_share": int(chosen.sum()) / total if total else None,
        "image": _known(image),
        "gap": _known(gap) if with_text else None,
    }


def _judge_gaps(method: Method, judge: str, items: Items) -> Floats:
    outcomes = method.single[judge]
    return Rates.of(sums_of(outcomes, outcomes.sets["filtered"], items)).mean_gap(DIMENSIONS)


def _known(value: Floats) -> float | None:
    return None if np.isnan(value) else float(value)
