"""A diff of releases as JSON for scripts, and as lines for people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..schemas.canonical import Json, canonical_text
from .changes import Change, pattern_of
from .diffing_sides import Side
from .diffing_steps import ASIDE, NOUNS

if TYPE_CHECKING:
    from .diffing import ReleaseDiff

SHOWN = 12
"""Most entries of one kind that people are shown; JSON has them all."""
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


def lines(diff: "ReleaseDiff") -> Iterator[str]:
    """Yield a diff as lines for people."""
    old, new = about_side(diff.old), about_side(diff.new)
    yield f"{old['name']} {old['version']} -> {new['name']} {new['version']}"
    for title, entries in sections(diff):
        yield f"{title}: {len(entries)}"
        yield from (f"  {one}" for one in entries[:SHOWN])
        if len(entries) > SHOWN:
            yield f"  ... and {len(entries) - SHOWN} more; --json lists all"
    yield from hidden_lines(diff)
    yield f"step due: {diff.step}"
    yield from (f"  {step}: {why}" for step, why in diff.reasons)
    yield f"next version: {diff.due} or higher"
    if diff.problem is not None:
        yield f"error: {diff.problem}"


def sections(diff: "ReleaseDiff") -> list[tuple[str, list[str]]]:
    """Return title and entries of every part of a diff that has any, a line each."""
    found = [(f"{_many(name)} added", list(ids)) for name, ids in diff.added.items() if name not in ASIDE]
    found.append((f"{_many(diff.main)} gone", [_gone_text(*one) for one in _gone_rows(diff)]))
    besides = (name for name in diff.removed if name not in (*ASIDE, diff.main))
    found += [(f"{_many(name)} gone", list(diff.removed[name])) for name in besides]
    found.append(("moved to another split", [f"{one.id}: {one.old} -> {one.new}" for one in diff.moved]))
    for name in dict.fromkeys(record.file for record in diff.changed):
        found.append((f"changes of {_many(name)}", list(_changed_lines(diff, name))))
    before, after = diff.schema
    versions = [f"version {before} -> {after}"] if before != after else []
    fields = [f"{name} {path} {kind}" for name, one in diff.fields.items() for path, kind in one.items()]
    found.append(("schema", versions + fields))
    found.append(("about the release", [f"{one.path}: {values_text(one)}" for one in diff.about]))
    found.append(("documents", [f"{path} {kind}" for path, kind in diff.documents.items()]))
    shifts = [one for one in diff.statistics if one.is_count]
    found.append(
        ("statistics", [f"{one.path}: {_number(one.before)} -> {_number(one.after)}" for one in shifts])
    )
    return [(title, entries) for title, entries in found if entries]


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
        yield "  no commitments under one salt: whether its stories changed cannot be told from outside"


def values_text(change: Change) -> str:
    """Return what a change did, in one line, long values shortened."""
    old, new = shortened(change.old), shortened(change.new)
    if change.kind == "added":
        return f"added {new}"
    return f"removed {old}" if change.kind == "removed" else f"{change.kind} {old} -> {new}"


def shortened(value: Json, longest: int = _LONGEST) -> str:
    """Return a value as JSON in one line of bearable length."""
    text = canonical_text(value)
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _changed_lines(diff: "ReleaseDiff", name: str) -> Iterator[str]:
    """Yield the changes of one file; where there are many, first how many there are of each field."""
    rows = [
        (one.id, change)
        for one in diff.changed
        if one.file == name
        for change in one.changes
        if change.path not in _FOLLOWING
    ]
    if len(rows) > SHOWN:
        counts: Counter[tuple[str, str]] = Counter((pattern_of(one.path), one.kind) for _, one in rows)
        yield from (f"{count} x {path} {kind}" for (path, kind), count in counts.most_common(SHOWN // 2))
    yield from (f"{record_id} {change.path} {values_text(change)}" for record_id, change in rows)


def _many(name: str) -> str:
    return NOUNS.get(name, ("", f"records of {name}"))[1]


def _gone_rows(diff: "ReleaseDiff") -> Sequence[tuple[str, str, str | None]]:
    return [(one.id, one.how, one.reason) for one in diff.gone]


def _gone_text(story_id: str, how: str, reason: str | None) -> str:
    named = {"left_out": "left out by packing"}.get(how, how)
    return f"{story_id}: {named}" + (f": {reason}" if reason else "")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"
