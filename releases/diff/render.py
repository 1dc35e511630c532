"""A diff of releases as JSON for scripts and for ``changes.json``, as lines for people, and as a page."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...pages.page import policy_of, save_page, style_of, template_of
from ...schemas.canonical import Json
from ...schemas.paths import FORMAT
from ...schemas.text import printable
from .compare import ABOUT, STATISTICS, SUBSETS, Gone, Move, ReleaseDiff, sections_of, shortened, values_text
from .form import Change, Side, pattern_of

SHOWN = 12
"""Most entries of one kind that people are shown; JSON has them all."""
MOST_ROWS = 2000
"""Most rows of a table on the page; JSON has them all."""
_LONGEST_VALUE = 2000

Table = Sequence[Sequence[str]]
"""Rows of cells, the first row being the head."""
_FOLLOWING = tuple(
    f"$.provenance.source_{name}" for name in ("prompt_hash", "annotations_sha256", "contrastives_sha256")
)
"""Hashes that change with what they are of: told to scripts only."""


def as_json(compared: ReleaseDiff) -> dict[str, Json]:
    """Return a diff as plain JSON, with old and new values."""
    old, new = compared.schema
    parts = _parts(compared)
    return {
        "old": about_side(compared.old),
        "new": about_side(compared.new),
        "step": {
            "due": str(compared.step),
            "reasons": _reasons(compared),
            "next_version": str(compared.due),
            "problem": compared.problem,
        },
        **_records(compared),
        "changed": [
            {"file": record.file, "id": record.id, "changes": [change.as_json() for change in record.changes]}
            for record in compared.changed
            if record.changes
        ],
        "schema": {"old": old, "new": new, "fields": compared.fields},
        **{name: parts.pop(name, []) for name in (ABOUT.name, SUBSETS.name, "images")},
        **parts,
        "hidden_test": compared.hidden.as_json(),
    }


def changes_document(compared: ReleaseDiff, version: str) -> dict[str, Json]:
    """Return the content of ``changes.json``: ids, paths and kinds of changes, no values."""
    old, new = compared.schema
    parts = _parts(compared)
    files = {
        section.name: [
            {name: value for name, value in row.items() if name not in ("old", "new")}
            for row in parts[section.name]
        ]
        for section in compared.form.sections
    }
    return {
        "format": FORMAT,
        "version": version,
        "previous": {"version": compared.old_version.text, "sha256": compared.old.sha256},
        "step": str(compared.step),
        "reasons": _reasons(compared),
        **_records(compared),
        "changed": [
            {"file": record.file, "id": record.id, "path": change.path, "kind": change.kind}
            for record in compared.changed
            for change in record.changes
        ],
        "schema": {"old": old, "new": new},
        **({SUBSETS.name: parts[SUBSETS.name]} if parts[SUBSETS.name] else {}),
        **{name: rows for name, rows in files.items() if rows},
        "hidden_test": compared.hidden.as_json(),
    }


def _parts(compared: ReleaseDiff) -> dict[str, Any]:
    return {
        section.name: section.as_json(compared.sections[section.name])
        for section in sections_of(compared.form)
    }


def _reasons(compared: ReleaseDiff) -> list[Json]:
    return [{"step": str(step), "why": why} for step, why in compared.reasons]


def _records(compared: ReleaseDiff) -> dict[str, Json]:
    return {
        "added": {name: list(ids) for name, ids in compared.added.items()},
        "removed": {name: list(ids) for name, ids in compared.removed.items()},
        "gone": [asdict(gone) for gone in compared.gone],
        "moved": [asdict(move) for move in compared.moved],
    }


def about_side(side: Side) -> dict[str, Json]:
    """Return which release one side is."""
    about: Mapping[str, Json] = side.document.get("about") or {}
    version = side.document["version"]
    return {"path": str(side.folder), "name": about.get("name"), "version": version, "sha256": side.sha256}


@dataclass(frozen=True, slots=True)
class Listing:
    """A part of a diff for people."""

    title: str  # what it lists
    rows: Sequence[Any]  # what is listed
    line: Callable[[Any], str] = str  # returns a row as one line
    lead: Sequence[str] = ()  # lines before the rows, about all of them
    name: str = ""  # that of its section, if it has one

    def lines(self, most: int) -> Iterator[str]:
        """Yield the first rows as lines, without characters that a terminal would act on."""
        yield from self.lead
        yield from (printable(self.line(row)) for row in self.rows[:most])


def lines(compared: ReleaseDiff) -> Iterator[str]:
    """Yield a diff as lines for people; long lists are shortened."""
    old, new = about_side(compared.old), about_side(compared.new)
    yield printable(f"{old['name']} {old['version']} -> {new['name']} {new['version']}")
    for listing in listings(compared):
        yield f"{listing.title}: {len(listing.rows)}"
        yield from (f"  {line}" for line in listing.lines(SHOWN))
        if len(listing.rows) > SHOWN:
            yield f"  ... and {len(listing.rows) - SHOWN} more; --json lists all"
    yield from compared.hidden.lines()
    yield f"step due: {compared.step}"
    yield from (printable(f"  {step}: {why}") for step, why in compared.reasons)
    yield f"next version: {compared.due} or higher"
    if compared.problem is not None:
        yield f"error: {compared.problem}"


def listings(compared: ReleaseDiff) -> list[Listing]:
    """Return the parts of a diff that have anything to list."""
    form, main, old, new = compared.form, compared.form.main, *compared.schema
    files = {name: form.file(name) for name in (*compared.added, *compared.removed, main)}
    nouns = {name: file.nouns for name, file in files.items()}
    versions = [f"version {old} -> {new}"] if old != new else []
    fields = [
        f"{name} {path} {kind}" for name, kinds in compared.fields.items() for path, kind in kinds.items()
    ]
    parts = [
        *(Listing(f"{nouns[name]} added", compared.added[name]) for name in compared.added
          if not files[name].aside),
        Listing(f"{nouns[main]} gone", compared.gone, _gone_text),
        *(Listing(f"{nouns[name]} gone", compared.removed[name]) for name in compared.removed
          if name != main and not files[name].aside),
        Listing("moved to another split", compared.moved, _move_text),
        *(_changed(compared, name) for name in dict.fromkeys(record.file for record in compared.changed)),
        Listing("schema", versions + fields),
        *(Listing(section.title, section.shown(compared.sections[section.name]), section.line,
                  name=section.name) for section in sections_of(form)),
    ]  # fmt: skip
    return [part for part in parts if part.rows]


def _changed(compared: ReleaseDiff, name: str) -> Listing:
    """Return the changes of one file; where there are many, first how many there are of each field."""
    rows = [
        (record.id, change)
        for record in compared.changed
        if record.file == name
        for change in record.changes
        if change.path not in _FOLLOWING
    ]
    lead: list[str] = []
    if len(rows) > SHOWN:
        counts: Counter[tuple[str, str]] = Counter(
            (pattern_of(change.path), change.kind) for _, change in rows
        )
        most = counts.most_common(SHOWN // 2)
        lead = [printable(f"{count} x {path} {kind}") for (path, kind), count in most]
    return Listing(f"changes of {compared.form.file(name).nouns}", rows, _change_text, lead, "changed")


def _change_text(row: tuple[str, Change]) -> str:
    record_id, change = row
    return f"{record_id} {change.path} {values_text(change)}"


def _move_text(move: Move) -> str:
    return f"{move.id}: {move.old} -> {move.new}"


def _gone_text(gone: Gone) -> str:
    how = "left out by packing" if gone.how == "left_out" else gone.how
    return f"{gone.id}: {how}" + (f": {gone.reason}" if gone.reason else "")


def write_page(path: Path, compared: ReleaseDiff, evaluation: Table = ()) -> None:
    """Write the page of a diff."""
    save_page(path, render_page(compared, evaluation))


def render_page(compared: ReleaseDiff, evaluation: Table = ()) -> str:
    """Return the page of a diff. All values of records are escaped and isolated in their direction."""
    changes = [
        (record.id, change)
        for record in compared.changed
        for change in record.changes
        if change.path not in _FOLLOWING
    ]
    elsewhere = {"changed", STATISTICS.name, *(section.name for section in compared.form.sections)}
    numbers = STATISTICS.shown(compared.sections[STATISTICS.name])
    lists = [part for part in listings(compared) if part.name not in elsewhere]
    folders = compared.old.folder, compared.new.folder
    files = {section: compared.sections[section.name] for section in compared.form.sections}
    pictures = [row for section, rows in files.items() for row in section.pictures(rows, *folders)]
    style = style_of("page.css", __package__)
    page: str = template_of("page.j2", __package__).render(
        style=style,
        policy=policy_of(style),
        old=about_side(compared.old),
        new=about_side(compared.new),
        diff=compared,
        changes=[(name, change.path, change.kind, *_values(change)) for name, change in changes[:MOST_ROWS]],
        more=max(0, len(changes) - MOST_ROWS),
        sections=[
            (part.title, list(part.lines(MOST_ROWS)), max(0, len(part.rows) - MOST_ROWS)) for part in lists
        ],
        pictures=pictures,
        more_pictures=sum(map(len, files.values())) - len(pictures),
        numbers=[(shift.what, *shift.values) for shift in numbers[:MOST_ROWS]],
        more_numbers=max(0, len(numbers) - MOST_ROWS),
        hidden=list(compared.hidden.lines()),
        evaluation=[[str(cell) for cell in row] for row in evaluation],
    )
    return page


def _values(change: Change) -> tuple[str, str]:
    old, new = (shortened(value, _LONGEST_VALUE) for value in (change.old, change.new))
    return "" if change.kind == "added" else old, "" if change.kind == "removed" else new
