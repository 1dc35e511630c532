"""What changed between two releases: by record and JSON path, and which version that asks for."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, canonical_text
from ...schemas.paths import DATA, RELEASE, SUMS
from ...schemas.text import printable, tallied
from ..subsets import SubsetRequest, read_subsets
from .form import (
    Change,
    DiffForm,
    Reasons,
    RecordFile,
    Section,
    Side,
    Step,
    Version,
    changes_between,
    is_enough,
    next_version,
    open_side,
    path_text,
    pattern_of,
)

# -- The parts of a diff that releases of every kind have beside their records

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
        pairs = {"asked": self.asked, "stories": self.stories}
        return {
            "name": self.name,
            "kind": self.kind,
            **{name: dict(zip(("old", "new"), pair, strict=True)) for name, pair in pairs.items()},
            "came": list(self.came),
            "went": list(self.went),
        }

    def line(self) -> str:
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


# --


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A record that both releases have, and that differs."""

    file: str  # the JSONL file
    id: str  # the record's id
    changes: tuple[Change, ...]  # what differs in it; a story that only moved to another split has none


@dataclass(frozen=True, slots=True)
class Gone:
    """A story that only the old release has."""

    id: str  # story id
    # ``withdrawn`` where the new release names it so, ``left_out`` where packing did, or ``removed``
    how: str
    reason: str | None  # what the new release says about it; None where it says nothing


@dataclass(frozen=True, slots=True)
class Move:
    """A story that stands in another split than before."""

    id: str
    old: str
    new: str


@dataclass(frozen=True)
class ReleaseDiff(Tabular):
    """What changed between two releases."""

    form: DiffForm  # how releases of the kind are compared
    old: Side  # the old release; ``new`` the new one
    new: Side
    # JSONL file -> ids of the records that only the new release has; ``removed`` likewise
    added: Mapping[str, Sequence[str]]
    removed: Mapping[str, Sequence[str]]
    gone: Sequence[Gone]  # the stories among the removed ones, with reasons
    changed: Sequence[RecordChange]  # the records of both that differ, by file and id
    moved: Sequence[Move]  # the stories that stand in another split
    schema: tuple[str, str]  # the versions of the records' schema, old and new
    sections: Mapping[str, Sequence[Any]]  # name of a section -> its rows; see :func:`sections_of`
    hidden: HiddenChange  # what can be seen of the hidden test
    # step -> why it is due, one sentence each, the largest step first
    reasons: Sequence[tuple[Step, str]] = field(default=())

    def grids(self) -> Iterator[Grid]:
        """Yield how many records changed, by file, and every change, by record and JSON path."""
        title = f"{self.old_version} to {version_of(self.new)}: {self.step}"
        files = dict.fromkeys((*self.added, *self.removed, *(record.file for record in self.changed)))
        counts = Counter(record.file for record in self.changed)
        rows = tuple(
            (name, len(self.added.get(name, ())), len(self.removed.get(name, ())), counts[name])
            for name in files
        )
        note = " ".join([*(f"{why}." for _, why in self.reasons), self.problem or ""]).strip()
        yield Grid("files", title, ("file", "added", "removed", "changed"), rows, note)
        changes = tuple(
            (record.id, record.file, change.path, change.kind)
            for record in self.changed
            for change in record.changes
        )
        yield Grid("changes", "Changes", ("record", "file", "path", "kind"), changes, words=(1, 2, 3))

    @property
    def fields(self) -> dict[str, dict[str, str]]:
        """JSONL file -> field that records have on one side only -> ``added`` or ``removed``.

        List elements are taken together. The schema is another one then.
        """
        fields: dict[str, dict[str, str]] = {}
        for record in self.changed:
            for change in record.changes:
                pattern = pattern_of(change.path)
                if change.kind in ("added", "removed") and not pattern.endswith("[*]"):
                    fields.setdefault(record.file, {})[pattern] = change.kind
        return {name: dict(sorted(kinds.items())) for name, kinds in fields.items()}

    @property
    def step(self) -> Step:
        """The largest step that is due."""
        return max((step for step, _ in self.reasons), default=Step.NONE)

    @property
    def old_version(self) -> Version:
        return version_of(self.old)

    @property
    def due(self) -> Version:
        """The lowest version that the new release may have."""
        return next_version(self.old_version, self.step)

    @property
    def problem(self) -> str | None:
        """Why the version that the new release states cannot be its own; None where it can."""
        old, new = self.old_version, version_of(self.new)
        if is_enough(old, self.step, new):
            return None
        if new.order == old.order:
            return f"both say version {old}, and their content differs; the new one must be {self.due}"
        if new.order < old.order:
            return f"the new release says version {new}, which comes before {old}: are the two swapped?"
        return f"the new release says version {new}; a {self.step} step is due, which makes it {self.due}"


def diff(old: str | Path, new: str | Path, form: DiffForm) -> ReleaseDiff:
    """Compare two releases of a benchmark, both public or both hidden.

    Every line must be one whose hash is stated; only records whose hashes differ are parsed. Nothing of the
    hidden test is read, unless the folders compared are the hidden ones.
    """
    return diff_sides(open_side(old), open_side(new), form)


def diff_sides(old: Side, new: Side, form: DiffForm) -> ReleaseDiff:
    """Compare two sides; see :func:`diff`. One may be the draft of a release."""
    for name in ("kind", "visibility"):
        _require_same(name, old, new)
    version_of(old), version_of(new)
    added, removed, differing = _compared_ids(old, new)
    changed, moved = _changed_records(old, new, differing, form)
    return with_reasons(
        ReleaseDiff(
            form, old, new, added, removed, gone_from(removed.get(form.main, ()), new), changed, moved,
            schema=(str(old.document.get("schema_version")), str(new.document.get("schema_version"))),
            sections={section.name: section.compare(old, new) for section in sections_of(form)},
            hidden=hidden_change(old, new),
        )
    )  # fmt: skip


