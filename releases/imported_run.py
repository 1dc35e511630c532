"""What a finished run says about itself, for a folder that holds imported records and has no stages."""

from pathlib import Path

from ..engine.config import RunSettings
from ..engine.manifest import NAME as MANIFEST
from ..engine.manifest import Manifest, RunPart, SourceEntry, write_manifest
from ..engine.report import RunReport, write_report
from ..schemas.canonical import sha256_file
from ..schemas.plain_files import open_plain


def write_imported_run(folder: Path, kind: str, source: SourceEntry, lines: str, time: str) -> None:
    """Write ``run.json`` and ``report.json``: where records are from, and that nothing is left to do.

    Args:
        folder: the new folder, with the records in it.
        kind: of the run.
        source: what was imported, with the hash of its content.
        lines: name of the file of records, one line each.
        time: when it was imported, RFC 3339; releases bear it.
    """
    from .. import __version__

    usual = RunSettings()
    write_manifest(
        folder,
        Manifest(
            kind=kind,
            created_at=time,
            fabula_version=__version__,
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
