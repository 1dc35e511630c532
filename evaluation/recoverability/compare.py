"""Comparing two evaluations of storyboards made under the same protocol."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ..archive import read_manifest
from ..lacking import notes_of_both
from ..protocols import Difference, check_alike
from ..stats.correlation import Correlation, spearman
from ..stats.paired import Paired
from ..words import counted
from .compare_methods import comparisons
from .definitions import Definitions
from .method import Method, compared
from .score import Judged, estimated, judged_folder
from .wordings import WordingControl, only_wordings_differ, wording_control


@dataclass(frozen=True)
class KathaComparison:
    """Methods of two evaluations against each other.

    Attributes:
        definitions: the named definitions that were used.
        stories: how many stories both are about.
        gaps: evaluation -> method -> common-valid STG at question level.
        comparisons: methods of the first against methods of the second: those of the same name if there are
            any, else each against each.
        ranks: rank correlation over methods of the same name, of filtered STG.
        differences: parts of the protocol that were allowed to differ.
        wordings: how far two wordings of the prompts agree; None unless that is all that differs.
        notes: what a reader must know before trusting a number.
    """

    definitions: Definitions
    stories: int
    gaps: Mapping[str, Mapping[str, float | None]]
    comparisons: tuple[Paired, ...] = field(repr=False)
    ranks: Correlation
    differences: tuple[Difference, ...] = ()
    wordings: WordingControl | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; values are fractions."""
        return {
            "kind": "katha",
            "definitions": self.definitions.as_json(),
            "stories": self.stories,
            "gaps": {name: dict(gaps) for name, gaps in self.gaps.items()},
            "comparisons": [one.as_json() for one in self.comparisons],
            "ranks": self.ranks.as_json(),
            "differences": [one.as_json() for one in self.differences],
            "wordings": None if self.wordings is None else self.wordings.as_json(),
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        """Yield the comparison in percentage points."""
        for difference in self.differences:
            yield f"the protocols differ in {difference.path}"
        yield f"{counted(self.stories, 'story')}; common-valid STG by question"
        for name, gaps in self.gaps.items():
            for method, gap in gaps.items():
                yield f"  {name}  {method}: {'-' if gap is None else f'{100 * gap:.1f}'}"
        yield "difference (negative: the first loses less)"
        yield from (f"  {one.line()}" for one in self.comparisons)
        if self.ranks.value is not None:
            yield f"rank correlation over {self.ranks.pairs} methods: {self.ranks.value:.3f}"
        if self.wordings is not None:
            yield from self.wordings.lines()
        for note in self.notes:
            yield f"note: {note}"


def compare_folders(
    first: Path,
    second: Path,
    release: Path | None,
    definitions: Definitions,
    allowed: Collection[str] = (),
) -> KathaComparison:
    """Compare the methods of two evaluation folders of kind katha.

    Args:
        first: an evaluation folder.
        second: the other.
        release: the release that was judged; None for where the first's manifest says that it is.
        definitions: how replies become numbers.
        allowed: top-level parts of the protocol that may differ.

    Raises:
        InputError: a folder cannot be read, their protocols differ, or they share no story.
    """
    differences = check_alike(read_manifest(first), read_manifest(second), allowed)
    one, other = _alike(first, second, release, definitions)
    names = _names(first, second)
    ours = [replace(method, name=f"{names[0]}:{method.name}") for method in one.methods]
    theirs = [replace(method, name=f"{names[1]}:{method.name}") for method in other.methods]
    methods = compared([*ours, *theirs])
    ours, theirs = list(methods[: len(ours)]), list(methods[len(ours) :])
    _, found = estimated(methods, one.items, definitions)
    same = _same_names(ours, theirs)
    pairs = same or [(a, b) for a in ours for b in theirs]
    value = "question.filtered.gap"
    ranks = spearman(
        [found[a.name].values[value] for a, _ in same], [found[b.name].values[value] for _, b in same]
    )
    gaps = {
        name: {
            method.name.removeprefix(f"{name}:"): _known(found[method.name].values["question.common.gap"])
            for method in some
        }
        for name, some in zip(names, (ours, theirs), strict=True)
    }
    wordings = None
    if same and only_wordings_differ(differences):
        wordings = wording_control(same, _shared_seeds(one, other), one.items, ranks)
    return KathaComparison(
        definitions,
        one.items.stories,
        gaps,
        comparisons(pairs, found, one.items, definitions),
        ranks,
        differences,
        wordings,
        (
            *notes_of_both(dict(zip(names, (one.manifest, other.manifest), strict=True))),
            *definitions.notes(one.items.stories, "story"),
        ),
    )


def _alike(
    first: Path, second: Path, release: Path | None, definitions: Definitions
) -> tuple[Judged, Judged]:
    """Return both evaluations over the stories that both are about."""
    one = judged_folder(first, release, definitions)
    other = judged_folder(second, one.release.path, definitions)
    stories = set(one.items.story_places) & set(other.items.story_places)
    if not stories:
        raise InputError(
            [
                UserError(
                    str(second),
                    what=f"it has no story in common with {first}",
                    fix="compare evaluations of the same stories",
                )
            ]
        )
    if len(stories) < one.items.stories:
        one = judged_folder(first, release, definitions, stories=stories)
    if len(stories) < other.items.stories:
        other = judged_folder(second, one.release.path, definitions, stories=stories)
    return one, other


def _shared_seeds(one: Judged, other: Judged) -> tuple[list[int], list[int]]:
    """Return the places in both evaluations of the seeds that both have."""
    shared = [seed for seed in one.replies.seeds if seed in other.replies.seeds]
    return tuple([judged.replies.seeds.index(seed) for seed in shared] for judged in (one, other))  # type: ignore[return-value]


def _names(first: Path, second: Path) -> tuple[str, str]:
    """Return what to call two folders: their names, or their paths where those are the same."""
    if first.name and first.name != second.name:
        return first.name, second.name
    return ("A", "B") if first == second else (str(first), str(second))


def _same_names(ours: list[Method], theirs: list[Method]) -> list[tuple[Method, Method]]:
    by_name = {method.name.partition(":")[2]: method for method in theirs}
    paired = [(method, by_name.get(method.name.partition(":")[2])) for method in ours]
    return [(one, other) for one, other in paired if other is not None]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
