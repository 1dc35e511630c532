"""Numbers and names as tables and figures print them: values with their unit, intervals, p-values."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from ..schemas.values import Score
from .grid import DASH, MINUS

Unit: TypeAlias = Literal["percent", "points", "number", "plain", "count", "usd", "p"]
"""How a value is printed: percent and points as 100 times the value, the others as it is."""


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
