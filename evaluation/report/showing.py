"""Values and texts as a report prints them: numbers with their unit, and text that cannot mislead.

Methods against each other in a report, and what a comparison says in words.
"""

from ...schemas.text import plural
from ...schemas.values import Score
from ...tables.numbers import Unit
from ..stats.paired import LEVEL, Paired
from ..stats.uncertainty import FEW, LEAST, Uncertainty
from .model import Comparison, Definition


def comparison(
    one: Paired,
    measure: str,
    *,
    higher: bool | None,
    better: str = "is better",
    unit: Unit = "points",
    shown: bool = True,
) -> Comparison:
    """Return a paired comparison as a report shows it.

    Args:
        one: the comparison.
        measure: what was compared, for readers.
        higher: whether the higher value is the better one; None of a diagnostic, where neither is.
        better: what the better method does, as the end of a sentence.
        unit: how the difference is printed.
        shown: whether the page lists it.
    """
    if one.difference is None:
        difference = Score(value=None, status="undefined", reason="no question is valid for both")
    else:
        difference = Score(value=one.difference, status="ok", low=one.low, high=one.high)
    return Comparison(
        measure=measure, first=one.first, second=one.second, difference=difference, unit=unit,
        p={"Wilcoxon": one.p_wilcoxon_corrected, one.resampled_test: one.p_bootstrap_corrected},
        effects={"Cohen's d": one.cohen_d, "rank-biserial": one.rank_biserial},
        pairs=one.n, verdict=_verdict(one, better, higher=higher), shown=shown,
    )  # fmt: skip


def resampling_definition(used: Uncertainty, unit: str) -> Definition:
    """Return what a report says of its intervals and p-values.

    Args:
        used: how they were made.
        unit: what was drawn, in the singular.
    """
    units = plural(unit)
    few = f" Below {FEW} {units} they are of Student's t, below {LEAST} there are none."
    return Definition(
        name="bootstrap", value=f"{used.resamples:,} resamples, seed {used.seed}, {used.correction}",
        meaning=f"{units.capitalize()} are drawn with replacement; intervals are percentiles."
        f"{few if used.interval == 'by-size' else ''} P-values of several comparisons are corrected by "
        f"{used.correction.capitalize()}.",
    )  # fmt: skip


def _verdict(one: Paired, better: str, *, higher: bool | None) -> str:
    if one.difference is None or not one.tests:
        return f"Too few {plural(one.unit)} for a test." if 0 < one.n < LEAST else "Cannot be said."
    if winner := one.winner(higher=higher is not False):
        return f"{winner} {better}." if higher is not None else "They differ; neither end is better."
    disagree = len(one.tests) == 2 and min(one.tests) < LEVEL
    return "The two tests disagree." if disagree else "These data do not tell them apart."
