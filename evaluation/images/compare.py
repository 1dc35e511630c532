"""Comparing methods by their shot images: paired over stories, metric by metric."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, UserError
from ..archive import read_manifest
from ..lacking import notes_of_both
from ..protocols import Difference, check_alike
from ..stats.bootstrap import percentile_interval, resampled_sums, two_sided_p
from ..stats.corrections import bonferroni
from ..stats.effects import cohen_d
from ..stats.signed_rank import signed_rank
from .definitions import Definitions
from .pooling import values_of
from .score import score_folder
from .scores import MethodScores


@dataclass(frozen=True)
class ImageComparison:
    """One method against another in one metric.

    Attributes:
        metric: its name.
        first: method.
        second: method.
        stories: stories in which both have a value.
        difference: mean of the first less that of the second.
        low: lower end of its 95 % interval, paired bootstrap over stories.
        high: upper end.
        p_bootstrap: two-sided p-value of the bootstrap, Bonferroni-corrected over the pairs of the metric.
        p_wilcoxon: two-sided p-value of the signed-rank test over stories, corrected likewise.
        cohen_d: effect size of the stories' differences; null where it is undefined.
    """

    metric: str
    first: str
    second: str
    stories: int
    difference: float
    low: float | None
    high: float | None
    p_bootstrap: float | None
    p_wilcoxon: float | None
    cohen_d: float | None


@dataclass(frozen=True)
class ImageComparisons:
    """Methods against each other.

    Attributes:
        definitions: the named definitions that were used.
        comparisons: one entry per metric and pair of methods that share a story.
        differences: parts of the protocol that were allowed to differ.
        notes: what a reader must know before trusting a number.
    """

    definitions: Definitions
    comparisons: tuple[ImageComparison, ...]
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "kind": "images",
            "definitions": self.definitions.as_json(),
            "comparisons": [asdict(one) for one in self.comparisons],
            "differences": [one.as_json() for one in self.differences],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        """Yield the comparisons for people."""
        for difference in self.differences:
            yield f"the protocols differ in {difference.path}"
        yield f"differences of means over stories ({self.definitions.named()})"
        for one in self.comparisons:
            ends = "" if one.low is None or one.high is None else f" [{one.low:.3f}, {one.high:.3f}]"
            tests = [
                f"{value:.4f} ({name})"
                for name, value in (("bootstrap", one.p_bootstrap), ("Wilcoxon", one.p_wilcoxon))
                if value is not None
            ]
            yield (
                f"  {one.metric}: {one.first} - {one.second} {one.difference:+.3f}{ends},"
                f" {one.stories} stories, p {' '.join(tests) or '-'}, corrected"
            )
        for note in self.notes:
            yield f"note: {note}"


def compare_folders(
    first: Path, second: Path, definitions: Definitions, allowed: Collection[str] = ()
) -> ImageComparisons:
    """Compare the methods of two evaluation folders of kind images; of one, its methods with each other.

    Raises:
        InputError: a folder cannot be read, their protocols differ, or no two methods share a story.
    """
    manifests = {str(folder): read_manifest(folder) for folder in (first, second)}
    if Path(first).resolve() == Path(second).resolve():
        pairs = list(combinations(score_folder(first, definitions).methods, 2))
        differences: tuple[Difference, ...] = ()
    else:
        differences = check_alike(manifests[str(first)], manifests[str(second)], allowed)
        ours, theirs = (score_folder(folder, definitions).methods for folder in (first, second))
        every = [(a, b) for a in ours for b in theirs]
        pairs = [(a, b) for a, b in every if a.method == b.method] or every
    found = paired(pairs, definitions)
    if not found:
        problem = UserError(
            str(second), what="no two methods have values for the same stories",
            fix="compare evaluations of the same stories and metrics",
        )  # fmt: skip
        raise InputError([problem])
    return ImageComparisons(definitions, found, differences, notes_of_both(manifests))


def paired(
    pairs: Sequence[tuple[MethodScores, MethodScores]], definitions: Definitions
) -> tuple[ImageComparison, ...]:
    """Return every pair compared in every metric in which the two share a story.

    P-values are corrected for the number of pairs of a metric.
    """
    names = list(dict.fromkeys(name for a, b in pairs for name in a.scores if name in b.scores))
    made: list[ImageComparison] = []
    for name in names:
        rows = [row for a, b in pairs if (row := _row(name, a, b, definitions)) is not None]
        boot, ranks = (
            bonferroni(np.array([getattr(row, which) for row in rows], dtype=np.float64))
            for which in ("p_bootstrap", "p_wilcoxon")
        )
        for place, row in enumerate(rows):
            told = {**vars(row), "p_bootstrap": _known(boot[place]), "p_wilcoxon": _known(ranks[place])}
            made.append(ImageComparison(**told))
    return tuple(made)


def _row(name: str, a: MethodScores, b: MethodScores, definitions: Definitions) -> ImageComparison | None:
    """Return one comparison with its p-values as they are; None where the two share no story."""
    theirs = {one.story_id: one for one in b.stories}
    shared = [(one, theirs[one.story_id]) for one in a.stories if one.story_id in theirs]
    ours = values_of([one for one, _ in shared], [name])[:, 0]
    gaps = ours - values_of([other for _, other in shared], [name])[:, 0]
    gaps = gaps[~np.isnan(gaps)]
    if not len(gaps):
        return None
    means = resampled_sums(gaps[:, None], definitions.resamples, definitions.seed)[:, 0] / len(gaps)
    low, high = percentile_interval(means)
    return ImageComparison(
        name, a.method, b.method, len(gaps), float(gaps.mean()), _known(float(low)), _known(float(high)),
        two_sided_p(means) if len(means) else float("nan"),
        float(signed_rank(gaps, "two-sided").p_value), _known(cohen_d(gaps)),
    )  # fmt: skip


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
