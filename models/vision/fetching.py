"""All weights at once: what is to be fetched, under which terms, from the net or from a folder."""

import hashlib
import logging
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...errors import ConfigError, MissingRequirement
from ...schemas.canonical import sha256_file
from ...schemas.plain_files import open_plain
from ...schemas.text import byte_text, tallied
from .facenet_export import BESIDE, NAME, export_facenet
from .registry import MODELS, WEIGHTS, Weights, sources_of
from .weights import (
    Pin,
    Source,
    changed,
    fetch_address,
    in_cache,
    pin,
    pinned,
    quiet_libraries,
    stored,
    unreachable,
    weights_folder,
)

LOG = logging.getLogger(__name__)
State = Literal["here", "in a library's cache", "fetched", "to fetch", "failed"]
_BUFFER = 1 << 20
NOT_RECORDED = "not recorded"
PACKAGES = "packages"
"""Folder, beside files that were fetched elsewhere, of packages that an export needs."""


@dataclass(frozen=True, slots=True)
class Row:
    """One source of weights, and what became of it."""

    weights: Weights  # what they are, and their terms
    models: tuple[str, ...]  # that are loaded from them
    state: State  # whether they are here
    why: str = ""  # why they could not be had

    def as_json(self) -> dict[str, Any]:
        source = self.weights.source
        return {
            "source": source.repo, "revision": source.revision, "models": list(self.models),
            "files": [{"file": name, "sha256": _hash(source, name), "address": address_of(source, name)}
                      for name in source.files],
            "folder": str(weights_folder() / source.folder), "bytes": source.size,
            "licence": self.weights.licence, "restricts": self.weights.restricts, "state": self.state,
            "why": self.why,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fetching:
    """What there is to fetch, or what was fetched."""

    rows: tuple[Row, ...]  # source by source
    is_plan: bool = False  # whether it says how to fetch the files on another machine

    @property
    def lacking(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.state in ("to fetch", "failed"))

    @property
    def asking(self) -> tuple[Row, ...]:
        """What is not here and has terms that somebody has to accept."""
        return tuple(row for row in self.lacking if row.weights.restricts)

    def as_json(self) -> dict[str, Any]:
        lacking = self.lacking
        return {
            "folder": str(weights_folder()), "sources": [row.as_json() for row in self.rows],
            "bytes_to_fetch": sum(row.weights.source.size for row in lacking), "complete": not lacking,
            "commands": [line.strip() for line in commands(row.weights.source for row in lacking)],
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        lacking = self.lacking
        total = sum(row.weights.source.size for row in lacking)
        yield f"folder of weights: {weights_folder()}"
        sources = tallied(len(self.rows), "sources")
        yield f"{sources}, {len(lacking)} of them not here: about {byte_text(total)}"
        for row in self.rows:
            source = row.weights.source
            yield f"{row.state:21} {source.repo}: about {byte_text(source.size)}, for {', '.join(row.models)}"
            accepted = " (to be accepted)" if row.weights.restricts else ""
            yield f"{'':21} licence: {row.weights.licence}{accepted}"
            for name in source.files if row.state != "in a library's cache" else ():
                yield f"{'':21} {name}  SHA-256 {_hash(source, name)}"
            if row.why:
                yield f"{'':21} {row.why}"
        if self.is_plan and lacking:
            yield ""
            yield "on a machine with network, in a new folder:"
            yield from commands(row.weights.source for row in lacking)
            yield "bring the folder here; then: fabula models fetch vision --from FOLDER"


def survey(names: Sequence[str], *, is_plan: bool = False) -> Fetching:
    """Return what is here of the weights of models, and what is not; nothing is fetched."""
    own = {model.name for model in MODELS}
    for name in names:
        if name not in own:
            raise ConfigError(
                f"model {name}", what=f"there is no such model of ours; there are {', '.join(sorted(own))}",
                fix="check the spelling; weights of models of your own are for you to fetch",
            )  # fmt: skip
    rows = (Row(weights, models, _state(weights.source)) for weights, models in sources_of(names).values())
    return Fetching(tuple(rows), is_plan)


def fetch(
    surveyed: Fetching, folder: Path | None = None, tell: Callable[[str], None] | None = None
) -> Fetching:
    """Bring what is not here into the folder of weights.

    ``folder``: where files lie that were fetched elsewhere; None for the net.

    Returned: what became of each; what could not be had says why, and the rest is fetched all the same.
    """
    lacking = surveyed.lacking
    _check_room(sum(row.weights.source.size for row in lacking))
    rows = []
    for row in surveyed.rows:
        if row not in lacking:
            rows.append(row)
            continue
        source = row.weights.source
        if tell:
            tell(f"{source.repo}: {', '.join(source.files)}, about {byte_text(source.size)}")
        try:
            bring(source, folder)
            state, why = "fetched", ""
        except MissingRequirement as error:
            state, why = "failed", f"{error.found}; {error.fix}"
        except Exception as error:  # noqa: BLE001 - adapter boundary: whatever the clients raise
            lines = str(error).strip().splitlines() or [type(error).__name__]
            state, why = "failed", lines[0][:300]
        rows.append(Row(row.weights, row.models, state, why))  # type: ignore[arg-type]
    return Fetching(tuple(rows))


def bring(source: Source, folder: Path | None = None) -> None:
    """Bring the files of one source into the folder of weights, and pin them."""
    if source.made_from is not None and not (folder and _given(folder, source, source.file)):
        published = source.made_from
        if stored(published) is None:
            bring(published, folder)
        path = weights_folder() / source.folder / source.file
        packages = folder / PACKAGES if folder and (folder / PACKAGES).is_dir() else None
        export_facenet(weights_folder() / published.folder / published.file, path, packages)
        sha256 = sha256_file(path)
        pin(source, source.file, Pin(sha256, path.stat().st_size, f"exported from {published.file}", False))
        return
    for name in source.files:
        path = weights_folder() / source.folder / name
        if path.is_file() and name in pinned(source):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if folder is not None:
            made = _copy(source, name, folder, path)
        elif source.address:
            fetch_address(source.address, path)
            made = Pin("", 0, source.address, False)
        else:
            made = _from_hub(source, name, path)
        if path.is_file():
            _keep(source, name, path, made)


def _keep(source: Source, name: str, path: Path, made: Pin) -> None:
    """Pin a file that came; one with another hash than it should have goes."""
    sha256 = sha256_file(path)
    wanted = source.digits or made.sha256
    if wanted and not sha256.startswith(wanted):
        path.unlink()
        raise ValueError(
            f"{name} from {made.origin} has SHA-256 {sha256[:12]}... instead of {wanted[:12]}..."
        )
    pin(source, name, Pin(sha256, path.stat().st_size, made.origin, bool(wanted) or made.checked))


def _from_hub(source: Source, name: str, path: Path) -> Pin:
    """Fetch a file of the Hub; what broke off is resumed. Its hash is what the Hub has at the commit."""
    lost = unreachable()
    if lost is not None:
        raise ConnectionError(lost)
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    revision = source.revision or None
    with quiet_libraries():
        try:
            about = get_hf_file_metadata(hf_hub_url(source.repo, name, revision=revision))
        except EntryNotFoundError:
            if name in source.also:
                return Pin("", 0, "", False)  # one of several forms that a tokenizer can have
            raise
        hf_hub_download(source.repo, name, revision=revision, local_dir=path.parent)
    origin = f"{source.repo} at {about.commit_hash}"
    LOG.info("fetched %s from %s", name, origin)
    of_content = about.etag if about.etag and len(about.etag) == 64 else ""
    if about.etag and len(about.etag) == 40 and _git_hash(path) != about.etag:
        path.unlink()
        raise ValueError(f"{name} from {origin} is not what the Hub says it is")
    return Pin(of_content, 0, origin, bool(revision) and about.commit_hash == revision)


def _git_hash(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _copy(source: Source, name: str, folder: Path, path: Path) -> Pin:
    """Copy a file that was fetched elsewhere."""
    given = _given(folder, source, name)
    if given is None:
        if name in source.also:
            return Pin("", 0, "", False)
        raise FileNotFoundError(f"{folder} has no {source.folder}/{name}")
    part = path.with_name(f"{path.name}.part")
    with open_plain(given, follow=True) as read, part.open("wb") as out:
        shutil.copyfileobj(read, out, _BUFFER)
    part.replace(path)
    commit, etag = _note(given, folder / source.folder)
    at_commit = bool(source.revision) and commit == source.revision
    return Pin(etag if at_commit and len(etag) == 64 else "", 0, str(given.resolve()), at_commit)


def _note(given: Path, beside: Path) -> tuple[str, str]:
    """Return commit and tag that the Hub's client noted beside a file that it fetched into a folder."""
    note = beside / ".cache" / "huggingface" / "download" / f"{given.name}.metadata"
    lines = note.read_text("utf-8").splitlines() if note.is_file() else []
    return (lines[0].strip(), lines[1].strip()) if len(lines) > 1 else ("", "")


def _given(folder: Path, source: Source, name: str) -> Path | None:
    """Return where a file lies in a folder of the user's: in the source's own folder, or one file alone."""
    places = [folder / source.folder / name, *([folder / name] if source.file else [])]
    return next((path for path in places if path.is_file()), None)


def _state(source: Source) -> State:
    if stored(source) is not None and all(name in pinned(source) for name in source.files[:2]):
        return "here"
    try:
        return "in a library's cache" if not source.on_request and in_cache(source) else "to fetch"
    except ImportError:
        return "to fetch"


def _check_room(size: int) -> None:
    folder = weights_folder()
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if size > free:
        raise MissingRequirement(
            str(folder), what=f"there is room for {byte_text(free)}, and about {byte_text(size)} are to come",
            fix="make room, fetch fewer models (--model), or set XDG_CACHE_HOME to a larger disk",
        )  # fmt: skip


def commands(sources: Iterator[Source]) -> Iterator[str]:
    """Yield the commands that fetch sources into the folder where they are given, for a shell."""
    for source in sources:
        chosen = source.made_from or source
        if chosen.address:
            yield f"  curl -fL -C - --create-dirs -o {chosen.folder}/{chosen.file} {chosen.address}"
            if source.made_from is not None:
                yield f"  pip download --no-deps -d {PACKAGES} {NAME}"
                yield f"  pip download -d {PACKAGES} {' '.join(BESIDE)}"
            continue
        revision = f" --revision {chosen.revision}" if chosen.revision else ""
        files = " ".join(chosen.files)
        yield f"  hf download {chosen.repo} {files}{revision} --local-dir {chosen.folder}"


def address_of(source: Source, name: str) -> str:
    """Return where a file is published."""
    if source.made_from is not None:
        return source.made_from.address
    revision = source.revision or "main"
    return source.address or f"https://huggingface.co/{source.repo}/resolve/{revision}/{name}"


def check_files(name: str) -> Iterator[tuple[Source, str, bool]]:
    """Yield the sources of a model that are in the folder of weights, what was found, and if it is sound."""
    for source in sources_of([name] if name in WEIGHTS else []):
        if stored(source) is None:
            continue
        wrong = changed(source)
        entries = pinned(source)
        loose = sum(not entry.checked for entry in entries.values())
        said = f"{tallied(len(entries), 'files')} with the SHA-256 that they came with"
        yield source, wrong or said + (f", {loose} of them {NOT_RECORDED} before" if loose else ""), not wrong


def _hash(source: Source, name: str) -> str:
    entry = pinned(source).get(name)
    known = source.digits if source.file else ""
    if entry is not None:
        return entry.sha256 if entry.checked else f"{entry.sha256} (pinned here, {NOT_RECORDED} before)"
    return known if len(known) == 64 else f"{known}..." if known else NOT_RECORDED


def tell(line: str) -> None:
    """Say on standard error what is going on."""
    sys.stderr.write(f"{line}\n")
