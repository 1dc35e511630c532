"""What packing needs of a run folder: its manifest, its report, what it assigned, its finished records."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import version
from ..engine.config import RunSettings
from ..engine.journal import decisions
from ..engine.lock import hold
from ..engine.manifest import NAME as MANIFEST
from ..engine.manifest import Manifest, RunPart, SourceEntry, read_manifest, write_manifest
from ..engine.sources import EDITS
from ..engine.status import NAME as REPORT
from ..engine.status import RunReport, read_report, write_report
from ..errors import RunError
from ..schemas.canonical import sha256_file
from ..schemas.plain_files import open_plain
from .form import FinishedRun, ReleaseForm


@contextmanager
def finished_run(folder: Path, form: ReleaseForm) -> Iterator[FinishedRun]:
    """Open a run folder for packing; nobody can work on the run meanwhile.

    ``form``: the form of releases of the kind that it must be of.
    """
    read_manifest(folder)  # before the lock, whose file would be put into any folder
    with hold(folder.absolute(), to_read=True):
        manifest, report = read_manifest(folder), _finished_report(folder)
        if manifest.kind not in form.runs:
            raise RunError(
                str(folder / MANIFEST),
                what=f"this is a run of kind {manifest.kind!r}, not {form.kind!r}",
                fix=f"give the folder of a `fabula build {form.kind}` run",
            )
        stale = next(_stale(folder, manifest, report, form.runs[manifest.kind]), None)
        if stale is not None:
            raise RunError(
                str(folder),
                what=f"the records are not up to date with the run's settings and edits: {stale}",
                fix=f"bring the run up to date with `fabula run retry {folder}`",
            )
        yield FinishedRun(folder, manifest, report, _splits(folder, report, form.split_stage))


def _finished_report(folder: Path) -> RunReport:
    shard = read_manifest(folder).shard
    if shard is not None:
        raise RunError(
            str(folder), what=f"this is shard {shard} of a run, not a whole one",
            fix="make one run of all shards: fabula run merge SHARD... --out RUN",
        )  # fmt: skip
    report = read_report(folder)
    pending = report.totals["pending"]
    if pending:
        raise RunError(
            str(folder),
            what=f"the run is not finished: {pending} items are still to do",
            fix=f"finish it with `fabula run retry {folder}`",
        )
    return report


def _stale(folder: Path, manifest: Manifest, report: RunReport, records: str) -> Iterator[str]:
    """Yield what shows that the records are not those that the run would have now."""
    if report.manifest_sha256 != sha256_file(folder / MANIFEST):
        yield f"{MANIFEST} changed after the run last finished"
    for name, sha256 in sorted({records: None, **report.outputs}.items()):
        if not (folder / name).is_file():
            yield f"there is no {name}"
        elif sha256_file(folder / name) != sha256:
            yield f"{name} is not the one that {REPORT} names"
    own = (folder / EDITS).absolute()
    applied = {source.sha256 for source in manifest.sources if (folder / source.path).absolute() == own}
    if applied != ({sha256_file(own)} if own.exists() else set()):
        yield f"corrections in {EDITS} are not applied yet"


def _splits(folder: Path, report: RunReport, stage: str | None) -> dict[str, str]:
    if stage is None or not report.items:  # every split stands in a record
        return {}
    return {story_id: str(fields["split"]) for story_id, fields in decisions(folder, stage).items()}


def write_imported_run(folder: Path, kind: str, source: SourceEntry, lines: str, time: str) -> None:
    """Write ``run.json`` and ``report.json``: where records are from, and that nothing is left to do."""
    usual = RunSettings()
    write_manifest(
        folder,
        Manifest(
            kind=kind,
            created_at=time,
            fabula_version=version.__version__,
            seed=usual.seed,
            threshold=usual.threshold,
            run=RunPart(item_timeout=usual.item_timeout, threshold=usual.threshold, seed=usual.seed),
            settings={},
            stages=(),
            prompts={},
            sources=(source,),
        ),
    )
    with open_plain(folder / lines) as file:
        made = sum(1 for _ in file)
    write_report(
        folder,
        RunReport(
            totals={"made": made, "rejected": 0, "failed": 0, "pending": 0},
            stages=(),
            items=(),
            manifest_sha256=sha256_file(folder / MANIFEST),
            outputs={lines: sha256_file(folder / lines)},
        ),
    )
