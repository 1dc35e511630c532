"""Fetching a published version: by tag or commit, every file checked, kept in a cache, offline afterwards."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from ...errors import ConfigError, InputError, TargetError, UserError
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, pretty_bytes, sha256_bytes, write_atomic
from ...schemas.paths import CARD, DATA, LICENSE, RELEASE, SUMS, files_in
from ...schemas.plain_files import (
    LARGEST_DOCUMENT,
    LONGEST_LINE,
    open_plain,
    parse_json,
    read_json,
    read_plain,
    reason_of,
)
from ...schemas.text import tallied
from ..loading import read_release_document
from ..options import SEMVER
from ..target import require_free, staged
from .client import (
    Hub,
    HubFile,
    Reference,
    Retries,
    checked_repo,
    looks_like_reference,
    open_hub,
    parse_reference,
)  # fmt: skip

# -- Where fetched versions lie: one folder per commit in the user's cache, whole or not there at all

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


# -- Fetching a published version

_LARGEST_DOCUMENT = 256 * 1024 * 1024
_MOST_FILES = 100_000
_NAME = re.compile(r"[A-Za-z0-9_]{1,100}", re.ASCII)
_TABLE = re.compile(rf"{DATA}/(\w+)/(\w+)\.parquet", re.ASCII)
_ALWAYS = (CARD, LICENSE)
"""What comes with a table: what it is, and what may be done with it. No README: that would list other tables,
and ``datasets`` reads no folder that lacks what its README lists."""
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FIX = "do not use it; tell its maintainers, and fetch a version that is sound"


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How to fetch."""

    endpoint: str | None = None  # another Hub than that of ``HF_ENDPOINT``
    cache: Path | None = None  # another cache folder than the user's
    retries: Retries | None = None  # how often to ask again
    progress: bool = False  # show progress bars of downloads
    config: str | None = None  # only this table, with card and licence; None for the whole release
    split: str | None = None  # only this split of the table

    @property
    def part(self) -> str | None:
        """What of a release is wanted, such as ``stories`` or ``stories-train``; None for all of it."""
        for option, name in (("--config", self.config), ("--split", self.split)):
            if name is not None and _NAME.fullmatch(name) is None:
                raise ConfigError(
                    option, expected="letters, digits and underscores", found=repr(name),
                    fix="give a name as the card lists it",
                )  # fmt: skip
        if self.config is None and self.split is not None:
            raise ConfigError(
                "--split", what="a split is of a table, and none is given", fix="add --config with the table"
            )
        return self.config if self.split is None else f"{self.config}-{self.split}"


@dataclass(frozen=True, slots=True)
class Fetched(Tabular):
    """A version on this machine."""

    reference: Reference  # what was asked for
    commit: str  # the commit that it is
    folder: Path  # where it lies; not to be changed where it is the cache
    cached: bool  # whether it was there already, so that no Hub was asked
    version: str | None  # the release's version; None for a repository that is no release of ours
    files: int  # how many files it has
    part: str | None = None  # which table and split of it came; None for all of it

    def grids(self) -> Iterator[Grid]:
        rows = (
            ("commit", self.commit), ("folder", str(self.folder)), ("files", str(self.files)),
            ("from", "the cache" if self.cached else "the Hub"), ("part", self.part or "all of it"),
        )  # fmt: skip
        yield Grid("fetched", str(self.reference), ("what", "value"), rows, words=(1,))

    def as_json(self) -> dict[str, Json]:
        return asdict(self) | {"reference": str(self.reference), "folder": str(self.folder)}

    def lines(self) -> Iterator[str]:
        source = "from the cache" if self.cached else "from the Hub"
        yield f"{self.reference}: {self.files} files {source}, all of them checked"
        yield f"  commit {self.commit}"
        yield f"  release: {self.folder}" if self.part is None else f"  {self.part}: {self.folder}"


