"""Comparing methods by their shot images: paired over stories, metric by metric."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, UserError
from ..archive.archive import read_manifest
from ..archive.lacking import notes_of_both
from ..archive.protocols import Difference, check_alike
from ..stats.paired import Pair, Paired, paired
from .definitions import Definitions
from .score import score_folder
from .score_story import values_of
from .scores import MethodScores


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
    comparisons: tuple[Paired, ...]
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "kind": "images",
            "definitions": self.definitions.as_json(),
            "comparisons": [one.as_json() for one in self.comparisons],
            "differences": [one.as_json() for one in self.differences],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        """Yield the comparisons for people."""
        for difference in self.differences:
            yield f"the protocols differ in {difference.path}"
        yield f"differences of means over stories ({self.definitions.named()})"
        yield from (f"  {one.line(1, 3)}" for one in self.comparisons)
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
    found = image_comparisons(pairs, definitions)
    if not found:
        problem = UserError(
            str(second), what="no two methods have values for the same stories",
            fix="compare evaluations of the same stories and metrics",
        )  # fmt: skip
        raise InputError([problem])
    return ImageComparisons(definitions, found, differences, notes_of_both(manifests))


def image_comparisons(
    pairs: Sequence[tuple[MethodScores, MethodScores]], definitions: Definitions
) -> tuple[Paired, ...]:
    """Return every pair compared in every metric in which the two share a story.

    P-values are corrected for the number of pairs of a metric.
    """
    names = list(dict.fromkeys(name for a, b in pairs for name in a.scores if name in b.scores))
    made: list[Paired] = []
    for name in names:
        shared = [pair for a, b in pairs if len((pair := _pair(name, a, b)).differences)]
        made += paired(shared, "story", definitions)
    return tuple(made)


def _pair(name: str, a: MethodScores, b: MethodScores) -> Pair:
    theirs = {story.story_id: story for story in b.stories}
    shared = [(story, theirs[story.story_id]) for story in a.stories if story.story_id in theirs]
    ours = values_of([story for story, _ in shared], [name])[:, 0]
    gaps = ours - values_of([story for _, story in shared], [name])[:, 0]
    return Pair(a.method, b.method, gaps[~np.isnan(gaps)], {"metric": name})
