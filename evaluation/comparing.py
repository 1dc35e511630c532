"""Methods of two evaluations, or of one, against each other: what every protocol does alike."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ..schemas.canonical import plain_fields
from .archive.archive import Difference, check_alike, read_manifest
from .archive.replies import notes_of_both
from .stats.uncertainty import Paired, Uncertainty, paired_lines


class Named(Protocol):
    """The scores of one method."""

    @property
    def method(self) -> str: ...


S = TypeVar("S")
M = TypeVar("M", bound=Named)


@dataclass(frozen=True)
class Comparisons:
    """Methods against each other."""

    kind: str  # the protocol
    definitions: Uncertainty  # the named definitions that were used
    heading: str  # of what the differences are, for people
    comparisons: tuple[Paired, ...]  # corrected together, or by score
    differences: tuple[Difference, ...] = ()  # parts of the protocol that were allowed to differ
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number
    percent: bool = True  # whether differences are shares, which people read in percentage points

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; shares are fractions."""
        own = ("heading", "percent")
        return {name: value for name, value in plain_fields(self).items() if name not in own}

    def lines(self) -> Iterator[str]:
        yield from (f"the protocols differ in {difference.path}" for difference in self.differences)
        yield self.heading
        yield from paired_lines(self.comparisons, *((100, 1) if self.percent else (1, 3)))
        yield from (f"note: {note}" for note in self.notes)


@dataclass(frozen=True)
class Sides(Generic[S]):
    """The scores of two evaluations that were made alike; of one that is compared with itself, its own."""

    scores: tuple[S, ...]  # one or two
    differences: tuple[Difference, ...]  # parts of the protocol that were allowed to differ
    notes: tuple[str, ...]  # of both, each with the folder before it


def read_sides(
    first: Path, second: Path, score: Callable[[Path], S], allowed: Collection[str] = ()
) -> Sides[S]:
    """Return the scores of two evaluation folders, or of one that is named twice."""
    folders = {str(folder): folder for folder in (first, second)}
    manifests = {name: read_manifest(folder) for name, folder in folders.items()}
    notes = notes_of_both(manifests)
    if Path(first).resolve() == Path(second).resolve():
        return Sides((score(first),), (), notes)
    differences = check_alike(manifests[str(first)], manifests[str(second)], allowed)
    return Sides((score(first), score(second)), differences, notes)


def method_pairs(sides: Sequence[Sequence[M]]) -> list[tuple[M, M]]:
    """Return which methods are compared.

    Of one side each two of them; of two those of the same name, and if there are none, each with each.
    """
    if len(sides) == 1:
        return list(combinations(sides[0], 2))
    every = [(ours, theirs) for ours, theirs in product(*sides)]
    return [(ours, theirs) for ours, theirs in every if ours.method == theirs.method] or every
