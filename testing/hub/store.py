"""What a Hub keeps: repositories with commits, branches and tags, the content of files, large files apart.

Commits are whole trees, as in git; names of contents are git's own (SHA-1 of a blob), large files are known
by their SHA-256 and stand in a tree as a pointer of three lines.
"""

import fnmatch
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...schemas.canonical import canonical_bytes, sha256_bytes

MAIN = "main"
ATTRIBUTES = ".gitattributes"
LARGE_PATTERNS = ("*.parquet", "*.zip", "*.png", "*.jpg", "*.mp4", "*.bin")
LARGE_SIZE = 10 * 1024 * 1024
_FIRST_SECOND = 1_767_225_600  # 2026-01-01T00:00:00Z; every commit is a second later


class Refusal(Exception):
    """The Hub does not do what it was asked.

    Args:
        status: HTTP status.
        message: what it says.
        code: the Hub's name for it, such as ``RepoNotFound``.
        more: further fields of the JSON body.
    """

    def __init__(
        self, status: int, message: str, code: str | None = None, more: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.more = status, message, code, dict(more or {})


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a tree."""

    oid: str  # git's name of what the tree holds: the content, or the pointer to it
    size: int  # bytes of the content
    sha256: str | None = None  # of the content of a large file; None for others
    pointer_size: int = 0  # bytes of the pointer


@dataclass(frozen=True, slots=True)
class Commit:
    """A whole tree, and where it came from."""

    oid: str
    parent: str | None
    title: str
    description: str
    tree: Mapping[str, Entry]
    second: int


@dataclass(slots=True)
class Repository:
    """A data set repository."""

    name: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def commit_of(self, revision: str) -> Commit:
        """Return the commit of a branch, a tag or a commit's own name."""
        oid = self.branches.get(revision) or self.tags.get(revision) or revision
        if oid not in self.commits:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.commits[oid]

    def history(self, revision: str) -> list[Commit]:
        """Return the commits that led to a revision, the newest first."""
        found = [self.commit_of(revision)]
        while (parent := found[-1].parent) is not None:
            found.append(self.commits[parent])
        return found


@dataclass(frozen=True, slots=True)
class Change:
    """One operation of a commit: a content, a large file by its SHA-256, or a removal (all None)."""

    path: str
    content: bytes | None = None
    sha256: str | None = None
    folder: bool = False


class Store:
    """All repositories of a Hub, and all contents."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.blobs: dict[str, bytes] = {}
        self.objects: dict[str, bytes] = {}

    def create(self, name: str, *, private: bool) -> Repository:
        """Make a repository, with the first commit that the Hub makes by itself."""
        if name in self.repositories:
            raise Refusal(409, "You already created this dataset repo")
        repository = self.repositories[name] = Repository(name, private)
        lines = [f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in LARGE_PATTERNS]
        self.commit(repository, "initial commit", "", [Change(ATTRIBUTES, "".join(lines).encode())])
        return repository

    def commit(
        self,
        repository: Repository,
        title: str,
        description: str,
        changes: Iterable[Change],
        branch: str = MAIN,
    ) -> Commit:
        """Put a commit on a branch."""
        parent = repository.branches.get(branch)
        tree = dict(repository.commits[parent].tree) if parent else {}
        for change in changes:
            self._apply(tree, change)
        number = len(repository.commits)
        listing = {path: [entry.oid, entry.size] for path, entry in tree.items()}
        oid = _sha1("commit", canonical_bytes([repository.name, number, parent, title, description, listing]))
        made = Commit(oid, parent, title, description, tree, _FIRST_SECOND + number)
        repository.commits[oid] = made
        repository.branches[branch] = oid
        return made

    def content(self, entry: Entry) -> bytes:
        """Return the content of a file."""
        return self.blobs[entry.oid] if entry.sha256 is None else self.objects[entry.sha256]

    def is_large(self, repository: Repository, revision: str, path: str, size: int) -> bool:
        """Return whether a file goes to the storage for large files: by its size, or by its name."""
        if size > LARGE_SIZE:
            return True
        attributes = repository.commit_of(revision).tree.get(ATTRIBUTES)
        lines = self.content(attributes).decode().splitlines() if attributes else []
        patterns = [line.split()[0] for line in lines if "filter=lfs" in line]
        name = path.rpartition("/")[2]
        return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)

    def _apply(self, tree: dict[str, Entry], change: Change) -> None:
        if change.content is not None:
            oid = _sha1("blob", change.content)
            self.blobs[oid] = change.content
            tree[change.path] = Entry(oid, len(change.content))
        elif change.sha256 is not None:
            if change.sha256 not in self.objects:
                raise Refusal(400, f"LFS pointer pointed to a file that does not exist: {change.path}")
            size = len(self.objects[change.sha256])
            pointer = _pointer(change.sha256, size)
            tree[change.path] = Entry(_sha1("blob", pointer), size, change.sha256, len(pointer))
        else:
            prefix = change.path.rstrip("/") + "/"
            gone = [
                path for path in tree if path == change.path or (change.folder and path.startswith(prefix))
            ]
            if not gone:
                raise Refusal(404, f"A file with this name doesn't exist: {change.path}", "EntryNotFound")
            for path in gone:
                del tree[path]

    def upload(self, sha256: str, data: bytes) -> None:
        """Keep a large file."""
        if sha256_bytes(data) != sha256:
            raise Refusal(400, "The content does not have the announced SHA-256")
        self.objects[sha256] = data


def _sha1(kind: str, data: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def _pointer(sha256: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()
