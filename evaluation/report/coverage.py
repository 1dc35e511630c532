"""How much of what was asked for a method made, beside its scores; who left out too much stands below a line.

A score over what is there may rise where hard parts are left out. The rule: a method of whose outputs less
than a least share (95 %) is there and can be judged stands below the complete ones, whatever its scores.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ...schemas.judgement import EvaluationManifest
from ...schemas.values import Score
from .model import CountTable, Measure, ScoreRow, ScoreTable

LEAST = 0.95
"""Share of the outputs that a method must have to stand above the line."""
COUNTS = (
    ("generations_valid", "generations_requested"), ("stories_valid", "stories_requested"),
    ("shots_valid", "shots_requested"), ("valid", "requested"),
)  # fmt: skip
"""What is valid of outputs, and what was asked for, as the manifests of the protocols call it."""
_MEASURE = Measure(name="coverage", label="Coverage", better="high")
AnyTable = TypeVar("AnyTable", bound=ScoreTable | CountTable)


@dataclass(frozen=True)
class Coverage:
    """How much of a method's outputs is there."""

    made: int  # outputs that can be judged
    wanted: int  # outputs that were asked for
    what: str  # what they are: shots, generations

    @property
    def share(self) -> float:
        """The part that is there, 0 to 1."""
        return self.made / self.wanted

    def __str__(self) -> str:
        return f"{self.made:,} of {self.wanted:,} {self.what}"

    def too_little(self, least: float = LEAST) -> str | None:
        """Return why a method stands below the line; None where it does not."""
        return f"{self}: less than {least:.0%}" if self.share < least else None


def coverages(about: Mapping[str, object]) -> Iterator[Coverage]:
    """Yield what a method has of each kind of output that its manifest counts."""
    stated = any(made in about for made, _ in COUNTS)  # which ones are, depends on the protocol
    for made, wanted in COUNTS:
        there, asked = about.get(made, 0), about.get(wanted)
        if (made in about or not stated) and isinstance(asked, int) and isinstance(there, int) and asked:
            yield Coverage(there, asked, made.removesuffix("_valid").replace("valid", "outputs"))


def least_covered(manifest: EvaluationManifest) -> dict[str, Coverage]:
    """Return method -> that of its coverages with the smallest share; without those that count nothing."""
    methods = manifest.subject.get("methods") or {}
    known = {method: [*coverages(about)] for method, about in methods.items() if isinstance(about, Mapping)}
    return {method: min(some, key=lambda each: each.share) for method, some in known.items() if some}


def with_coverage(table: AnyTable, covered: Mapping[str, Coverage], least: float = LEAST) -> AnyTable:
    """Return a table of methods with their coverage, and those that left out too much below a line.

    A table stays as it is where everything is there, and where its rows are not methods, or methods and
    judges.
    """
    if not isinstance(table, ScoreTable) or any(_method(row) not in covered for row in table.rows):
        return table
    if all(covered[_method(row)].share == 1 and not _found(row) for row in table.rows):
        return table
    complete, below = list[ScoreRow](), list[ScoreRow]()
    for row in table.rows:
        coverage = covered[_method(row)]
        score = Score.ratio(coverage.made, coverage.wanted, "nothing was asked for")
        said = [*filter(None, (row.note, str(coverage) if coverage.share < 1 else "", _found(row)))]
        told = {"scores": {**row.scores, _MEASURE.name: score}, "note": "; ".join(said) or None}
        (below if coverage.share < least else complete).append(row.model_copy(update=told))
    heading = ScoreRow(label=f"Incomplete: less than {least:.0%} of the outputs", scores={}, heading=True)
    rule = f" Methods with less than {least:.0%} of their outputs stand below the others." if below else ""
    return table.model_copy(update={
        "measures": (*table.measures, _MEASURE), "note": f"{table.note}{rule}".strip(),
        "rows": (*complete, *([heading] if below else []), *below),
    })  # fmt: skip


def below_the_line(covered: Mapping[str, Coverage], least: float = LEAST) -> Iterator[str]:
    """Yield a line for each method that left out too much."""
    for method, coverage in covered.items():
        if why := coverage.too_little(least):
            yield f"incomplete: {method} has {why}; it does not rank with the complete ones"


def compared_over(manifests: Iterable[EvaluationManifest]) -> list[str]:
    """Return a line for each method of evaluations that left out something: over what it is compared."""
    lines = {
        f"{method} has {coverage}: it is compared over the units that both have, each as far as it is there"
        for manifest in manifests
        for method, coverage in least_covered(manifest).items()
        if coverage.share < 1
    }
    return sorted(lines)


def _method(row: ScoreRow) -> str:
    return row.label.partition(" · ")[0]


def _found(row: ScoreRow) -> str:
    """Return how many of the expected characters were found, where some were not."""
    counts: Iterable[Mapping[str, int]] = [score.counts for score in row.scores.values()]
    known = [(each["matched"], each["expected"]) for each in counts if {"matched", "expected"} <= each.keys()]
    matched, expected = min(known, default=(0, 0))
    return f"{matched} of {expected} expected characters found" if matched < expected else ""
