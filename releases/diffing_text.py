"""A diff of releases as JSON for scripts, and as lines for people."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..schemas.canonical import Json, canonical_text
from .changes import Change, pattern_of
from .diffing_images import ImageChange, by_character
from .diffing_sides import Side
from .diffing_statistics import Shift
from .diffing_steps import ASIDE, NOUNS

if TYPE_CHECKING:
    from .diffing import Gone, ReleaseDiff

SHOWN = 12
"""Most entries of one kind that people are shown; JSON has them all."""
IMAGES = "characters with other reference images"
"""Title of the section about them."""
_LONGEST = 120
_FOLLOWING = tuple(
    f"$.provenance.source_{name}" for name in ("prompt_hash", "annotations_sha256", "contrastives_sha256")
)
"""Hashes that change with what they are of: told to scripts only."""


def as_json(diff: "ReleaseDiff") -> dict[str, Json]:
    """Return a diff as plain JSON."""
    return {
        "old": about_side(diff.old),
        "new": about_side(diff.new),
        "step": {
            "due": str(diff.step),
            "reasons": [{"step": str(step), "why": why} for step, why in diff.reasons],
            "next_version": str(diff.due),
            "problem": diff.problem,
        },
        "added": {name: list(ids) for name, ids in diff.added.items()},
        "removed": {name: list(ids) for name, ids in diff.removed.items()},
        "gone": [{"id": one.id, "how": one.how, "reason": one.reason} for one in diff.gone],
        "moved": [{"id": one.id, "old": one.old, "new": one.new} for one in diff.moved],
        "changed": [
            {"file": one.file, "id": one.id, "changes": [change.as_json() for change in one.changes]}
            for one in diff.changed
            if one.changes
        ],
        "schema": {
            "old": diff.schema[0],
            "new": diff.schema[1],
            "fields": {name: dict(fields) for name, fields in diff.fields.items()},
        },
        "about": [change.as_json() for change in diff.about],
        "subsets": [one.as_json() for one in diff.subsets],
        "images": [one.as_json() for one in diff.images],
        "documents": dict(diff.documents),
        "statistics": [shift.as_json() for shift in diff.statistics],
        "hidden_test": diff.hidden.as_json(),
    }


def about_side(side: Side) -> dict[str, Json]:
    """Return which release one side is."""
    about = side.document.get("about")
    name = about.get("name") if isinstance(about, dict) else None
    version = side.document["version"]
    return {"path": str(side.folder), "name": name, "version": version, "sha256": side.sha256}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a diff for people.

    Attributes:
        title: what it lists.
        rows: what is listed.
        tell: returns a row as one line.
        lead: lines before the rows, about all of them.
    """

    title: str
    rows: Sequence[Any]
    tell: Callable[[Any], str] = str
    lead: Sequence[str] = ()

    def lines(self, most: int) -> Iterator[str]:
        """Yield the first rows as lines, without characters that a terminal would act on."""
        yield from self.lead
        yield from (printable(self.tell(row)) for row in self.rows[:most])


def lines(diff: "ReleaseDiff") -> Iterator[str]:
    """Yield a diff as lines for people."""
    old, new = about_side(diff.old), about_side(diff.new)
    yield printable(f"{old['name']} {old['version']} -> {new['name']} {new['version']}")
    for section in sections(diff):
        yield f"{section.title}: {len(section.rows)}"
        yield from (f"  {line}" for line in section.lines(SHOWN))
        if len(section.rows) > SHOWN:
            yield f"  ... and {len(section.rows) - SHOWN} more; --json lists all"
    yield from hidden_lines(diff)
    yield f"step due: {diff.step}"
    yield from (printable(f"  {step}: {why}") for step, why in diff.reasons)
    yield f"next version: {diff.due} or higher"
    if diff.problem is not None:
        yield f"error: {diff.problem}"


