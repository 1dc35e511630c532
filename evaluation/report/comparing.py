"""Methods against each other in the report on videos, and what a comparison says in words."""

from collections.abc import Sequence
from itertools import combinations

from ...schemas.score import Score
from ..completion.compare import EventComparison, comparable, paired
from ..completion.scores import EventScores
from .model import Comparison

LEVEL = 0.05


def event_comparisons(scores: EventScores) -> tuple[Comparison, ...]:
    """Return every pair of methods under each judge, paired over prompts and corrected together."""
    pairs = [
        (one, other)
        for one, other in combinations(scores.panels, 2)
        if one.panel.judge == other.panel.judge
        and one.panel.method != other.panel.method
        and comparable(one, other, scores.definitions)
    ]
    found = paired(pairs, scores.definitions) if pairs else ()
    judges = {one.judge for one in found}
    return tuple(_comparison(one, several=len(judges) > 1) for one in found)


def verdict_of(
    tests: Sequence[float | None], difference: float, names: tuple[str, str], *, low_is_better: bool
) -> str:
    """Return what two tests and a difference say: which of two is better, or that it cannot be said.

    Args:
        tests: corrected p-values; None where undefined.
        difference: first less second.
        names: of the two.
        low_is_better: whether the lower value is the better one.
    """
    known = [p for p in tests if p is not None]
    if not known:
        return "Cannot be said."
    if max(known) >= LEVEL:
        return "These data do not tell them apart." if min(known) >= LEVEL else "The two tests disagree."
    better = names[0] if (difference < 0) == low_is_better else names[1]
    return f"{better} {'loses less' if low_is_better else 'completes more'}."


def _comparison(one: EventComparison, *, several: bool) -> Comparison:
    return Comparison(
        measure=f"Completion rate, by {one.judge}" if several else "Completion rate",
        first=one.first,
        second=one.second,
        difference=Score(value=one.difference, status="ok", low=one.low, high=one.high),
        p={"Wilcoxon": one.p_wilcoxon, "bootstrap": one.p_bootstrap},
        effects={"Cohen's d": one.cohen_d, "rank-biserial": one.rank_biserial},
        pairs=one.prompts,
        verdict=verdict_of(
            (one.p_wilcoxon, one.p_bootstrap), one.difference, (one.first, one.second), low_is_better=False
        ),
    )
