"""How close a subset is to the whole: distributions side by side (as ViStoryBench, Table S2, has scores)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ...schemas.canonical import Json

DIGITS = 6


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known about one story where subsets are drawn and compared."""

    id: str  # story id
    # field -> its value, the category first; all stories have the same fields in the same order
    kinds: Mapping[str, str]
    parts_field: str  # the field of its parts, such as the type of its questions
    parts: Mapping[str, int]  # value of that field -> how many of its parts have it
    # what is counted -> how many. Nothing is drawn by it: it shows how close a subset is elsewhere.
    sizes: Mapping[str, int]
    unclear: bool = False  # whether it is open if some question of it can be answered

    @property
    def category(self) -> str:
        """The value of its first field, such as its narrative type."""
        return next(iter(self.kinds.values()))


Spread = dict[str, Counter[str]]
"""Field -> value -> how many stories have it; of the field of parts, how many parts."""


def spread(stories: Iterable[Traits]) -> Spread:
    """Return how the traits of stories are spread."""
    counts: Spread = {}
    for story in stories:
        for name, value in story.kinds.items():
            counts.setdefault(name, Counter())[value] += 1
        counts.setdefault(story.parts_field, Counter()).update(story.parts)
    return counts


def closeness(whole: Sequence[Traits], part: Sequence[Traits]) -> dict[str, Json]:
    """Return how far the distributions of a subset are from those of the whole.

    ``part``: those of the subset; at least one.

    Returns:
        ``fields``: see :func:`fields_closeness`. ``means``: per story, each of their sizes in both, and the
        ``difference`` relative to the whole.
    """
    return {"fields": fields_closeness(spread(whole), spread(part)), "means": _means(whole, part)}


def fields_closeness(full: Spread, own: Spread) -> dict[str, Json]:
    """Return field -> how far its distribution in a subset is from that in the whole.

    Each has the ``values`` with count and share in both and the difference of the shares;
    ``total_variation``, half the sum of the absolute differences (0: equal, 1: nothing in common);
    ``chi_square``, Pearson's statistic of the subset's counts against the whole's shares, and its
    ``degrees_of_freedom``. There is no p-value: nothing was drawn at random.
    """
    return {name: _field_closeness(full[name], own[name]) for name in own}


def _field_closeness(full: Counter[str], own: Counter[str]) -> dict[str, Json]:
    total, size = full.total(), own.total()
    # Whole numbers as long as possible: half the sum of |k/n - K/N|, and the sum of (k - nK/N)^2 / (nK/N).
    apart = {value: own[value] * total - size * full[value] for value in sorted(full)}
    scale = total * size
    chi_square = sum(difference**2 / (scale * full[value]) for value, difference in apart.items() if scale)
    return {
        "values": {value: _row(full[value], total, own[value], size) for value in apart},
        "total_variation": round(sum(map(abs, apart.values())) / (2 * scale), DIGITS) if scale else 0.0,
        "chi_square": round(chi_square, DIGITS) if scale else 0.0,
        "degrees_of_freedom": max(0, len(full) - 1),
    }


def _row(full: int, total: int, own: int, size: int) -> dict[str, Json]:
    shares = (full / total if total else 0.0, own / size if size else 0.0)
    return {
        "full": full,
        "full_share": round(shares[0], DIGITS),
        "subset": own,
        "subset_share": round(shares[1], DIGITS),
        "difference": round(shares[1] - shares[0], DIGITS),
    }


def mean_size(stories: Sequence[Traits], name: str) -> float:
    """Return how many of something a story has on average, unrounded."""
    return sum(story.sizes[name] for story in stories) / len(stories)


def _means(whole: Sequence[Traits], part: Sequence[Traits]) -> dict[str, Json]:
    means: dict[str, Json] = {}
    for name in dict.fromkeys(chain.from_iterable(story.sizes for story in part)):
        full, own = mean_size(whole, name), mean_size(part, name)
        difference = round(own / full - 1, DIGITS) if full else 0.0
        means[name] = {"full": round(full, DIGITS), "subset": round(own, DIGITS), "difference": difference}
    return means
