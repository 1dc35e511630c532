"""Whether corrections that a review exported belong to a run: which release or run its reviewers saw."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.edits import run_ids
from ..engine.manifest import read_manifest
from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import Json
from ..schemas.layout import RELEASE, hidden_folder
from ..schemas.plain_files import json_lines
from .registry import form_of_release, form_of_run

if TYPE_CHECKING:
    from ..builders.edit_files import EditFile
    from ..releases.form import ReleaseForm

_RELEASE = "--release"


def check_source(run: Path, file: "EditFile", release: Path | None) -> list[str]:
    """Refuse corrections of something else than this run.

    ``release``: the release that was reviewed; None where nobody names it.

    Returns:
        What a person should know, one sentence each.
    """
    header = file.header
    if header.run is not None and header.run not in run_ids(read_manifest(run)):
        raise ConfigError(
            str(file.path), what=f"another run was reviewed than {run}: its id is {header.run[:12]}...",
            fix="give the run that was reviewed",
        )  # fmt: skip
    if release is None:
        named = f"the release that was reviewed ({str(header.release)[:12]}...) was not given with {_RELEASE}"
        return [] if header.release is None else [f"{named}; the values that its reviewers saw are compared"]
    from ..evaluation.archive.archive import release_sha256

    if header.release is None or header.release != release_sha256(release):
        said = "no release" if header.release is None else "another release"
        raise ConfigError(
            f"{_RELEASE} {release}", what=f"{file.path} says that {said} was reviewed",
            fix="give the release that was reviewed, or leave the option out",
        )  # fmt: skip
    form = form_of_run(run)
    if form_of_release(release).kind != form.kind:
        raise ConfigError(
            f"{_RELEASE} {release}", what=f"it holds no {form.unit} as {run} makes them",
            fix="give the release that was packed from the run",
        )  # fmt: skip
    return _compared(run, file, release, form)


def _compared(run: Path, file: "EditFile", release: Path, form: "ReleaseForm") -> list[str]:
    from ..builders.edit_files import check_reviewed

    known, secret = _records_of(release, form, file), 0
    if form.hidden is not None:
        hidden = hidden_folder(release.absolute())
        if (hidden / RELEASE).is_file():
            known |= _records_of(hidden, form, file)
        else:
            secret = _hidden_stories(release)
    problems, notes = check_reviewed(file, known, lambda: _made(run, form))
    missing = sorted(file.ids - known.keys())
    if missing and not secret:
        fix = "give the release that was reviewed, or remove the lines"
        what = f"the release {release} holds no {{}}, which the file corrects"
        problems += [UserError(str(file.path), what=what.format(name), fix=fix) for name in missing]
    if problems:
        raise InputError(problems)
    return notes


def _records_of(folder: Path, form: "ReleaseForm", file: "EditFile") -> dict[str, Json]:
    """Return id -> record of the stories of a file that a release holds as ``release.json`` states them."""
    from ..releases.diff.form import open_side

    side, name = open_side(folder), form.changes.main
    return side.rows(name, file.ids & side.records.get(name, {}).keys())


def _hidden_stories(release: Path) -> int:
    from ..releases.loading import read_release_document

    counts = read_release_document(release).get("hidden_test")
    return int(counts.get("stories", 0)) if isinstance(counts, dict) else 0


def _made(run: Path, form: "ReleaseForm") -> Iterator[Mapping[str, Json]]:
    """Yield the records that a run has made."""
    path = run / form.runs[read_manifest(run).kind]
    for line in json_lines(path) if path.is_file() else ():
        payload = line.get("payload") if isinstance(line, dict) else None
        record = payload.get("record", payload) if isinstance(payload, dict) else None
        if isinstance(record, dict):
            yield record
