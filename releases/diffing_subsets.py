"""The subsets of two releases: which there are, how they were asked for, and who is in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..schemas.canonical import Json
from .subset_requests import SubsetRequest
from .subsets import read_subsets
from .version_step import Step

_NAMED = 5


@dataclass(frozen=True, slots=True)
class SubsetChange:
    """A subset that is not as it was.

    Attributes:
        name: its name.
        kind: ``added``, ``removed`` or ``changed``.
        asked: how it was asked for in the old release, and in the new one; None where it is not there.
        stories: how many it holds in both.
        came: ids that are only in the new one; all of them for one that was added.
        went: ids that are only in the old one.
    """

    name: str
    kind: str
    asked: tuple[str | None, str | None]
    stories: tuple[int, int]
    came: tuple[str, ...]
    went: tuple[str, ...]

    @property
    def step(self) -> Step:
        """The step that it asks for: a number that was told of the subset is one of other stories now."""
        if self.kind == "removed" or self.went:
            return Step.MAJOR
        return Step.MINOR if self.came else Step.PATCH

    @property
    def why(self) -> str:
        """Return the reason for the step, in words."""
        if self.kind != "changed":
            return f"the subset {self.name} {'is new' if self.kind == 'added' else 'is gone'}"
        if not self.came and not self.went:
            return f"the subset {self.name} is asked for otherwise"
        return f"{len(self.went)} stories left the subset {self.name}, {len(self.came)} came"

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "asked": {"old": self.asked[0], "new": self.asked[1]},
            "stories": {"old": self.stories[0], "new": self.stories[1]},
            "came": list(self.came),
            "went": list(self.went),
        }

    def line(self) -> str:
        """Return it as a line for people."""
        before, after = (f"{asked} ({size})" for asked, size in zip(self.asked, self.stories, strict=True))
        if self.kind != "changed":
            return f"{self.name} {self.kind}: {after if self.kind == 'added' else before}"
        parts = [f"{self.name} changed: {before} -> {after}"]
        parts += [f"came: {_listed(self.came)}"] if self.came else []
        parts += [f"went: {_listed(self.went)}"] if self.went else []
        return "; ".join(parts)


def subset_changes(old: Path, new: Path) -> tuple[SubsetChange, ...]:
    """Return the subsets that differ between two releases, by name.

    Raises:
        InputError: what one of them says of its subsets cannot be read.
    """
    before, after = read_subsets(old), read_subsets(new)
    changes = (_change(name, before, after) for name in sorted(before.keys() | after.keys()))
    return tuple(one for one in changes if one is not None)


_Subsets = Mapping[str, tuple[SubsetRequest, tuple[str, ...]]]


def _change(name: str, before: _Subsets, after: _Subsets) -> SubsetChange | None:
    old, new = before.get(name), after.get(name)
    past, present = set(old[1] if old else ()), set(new[1] if new else ())
    if old is not None and new is not None and old[0] == new[0] and past == present:
        return None
    return SubsetChange(
        name,
        "added" if old is None else "removed" if new is None else "changed",
        (old[0].asked if old else None, new[0].asked if new else None),
        (len(past), len(present)),
        tuple(sorted(present - past)),
        tuple(sorted(past - present)),
    )


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
