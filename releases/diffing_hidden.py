"""What two public releases tell about their hidden tests: counts, and how many commitments differ.

Nobody outside can tell what changed in a hidden record. So every commitment that went counts as a record that
changed its meaning or went, for the version as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..schemas.canonical import Json
from .version_step import Step


@dataclass(frozen=True, slots=True)
class HiddenChange:
    """Numbers of the hidden test, before and after.

    Attributes:
        before: what is counted -> how many, in the old release; ``after`` in the new one.
        kept: commitments that both releases make; None where theirs cannot be compared.
        gone: commitments that only the old release makes; ``fresh`` those that only the new one makes.
    """

    before: Mapping[str, Json]
    after: Mapping[str, Json]
    kept: int | None = None
    gone: int | None = None
    fresh: int | None = None

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        commitments = None
        if self.kept is not None:
            commitments = {"kept": self.kept, "gone": self.gone, "new": self.fresh}
        return {"before": dict(self.before), "after": dict(self.after), "commitments": commitments}

    def reasons(self) -> list[tuple[Step, str]]:
        """Return which step the hidden test asks for, and why."""
        if self.kept is None:
            return self._by_counts()
        gone, fresh = self.gone or 0, self.fresh or 0
        if gone:
            return [(Step.MAJOR, f"{_stories(gone)} of the hidden test changed or gone")]
        return [(Step.MINOR, f"{_stories(fresh)} of the hidden test added")] if fresh else []

    def _by_counts(self) -> list[tuple[Step, str]]:
        sizes = [side.get("stories") for side in (self.before, self.after)]
        before, after = (one if isinstance(one, int) else 0 for one in sizes)
        if after < before:
            return [(Step.MAJOR, f"{_stories(before - after)} of the hidden test gone")]
        return (
            [(Step.MINOR, f"{_stories(after - before)} of the hidden test added")] if after > before else []
        )


def hidden_change(old: Mapping[str, Json], new: Mapping[str, Json]) -> HiddenChange:
    """Compare what two ``release.json`` say about their hidden tests."""
    before, after = (hidden_counts_of(document) for document in (old, new))
    promised, promises = _commitments(old), _commitments(new)
    if promised is None or promises is None or promised[0] != promises[0]:
        return HiddenChange(before, after)
    past, present = promised[1], promises[1]
    return HiddenChange(before, after, len(past & present), len(past - present), len(present - past))


def hidden_counts_of(document: Mapping[str, Json]) -> dict[str, Json]:
    """Return what is counted -> how many of the hidden test, as a ``release.json`` states it."""
    counts = document.get("hidden_test")
    return dict(counts) if isinstance(counts, dict) else {}


def _commitments(document: Mapping[str, Json]) -> tuple[Json, frozenset[str]] | None:
    """Return scheme and salt of the commitments that a release makes, and these; None where it makes none."""
    part = document.get("commitments")
    values = part.get("values") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(values, list):
        return None
    return [part.get("scheme"), part.get("salt")], frozenset(str(one) for one in values)


def _stories(count: int) -> str:
    return f"{count} {'story' if count == 1 else 'stories'}"
