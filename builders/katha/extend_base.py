"""What a finished run holds already, as far as an extension has to know it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.edits import NAME as EDITS
from ...engine.edits import is_withdrawal, read_edits
from ...engine.journal import decode
from ...engine.manifest import Manifest, read_manifest
from ...engine.sources import Source, fingerprint, place_of
from ...engine.status import read_report
from ...engine.survey import Survey, surveyed
from ...errors import InputError, RunError, UserError
from ...releases.katha.form import FORM
from ...releases.target import finished_run
from ...schemas.canonical import digest, sha256_file
from ...schemas.layout import RECORDS
from ...schemas.text import quoted
from ...schemas.values import Edit
from ...validators.katha.dataset import iter_bundles
from .building import PIPELINE

LOADED = ("story", "source", "given", "edits", "withdrawn", "added_at")
"""The fields with which a story begins; for one that is there they must stay as they are."""


@dataclass(frozen=True, slots=True)
class Base:
    """What a run holds already."""

    folder: Path  # where it is
    manifest: Manifest  # its ``run.json``
    sources: tuple[Source, ...]  # what it was made from, without its edits
    records: Mapping[str, str]  # story id -> digest of its finished record with all that belongs to it
    loaded: Mapping[str, Mapping[str, str]]  # story id -> field that it begins with -> digest
    signatures: Mapping[str, list[int]]  # story id -> MinHash signature, of the stories that stayed
    withdrawn: Mapping[str, Edit]  # story id -> the correction that withdrew it


def read_base(folder: Path, moved: Sequence[Path] = ()) -> Base:
    """Return what a finished run holds."""
    with finished_run(folder, FORM) as run:
        _require_same_sources(folder, run.manifest, moved)
        with surveyed(folder, PIPELINE, keep=(*LOADED, "signature", "bundle")) as survey:
            _require_settled(survey, folder)
            return Base(
                folder,
                run.manifest,
                own_sources(run.manifest, folder, moved),
                _digests(survey, "bundle"),
                _loaded(survey),
                _signatures(survey),
                withdrawals(folder),
            )


def read_interrupted(folder: Path, named: tuple[Source, ...], moved: Sequence[Path] = ()) -> Base:
    """Return what a run held before an extension that was stopped.

    Its outputs are still those of before; its journal may hold parts of what comes.
    """
    manifest = read_manifest(folder)
    _require_same_sources(folder, manifest, moved)
    path, outputs = folder / RECORDS, read_report(folder).outputs
    if not path.is_file() or sha256_file(path) != outputs.get(RECORDS):
        raise RunError(
            str(path), what="the records are not as the run left them: the file was changed, or is gone",
            fix=f"bring it up to date with `fabula run retry {quoted(folder)}`; it ends the extension, too",
        )  # fmt: skip
    again = {place_of(source) for source in named}
    sources = own_sources(manifest, folder, moved)
    records = {bundle["record"]["story_id"]: digest(bundle) for bundle in iter_bundles(folder)}
    with surveyed(folder, PIPELINE, keep=(*LOADED, "signature")) as survey:
        return Base(
            folder,
            manifest,
            tuple(source for source in sources if place_of(source) not in again),
            records,
            {story: fields for story, fields in _loaded(survey).items() if story in records},
            {story: numbers for story, numbers in _signatures(survey).items() if story in records},
            withdrawals(folder),
        )


def own_sources(manifest: Manifest, folder: Path, moved: Sequence[Path] = ()) -> tuple[Source, ...]:
    """Return the sources of a run without its edits, with absolute paths."""
    listed = manifest.source_list(Path(folder).absolute(), moved)
    return tuple(source for source in listed if source.role != "edits")


def withdrawals(folder: Path) -> dict[str, Edit]:
    """Return story id -> the correction that withdrew it."""
    path = folder / EDITS
    return {edit.id: edit for edit in (read_edits(path) if path.exists() else ()) if is_withdrawal(edit)}


def _require_same_sources(folder: Path, manifest: Manifest, moved: Sequence[Path]) -> None:
    problems = []
    listed = manifest.source_list(folder.absolute(), moved)
    for source, entry in zip(listed, manifest.sources, strict=True):
        if source.role == "edits":
            continue
        try:
            now = fingerprint(source).sha256
            found = "it has changed since" if now != entry.sha256 else None
        except OSError as error:
            found = error.strerror or str(error)
        if found is not None:
            problems.append(
                UserError(
                    str(source.path),
                    what=f"this source is not as it was when the run was made: {found}",
                    fix="restore it, and put new stories into a file of their own; if it was moved,"
                    " say where to with --sources PLACE",
                )
            )
    if problems:
        raise InputError(problems)


def _require_settled(survey: Survey, folder: Path) -> None:
    """Refuse a run of which this version of Fabula, with its libraries, would make something anew."""
    for stage in survey.loaded.stages:
        counts = survey.counts[stage.name]
        again = counts.stale + counts.pending
        if again:
            why = "; ".join(survey.reasons[stage.name])
            raise RunError(
                f"{folder}: stage {stage.name}",
                what=f"stage {stage.name} would run again for {again} stories that are there already: {why}",
                fix=f"extend it with the version of fabula that made it, or bring it up to date first:"
                f" fabula run retry {quoted(folder)} (then compare the records, which may change)",
            )


def _digests(survey: Survey, name: str) -> dict[str, str]:
    return {item: sha256 for item, (_, sha256) in survey.kept.columns.get(name, {}).items()}


def _loaded(survey: Survey) -> dict[str, dict[str, str]]:
    columns = {name: _digests(survey, name) for name in LOADED}
    return {
        item: {name: column[item] for name, column in columns.items() if item in column}
        for item in survey.kept.live
    }


def _signatures(survey: Survey) -> dict[str, list[int]]:
    """Return the signatures of the stories that no stage rejected, or that were rejected when finished."""
    last = survey.loaded.stages[-1].name
    gone = {
        item for item, stop in survey.items.stops.items() if stop.status == "rejected" and stop.stage != last
    }
    places = {item: ref for item, ref in survey.kept.columns.get("signature", {}).items() if item not in gone}
    found: dict[str, list[int]] = {}
    batch = list(places)
    for start in range(0, len(batch), 256):
        part = batch[start : start + 256]
        blobs = survey.journal.blobs({places[item][0] for item in part})
        found.update((item, decode(blobs[places[item][0]])["signature"]) for item in part)
    return found