def with_reasons(compared: ReleaseDiff) -> ReleaseDiff:
    """Return a diff with the steps of the version that it asks for, the largest first."""
    old, new = compared.old, compared.new
    due: list[tuple[Step, str]] = []
    before, after = compared.schema
    if before != after:
        due.append((Step.MAJOR, f"the schema of the records is version {after}, and was {before}"))
    due += _record_reasons(compared)
    by_section = {
        section.name: list(section.reasons(compared.sections[section.name], old, new))
        for section in sections_of(compared.form)
    }
    about = by_section.pop(ABOUT.name)
    due += [*chain.from_iterable(by_section.values()), *compared.hidden.reasons(), *about]
    if not due and (old.sha256 is None or old.sha256 != new.sha256):
        due.append((Step.PATCH, "no record changed; the documents beside them may have"))
    return replace(compared, reasons=tuple(sorted(due, key=lambda reason: -reason[0])))


def version_of(side: Side) -> Version:
    return Version.of(side.document["version"], f"{side.folder / RELEASE} $.version")


def _require_same(name: str, old: Side, new: Side) -> None:
    before, after = old.document.get(name), new.document.get(name)
    if before != after:
        what = f"it is {after}, and {before} in {old.folder}"
        fix = "give two releases of one benchmark, both public or both hidden"
        raise InputError.one(f"{new.folder / RELEASE} $.{name}", what=what, fix=fix)


_Ids = dict[str, tuple[str, ...]]


def _compared_ids(old: Side, new: Side) -> tuple[_Ids, _Ids, _Ids]:
    """Return by file the ids that are only new, only old, and those whose hashes differ; sorted."""
    added: _Ids = {}
    removed: _Ids = {}
    differing: _Ids = {}
    for name in sorted(old.records.keys() | new.records.keys()):
        before, after = old.records.get(name, {}), new.records.get(name, {})
        for table, ids in (
            (added, after.keys() - before.keys()),
            (removed, before.keys() - after.keys()),
            (differing, {id_ for id_ in before.keys() & after.keys() if before[id_] != after[id_]}),
        ):
            if ids:
                table[name] = tuple(sorted(ids))
    return added, removed, differing


def _changed_records(
    old: Side, new: Side, differing: _Ids, form: DiffForm
) -> tuple[list[RecordChange], list[Move]]:
    changed, moved = [], []
    for name, ids in differing.items():
        before, after = old.rows(name, ids), new.rows(name, ids)
        for record_id in ids:
            changes = changes_between(before[record_id], after[record_id])
            if form.file(name).splits:
                moves = [change for change in changes if change.path == "$.split"]
                moved += [Move(record_id, str(move.old), str(move.new)) for move in moves]
                changes = tuple(change for change in changes if change.path != "$.split")
            changed.append(RecordChange(name, record_id, changes))
    return changed, moved


def gone_from(removed: Iterable[str], new: Side) -> list[Gone]:
    """Return the stories that only the old release has, with what the new one says of each."""
    withdrawn, left_out = (_reasons_in(new.document.get(part)) for part in ("withdrawn", "left_out"))
    gone = []
    for story_id in removed:
        how = "withdrawn" if story_id in withdrawn else "left_out" if story_id in left_out else "removed"
        gone.append(Gone(story_id, how, withdrawn.get(story_id, left_out.get(story_id))))
    return gone


def _reasons_in(part: Json) -> dict[str, str | None]:
    """Return story id -> reason of what a part of ``release.json`` lists."""
    entries = part.get("stories", part.get("prompts")) if isinstance(part, dict) else None
    return {
        entry["id"]: str(entry["reason"]) if entry.get("reason") is not None else None
        for entry in entries or ()
    }


def _record_reasons(compared: ReleaseDiff) -> Iterator[tuple[Step, str]]:
    form = compared.form
    counts: Counter[tuple[Step, str, str]] = Counter()
    counts[Step.MAJOR, "moved to another split", form.main] += len(compared.moved)
    for name, ids in compared.removed.items():
        if not form.file(name).aside:  # else it goes with its story
            counts[Step.MAJOR, "gone", name] += len(ids)
    for record in compared.changed:
        step = max((_step_of(form.file(record.file), change) for change in record.changes), default=Step.NONE)
        what = "changed in meaning" if step is Step.MAJOR else "changed otherwise"
        counts[step, what, record.file] += 1
    for name, ids in compared.added.items():
        if not form.file(name).aside:
            late = _late(compared, name, ids)
            counts[Step.MAJOR, "added to stories that were there", name] += late
            counts[Step.MINOR, "added", name] += len(ids) - late
    for (step, what, name), count in counts.items():
        if count and step is not Step.NONE:
            noun = form.file(name).noun if count == 1 else form.file(name).nouns
            yield step, f"{count} {noun} {what}"


def _step_of(file: RecordFile, change: Change) -> Step:
    top = change.path.removeprefix("$.").partition(".")[0].partition("[")[0]
    return Step.PATCH if file.aside or top in file.quiet else Step.MAJOR


def _late(compared: ReleaseDiff, name: str, ids: Sequence[str]) -> int:
    """Return how many of the added records belong to a story that was there before: it means more now."""
    owner = compared.form.file(name).owner
    fresh = set(compared.added.get(compared.form.main, ()))
    if owner is None:
        return 0
    return sum(row.get(owner) not in fresh for row in compared.new.rows(name, ids).values())
