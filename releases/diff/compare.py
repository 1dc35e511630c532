"""What changed between two releases: by record and JSON path, and which version that asks for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json
from ...schemas.layout import RELEASE
from .form import (
    Change,
    DiffForm,
    RecordFile,
    Step,
    Version,
    changes_between,
    is_enough,
    next_version,
    pattern_of,
)
from .sections import ABOUT, HiddenChange, hidden_change, sections_of
from .sides import Side, open_side


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
    sections: Mapping[str, Sequence[Any]]  # name of a section -> its rows; see :func:`.sections.sections_of`
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
        """The version that the old release states."""
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
    """Return the version that a side states."""
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
