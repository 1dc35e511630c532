"""Whether ``changes.json`` agrees with the release that it is in: all of it that follows from one version."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...schemas.canonical import Json
from ...schemas.layout import CHANGES, RELEASE, files_in
from ...schemas.plain_files import read_json
from ...schemas.text import tallied
from ...schemas.values import Issue
from ..subsets.requests import read_subsets
from .changes import Change, changes_between, has_path
from .compare import Move, RecordChange, ReleaseDiff, gone_from, with_reasons
from .form import DiffForm
from .render import changes_document
from .sections import ABOUT_CHANGED, SUBSETS, HiddenChange, SubsetChange, sections_of
from .sides import Side
from .version import Step, Version, is_enough

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
