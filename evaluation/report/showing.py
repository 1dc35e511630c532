"""Values and texts as a report prints them: numbers with their unit, and text that cannot mislead.

Methods against each other in a report, and what a comparison says in words.
"""

from collections.abc import Iterable

from ...schemas.text import plural
from ...schemas.values import Score
from ...tables import grid
from ..stats.paired import LEVEL, Paired
from ..stats.uncertainty import FEW, LEAST, Uncertainty
from .model import Comparison, Definition, Unit

DASH, MINUS = grid.DASH, grid.MINUS


def value_text(value: float | None, unit: Unit) -> str:
    """Return a value in its unit: 43.2 for a percentage, +12.3 for points, 0.431, 3.25, 1,234, $0.12."""
    if value is None:
        return DASH
    if unit == "p":
        return p_text(value)
    if unit == "count":
        return f"{value:,.0f}".replace("-", MINUS)
    if unit == "usd":
        return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:,.4f}"
    if unit == "number":
        text = f"{value:.3f}"
    elif unit == "plain":
        text = f"{value:.2f}"
    elif unit == "points":
        text = f"{100 * value:+.1f}"
    else:
        text = f"{100 * value:.1f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def interval_text(score: Score, unit: Unit) -> str:
    """Return the 95 % interval of a score, such as [41.0, 45.4]; empty where there is none."""
    if score.low is None or score.high is None:
        return ""
    return f"[{value_text(score.low, unit)}, {value_text(score.high, unit)}]"


def if_intervals(text: str, scores: Iterable[Score]) -> str:
    """Return what is said of intervals where some score has one; empty where none has."""
    return text if any(score.low is not None for score in scores) else ""


def count_text(value: float | str | None) -> str:
    """Return a count or plain value: thousands apart, at most four decimals, a dash where unknown."""
    if value is None:
        return DASH
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value.is_integer():
        return f"{value:,.0f}".replace("-", MINUS)
    return f"{value:,.4g}".replace("-", MINUS)


def p_text(p: float | None) -> str:
    """Return a p value: three decimals, or that it is smaller."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def effect_text(value: float | None) -> str:
    """Return an effect size with two decimals."""
    return DASH if value is None else f"{value:.2f}".replace("-", MINUS)


def label_text(name: str) -> str:
    """Return a name of the data as words: ``cause_effect`` as Cause effect."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


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
