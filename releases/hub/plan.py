"""What publishing a release would do, from what the folder holds and what the repository holds."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from ...errors import TargetError
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.layout import README, RELEASE, SUMS, files_in
from ...schemas.plain_files import parse_json, read_plain
from ..options import SEMVER
from .client import DATASET, Hub, HubFile, Refs
from .faults import HubFault

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
    """The release's files; each is read once, however often it is compared with the same file of the Hub."""

    folder: Path  # where they are
    document: Mapping[str, Json]  # its ``release.json``
    _compared: dict[tuple[str, HubFile], Kind] = field(default_factory=dict, repr=False)

    @property
    def paths(self) -> tuple[str, ...]:
        """Their paths, sorted."""
        return tuple(files_in(self.folder))

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return (self.folder / path).stat().st_size

    def compare(self, path: str, there: HubFile | None) -> Kind:
        """Return what has to happen so that the repository has the file."""
        if there is None:
            return "add"
        if (path, there) not in self._compared:
            self._compared[path, there] = "change" if there.problem(self.folder / path) else "keep"
        return self._compared[path, there]

    def is_in(self, files: Mapping[str, HubFile]) -> bool:
        """Return whether a revision holds the release, file by file."""
        return all(self.compare(path, files.get(path)) == "keep" for path in self.paths)


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository as it is."""

    private: bool | None  # whether it is; None where there is none
    refs: Refs  # where its names point
    files: Mapping[str, HubFile]  # what its main branch holds
    document: Mapping[str, Json]  # the ``release.json`` there; empty where there is none
    sha256: str | None = None  # of the bytes of that document; None where there is none

    @property
    def listed(self) -> set[str]:
        """The paths that its ``release.json`` says are of its release."""
        files = self.document.get("files")
        return {*(files if isinstance(files, dict) else {}), *((RELEASE, SUMS) if self.document else ())}


@dataclass(frozen=True, slots=True)
class PublishPlan(Tabular):
    """What publishing would do."""

    repo: str  # the repository
    address: str  # of its page
    version: str  # the release's version, and the name of its tag
    private: bool  # whether the repository is to be private, or is
    creates: bool  # whether the repository is made
    parent: str | None  # the commit that the main branch is at
    operations: tuple[Operation, ...]  # file by file, sorted by path
    foreign: tuple[str, ...]  # files of the repository that are of no release and stay as they are
    tagged: str | None  # the commit that already has the tag; None if there is no such tag

    @property
    def changes(self) -> tuple[Operation, ...]:
        """The operations that there is something to commit for."""
        return tuple(operation for operation in self.operations if operation.kind != "keep")

    def grids(self) -> Iterator[Grid]:
        """Yield what is done to each file."""
        rows = ((step.kind, step.path, step.size) for step in self.operations)
        title = f"{self.repo}@{self.version}"
        yield Grid("operations", title, ("operation", "file", "bytes"), tuple(rows), words=(1,))

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
                {"kind": step.kind, "path": step.path, "bytes": step.size} for step in self.operations
            ],
            "left_alone": list(self.foreign),
            "create_tag": self.tagged is None,
        }

    def lines(self) -> Iterator[str]:
        """Yield the plan for people, every operation on a line of its own."""
        if self.creates:
            yield f"create {'private' if self.private else 'public'} data set {self.repo}"
        counts = Counter(step.kind for step in self.operations)
        for step in self.changes:
            yield f"  {step.kind:<6} {step.path} ({step.size:,} bytes)"
        for path in self.foreign:
            yield f"  leave  {path} (not part of a release)"
        if self.changes:
            uploaded = sum(step.size for step in self.changes if step.kind != "delete")
            shown = ", ".join(f"{counts[kind]} to {kind}" for kind in ("add", "change", "delete", "keep"))
            onto = f"one commit on {self.parent}" if self.parent else "the first commit"
            yield f"{onto}: {shown}; {uploaded:,} bytes"
        else:
            yield f"nothing to commit: all {counts['keep']} files are there"
        yield f"tag {self.version}: {'make it' if self.tagged is None else f'there, at {self.tagged}'}"


def plan_of(hub: Hub, local: Local, *, private: bool, made: bool = False) -> PublishPlan:
    """Return what publishing a release would do; nothing is changed."""
    repo, version, remote = hub.repo, str(local.document["version"]), look(hub)
    if remote.private is False and private:
        raise TargetError(
            repo,
            what="--private is given, but the repository is public",
            fix="make it private on the Hub, or leave --private out",
        )
    tagged = remote.refs.tags.get(version)
    if tagged is not None and not local.is_in(hub.tree(tagged)):
        raise TargetError(
            f"{repo}@{version}",
            what=f"this version is published already, with other content (commit {tagged})",
            fix="pack with a higher --version; a published version is never changed",
        )
    if tagged is None:
        require_same_benchmark(local, remote, repo)
    return PublishPlan(
        repo=repo,
        address=hub.address,
        version=version,
        private=private if remote.private is None else remote.private,
        creates=remote.private is None and not made,
        parent=remote.refs.head,
        operations=_operations(local, remote) if tagged is None else (),
        foreign=tuple(sorted(set(remote.files) - {*local.paths, *remote.listed, *_OF_THE_HUB})),
        tagged=tagged,
    )


def look(hub: Hub) -> Remote:
    """Return a repository as it is."""
    try:
        info = hub.ask("look at the repository", lambda api: api.repo_info(hub.repo, repo_type=DATASET))
    except HubFault as fault:
        if fault.kind == "no_repository":
            return Remote(None, Refs(None, {}), {}, {})
        raise
    private, refs = bool(info.private), hub.refs()
    files = {} if refs.head is None else hub.tree(refs.head)
    if refs.head is None or RELEASE not in files:
        return Remote(private, refs, files, {})
    with tempfile.TemporaryDirectory(prefix="fabula-hub-") as folder:
        hub.download(refs.head, files, [RELEASE], Path(folder))
        content = read_plain(Path(folder) / RELEASE)
    document: Json = None
    with suppress(ValueError):
        document = parse_json(content)
    return Remote(private, refs, files, document if isinstance(document, dict) else {}, sha256_bytes(content))


def _operations(local: Local, remote: Remote) -> tuple[Operation, ...]:
    """Return what has to happen so that the main branch holds the release, sorted by path."""
    gone = (remote.listed & set(remote.files)) - set(local.paths)
    steps = [
        Operation(local.compare(path, remote.files.get(path)), path, local.size(path)) for path in local.paths
    ]
    steps += [Operation("delete", path, remote.files[path].size) for path in gone]
    return tuple(sorted(steps, key=lambda step: step.path))


def require_same_benchmark(local: Local, remote: Remote, repo: str) -> None:
    """Refuse a repository with something else, a newer version, or another version of this number."""
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
    previous = local.document.get("previous")
    since = isinstance(previous, dict) and previous.get("version") == theirs and theirs in remote.refs.tags
    if since and isinstance(previous, dict) and previous.get("sha256") != remote.sha256:
        raise TargetError(
            repo,
            what=f"this release was packed --since another {theirs} than the one in the repository: their "
            f"{RELEASE} differ",
            fix=f"fetch {repo}@{theirs}, and pack again with --since that folder",
        )


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