def release_folder(text: str | Path, tell: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of a release.

    Returned: the folder given, whether it is there or not, or the one in the cache, every file of it checked.
    """
    folder = Path(text)
    if folder.exists() or not looks_like_reference(str(text)):
        return folder
    return fetch(str(text), tell=tell).folder


def fetch(
    text: str,
    out: Path | None = None,
    options: FetchOptions | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Fetched:
    """Fetch a release, or one table of it, and check every file against its ``release.json``."""
    options = options or FetchOptions()
    part = options.part
    kind = "releases" if part is None else f"tables/{part}"
    fetched, listing = _fetch(text, options, kind, tell)
    reference, version = fetched.reference, str(read_release_document(fetched.folder)["version"])
    if SEMVER.fullmatch(reference.revision) and reference.revision != version:
        raise InputError([_tampered(str(reference), f"a release of version {version} under this tag")])
    folder = fetched.folder
    if out is not None:
        name = f"{reference.repo.partition('/')[2]}-{version}"
        folder = out / (name if part is None else f"{name}-{part}")
        _copy(fetched.folder, folder, listing)
    return replace(fetched, version=version, folder=folder, part=part)


def fetch_repository(
    text: str, options: FetchOptions | None = None, tell: Callable[[str], None] = lambda _: None
) -> Fetched:
    """Fetch all files of a repository that need not be a release of ours.

    Every file is checked against what the Hub lists for the commit.
    """
    return _fetch(text, options or FetchOptions(), "repositories", tell)[0]


def fetch_files(
    repo: str, revision: str, chosen: Callable[[Sequence[str]], Sequence[str]]
) -> tuple[Path, ...]:
    """Fetch some files of a data set repository into the cache, and check them; return where they lie.

    ``repo``: such as ``user/stories``. ``revision``: a tag, a branch or a commit; empty for the newest
    commit. ``chosen``: from all paths of the repository, those that are wanted; raises what is wrong with it.
    """
    with open_hub(checked_repo(repo, "hf://"), None) as hub:
        refs = hub.refs()
        commit = revision if _COMMIT.fullmatch(revision) else refs.tags.get(revision)
        if commit is None and revision in ("", "main"):
            commit = refs.head
        if commit is None:
            named = ", ".join(sorted(refs.tags)) or "none"
            what = f"{revision or 'main'} is no version of this repository; its tags are: {named}"
            raise ConfigError(f"hf://datasets/{repo}", what=what, fix="give a tag, or a commit, or none")
        tree = hub.tree(commit)
        paths = chosen(sorted(path for path in tree if _is_safe(path)))
        folder = open_cache("sources", repo).folder(commit)
        folder.mkdir(parents=True, exist_ok=True)
        _load_files(hub, commit, folder, tree, {path: tree[path] for path in paths})
    return tuple(folder / path for path in paths)


def _fetch(
    text: str, options: FetchOptions, kind: str, tell: Callable[[str], None]
) -> tuple[Fetched, Mapping[str, HubFile]]:
    """Return a version in the cache, and what its files are; it is loaded if it is not there."""
    reference = parse_reference(text)
    repo, cache = reference.repo, open_cache(kind, reference.repo, options.endpoint, options.cache)
    commit = cache.known_commit(reference)
    if cached := commit is not None:
        folder = cache.folder(commit)
        problems = list(_differences(folder, cache.listing(commit), f"remove {folder}, and fetch it again"))
        if problems:
            raise InputError(problems)
    else:
        with open_hub(repo, options.endpoint, retries=options.retries, progress=options.progress) as hub:
            commit = commit_named(hub, reference)
            tell(f"fetching {repo} at {commit[:12]}")
            with cache.filling(commit) as draft:
                if draft is not None:
                    cache.place(commit, draft, _load(hub, commit, draft, options, kind))
                cache.remember(reference, commit)
    listing = cache.listing(commit)
    return Fetched(reference, commit, cache.folder(commit), cached, None, len(listing)), listing


def commit_named(hub: Hub, reference: Reference) -> str:
    """Return the commit that a version names."""
    if reference.is_commit:
        return reference.revision
    refs = hub.refs()
    if reference.revision in refs.tags:
        return refs.tags[reference.revision]
    versions = ", ".join(sorted(refs.tags)) or "no version at all"
    branch = reference.revision in refs.branches
    raise ConfigError(
        str(reference),
        what=f"{reference.revision} is "
        f"{'a branch, whose content can change' if branch else 'not a version of this repository'}; "
        f"the versions are: {versions}",
        fix=f"give one of them{f', or the commit {refs.head}' if branch and refs.head else ''}",
    )


def _load(hub: Hub, commit: str, draft: Path, options: FetchOptions, kind: str) -> Mapping[str, HubFile]:
    """Load what is not there yet; return what the files are: as ``release.json`` says, or as the Hub does."""
    tree, where = hub.tree(commit), f"{hub.repo}@{commit[:12]}"
    if kind != "repositories":
        listed = tree.get(RELEASE)
        if listed is None or listed.size > _LARGEST_DOCUMENT:
            text = "none" if listed is None else f"{listed.size:,} bytes"
            fix = "check that the repository holds a release made by Fabula"
            most = f"a {RELEASE} of at most {_LARGEST_DOCUMENT:,} bytes"
            raise InputError.one(f"{where}: {RELEASE}", expected=most, found=text, fix=fix)
        _load_files(hub, commit, draft, tree, {RELEASE: listed})
        expected = _listed_by_release(read_plain(draft / RELEASE), f"{where}: {RELEASE}")
        if options.config is not None:
            expected = _of_table(expected, options.config, options.split, where)
    else:
        expected = tree
        if bad := [path for path in tree if not _is_safe(path)]:
            raise _unsound(where, "plain relative paths", repr(bad[0]))
        _require_distinct(tree, where)
    _load_files(hub, commit, draft, tree, expected)
    return expected


def _load_files(
    hub: Hub, commit: str, draft: Path, tree: Mapping[str, HubFile], expected: Mapping[str, HubFile]
) -> None:
    """Load files, and check them; one that arrives damaged is asked for once more, then removed and told."""
    problems = _problems(draft, expected)
    require_room(draft, sum(expected[path].size for path in problems))
    for anew in (False, True):
        if problems:
            hub.download(commit, tree, problems, draft, anew=anew)
            problems = _problems(draft, {path: expected[path] for path in problems})
    for path in problems:
        (draft / path).unlink(missing_ok=True)
    if problems:
        blob = f"{hub.address}/blob/{commit[:12]}"
        raise InputError([_tampered(f"{blob}/{path}", f"a file that {problems[path]}") for path in problems])


def _problems(folder: Path, expected: Mapping[str, HubFile]) -> dict[str, str]:
    """Return path -> in which way it is another file, of those that are, sorted."""
    looked_at = ((path, expected[path].problem(folder / path)) for path in sorted(expected))
    return {path: problem for path, problem in looked_at if problem is not None}


def _listed_by_release(document: bytes, where: str) -> dict[str, HubFile]:
    """Return path -> what it must be, of every file of a release, from its ``release.json``.

    ``document``: the bytes of ``release.json``.
    """
    try:
        files = parse_json(document)["files"]
        listing = {path: HubFile(entry["bytes"], entry["sha256"]) for path, entry in files.items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _unsound(where, f"a {RELEASE} that lists files with size and hash", str(error)) from None
    bad = [path for path, entry in listing.items() if not (_is_safe(path) and _is_sound(entry))]
    if bad or RELEASE in listing or SUMS in listing:
        shown = repr(bad[0]) if bad else f"{len(listing)} files"
        raise _unsound(where, "plain relative paths with size and SHA-256", shown)
    _require_distinct(listing, where)
    sums = {path: entry.sha256 for path, entry in listing.items()} | {RELEASE: sha256_bytes(document)}
    lines = "".join(f"{sums[path]}  {path}\n" for path in sorted(sums)).encode("utf-8")
    listing[SUMS] = HubFile(len(lines), sha256_bytes(lines))
    listing[RELEASE] = HubFile(len(document), sha256_bytes(document))
    return listing


def _of_table(
    listing: Mapping[str, HubFile], config: str, split: str | None, where: str
) -> dict[str, HubFile]:
    """Return the files of one table or one split of it, with those that come with every table."""
    tables: dict[str, dict[str, str]] = {}
    for path in listing:
        if match := _TABLE.fullmatch(path):
            tables.setdefault(match[1], {})[match[2]] = path
    splits = tables.get(config, {})
    if not splits or (split is not None and split not in splits):
        option, name, known = ("--config", config, tables) if not splits else ("--split", split, splits)
        raise ConfigError(
            option, what=f"{where} has no {name!r}; it has {', '.join(sorted(known)) or 'none'}",
            fix="give one of them",
        )  # fmt: skip
    paths = splits.values() if split is None else (splits[split],)
    return {path: listing[path] for path in (RELEASE, *_ALWAYS, *paths) if path in listing}


def _is_sound(entry: HubFile) -> bool:
    size, sha256 = entry.size, entry.sha256
    plain = isinstance(size, int) and not isinstance(size, bool) and size >= 0
    return plain and isinstance(sha256, str) and bool(_SHA256.fullmatch(sha256))


def _is_safe(path: Json) -> bool:
    """Return whether a path from elsewhere may be written under a folder of ours."""
    if not isinstance(path, str) or not path or len(path) > 1000 or not path.isprintable():
        return False
    parts = PurePosixPath(path).parts
    plain = path == "/".join(parts) and not path.startswith("/") and "\\" not in path and ":" not in path
    return plain and ".." not in parts and parts[0] not in (".git", ".cache")


def _require_distinct(files: Mapping[str, HubFile], where: str) -> None:
    """Refuse too many paths, and those that would overwrite each other: by letter case, or as a folder."""
    if len(files) > _MOST_FILES:
        raise _unsound(where, f"at most {_MOST_FILES:,} files", f"{len(files)} files")
    folded = {path.casefold() for path in files}
    folders = {str(parent).casefold() for path in files for parent in PurePosixPath(path).parents}
    if len(folded) < len(files) or folded & folders:
        clash = sorted(folded & folders) or ["two paths that differ in letter case only"]
        raise _unsound(where, "paths that stay different on every file system", clash[0])


def _differences(folder: Path, expected: Mapping[str, HubFile], fix: str = _FIX) -> Iterator[UserError]:
    """Yield every file of a folder that is not what it must be, and those that nobody listed."""
    for path, problem in _problems(folder, expected).items():
        yield _tampered(folder / path, f"the file {problem}", fix)
    for path in sorted(set(files_in(folder)) - set(expected)):
        yield _tampered(folder / path, "a file that is listed nowhere", fix)


def _tampered(where: Path | str, found: str, fix: str = _FIX) -> UserError:
    return UserError(str(where), expected="the file that was published", found=found, fix=fix)


def _unsound(where: str, expected: str, found: str) -> InputError:
    return InputError.one(where, expected=expected, found=found[:300], fix=_FIX)


def _copy(folder: Path, target: Path, expected: Mapping[str, HubFile]) -> None:
    """Put a copy of a version at a place, unless it is there."""
    if target.is_dir() and any(target.iterdir()) and not list(_differences(target, expected)):
        return
    require_free(target)
    with staged(target.absolute()) as (draft,):
        for path in expected:
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / path, draft / path)


# -- Reading the records of a release one by one, from a folder or straight from a Hub, each of them checked
#
# Only ``release.json`` is loaded whole. It has the SHA-256 of every record, so that each can be trusted
# before the rest has come; nothing is kept on the disk.

BLOCK = 4 << 20
"""Bytes that are asked for at a time."""

Row = TypeVar("Row", bound=BaseModel)
_FIX_RECORDS = (
    "do not use it; tell its maintainers, or fetch the release and run `fabula release verify` on it"
)


@dataclass(frozen=True)
class ReleaseSource:
    """A release that is read where it lies."""

    name: str  # what it was opened as
    info: Mapping[str, Json] = field(repr=False)  # the content of its ``release.json``
    # path -> the bytes of the file, in pieces of any size
    pieces: Callable[[str], Iterator[bytes]] = field(repr=False)


@dataclass(frozen=True)
class StreamedRelease(Generic[Row]):
    """The records of a release, read anew each time that it is gone through."""

    source: ReleaseSource  # where they are
    file: str  # the file that holds them, one a line, sorted by id
    id_field: str  # the field that names a record
    model: type[Row]  # their type

    @property
    def info(self) -> Mapping[str, Json]:
        return self.source.info

    @property
    def version(self) -> str:
        """Its semantic version."""
        return str(self.info["version"])

    @property
    def hashes(self) -> Mapping[str, str]:
        """Id -> SHA-256 of the record's canonical JSON."""
        hashes: Mapping[str, str] = self.info.get("records", {}).get(self.file, {})
        return hashes

    def __len__(self) -> int:
        return len(self.hashes)

    def __iter__(self) -> Iterator[Row]:
        """Yield the records in the order of their ids."""
        number, last = 0, ""
        for number, line in enumerate(self._lines(), 1):
            where = f"{self.source.name}: {self.file}:{number}"
            try:
                record = self.model.model_validate_json(line)
            except ValidationError as error:
                raise _wrong(where, f"no record: {reason_of(error)}") from error
            name = str(getattr(record, self.id_field))
            if name <= last and number > 1:
                raise _wrong(where, f"{name!r} after {last!r}")
            if self.hashes.get(name) != sha256_bytes(line):
                raise _wrong(where, f"another record {name!r} than the one that was released")
            last = name
            yield record
        if number != len(self):
            where = f"{self.source.name}: {self.file}"
            raise _wrong(where, f"{tallied(number, 'records')}, and {RELEASE} names {len(self)}")

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for piece in self.source.pieces(self.file):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
            if len(rest) > LONGEST_LINE:
                where = f"{self.source.name}: {self.file}"
                raise _wrong(where, f"a line longer than {LONGEST_LINE:,} bytes")
        if rest:
            yield rest


def open_source(text: str | Path, options: FetchOptions | None = None) -> ReleaseSource:
    """Open a release for reading where it lies."""
    folder = Path(text)
    if folder.exists() or not looks_like_reference(str(text)):
        return ReleaseSource(
            str(folder), read_release_document(folder), lambda path: _of_folder(folder, path)
        )
    return _of_hub(str(text), options or FetchOptions())


def _of_folder(folder: Path, path: str) -> Iterator[bytes]:
    with open_plain(folder / path) as file:
        while piece := file.read(BLOCK):
            yield piece


def _of_hub(text: str, options: FetchOptions) -> ReleaseSource:
    reference = parse_reference(text)

    def read(path: str, start: int, stop: int) -> bytes:
        # Opened for each piece: an open Hub holds settings of the client, and readers may pause for long.
        with open_hub(reference.repo, options.endpoint, retries=options.retries) as hub:
            return hub.read(commit, path, start, stop)

    with open_hub(reference.repo, options.endpoint, retries=options.retries) as hub:
        commit = commit_named(hub, reference)
    with tempfile.TemporaryDirectory(prefix="fabula-stream-") as name:
        (Path(name) / RELEASE).write_bytes(read(RELEASE, 0, LARGEST_DOCUMENT))
        info = read_release_document(Path(name))
    files = info.get("files", {})

    def pieces(path: str) -> Iterator[bytes]:
        size = int(files.get(path, {}).get("bytes", 0))
        for start in range(0, size, BLOCK):
            yield read(path, start, min(start + BLOCK, size))

    return ReleaseSource(text, info, pieces)


def _wrong(where: str, found: str) -> InputError:
    expected = f"the records that {RELEASE} states"
    return InputError.one(where, expected=expected, found=found, fix=_FIX_RECORDS)
