"""Whether two methods differ: paired over the stories that both have.

Both are held against each other on the questions that are valid for all compared methods. The difference of
STG is that of the question level, with the interval and p-value of a paired bootstrap over stories; the
Wilcoxon test and the effect sizes are of the stories' own gaps. All p-values are corrected by Bonferroni for
the number of comparisons made together. A negative difference says that the first method loses less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stats.bootstrap import percentile_interval, two_sided_p
from ..stats.corrections import bonferroni
from ..stats.effects import cohen_d
from ..stats.signed_rank import signed_rank
from .estimates import Estimates
from .items import Items
from .method import Method, story_gaps

Floats = NDArray[np.float64]
VALUE = "question.common.gap"


@dataclass(frozen=True)
class Comparison:
    """One method against another on STG.

    Attributes:
        first: method.
        second: method.
        stories: how many stories both have a valid question of.
        difference: STG of the first less that of the second, common-valid, at question level.
        low: lower end of its 95 % interval.
        high: upper end.
        p_bootstrap: two-sided p-value of the paired bootstrap.
        p_bootstrap_corrected: the same, Bonferroni-corrected.
        p_wilcoxon: two-sided p-value of the Wilcoxon signed-rank test over stories.
        p_wilcoxon_corrected: the same, Bonferroni-corrected.
        cohen_d: effect size of the stories' differences, d_z.
        rank_biserial: effect size of their signed ranks (Eq. 49).
    """

    first: str
    second: str
    stories: int
    difference: float | None
    low: float | None
    high: float | None
    p_bootstrap: float | None
    p_bootstrap_corrected: float | None
    p_wilcoxon: float | None
    p_wilcoxon_corrected: float | None
    cohen_d: float | None
    rank_biserial: float | None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)


def comparisons(
    pairs: Sequence[tuple[Method, Method]], found: Mapping[str, Estimates], items: Items
) -> tuple[Comparison, ...]:
    """Return one comparison per pair of methods.

    Args:
        pairs: the methods to compare; their sets of common questions must be those of all of them together.
        found: method -> its values; all resampled together.
        items: the stories.
    """
    if not pairs:
        return ()
    rows = [_row(first, second, found, items) for first, second in pairs]
    corrected = {
        name: bonferroni(np.array([row[name] for row in rows])) for name in ("p_bootstrap", "p_wilcoxon")
    }
    return tuple(
        Comparison(
            first.name,
            second.name,
            int(row["stories"]),
            **{name: _known(value) for name, value in row.items() if name != "stories"},
            p_bootstrap_corrected=_known(corrected["p_bootstrap"][place]),
            p_wilcoxon_corrected=_known(corrected["p_wilcoxon"][place]),
        )
        for place, ((first, second), row) in enumerate(zip(pairs, rows, strict=True))
    )


def _row(first: Method, second: Method, found: Mapping[str, Estimates], items: Items) -> dict[str, float]:
    one, other = found[first.name], found[second.name]
    replicates = one.replicates[VALUE] - other.replicates[VALUE]
    low, high = percentile_interval(replicates)
    gaps = [story_gaps(method, method.outcomes.sets["common"], items) for method in (first, second)]
    differences = gaps[0] - gaps[1]
    differences = differences[~np.isnan(differences)]
    ranks = signed_rank(differences, "two-sided")
    return {
        "stories": len(differences),
        "difference": one.values[VALUE] - other.values[VALUE],
        "low": float(low),
        "high": float(high),
        "p_bootstrap": two_sided_p(replicates),
        "p_wilcoxon": ranks.p_value if len(differences) else float("nan"),
        "cohen_d": cohen_d(differences),
        "rank_biserial": ranks.rank_biserial,
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
