"""What publishing a release would do, from what the folder holds and what the repository holds."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from ..errors import ConfigError, TargetError
from ..schemas.canonical import Json, sha256_bytes, sha256_file
from ..schemas.plain_files import parse_json
from .git_names import git_oid
from .hub_client import Hub, Refs, RemoteFile
from .layout import README, RELEASE, SUMS, files_in
from .options import SEMVER

Kind: TypeAlias = Literal["add", "change", "delete", "keep"]
_OF_THE_HUB = (".gitattributes",)


@dataclass(frozen=True, slots=True)
class Operation:
    """What happens to one file of the repository."""

    kind: Kind
    path: str
    size: int


@dataclass(frozen=True)
class Local:
    """The release's files; each is read once, however often it is compared.

    Attributes:
        folder: where they are.
        document: its ``release.json``.
    """

    folder: Path
    document: Mapping[str, Json]
    _digests: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Their paths, sorted."""
        return tuple(files_in(self.folder))

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return (self.folder / path).stat().st_size

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file."""
        return self._digest(path, "sha256", sha256_file)

    def compare(self, path: str, there: RemoteFile | None) -> Kind:
        """Return what has to happen so that the repository has the file."""
        if there is None:
            return "add"
        if there.size != self.size(path):
            return "change"
        same = self.sha256(path) == there.sha256 if there.sha256 else self._oid(path) == there.oid
        return "keep" if same else "change"

    def is_in(self, files: Mapping[str, RemoteFile]) -> bool:
        """Return whether a revision holds the release, file by file."""
        return all(self.compare(path, files.get(path)) == "keep" for path in self.paths)

    def _oid(self, path: str) -> str:
        return self._digest(path, "git", git_oid)

    def _digest(self, path: str, kind: str, digest: Callable[[Path], str]) -> str:
        if (path, kind) not in self._digests:
            self._digests[path, kind] = digest(self.folder / path)
        return self._digests[path, kind]


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository as it is.

    Attributes:
        private: whether it is; None where there is none.
        refs: where its names point.
        files: what its main branch holds.
        document: the ``release.json`` there; empty where there is none.
        sha256: of the bytes of that document; None where there is none.
    """

    private: bool | None
    refs: Refs
    files: Mapping[str, RemoteFile]
    document: Mapping[str, Json]
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """What publishing would do.

    Attributes:
        repo: the repository.
        address: of its page.
        version: the release's version, and the name of its tag.
        private: whether the repository is to be private, or is.
        creates: whether the repository is made.
        parent: the commit that the main branch is at.
        operations: file by file, sorted by path.
        foreign: files of the repository that are of no release and stay as they are.
        tagged: the commit that already has the tag; None if there is no such tag.
    """

    repo: str
    address: str
    version: str
    private: bool
    creates: bool
    parent: str | None
    operations: tuple[Operation, ...]
    foreign: tuple[str, ...]
    tagged: str | None

    @property
    def commits(self) -> bool:
        """Whether there is anything to commit."""
        return any(one.kind != "keep" for one in self.operations)

    def as_json(self) -> dict[str, Json]:
        """Return the plan as plain JSON."""
        return {
            "repo": self.repo,
            "address": self.address,
            "version": self.version,
            "private": self.private,
            "create_repository": self.creates,
            "parent_commit": self.parent,
            "operations": [
                {"kind": one.kind, "path": one.path, "bytes": one.size} for one in self.operations
            ],
            "left_alone": list(self.foreign),
            "create_tag": self.tagged is None,
        }

    def lines(self) -> Iterator[str]:
        """Yield the plan for people, every operation on a line of its own."""
        if self.creates:
            yield f"create {'private' if self.private else 'public'} data set {self.repo}"
        counts = Counter(one.kind for one in self.operations)
        for one in self.operations:
            if one.kind != "keep":
                yield f"  {one.kind:<6} {one.path} ({one.size:,} bytes)"
        for path in self.foreign:
            yield f"  leave  {path} (not part of a release)"
        if self.commits:
            uploaded = sum(one.size for one in self.operations if one.kind in ("add", "change"))
            shown = ", ".join(f"{counts[kind]} to {kind}" for kind in ("add", "change", "delete", "keep"))
            yield f"one commit on {self.parent or 'the first one'}: {shown}; {uploaded:,} bytes"
        else:
            yield f"nothing to commit: all {counts['keep']} files are there"
        yield f"tag {self.version}: {'make it' if self.tagged is None else f'there, at {self.tagged}'}"


