"""How close a subset is to the whole: distributions side by side (as ViStoryBench, Table S2, has scores)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..schemas.canonical import Json
from .subset_traits import FIELDS, QUESTIONS, Traits, spread

_DIGITS = 6


def closeness(whole: Sequence[Traits], part: Sequence[Traits]) -> dict[str, Json]:
    """Return how far the distributions of a subset are from those of the whole.

    Args:
        whole: all public stories.
        part: those of the subset; at least one.

    Returns:
        ``fields``: per field the ``values`` with count and share in both and the difference of the shares;
        ``total_variation``, half the sum of the absolute differences (0: equal, 1: nothing in common);
        ``chi_square``, Pearson's statistic of the subset's counts against the whole's shares, and its
        ``degrees_of_freedom``. There is no p-value: nothing was drawn at random.
        ``means``: per story, ``questions``, ``scenes`` and ``characters`` in both, and the ``difference``
        relative to the whole.
    """
    full, own = spread(whole), spread(part)
    return {
        "fields": {name: field_closeness(full[name], own[name]) for name in FIELDS},
        "means": _means(whole, part),
    }


def field_closeness(full: Counter[str], own: Counter[str]) -> dict[str, Json]:
    """Return one field of :func:`closeness`, from how often each value is in the whole and in the subset."""
    total, size = full.total(), own.total()
    values = {value: _row(full[value], total, own[value], size) for value in sorted(full)}
    # Whole numbers as long as possible: half the sum of |k/n - K/N|, and the sum of (k - nK/N)^2 / (nK/N).
    apart = {value: own[value] * total - size * full[value] for value in full}
    weight = 2 * total * size
    return {
        "values": values,
        "total_variation": round(sum(map(abs, apart.values())) / weight, _DIGITS) if weight else 0.0,
        "chi_square": round(_chi_square(apart, full, size * total), _DIGITS) if weight else 0.0,
        "degrees_of_freedom": max(0, len(full) - 1),
    }


def _chi_square(apart: Mapping[str, int], full: Mapping[str, int], scale: int) -> float:
    return sum(difference**2 / (scale * full[value]) for value, difference in sorted(apart.items()))


def _row(full: int, total: int, own: int, size: int) -> dict[str, Json]:
    shares = (full / total if total else 0.0, own / size if size else 0.0)
    return {
        "full": full,
        "full_share": round(shares[0], _DIGITS),
        "subset": own,
        "subset_share": round(shares[1], _DIGITS),
        "difference": round(shares[1] - shares[0], _DIGITS),
    }


def _means(whole: Iterable[Traits], part: Iterable[Traits]) -> dict[str, Json]:
    sums = [_sums(stories) for stories in (whole, part)]
    means: dict[str, Json] = {}
    for name in ("questions", "scenes", "characters"):
        full, own = (counts[name] / counts["stories"] for counts in sums)
        means[name] = {
            "full": round(full, _DIGITS),
            "subset": round(own, _DIGITS),
            "difference": round(own / full - 1, _DIGITS) if full else 0.0,
        }
    return means


def _sums(stories: Iterable[Traits]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for story in stories:
        questions = sum(story.questions.values())
        sums.update(stories=1, questions=questions, scenes=story.scenes, characters=story.characters)
    return sums


def title_of(field: str) -> str:
    """Return a field's name for people."""
    return "questions" if field == QUESTIONS else field.replace("_", " ")