def sections(diff: "ReleaseDiff") -> list[Section]:
    """Return the parts of a diff that have anything to list."""
    found = [Section(f"{_many(name)} added", ids) for name, ids in diff.added.items() if name not in ASIDE]
    found.append(Section(f"{_many(diff.main)} gone", diff.gone, _gone_text))
    besides = (name for name in diff.removed if name not in (*ASIDE, diff.main))
    found += [Section(f"{_many(name)} gone", diff.removed[name]) for name in besides]
    found.append(
        Section("moved to another split", diff.moved, lambda one: f"{one.id}: {one.old} -> {one.new}")
    )
    found += [_changed(diff, name) for name in dict.fromkeys(record.file for record in diff.changed)]
    before, after = diff.schema
    versions = [f"version {before} -> {after}"] if before != after else []
    fields = [f"{name} {path} {kind}" for name, one in diff.fields.items() for path, kind in one.items()]
    found.append(Section("schema", versions + fields))
    found.append(Section("about the release", diff.about, lambda one: f"{one.path}: {values_text(one)}"))
    found.append(Section("subsets", diff.subsets, lambda one: one.line()))
    owners = list(by_character(diff.images).values())
    found.append(Section(IMAGES, owners, _images_text))
    found.append(Section("documents", [f"{path} {kind}" for path, kind in diff.documents.items()]))
    found.append(Section("statistics", [one for one in diff.statistics if one.is_count], _shift_text))
    return [section for section in found if section.rows]


def hidden_lines(diff: "ReleaseDiff") -> Iterator[str]:
    """Yield what is known about the hidden test, for people."""
    hidden = diff.hidden
    before, after = (side.get("stories", 0) for side in (hidden.before, hidden.after))
    if not (before or after):
        return
    yield f"hidden test: {before} -> {after} stories"
    if hidden.kept is not None:
        yield f"  commitments: {hidden.kept} kept, {hidden.gone} gone, {hidden.fresh} new"
    else:
        yield "  no commitments with the same salt: nobody outside can tell whether its stories changed"


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


def printable(text: str) -> str:
    """Return a text with its control characters, those of direction too, made visible."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def _changed(diff: "ReleaseDiff", name: str) -> Section:
    """Return the changes of one file; where there are many, first how many there are of each field."""
    rows = [
        (one.id, change)
        for one in diff.changed
        if one.file == name
        for change in one.changes
        if change.path not in _FOLLOWING
    ]
    lead: list[str] = []
    if len(rows) > SHOWN:
        counts: Counter[tuple[str, str]] = Counter((pattern_of(one.path), one.kind) for _, one in rows)
        most = counts.most_common(SHOWN // 2)
        lead = [printable(f"{count} x {path} {kind}") for (path, kind), count in most]
    return Section(f"changes of {_many(name)}", rows, _change_text, lead)


def _change_text(row: tuple[str, Change]) -> str:
    record_id, change = row
    return f"{record_id} {change.path} {values_text(change)}"


def _many(name: str) -> str:
    return NOUNS.get(name, ("", f"records of {name}"))[1]


def _gone_text(one: "Gone") -> str:
    named = {"left_out": "left out by packing"}.get(one.how, one.how)
    return f"{one.id}: {named}" + (f": {one.reason}" if one.reason else "")


def _images_text(changes: Sequence[ImageChange]) -> str:
    """Return what became of the images of one character."""
    first = changes[0]
    told = []
    for kind in ("added", "removed", "changed"):
        names = [f"{one.file.rpartition('/')[2]}{_hashes(one)}" for one in changes if one.kind == kind]
        told += [f"{kind} {', '.join(names)}"] if names else []
    return f"{first.story_id} {first.character}: {'; '.join(told)}"


def _hashes(one: ImageChange) -> str:
    return f" ({one.old[:8]} -> {one.new[:8]})" if one.old and one.new else ""


def _shift_text(one: Shift) -> str:
    return f"{one.path}: {_number(one.before)} -> {_number(one.after)}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"
