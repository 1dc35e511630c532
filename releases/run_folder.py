"""What packing needs of a run folder: its manifest, its report, what it assigned, its finished records."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..engine.decisions import decisions
from ..engine.lock import hold
from ..engine.manifest import NAME as MANIFEST
from ..engine.manifest import Manifest, read_manifest
from ..engine.report import NAME as REPORT
from ..engine.report import RunReport, read_report
from ..engine.sources import EDITS
from ..errors import RunError
from ..schemas.canonical import Json, sha256_file
from ..validators.dataset import RECORDS, iter_bundles
from .layout import (
    ENTITIES,
    EPISODES,
    EVENTS,
    IMPORTED_ENTITIES,
    IMPORTED_SHOTS,
    KIND,
    PROMPTS,
    SHOT_SCRIPTS,
    SHOTS,
)

SPLIT_STAGE = "assign_splits"
"""The stage that decides the split of each story, and never decides again."""
_IMPORTS = {IMPORTED_ENTITIES: ENTITIES, IMPORTED_SHOTS: SHOTS}
"""Kind of an imported run -> the kind of run that it is used like."""
_RECORD_FILES = {KIND: RECORDS, EVENTS: PROMPTS, ENTITIES: EPISODES, IMPORTED_ENTITIES: EPISODES,
    SHOTS: SHOT_SCRIPTS, IMPORTED_SHOTS: SHOT_SCRIPTS}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has nothing left to do.

    Attributes:
        folder: where it is.
        manifest: its ``run.json``.
        report: its ``report.json``.
        splits: story id -> the split that it was last given, of every story that ever got as far.
    """

    folder: Path
    manifest: Manifest
    report: RunReport
    splits: Mapping[str, str]

    @property
    def created_at(self) -> str:
        """When the run was created or last extended: the only time that enters a release as its own."""
        return self.manifest.changed_at

    def bundles(self) -> Iterator[dict[str, Json]]:
        """Yield the finished bundles in id order.

        Raises:
            InputError: lines cannot be read or are of another kind.
        """
        return iter_bundles(self.folder)


@contextmanager
def finished_run(folder: Path, kind: str = KIND) -> Iterator[FinishedRun]:
    """Open a run folder for packing; nobody can work on the run meanwhile.

    Args:
        folder: the run.
        kind: the kind that it must be of.

    Raises:
        RunError: it is no run folder, was made by a newer version, is not finished, or its records are not
            what its settings, sources and edits ask for. RunBusy: another process is at it.
        TargetError: it cannot be locked, because its folder cannot be written.
    """
    read_manifest(folder)  # before the lock, whose file would be put into any folder
    with hold(folder.absolute()):
        manifest, report = read_manifest(folder), _finished_report(folder)
        if manifest.kind != kind and _IMPORTS.get(manifest.kind) != kind:
            raise RunError(
                str(folder / MANIFEST),
                what=f"this is a run of kind {manifest.kind!r}, not {kind!r}",
                fix=f"give the folder of a `fabula build {kind}` run",
            )
        stale = next(_stale(folder, manifest, report), None)
        if stale is not None:
            raise RunError(
                str(folder),
                what=f"the records are not up to date with the run's settings and edits: {stale}",
                fix=f"bring the run up to date with `fabula run retry {folder}`",
            )
        yield FinishedRun(folder, manifest, report, _splits(folder, report) if kind == KIND else {})


def _finished_report(folder: Path) -> RunReport:
    report = read_report(folder)
    pending = report.totals["pending"]
    if pending:
        raise RunError(
            str(folder),
            what=f"the run is not finished: {pending} items are still to do",
            fix=f"finish it with `fabula run retry {folder}`",
        )
    return report


def _stale(folder: Path, manifest: Manifest, report: RunReport) -> Iterator[str]:
    """Yield what shows that the records are not those that the run would have now."""
    if report.manifest_sha256 != sha256_file(folder / MANIFEST):
        yield f"{MANIFEST} changed after the run last finished"
    for name, sha256 in sorted({_RECORD_FILES[manifest.kind]: None, **report.outputs}.items()):
        if not (folder / name).is_file():
            yield f"there is no {name}"
        elif sha256_file(folder / name) != sha256:
            yield f"{name} is not the one that {REPORT} names"
    own = (folder / EDITS).absolute()
    applied = {source.sha256 for source in manifest.sources if (folder / source.path).absolute() == own}
    if applied != ({sha256_file(own)} if own.exists() else set()):
        yield f"corrections in {EDITS} are not applied yet"


def _splits(folder: Path, report: RunReport) -> dict[str, str]:
    if not report.items:  # every split stands in a record
        return {}
    return {story_id: str(fields["split"]) for story_id, fields in decisions(folder, SPLIT_STAGE).items()}
