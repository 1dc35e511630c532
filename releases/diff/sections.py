"""The parts of a diff that releases of every kind have beside their records."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ...schemas.canonical import Json, canonical_text
from ...schemas.layout import DATA, RELEASE, SUMS
from ...schemas.text import printable, tallied
from ..subsets.requests import SubsetRequest, read_subsets
from .form import Change, DiffForm, Reasons, Section, Step, changes_between, path_text
from .sides import Side

ABOUT_CHANGED = "what is said about the release changed: "
_ABOUT = ("name", "title", "creators", "contact")
_SHARES = tuple(f".{name}" for name in ("share", "target_share", "deviation"))
"""Ends of the paths of numbers that follow from counts: kept in JSON, left out where people read."""
_LONGEST = 120
_NAMED = 5


def values_text(change: Change) -> str:
    """Return what a change did, in one line, long values shortened."""
    old, new = shortened(change.old), shortened(change.new)
    if change.kind == "added":
        return f"added {new}"
    return f"removed {old}" if change.kind == "removed" else f"{change.kind} {old} -> {new}"


def shortened(value: Json, longest: int = _LONGEST) -> str:
    """Return a value as JSON in one line of bearable length."""
    text = printable(canonical_text(value))
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _about(old: Side, new: Side) -> tuple[Change, ...]:
    """Return what is said about the release as a whole and differs."""
    if not all(isinstance(side.document.get("about"), dict) for side in (old, new)):
        return ()
    before, after = (
        {name: side.document["about"].get(name) for name in _ABOUT}
        | {name: side.document.get(name) for name in ("license", "format")}
        for side in (old, new)
    )
    return changes_between(before, after)


def _about_reasons(rows: Sequence[Change], *_: Side) -> Reasons:
    if rows:
        yield Step.PATCH, ABOUT_CHANGED + ", ".join(change.path.removeprefix("$.") for change in rows)


@dataclass(frozen=True, slots=True)
class SubsetChange:
    """A subset that is not as it was."""

    name: str  # its name
    kind: str  # ``added``, ``removed`` or ``changed``
    # how it was asked for in the old release, and in the new one; None where it is not there
    asked: tuple[str | None, str | None]
    stories: tuple[int, int]  # how many it holds in both
    came: tuple[str, ...]  # ids that are only in the new one; all of them for one that was added
    went: tuple[str, ...]  # ids that are only in the old one

    @property
    def reason(self) -> tuple[Step, str]:
        """The step that it asks for, and why: a number of the subset is one of other stories now."""
        step = Step.MAJOR if self.kind == "removed" or self.went else Step.MINOR if self.came else Step.PATCH
        if self.kind != "changed":
            return step, f"the subset {self.name} {'is new' if self.kind == 'added' else 'is gone'}"
        if not self.came and not self.went:
            return step, f"the subset {self.name} is asked for otherwise"
        return (
            step,
            f"{tallied(len(self.went), 'stories')} left the subset {self.name}, {len(self.came)} came",
        )

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        pairs = {"asked": self.asked, "stories": self.stories}
        return {
            "name": self.name,
            "kind": self.kind,
            **{name: dict(zip(("old", "new"), pair, strict=True)) for name, pair in pairs.items()},
            "came": list(self.came),
            "went": list(self.went),
        }

    def line(self) -> str:
        """Return it as a line for people."""
        before, after = (f"{asked} ({size})" for asked, size in zip(self.asked, self.stories, strict=True))
        if self.kind != "changed":
            return f"{self.name} {self.kind}: {after if self.kind == 'added' else before}"
        moves = (("came", self.came), ("went", self.went))
        parts = [f"{self.name} changed: {before} -> {after}"]
        return "; ".join(parts + [f"{verb}: {_first(ids)}" for verb, ids in moves if ids])


def _first(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")


def _subset_changes(old: Side, new: Side) -> tuple[SubsetChange, ...]:
    """Return the subsets that differ between two releases, by name."""
    before, after = read_subsets(old.folder), read_subsets(new.folder)
    changes = (_subset_change(name, before, after) for name in sorted(before.keys() | after.keys()))
    return tuple(change for change in changes if change is not None)


_Subsets = Mapping[str, tuple[SubsetRequest, tuple[str, ...]]]


def _subset_change(name: str, before: _Subsets, after: _Subsets) -> SubsetChange | None:
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


class FileChange(NamedTuple):
    """A file besides records, tables and reference images that was added, removed or changed."""

    path: str
    kind: str


def _documents(form: DiffForm, old: Side, new: Side) -> list[FileChange]:
    changes = []
    for path in sorted(old.files.keys() | new.files.keys()) if new.files else ():
        tables = path in old.records or path in new.records or path.startswith(f"{DATA}/")
        if tables or path in (RELEASE, SUMS) or any(section.owns(path) for section in form.sections):
            continue
        before, after = old.files.get(path), new.files.get(path)
        if before is None or after is None:
            changes.append(FileChange(path, "added" if before is None else "removed"))
        elif before.get("sha256") != after.get("sha256"):
            changes.append(FileChange(path, "changed"))
    return changes


@dataclass(frozen=True, slots=True)
class Shift:
    """A number of the statistics that differs."""

    path: str  # where it stands in ``statistics.json``
    before: float | None  # its old value; None where there was none
    after: float | None  # its new value; None where there is none any more

    @property
    def is_count(self) -> bool:
        """Whether it is a count, and not a share that follows from counts."""
        return not self.path.endswith(_SHARES)

    @property
    def what(self) -> str:
        """What it counts, in words: question types, causal."""
        steps = re.findall(r'\["(.*?)"\]|\.([^.[]+)', self.path.removesuffix(".count"))
        return ", ".join((quoted or plain).replace("_", " ") for quoted, plain in steps)

    @property
    def values(self) -> tuple[str, str]:
        """The old value and the new one, as people read them."""
        before, after = (
            "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"
            for value in (self.before, self.after)
        )
        return before, after

    def line(self) -> str:
        """Return it as a line for people."""
        return f"{self.path}: {' -> '.join(self.values)}"


def _shifts(old: Side, new: Side) -> tuple[Shift, ...]:
    """Return the numbers that differ, in the order of the old statistics, then of the new ones."""
    before, after = (dict(_numbers(side.statistics, ())) for side in (old, new))
    return tuple(
        Shift(path, before.get(path), after.get(path))
        for path in {**before, **after}
        if before.get(path) != after.get(path)
    )


def _numbers(value: Json, steps: tuple[str | int, ...]) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, (*steps, str(name)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path_text(steps), value


ABOUT = Section(
    "about",
    "about the release",
    _about,
    lambda change: f"{change.path}: {values_text(change)}",
    as_json=lambda rows: [change.as_json() for change in rows],
    reasons=_about_reasons,
)
SUBSETS = Section(
    "subsets",
    "subsets",
    _subset_changes,
    SubsetChange.line,
    as_json=lambda rows: [change.as_json() for change in rows],
    reasons=lambda rows, *_: (change.reason for change in rows),
)
STATISTICS = Section(
    "statistics",
    "statistics",
    _shifts,
    Shift.line,
    shown=lambda rows: [shift for shift in rows if shift.is_count],
)


def sections_of(form: DiffForm) -> tuple[Section, ...]:
    """Return the sections of releases of a kind, in their order in JSON and for people."""
    documents = Section("documents", "documents", partial(_documents, form), " ".join, as_json=dict)
    return (ABOUT, SUBSETS, *form.sections, documents, STATISTICS)


@dataclass(frozen=True, slots=True)
class HiddenChange:
    """What two public releases tell about their hidden tests: counts, and how many commitments differ.

    Nobody outside can tell what changed in a hidden record. So every commitment that went counts as a record
    that changed its meaning or went, for the version as well.
    """

    before: Mapping[str, Json]  # what is counted -> how many, in the old release; ``after`` in the new one
    after: Mapping[str, Json]
    kept: int | None = None  # commitments that both releases make; None where theirs cannot be compared
    # commitments that only the old release makes; ``fresh`` those that only the new one makes
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
        if self.kept is not None:
            gone, fresh, verb = self.gone or 0, self.fresh or 0, "changed or gone"
        else:
            before, after = (int(side.get("stories", 0)) for side in (self.before, self.after))
            gone, fresh, verb = max(0, before - after), max(0, after - before), "gone"
        if gone:
            return [(Step.MAJOR, f"{_stories(gone)} of the hidden test {verb}")]
        return [(Step.MINOR, f"{_stories(fresh)} of the hidden test added")] if fresh else []

    def lines(self) -> Iterator[str]:
        """Yield what is known, for people."""
        before, after = (side.get("stories", 0) for side in (self.before, self.after))
        if not (before or after):
            return
        counts = tallied(after, "stories")
        yield f"hidden test: {counts}, as before" if before == after else f"hidden test: {before} -> {counts}"
        if self.kept is not None:
            yield f"  commitments: {self.kept} kept, {self.gone} gone, {self.fresh} new"
        else:
            yield "  no commitments with the same salt: nobody outside can tell whether its stories changed"


def hidden_change(old: Side, new: Side) -> HiddenChange:
    """Compare what two releases say about their hidden tests."""
    counts = [side.document.get("hidden_test") or {} for side in (old, new)]
    promises = [side.document.get("commitments") or {} for side in (old, new)]
    before, after = ([part.get("scheme"), part.get("salt")] for part in promises)
    if before != after or not all(promises):
        return HiddenChange(counts[0], counts[1])
    past, present = (frozenset(part["values"]) for part in promises)
    kept, gone, fresh = len(past & present), len(past - present), len(present - past)
    return HiddenChange(counts[0], counts[1], kept, gone, fresh)


def _stories(count: int) -> str:
    return tallied(count, "stories")
