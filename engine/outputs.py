"""The files of a finished run: its pipeline writes them, unless those on disk are what it would write."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import version
from ..schemas.canonical import digest, digest_rows, sha256_file
from . import edits, lock, manifest, report
from .journal import Journal
from .journal_file import NAME as JOURNAL
from .journal_file import unwritable
from .pipeline import LoadedPipeline
from .walk import Items, LazyItems

_FACT = "outputs"
_OWN = {manifest.NAME, report.NAME, edits.NAME, lock.LOCK, lock.HOLDER}


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that ``finish`` wrote, by name, with their hashes; and whether it wrote them just now."""

    written: bool
    files: Mapping[str, str]


def write_outputs(
    folder: Path, loaded: LoadedPipeline, items: Items, journal: Journal, settings: Mapping[str, Any]
) -> Outputs:
    """Write the outputs of a run unless the files on disk are those that it would write.

    They are when the final fields, the settings and the version of Fabula are as they were, and no file has
    changed since.
    """
    ids = items.live.in_order()
    state = _state(loaded, items, ids, settings)
    known = journal.fact(_FACT)
    if known is not None and known["state"] == state and known["files"] == _digests(folder, known["files"]):
        return Outputs(False, known["files"])
    before = _stamps(folder)
    journal.note(_FACT, None)  # until they are complete, no output counts as written
    journal.flush()
    try:
        loaded.finish(folder, LazyItems(items, journal, ids, loaded.outputs))
    except OSError as error:
        raise unwritable(folder, error) from error
    written = [name for name, stamp in _stamps(folder).items() if before.get(name) != stamp]
    files = _digests(folder, written)
    journal.note(_FACT, {"state": state, "files": files})
    journal.flush()
    return Outputs(True, {name: str(sha256) for name, sha256 in files.items()})


def _state(loaded: LoadedPipeline, items: Items, ids: Collection[str], settings: Mapping[str, Any]) -> str:
    rows = digest_rows([item, items.digests(item, loaded.outputs)] for item in ids)
    return digest([version.__version__, loaded.pipeline.finish, loaded.outputs, dict(settings), rows])


def _stamps(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return something that changes when a file is written again, for each file that is not the engine's."""
    stamps = {}
    for path in folder.iterdir():
        if path.is_file() and path.name not in _OWN and not path.name.startswith((JOURNAL, ".")):
            stat = path.stat()
            stamps[path.name] = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
    return stamps


def _digests(folder: Path, names: Any) -> dict[str, str | None]:  # noqa: ANN401 - names, or a mapping of them
    return {name: sha256_file(folder / name) if (folder / name).is_file() else None for name in sorted(names)}
