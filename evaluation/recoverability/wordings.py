"""Whether STG depends on how judges are asked: the same outputs, judged with two wordings of the prompts.

The control of prompt sensitivity (Table 72; Table 64 for held-out prompts). Rank correlations say whether
methods and stories keep their order, agreement whether single questions keep their verdicts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...schemas.score import Score
from ..protocols import Difference
from ..stats.agreement import cohen_kappa
from ..stats.correlation import Correlation, spearman
from .items import CONDITIONS, Items
from .method import Method, story_gaps
from .votes import RIGHT_VERDICT, SILENT, UNJUDGED

Pair = tuple[Method, Method]
PROMPTS = "prompts"
"""The part of the protocol that two wordings differ in."""
NONE = "no question was judged under both wordings"


@dataclass(frozen=True)
class Agreement:
    """How far the verdicts on single questions agree under one condition.

    Attributes:
        same: share of the questions judged under both wordings that have the same verdict, right or not.
        kappa: Cohen's kappa of these verdicts; None where there is only one verdict.
        first_only: how many are right under the first wording alone.
        second_only: the same for the second.
    """

    same: Score
    kappa: float | None
    first_only: int
    second_only: int

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {**asdict(self), "same": self.same.as_json()}


@dataclass(frozen=True)
class WordingControl:
    """Two wordings of the prompts against each other.

    Attributes:
        methods: rank correlation of the methods' filtered STG.
        stories: the same of the stories' filtered gaps, over all methods.
        agreement: condition -> agreement on single questions, seeds counted apart.
    """

    methods: Correlation
    stories: Correlation
    agreement: Mapping[str, Agreement] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "methods": self.methods.as_json(),
            "stories": self.stories.as_json(),
            "agreement": {name: one.as_json() for name, one in self.agreement.items()},
        }

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        told = [
            f"{name} {_rank(one)}" for name, one in (("methods", self.methods), ("stories", self.stories))
        ]
        lines = [f"two wordings of the prompts: rank correlation of STG over {', over '.join(told)}"]
        for condition, one in self.agreement.items():
            if one.same.value is not None:
                kappa = "-" if one.kappa is None else f"{one.kappa:.2f}"
                lines.append(
                    f"  {condition}: {100 * one.same.value:.1f}% of verdicts the same, kappa {kappa};"
                    f" right under the first alone {one.first_only}, under the second alone {one.second_only}"
                )
        return lines


def only_wordings_differ(differences: Sequence[Difference]) -> bool:
    """Return whether two protocols differ in their prompts and in nothing else."""
    return bool(differences) and all(one.path.partition(".")[0] == PROMPTS for one in differences)


def wording_control(
    pairs: Sequence[Pair], seeds: tuple[Sequence[int], Sequence[int]], items: Items, methods: Correlation
) -> WordingControl:
    """Return how far two wordings agree.

    Args:
        pairs: each method under the first and the second wording.
        seeds: places of the seeds that both have, in the first and in the second.
        items: the questions that both are about.
        methods: rank correlation of the methods' filtered STG.
    """
    first, second = (
        np.concatenate(
            [story_gaps(pair[side], pair[side].outcomes.sets["filtered"], items) for pair in pairs]
        )
        for side in (0, 1)
    )
    return WordingControl(
        methods,
        spearman(first, second),
        {name: _agreement(pairs, seeds, place) for place, name in enumerate(CONDITIONS)},
    )


def _agreement(pairs: Sequence[Pair], seeds: tuple[Sequence[int], Sequence[int]], place: int) -> Agreement:
    # Text-only verdicts belong to no method and no seed: they stand in each of them.
    shown = pairs[:1] if place == 0 else pairs
    used = tuple(list(one)[:1] for one in seeds) if place == 0 else seeds
    first, second = (
        np.concatenate([pair[side].outcomes.verdicts[list(used[side]), place].ravel() for pair in shown])
        for side in (0, 1)
    )
    both = _spoken(first) & _spoken(second)
    right, other = first[both] == RIGHT_VERDICT, second[both] == RIGHT_VERDICT
    table = np.array(
        [[(~right & ~other).sum(), (~right & other).sum()], [(right & ~other).sum(), (right & other).sum()]],
        dtype=np.float64,
    )
    kappa = cohen_kappa(table)
    return Agreement(
        Score.ratio(float(table[0, 0] + table[1, 1]), float(table.sum()), NONE),
        None if np.isnan(kappa) else kappa,
        int(table[1, 0]),
        int(table[0, 1]),
    )


def _spoken(verdicts: NDArray[np.int8]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (verdicts != UNJUDGED) & (verdicts != SILENT)
    return found


def _rank(one: Correlation) -> str:
    return f"{one.value:.3f} (n={one.pairs})" if one.value is not None else f"- ({one.reason})"
