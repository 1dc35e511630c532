"""Values and texts as a report prints them: numbers with their unit, and text that cannot mislead."""

import unicodedata

from ...schemas.score import Score
from .model import Unit

LONGEST_TEXT = 600
"""Most characters of a reply or text that the page shows; the JSON and CSV files have all of it."""
DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
# Embeddings, overrides and isolates: they can make text read in an order that is not its own.
_BIDI = frozenset((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_KEPT = "\n\t"


def readable(text: str, longest: int | None = LONGEST_TEXT) -> str:
    """Return text in which nothing is invisible that changes how the rest is read.

    Control characters, bidirectional controls and lone surrogates are replaced by their code point in
    brackets, such as ``[U+202E]``; long text is cut, and says so.
    """
    if longest is not None and len(text) > longest:
        return f"{readable(text[:longest], None)}\N{HORIZONTAL ELLIPSIS} ({len(text):,} characters in all)"
    return "".join(f"[U+{ord(one):04X}]" if _misleads(one) else one for one in text)


def _misleads(character: str) -> bool:
    if character in _KEPT:
        return False
    return ord(character) in _BIDI or unicodedata.category(character) in ("Cc", "Cs")


def value_text(value: float | None, unit: Unit) -> str:
    """Return a value in its unit: 43.2 for a percentage, +12.3 for points, 0.431, 3.25, $0.12."""
    if value is None:
        return DASH
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
