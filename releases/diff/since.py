"""What a release that is being packed changes since the version before it, and the version that this makes.

``changes.json`` says it by id and JSON path, without any values: the release itself has the new ones, and the
version before has the old ones. Of the hidden test it holds numbers only.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ConfigError, InputError, UserError
from ...pages.page import policy_of, save_page, style_of, template_of
from ...schemas.canonical import Json
from ...schemas.paths import CHANGES, FORMAT, HIDDEN_SPLIT, RELEASE, STATES, files_in
from ...schemas.plain_files import read_json
from ...schemas.text import printable, tallied
from ...schemas.values import Issue, states_told
from ..loading import stated_languages
from ..options import AUTO, METADATA, PackOptions
from ..subsets import read_subsets
from .compare import (
    ABOUT,
    ABOUT_CHANGED,
    STATISTICS,
    SUBSETS,
    Gone,
    HiddenChange,
    Move,
    RecordChange,
    ReleaseDiff,
    SubsetChange,
    diff_sides,
    gone_from,
    sections_of,
    shortened,
    values_text,
    version_of,
    with_reasons,
)
from .form import (
    Change,
    DiffForm,
    Side,
    Step,
    Version,
    changes_between,
    has_path,
    is_enough,
    open_side,
    pattern_of,
)

# -- A diff of releases as JSON for scripts and for ``changes.json``, as lines for people, and as a page

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
            "reasons": _reason_lines(compared),
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
        "reasons": _reason_lines(compared),
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


def _reason_lines(compared: ReleaseDiff) -> list[Json]:
    return [{"step": str(step), "why": why} for step, why in compared.reasons]


def _records(compared: ReleaseDiff) -> dict[str, Json]:
    return {
        "added": {name: list(ids) for name, ids in compared.added.items()},
        "removed": {name: list(ids) for name, ids in compared.removed.items()},
        "gone": [asdict(gone) for gone in compared.gone],
        "moved": [asdict(move) for move in compared.moved],
    }


def about_side(side: Side) -> dict[str, Json]:
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


def states_line(compared: ReleaseDiff) -> str:
    """Return in which state how many records of both sides are; empty where a side does not say it."""
    old, new = (states_told(side.document.get(STATES) or {}) for side in (compared.old, compared.new))
    return f"records: {old if old == new else f'{old} -> {new}'}" if old and new else ""


def lines(compared: ReleaseDiff) -> Iterator[str]:
    """Yield a diff as lines for people; long lists are shortened."""
    old, new = about_side(compared.old), about_side(compared.new)
    yield printable(f"{old['name']} {old['version']} -> {new['name']} {new['version']}")
    if states := states_line(compared):
        yield states
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
        *(_changed_fields(compared, name)
          for name in dict.fromkeys(record.file for record in compared.changed)),
        Listing("schema", versions + fields),
        *(Listing(section.title, section.shown(compared.sections[section.name]), section.line,
                  name=section.name) for section in sections_of(form)),
    ]  # fmt: skip
    return [part for part in parts if part.rows]


def _changed_fields(compared: ReleaseDiff, name: str) -> Listing:
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
        states=states_line(compared),
        evaluation=[[str(cell) for cell in row] for row in evaluation],
    )
    return page


def _values(change: Change) -> tuple[str, str]:
    old, new = (shortened(value, _LONGEST_VALUE) for value in (change.old, change.new))
    return "" if change.kind == "added" else old, "" if change.kind == "removed" else new


# --

_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Since:
    """What packing knows once the version before is compared."""

    options: PackOptions  # the options, with the version that the release gets
    previous: dict[str, Json]  # version and hash of the version before, as ``release.json`` names it
    changes: dict[str, Json]  # the content of ``changes.json``
    notes: tuple[str, ...]  # what a person should know, one sentence each


def open_previous(path: Path, options: PackOptions) -> Side:
    """Open the version that a release follows."""
    side = open_side(path)
    version_of(side)
    if side.document.get("visibility") == "hidden":
        raise InputError.one(
                    f"--since {path}", what="this is the folder of a hidden test, not a public release",
                    fix="give the public folder beside it",
                )  # fmt: skip
    name = _about(side).get("name")
    if name != options.name:
        raise ConfigError(
            "--name", what=f"the earlier release is called {name!r}, this one {options.name!r}",
            fix="give the earlier release of the same benchmark, or leave --since out to begin a new one",
        )  # fmt: skip
    return side


def options_since(path: Path) -> dict[str, Any]:
    """Return what the version before says about itself, for options that nobody gives.

    Address and citation are among it only where a person gave them: those that are made name the version.
    """
    side = open_side(path)
    about = _about(side)
    options: dict[str, Any] = {
        name: about.get(name) for name in ("name", "title", "contact") if isinstance(about.get(name), str)
    }
    if isinstance(side.document.get("license"), str):
        options["usual_license"] = side.document["license"]
    if "splits" not in side.document and (languages := stated_languages(side.folder)):
        options["languages"] = languages  # records that have splits say their own
    creators = about.get("creators")
    if isinstance(creators, list) and creators:
        options["creators"] = tuple(str(creator) for creator in creators)
    if isinstance(about.get("repo"), str):
        options["repo"] = about["repo"]
    for name in METADATA:
        if isinstance(about.get(name), list):
            options[name] = tuple(map(str, about[name]))
    made = PackOptions(str(side.document["version"]), **options)
    if isinstance(about.get("url"), str) and about["url"] != made.address:
        options["url"] = about["url"]
        made = replace(made, url=about["url"])
    if isinstance(about.get("citation"), str) and about["citation"] != made.reference:
        options["citation"] = about["citation"]
    return options


def compare_with_previous(
    previous: Side, draft: Side, form: DiffForm, options: PackOptions, run: Path, hidden: Collection[str]
) -> Since:
    """Compare the draft of a release with the version before, and settle its version."""
    before = version_of(previous)
    if options.version == AUTO:
        draft = replace(draft, document={**draft.document, "version": before.text})
    change = diff_sides(previous, draft, form)
    _require_steady_splits(change, run, hidden)
    version = change.due.text if options.version == AUTO else options.version
    _require_enough(change, before, Version.of(version, "--version"))
    identity = {"version": before.text, "sha256": previous.sha256}
    why = "; ".join(text for step, text in change.reasons if step is change.step)
    return Since(
        options=replace(options, version=version),
        previous=identity,
        changes=changes_document(change, version),
        notes=(f"a {change.step} step from {before}: {why}", *_breaks(change)),
    )


def _breaks(change: ReleaseDiff) -> Iterator[str]:
    """Yield what no version of one benchmark would usually do."""
    listed = change.old.document.get("records", {}).get(change.form.main, {})
    if listed and len(change.removed.get(change.form.main, ())) == len(listed):
        yield f"no story of {change.old.folder} is in this release; is it a version of the same benchmark?"
    promises = ("commitments" in side.document for side in (change.old, change.new))
    if all(promises) and change.hidden.kept is None:
        yield (
            f"the commitments of {change.old.folder} were made with another salt, so nobody can see "
            "which hidden stories stayed the same; with --salt a new run can use the earlier salt"
        )


def _about(side: Side) -> Mapping[str, Any]:
    about = side.document.get("about")
    return about if isinstance(about, dict) else {}


def _require_steady_splits(change: ReleaseDiff, run: Path, hidden: Collection[str]) -> None:
    moved = [(move.id, move.old, move.new) for move in change.moved]
    # A story that was published stays so: whoever wants can read it in the version before.
    moved += [(record.id, "public", HIDDEN_SPLIT) for record in change.gone if record.id in hidden]
    if not moved:
        return
    problems = [
        UserError(
            f"{run}: {story_id}",
            what=f"the story is in split {new}, and was in {old} in version {change.old_version}",
            fix="build on the run that the earlier version was packed from: there, stories keep their split",
        )
        for story_id, old, new in moved
    ]  # fmt: skip
    raise InputError(problems, shown=_MOST_NAMED)


def _require_enough(change: ReleaseDiff, before: Version, version: Version) -> None:
    if is_enough(before, change.step, version):
        return
    why = "; ".join(f"{text} ({step})" for step, text in change.reasons[:3])
    raise ConfigError(
        "--version",
        what=f"{version.text} is too low: since {before}, {why}, so that {change.due} or higher is due",
        fix=f"pack it as {change.due}, or give --version {AUTO}; a published version is never changed",
    )


# -- Whether ``changes.json`` agrees with the release that it is in: all of it that follows from one version

_CURE = "pack the run again, with --since"


def check_changes(
    folder: Path, document: Mapping[str, Any], form: DiffForm, *, exact: bool = True
) -> Iterator[Issue]:
    """Yield every disagreement between ``changes.json`` and the release; a first release has no such file.

    ``exact``: compare the reasons for the step word by word; else their numbers, as another version may word
    them otherwise.
    """
    previous = document.get("previous")
    there = (folder / CHANGES).is_file()
    if (previous is not None) != there:
        message = (
            f"{CHANGES} is there without it" if there else f"names a version before, and {CHANGES} is missing"
        )
        yield Issue(RELEASE, "$.previous", "changes", message, _CURE)
    if previous is None or not there:
        return
    changes = read_json(folder / CHANGES)
    try:
        before, now = (Version.of(version["version"], CHANGES) for version in (changes["previous"], changes))
    except ConfigError as problem:
        yield _issue("$.version", f"{problem.found} is not a semantic version")
        return
    step = Step[str(changes["step"]).upper()]
    if not is_enough(before, step, now):
        yield _issue("$.step", f"a {step} step makes {now} of {before}")
    yield from _check_ids(changes, document.get("records", {}))
    new = Side(folder, document)
    rebuilt = _rebuilt(changes, new, form, exact=exact)
    wanted = {**changes_document(rebuilt, str(document["version"])), "previous": previous}
    for change in changes_between(changes, wanted):
        message = "should not be there" if change.kind == "removed" else f"should be {_short(change.new)}"
        yield _issue(change.path, message)
    yield from _check_paths(rebuilt, new)
    yield from _check_parts(rebuilt, new)


def _check_ids(changes: Mapping[str, Any], records: Mapping[str, Mapping[str, Json]]) -> Iterator[Issue]:
    """Yield records that are said to be there, or gone, and are not."""
    there = {name: set(hashes) for name, hashes in records.items()}
    named = [(name, member) for name, ids in changes["added"].items() for member in ids]
    named += [(change["file"], change["id"]) for change in changes["changed"]]
    for name, member in sorted(set(named)):
        if member not in there.get(name, ()):
            yield _issue("$", f"{member} is not in {name}")
    for name, ids in changes["removed"].items():
        for member in sorted(there.get(name, set()).intersection(ids)):
            yield _issue("$.removed", f"{member} is in {name}")


def _rebuilt(changes: Mapping[str, Any], new: Side, form: DiffForm, *, exact: bool) -> ReleaseDiff:
    """Return what packing found: of the version before as it is stated, of this one as it is."""
    version = str(changes["previous"]["version"])
    added = {name: tuple(ids) for name, ids in changes["added"].items()}
    removed = {name: tuple(ids) for name, ids in changes["removed"].items()}
    names = new.records.keys() | removed.keys()
    before = {
        name: {*new.records.get(name, ())} - {*added.get(name, ())} | {*removed.get(name, ())}
        for name in names
    }
    old = Side(
        Path(),
        {"version": version, "records": {name: dict.fromkeys(ids, "") for name, ids in before.items()}},
    )
    sections: dict[str, Sequence[Any]] = {section.name: () for section in sections_of(form)}
    sections[SUBSETS.name] = tuple(_subsets(changes, new))
    for section in form.sections:
        sections[section.name] = tuple(map(section.row, changes.get(section.name, ())))
    compared = with_reasons(
        ReleaseDiff(
            form, old, new, added, removed, gone_from(removed.get(form.main, ()), new), _changed(changes),
            _moved(changes, new, form),
            schema=(str(changes["schema"]["old"]), str(new.document.get("schema_version"))),
            sections=sections,
            hidden=_hidden(changes["hidden_test"], new),
        )
    )  # fmt: skip
    stated = [(Step[str(reason["step"]).upper()], str(reason["why"])) for reason in changes["reasons"]]
    reasons = _reasons(stated, list(compared.reasons))
    if not exact and _counts(stated) == _counts(reasons):  # in the words of another version
        reasons = stated
    return replace(compared, reasons=tuple(reasons))


_Reasons = list[tuple[Step, str]]


def _reasons(stated: _Reasons, due: _Reasons) -> _Reasons:
    """Return the reasons that follow from the records, and what is stated of the rest.

    What was said about the version before is not known here.
    """
    about = [entry for entry in stated if entry[0] is Step.PATCH and entry[1].startswith(ABOUT_CHANGED)][:1]
    known = [reason for reason in due if not (about and reason[1].startswith("no record changed"))]
    return sorted([*known, *about], key=lambda reason: -reason[0])


def _counts(reasons: _Reasons) -> list[tuple[Step, list[str]]]:
    return [(step, re.findall(r"\d+", why)) for step, why in reasons]


def _changed(changes: Mapping[str, Any]) -> list[RecordChange]:
    records: dict[tuple[str, str], list[Change]] = {}
    for change in changes["changed"]:
        records.setdefault((change["file"], change["id"]), []).append(Change(change["path"], change["kind"]))
    return [RecordChange(file, name, tuple(parts)) for (file, name), parts in records.items()]


def _moved(changes: Mapping[str, Any], new: Side, form: DiffForm) -> list[Move]:
    ids = [move["id"] for move in changes["moved"]]
    rows = new.rows(form.main, ids) if ids else {}
    return [Move(move["id"], move["old"], rows[move["id"]]["split"]) for move in changes["moved"]]


def _subsets(changes: Mapping[str, Any], new: Side) -> Iterator[SubsetChange]:
    there = read_subsets(new.folder)
    for subset in changes.get("subsets", ()):
        now = there.get(subset["name"])
        came, went = tuple(subset["came"]), tuple(subset["went"])
        members = () if now is None else now[1]
        asked = (subset["asked"]["old"], None if now is None else now[0].asked)
        sizes = (len(members) - len(came) + len(went), len(members))
        yield SubsetChange(subset["name"], subset["kind"], asked, sizes, came, went)


def _hidden(stated: Mapping[str, Any], new: Side) -> HiddenChange:
    kept = stated["commitments"] or {"kept": None, "gone": None, "new": None}
    after = new.document.get("hidden_test") or {}
    return HiddenChange(stated["before"], after, kept["kept"], kept["gone"], kept["new"])


def _check_paths(diff: ReleaseDiff, new: Side) -> Iterator[Issue]:
    """Yield changes at places that the records do not have."""
    for name in sorted({record.file for record in diff.changed}):
        records = [record for record in diff.changed if record.file == name]
        rows = new.rows(name, [record.id for record in records])
        for record in records:
            for change in record.changes:
                if change.kind != "removed" and not has_path(rows[record.id], change.path):
                    message = f"{record.id} of {name} has nothing at {change.path}"
                    yield _issue("$.changed", message)


def _check_parts(diff: ReleaseDiff, new: Side) -> Iterator[Issue]:
    """Yield what is said of subsets, images and commitments and is not so."""
    subsets = read_subsets(new.folder)
    for change in diff.sections[SUBSETS.name]:
        members = set(subsets[change.name][1]) if change.name in subsets else set()
        kind_fits = (change.kind == "removed") == (change.name not in subsets)
        if not kind_fits or not members.issuperset(change.came) or members & set(change.went):
            yield _issue("$.subsets", f"{change.name} has other members")
    files = set(files_in(new.folder))
    for section in diff.form.sections:
        for row in diff.sections[section.name]:
            if (row.kind != "removed") != (row.path in files):
                yield _issue(f"$.{section.name}", f"{row.path} is said to be {row.kind}")
    part = new.document.get("commitments")
    values = part["values"] if isinstance(part, dict) else ()
    if diff.hidden.kept is not None and diff.hidden.kept + (diff.hidden.fresh or 0) != len(values):
        message = f"{RELEASE} holds {tallied(len(values), 'commitments')}"
        yield _issue("$.hidden_test.commitments", message)


def _issue(path: str, message: str) -> Issue:
    return Issue(CHANGES, path, "changes", message, _CURE)


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
