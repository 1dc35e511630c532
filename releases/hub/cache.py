"""Where fetched versions lie: one folder per commit in the user's cache, whole or not there at all."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ...errors import TargetError
from ...schemas.canonical import Json, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json
from .address import Reference
from .client import HubFile

_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cache:
    """The versions of one repository that were fetched: folders, and what their files must be."""

    root: Path  # its folder

    def folder(self, commit: str) -> Path:
        """Return where a commit lies, or will."""
        return self.root / commit

    def known_commit(self, reference: Reference) -> str | None:
        """Return the commit of a version that was fetched before; None if it was not."""
        if reference.is_commit:
            commit: Json = reference.revision
        else:
            note = _read(self._tag(reference))
            same = isinstance(note, dict) and note.get("tag") == reference.revision
            commit = note.get("commit") if same else None
        if not isinstance(commit, str) or _COMMIT.fullmatch(commit) is None:
            return None
        return commit if self.folder(commit).is_dir() and self.listing(commit) else None

    def listing(self, commit: str) -> dict[str, HubFile]:
        """Return what the files of a commit must be; empty where it was not fetched."""
        note = _read(self._listing(commit))
        try:
            return {path: HubFile(*values) for path, values in note.items()}
        except (AttributeError, TypeError):
            return {}

    def remember(self, reference: Reference, commit: str) -> None:
        """Note what a tag points to, so that it means the same for ever on this machine."""
        if not reference.is_commit:
            _write(self._tag(reference), {"tag": reference.revision, "commit": commit})

    @contextmanager
    def filling(self, commit: str) -> Iterator[Path | None]:
        """Give the folder to load a commit into, or None where it is there by now; see :meth:`place`.

        What a run of the command loaded before it was stopped is still in it. One process at a time loads a
        commit.
        """
        from filelock import FileLock

        folder = self.folder(commit)
        draft = folder.with_name(f"{commit}.part")
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(str(folder.with_name(f"{commit}.lock"))):
                if folder.is_dir() and self.listing(commit):
                    yield None
                else:
                    draft.mkdir(exist_ok=True)
                    yield draft
        except OSError as error:
            # A disk that is full stays full while half a release lies on it.
            shutil.rmtree(draft, ignore_errors=True)
            where = f" ({error.filename})" if error.filename else ""
            raise TargetError(
                str(folder),
                what=f"the cache cannot be written: {error.strerror or error}{where}",
                fix="free the disk, or set XDG_CACHE_HOME to a folder that can be written",
            ) from error

    def place(self, commit: str, draft: Path, listing: Mapping[str, HubFile]) -> None:
        """Put a folder that was loaded and checked in its place."""
        shutil.rmtree(draft / ".cache", ignore_errors=True)
        _write(self._listing(commit), {path: list(astuple(file)) for path, file in listing.items()})
        shutil.rmtree(self.folder(commit), ignore_errors=True)
        draft.replace(self.folder(commit))

    def _listing(self, commit: str) -> Path:
        return self.root / f"{commit}.json"

    def _tag(self, reference: Reference) -> Path:
        return self.root / "tags" / f"{reference.revision}.json"


def _read(path: Path) -> Json:
    try:
        return read_json(path)
    except (OSError, ValueError):
        return None


def _write(path: Path, value: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, [pretty_bytes(value)])


def open_cache(kind: str, repo: str, endpoint: str | None = None, root: Path | None = None) -> Cache:
    """Return the user's cache of a repository: under ``XDG_CACHE_HOME`` on Linux."""
    from platformdirs import user_cache_path

    address = urlsplit((endpoint or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/"))
    host = re.sub(r"[^A-Za-z0-9.-]", "_", address.netloc.rpartition("@")[2] + address.path.rstrip("/"))
    return Cache((root or user_cache_path("fabula") / "hub") / kind / host / repo.replace("/", "--"))


def require_room(folder: Path, needed: int) -> None:
    """Check that so many bytes fit."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise TargetError(
            str(folder),
            what=f"the release needs {needed:,} bytes, and the disk has {free:,} free",
            fix="free the disk, or set XDG_CACHE_HOME to a folder on a larger one",
        )