def look(hub: Hub, repo: str) -> Remote:
    """Return a repository as it is; nothing is changed.

    Raises:
        HubFault: the Hub cannot tell.
    """
    private = hub.is_private(repo)
    if private is None:
        return Remote(None, Refs(None, {}), {}, {})
    refs = hub.refs(repo)
    files = {} if refs.head is None else hub.tree(repo, refs.head)
    if refs.head is None or RELEASE not in files:
        return Remote(private, refs, files, {})
    content = hub.read(repo, refs.head, RELEASE)
    document: Json = None
    with suppress(ValueError):
        document = parse_json(content)
    found = document if isinstance(document, dict) else {}
    return Remote(private, refs, files, found, sha256_bytes(content))


def operations(local: Local, remote: Remote) -> tuple[Operation, ...]:
    """Return what has to happen so that the main branch holds the release, sorted by path."""
    found = [
        Operation(local.compare(path, remote.files.get(path)), path, local.size(path)) for path in local.paths
    ]
    gone = (listed(remote.document) & set(remote.files)) - set(local.paths)
    found += [Operation("delete", path, remote.files[path].size) for path in gone]
    return tuple(sorted(found, key=lambda one: one.path))


def foreign(local: Local, remote: Remote) -> tuple[str, ...]:
    """Return the files of the repository that are neither of this release nor of the one before."""
    ours = set(local.paths) | listed(remote.document) | set(_OF_THE_HUB)
    return tuple(sorted(set(remote.files) - ours))


def listed(document: Mapping[str, Json]) -> set[str]:
    """Return the paths that a ``release.json`` says are of its release."""
    files = document.get("files")
    return {*(files if isinstance(files, dict) else {}), *((RELEASE, SUMS) if document else ())}


def require_same_benchmark(local: Local, remote: Remote, repo: str) -> None:
    """Refuse a repository that holds something else, or a newer version.

    Raises:
        TargetError: it does.
    """
    if not remote.document:
        touched = [RELEASE] if RELEASE in remote.files else _touched(local, remote)
        if touched:
            raise TargetError(
                repo,
                what="the repository has files that are not a release of Fabula and would be "
                f"overwritten: {', '.join(touched[:5])}",
                fix="give another --repo",
            )
        return
    here, there = _name(local.document), _name(remote.document)
    if here != there:
        raise TargetError(
            repo,
            what=f"the repository holds another benchmark, {there!r}; this release is called {here!r}",
            fix=f"give another --repo; or, if it is the same benchmark, pack again with --name {there}",
        )
    ours, theirs = str(local.document.get("version")), str(remote.document.get("version"))
    if _order(ours) < _order(theirs):
        raise TargetError(
            repo,
            what=f"the repository already has version {theirs}, which is newer than {ours}",
            fix="pack with a higher --version; an older one would take the main branch back",
        )
    _require_successor(local, remote, theirs, repo)


def _require_successor(local: Local, remote: Remote, theirs: str, repo: str) -> None:
    """Refuse a release whose changes are since another version of the same number than the published one."""
    previous = local.document.get("previous")
    if not isinstance(previous, dict) or previous.get("version") != theirs or theirs not in remote.refs.tags:
        return
    if previous.get("sha256") != remote.sha256:
        raise TargetError(
            repo,
            what=f"this release was packed --since another {theirs} than the one in the repository: their "
            f"{RELEASE} differ",
            fix=f"fetch {repo}@{theirs}, and pack again with --since that folder",
        )


def require_version(document: Mapping[str, Json], folder: Path) -> str:
    """Return the version of a release, which becomes its tag.

    Raises:
        ConfigError: it is no semantic version.
    """
    version = str(document.get("version"))
    if SEMVER.fullmatch(version) is None:
        raise ConfigError(
            str(folder / RELEASE), what=f"{version!r} is not a semantic version", fix="pack it again"
        )
    return version


def _touched(local: Local, remote: Remote) -> list[str]:
    """Return the files that publishing would change though no release put them there."""
    ours = (path for path in local.paths if path != README and path in remote.files)
    return [path for path in ours if local.compare(path, remote.files[path]) == "change"]


def _name(document: Mapping[str, Json]) -> str:
    about = document.get("about")
    return str(about.get("name")) if isinstance(about, dict) else "a release without a name"


def _order(version: str) -> tuple[int, ...]:
    match = SEMVER.match(version)
    return tuple(int(match[group]) for group in (1, 2, 3)) if match else (0, 0, 0)
