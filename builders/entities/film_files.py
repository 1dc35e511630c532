"""Where the film of an item lies, known by its content; and what is kept of its parts while it is looked at.

Both lie in the run's folder for what is no result, so that a film that has moved changes no result.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...engine.pipeline import dependencies
from ...engine.stage import PROGRESS, StageSpec, Tools
from ...media.kept_files import Segments
from ...schemas.canonical import Json, write_atomic
from ...schemas.plain_files import read_text

_PLACES = "places"


def keep_place(path: Path, sha256: str, tools: Tools) -> str:
    """Note where a film lies; return what fields call it: its name, or its path where there is no run."""
    if tools.work is None:
        return str(path)
    note, text = tools.work / _PLACES / sha256, str(path)
    with suppress(OSError, ValueError):
        if read_text(note) == text:
            return path.name
    note.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(note, [text.encode("utf-8")])
    return path.name


def film_path(file: str, sha256: str, tools: Tools) -> Path:
    """Return where a film lies."""
    if tools.work is not None:
        with suppress(OSError, ValueError):
            return Path(read_text(tools.work / _PLACES / sha256))
    return Path(file)


def segments_of(spec: StageSpec, tools: Tools, inputs: Mapping[str, Json]) -> Segments:
    """Return where a stage keeps what it found in parts of an item."""
    settings = tools.settings.as_json()
    basis = [spec.name, spec.version, settings, tools.seed, dependencies(spec, asks=False), dict(inputs)]
    return Segments(None if tools.work is None else tools.work / PROGRESS, basis)
