"""Stage: one item per video of the sources: files as they are named, and all videos in folders.

Folders are gone through with all that lies below; hidden entries are left out, and links to folders are not
followed, so that loops are none. No file is opened but to read its hash: what is no video shows later. Fields
name a film by its content; where it lies is noted beside them, so that a folder that moves changes nothing.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from ...engine.pipeline import dependencies
from ...engine.stage import PROGRESS, Child, Failed, Item, Made, StageSpec, Tools
from ...errors import InputError, mismatch
from ...media.kept_files import Segments
from ...schemas.canonical import Json, sha256_bytes, sha256_file, write_atomic
from ...schemas.plain_files import read_text
from ...schemas.text import slug
from ...schemas.values import Own

# -- Where the film of an item lies, known by its content; and what is kept of its parts while it is looked at
#
# Both lie in the run's folder for what is no result, so that a film that has moved changes no result.

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


# -- Which videos there are

ROLE = "videos"
"""Role of the sources."""
SUFFIXES = (
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ts", ".m2ts", ".mts", ".wmv", ".flv",
    ".ogv", ".3gp", ".mxf",
)  # fmt: skip
_NAME = 48  # characters of a name in an id, so that a hash and the number of a shot still fit
_HASH = 8


class Settings(Own):
    """Settings of the stage."""

    suffixes: tuple[str, ...] = Field(
        default=SUFFIXES, description="Endings of files that are taken for videos in folders."
    )


SPEC = StageSpec(
    name="load_videos",
    version=2,
    shape="expand",
    reads=("sources",),
    writes=("found",),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per file, in the order of the sources and of paths in them.

    A file whose name is no text in Unicode, or that cannot be read, is a child that failed.
    """
    settings = tools.own(Settings)
    sources = zip(item["sources"], tools.paths, strict=True)
    places = [path for source, path in sources if source["role"] == ROLE]
    files = [file for folder in places for file in _files(folder, settings.suffixes)]
    if not files:
        listed = ", ".join(map(str, places)) or "the sources"
        raise InputError([mismatch(listed, "at least one video", "none", "name files or folders of videos")])
    taken: set[str] = set()
    for file in dict.fromkeys(files):
        if not _printable(file):
            name = os.fsencode(file.name).decode("utf-8", "backslashreplace")
            reason = "its path is no text in Unicode: rename it"
            yield Child(
                _free("", sha256_bytes(name.encode("utf-8")), taken), Failed("unprintable_name", reason, name)
            )
            continue
        plain = slug(file.stem)[:_NAME].strip("-_")
        try:
            sha256 = sha256_file(file)
        except OSError as error:
            lost = Failed("unreadable", f"it cannot be read: {error.strerror}")
            yield Child(_free(plain, sha256_bytes(file.name.encode("utf-8")), taken), lost)
            continue
        video_id = _free(plain, sha256, taken)
        named = keep_place(file, sha256, tools)
        video = {"video_id": video_id, "file": named, "name": file.name, "sha256": sha256}
        yield Child(video_id, Made({"found": video}))


def identity(fields: Mapping[str, Json]) -> Json:
    """Return what makes a video the same video."""
    return fields["found"]["sha256"]


def _files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    if path.is_file():
        return [path.absolute()]
    if not path.is_dir():
        raise InputError([mismatch(str(path), "a video or a folder of videos", "none", "check the path")])
    here = []
    for folder, names, files in os.walk(path.absolute()):
        names[:] = sorted(name for name in names if not name.startswith("."))
        here += [
            Path(folder, name)
            for name in files
            if not name.startswith(".") and Path(name).suffix.lower() in suffixes
        ]
    return sorted(here, key=os.fsencode)


def _free(name: str, sha256: str, taken: set[str]) -> str:
    """Return an id that is not taken yet: the name where that will do, else with a hash."""
    video_id = name if name and name not in taken else f"{name or 'video'}-{sha256[:_HASH]}"
    number = 2
    while video_id in taken:
        video_id = f"{name or 'video'}-{sha256[:_HASH]}-{number}"
        number += 1
    taken.add(video_id)
    return video_id


def _printable(file: Path) -> bool:
    try:
        str(file).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
