"""What changed between two releases: by record and JSON path, and which version that asks for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from .changes import Change, changes_between, pattern_of
from .diffing_hidden import HiddenChange, hidden_change
from .diffing_images import ImageChange, image_changes, is_image
from .diffing_sides import Side, open_side
from .diffing_statistics import Shift, shifts_between
from .diffing_steps import due_reasons
from .diffing_subsets import SubsetChange, subset_changes
from .layout import ANNOTATIONS, DATA, ENTITIES, EPISODES, EVENTS, PROMPTS, RELEASE, SHOT_SCRIPTS, SHOTS, SUMS
from .version_step import Step, Version, is_enough, next_version

MAIN = {EVENTS: PROMPTS, ENTITIES: EPISODES, SHOTS: SHOT_SCRIPTS}
"""Kind of release -> the JSONL file of its units, where that is not the stories' file."""
_ABOUT = ("name", "title", "creators", "contact")


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A record that both releases have, and that differs.

    Attributes:
        file: the JSONL file.
        id: the record's id.
        changes: what differs in it; a story that only moved to another split has none.
    """

    file: str
    id: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """A story that only the old release has.

    Attributes:
        id: story id.
        how: ``withdrawn`` where the new release names it so, ``left_out`` where packing did, or ``removed``.
        reason: what the new release says about it; None where it says nothing.
    """

    id: str
    how: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Move:
    """A story that stands in another split than before."""

    id: str
    old: str
    new: str


@dataclass(frozen=True)
class ReleaseDiff:
    """What changed between two releases.

    Attributes:
        old: the old release; ``new`` the new one.
        added: JSONL file -> ids of the records that only the new release has; ``removed`` likewise.
        gone: the stories among the removed ones, with reasons.
        changed: the records of both that differ, by file and id.
        moved: the stories that stand in another split.
        schema: the versions of the records' schema, old and new.
        fields: JSONL file -> field (list elements taken together) -> ``added`` or ``removed``, where records
            of both releases have it on one side only.
        about: what is said about the release as a whole, where it differs.
        subsets: the subsets that were added, removed, or have other members.
        images: the reference images of characters that were added, removed or have other content.
        documents: path -> ``added``, ``removed`` or ``changed``, of the files besides records, tables and
            reference images.
        statistics: the statistics that differ.
        hidden: what can be seen of the hidden test.
        reasons: step -> why it is due, one sentence each, the largest step first.
    """

    old: Side
    new: Side
    added: Mapping[str, Sequence[str]]
    removed: Mapping[str, Sequence[str]]
    gone: Sequence[Gone]
    changed: Sequence[RecordChange]
    moved: Sequence[Move]
    schema: tuple[str, str]
    fields: Mapping[str, Mapping[str, str]]
    about: Sequence[Change]
    subsets: Sequence[SubsetChange]
    images: Sequence[ImageChange]
    documents: Mapping[str, str]
    statistics: Sequence[Shift]
    hidden: HiddenChange
    reasons: Sequence[tuple[Step, str]] = field(default=())

    @property
    def main(self) -> str:
        """The JSONL file of the stories, or of what stands in their place."""
        return _main(self.new)

    @property
    def step(self) -> Step:
        """The largest step that is due."""
        return max((step for step, _ in self.reasons), default=Step.NONE)

    @property
    def old_version(self) -> Version:
        """The version that the old release states."""
        return _version_of(self.old)

    @property
    def due(self) -> Version:
        """The lowest version that the new release may have."""
        return next_version(self.old_version, self.step)

    @property
    def problem(self) -> str | None:
        """Why the version that the new release states cannot be its own; None where it can."""
        old, new = self.old_version, _version_of(self.new)
        if is_enough(old, self.step, new):
            return None
        if new.order == old.order:
            return f"both say version {old}, and their content differs; the new one must be {self.due}"
        if new.order < old.order:
            return f"the new release says version {new}, which comes before {old}: are the two swapped?"
        return f"the new release says version {new}; a {self.step} step is due, which makes it {self.due}"

    def as_json(self) -> dict[str, Json]:
        """Return all of it as plain JSON, with old and new values."""
        from .diffing_text import as_json

        return as_json(self)

    def lines(self) -> Iterator[str]:
        """Return it as lines for people; long lists are shortened."""
        from .diffing_text import lines

        return lines(self)


def diff(old: str | Path, new: str | Path) -> ReleaseDiff:
    """Compare two releases of a benchmark, both public or both hidden.

    Every line must be one whose hash is stated; only records whose hashes differ are parsed. Nothing of the
    hidden test is read, unless the folders compared are the hidden ones.

    Args:
        old: the folder of the older release.
        new: the folder of the newer one.

    Raises:
        InputError: a folder is no release or is damaged, or the two cannot be compared.
        ConfigError: one of them states no semantic version.
    """
    return diff_sides(open_side(old), open_side(new))


def diff_sides(old: Side, new: Side) -> ReleaseDiff:
    """Compare two sides; see :func:`diff`. One may be the draft of a release.

    Raises:
        InputError: the two are of different kinds, or one public and one hidden, or lines are damaged.
        ConfigError: one of them states no semantic version.
    """
    for name in ("kind", "visibility"):
        _require_same(name, old, new)
    _version_of(old), _version_of(new)
    added, removed, differing = _compared_ids(old, new)
    changed, moved = _changed_records(old, new, differing)
    found: dict[str, Any] = {
        "added": added,
        "removed": removed,
        "gone": gone_from(removed.get(_main(new), ()), new),
        "changed": changed,
        "moved": moved,
        "schema": (str(old.document.get("schema_version")), str(new.document.get("schema_version"))),
        "fields": _fields(changed, differing),
        "about": tuple(_about(old, new)),
        "subsets": subset_changes(old.folder, new.folder),
        "images": image_changes(old, new),
        "documents": _documents(old, new),
        "statistics": shifts_between(old.statistics, new.statistics),
        "hidden": hidden_change(old.document, new.document),
    }
    return ReleaseDiff(old, new, **found, reasons=tuple(due_reasons(old, new, found)))


def _version_of(side: Side) -> Version:
    return Version.of(side.document["version"], f"{side.folder / RELEASE} $.version")


def _main(side: Side) -> str:
    return MAIN.get(str(side.document.get("kind")), ANNOTATIONS)


def _require_same(name: str, old: Side, new: Side) -> None:
    before, after = old.document.get(name), new.document.get(name)
    if before != after:
        raise InputError(
            [
                UserError(
                    f"{new.folder / RELEASE} $.{name}", what=f"it is {after}, and {before} in {old.folder}",
                    fix="give two releases of one benchmark, both public or both hidden",
                )
            ]
        )  # fmt: skip


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
            (differing, {one for one in before.keys() & after.keys() if before[one] != after[one]}),
        ):
            if ids:
                table[name] = tuple(sorted(ids))
    return added, removed, differing


def _changed_records(old: Side, new: Side, differing: _Ids) -> tuple[list[RecordChange], list[Move]]:
    changed, moved = [], []
    for name, ids in differing.items():
        before, after = old.rows(name, ids), new.rows(name, ids)
        for record_id in ids:
            changes = changes_between(before[record_id], after[record_id])
            if name == ANNOTATIONS:
                moves = [one for one in changes if one.path == "$.split"]
                moved += [Move(record_id, str(one.old), str(one.new)) for one in moves]
                changes = tuple(one for one in changes if one.path != "$.split")
            changed.append(RecordChange(name, record_id, changes))
    return changed, moved


def gone_from(removed: Iterable[str], new: Side) -> list[Gone]:
    """Return the stories that only the old release has, with what the new one says of each."""
    reasons = _listed(new.document.get("withdrawn"))
    left_out = _listed(new.document.get("left_out"))
    gone = []
    for story_id in removed:
        how = "withdrawn" if story_id in reasons else "left_out" if story_id in left_out else "removed"
        gone.append(Gone(story_id, how, reasons.get(story_id, left_out.get(story_id))))
    return gone


def _listed(part: Json) -> dict[str, str | None]:
    """Return story id -> reason of what a part of ``release.json`` lists."""
    entries = part.get("stories", part.get("prompts")) if isinstance(part, dict) else None
    if not isinstance(entries, list):
        return {}
    return {
        str(one["id"]): str(one["reason"]) if one.get("reason") is not None else None
        for one in entries
        if isinstance(one, dict) and "id" in one
    }


def _fields(changed: Sequence[RecordChange], differing: _Ids) -> dict[str, dict[str, str]]:
    """Return the fields that records of one file have on one side only: their schema is another one."""
    found: dict[str, dict[str, str]] = {}
    for record in changed:
        for change in record.changes:
            pattern = pattern_of(change.path)
            if change.kind in ("added", "removed") and not pattern.endswith("[*]"):
                found.setdefault(record.file, {})[pattern] = change.kind
    return {name: dict(sorted(found[name].items())) for name in differing if name in found}


def _about(old: Side, new: Side) -> Iterator[Change]:
    for side in (old, new):
        if not isinstance(side.document.get("about"), dict):
            return
    before = {name: old.document["about"].get(name) for name in _ABOUT}
    after = {name: new.document["about"].get(name) for name in _ABOUT}
    for name in ("license", "format"):
        before[name], after[name] = old.document.get(name), new.document.get(name)
    yield from changes_between(before, after)


def _documents(old: Side, new: Side) -> dict[str, str]:
    found = {}
    for path in sorted(old.files.keys() | new.files.keys()):
        tables = path in old.records or path in new.records or path.startswith(f"{DATA}/") or is_image(path)
        if tables or path in (RELEASE, SUMS) or not new.files:
            continue
        before, after = old.files.get(path), new.files.get(path)
        if before is None or after is None:
            found[path] = "added" if before is None else "removed"
        elif before.get("sha256") != after.get("sha256"):
            found[path] = "changed"
    return found
