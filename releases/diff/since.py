"""What a release that is being packed changes since the version before it, and the version that this makes.

``changes.json`` says it by id and JSON path, without any values: the release itself has the new ones, and the
version before has the old ones. Of the hidden test it holds numbers only.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json
from ...schemas.paths import CHANGES, HIDDEN_SPLIT, RELEASE, files_in
from ...schemas.plain_files import read_json
from ...schemas.text import tallied
from ...schemas.values import Issue
from ..loading import stated_languages
from ..options import AUTO, METADATA, PackOptions
from ..subsets import read_subsets
from .compare import (
    ABOUT_CHANGED,
    SUBSETS,
    HiddenChange,
    Move,
    RecordChange,
    ReleaseDiff,
    SubsetChange,
    diff_sides,
    gone_from,
    sections_of,
    version_of,
    with_reasons,
)
from .form import Change, DiffForm, Side, Step, Version, changes_between, has_path, is_enough, open_side
from .render import changes_document

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
