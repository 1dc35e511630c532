"""A Hub through its own client: few verbs, every fault named, nothing secret in any text.

Large files go through LFS. The client's other way for them, Xet, is switched off unless HF_HUB_DISABLE_XET
says otherwise: what is tested is what runs.
"""

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ..models.secrets import Redactor
from ..schemas.plain_files import read_plain
from .hub_faults import HubFault, fault_of
from .hub_retry import Retries

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")
MAIN = "main"
_XET = "HF_HUB_DISABLE_XET"
_CONNECT_SECONDS, _SILENT_SECONDS = 15.0, 120.0
_PLACE = "dataset"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository.

    Attributes:
        size: in bytes.
        oid: git's SHA-1 of it, or of the pointer to a large file.
        sha256: of the content of a large file; None for others.
    """

    size: int
    oid: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Refs:
    """Where a repository's names point.

    Attributes:
        head: the newest commit of the main branch; None for an empty repository.
        tags: tag -> commit.
        branches: the names of the branches.
    """

    head: str | None
    tags: Mapping[str, str]
    branches: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hub:
    """One Hub, asked with the user's token.

    Attributes:
        endpoint: its address.
        retries: how often to ask again.
        redactor: takes secrets out of texts.
    """

    endpoint: str
    retries: Retries
    redactor: Redactor = field(repr=False)
    api: "HfApi" = field(repr=False)

    def address(self, repo: str) -> str:
        """Return the address of a repository's page, without a password that the Hub's may hold."""
        place = urlsplit(self.endpoint)
        plain = place._replace(netloc=place.netloc.rpartition("@")[2]).geturl()
        return f"{plain}/datasets/{repo}"

    def is_private(self, repo: str) -> bool | None:
        """Return whether a repository is private; None where there is none that we may see.

        Raises:
            HubFault: the Hub cannot tell.
        """
        try:
            info = self._ask("look at the repository", lambda: self.api.repo_info(repo, repo_type=_PLACE))
        except HubFault as fault:
            if fault.kind == "no_repository":
                return None
            raise
        return bool(info.private)

    def refs(self, repo: str) -> Refs:
        """Return where the names of a repository point.

        Raises:
            HubFault: the Hub cannot tell.
        """
        found = self._ask("list versions", lambda: self.api.list_repo_refs(repo, repo_type=_PLACE))
        heads = {one.name: one.target_commit for one in found.branches}
        tags = {one.name: one.target_commit for one in found.tags}
        return Refs(heads.get(MAIN), tags, tuple(sorted(heads)))

    def tree(self, repo: str, revision: str) -> dict[str, RemoteFile]:
        """Return path -> file of everything in a revision.

        Raises:
            HubFault: the Hub cannot tell.
        """
        entries = self._ask(
            "list files",
            lambda: list(self.api.list_repo_tree(repo, repo_type=_PLACE, revision=revision, recursive=True)),
        )
        return {one.path: _remote(one) for one in entries if hasattr(one, "blob_id")}

    def file(self, repo: str, revision: str, path: str) -> RemoteFile | None:
        """Return one file of a revision; None where it is not there.

        Raises:
            HubFault: the Hub cannot tell.
        """
        found = self._ask(
            f"look for {path}",
            lambda: self.api.get_paths_info(repo, [path], repo_type=_PLACE, revision=revision),
        )
        return next((_remote(one) for one in found if one.path == path and hasattr(one, "blob_id")), None)

    def read(self, repo: str, revision: str, path: str) -> bytes:
        """Return the content of a small file.

        Raises:
            HubFault: the Hub cannot give it. OSError: there is no room for it, or it is not small.
        """
        with tempfile.TemporaryDirectory(prefix="fabula-hub-") as folder:
            return read_plain(self.download(repo, revision, path, Path(folder)))

    def download(self, repo: str, revision: str, path: str, folder: Path, *, anew: bool = False) -> Path:
        """Put a file under its path into a folder; what is there already, from the same revision, stays.

        Args:
            repo: the repository.
            revision: a full commit.
            path: of the file, in the repository and in the folder.
            folder: where it goes; the client keeps notes in ``.cache`` there.
            anew: load it even if it is there.

        Raises:
            HubFault: the Hub cannot give it. OSError: it cannot be written.
        """
        return Path(
            self._ask(
                f"download {path}",
                lambda: self.api.hf_hub_download(
                    repo, path, repo_type=_PLACE, revision=revision, local_dir=folder, force_download=anew
                ),
            )
        )

    def create(self, repo: str, *, private: bool) -> None:
        """Make a repository; one that is there stays as it is.

        Raises:
            HubFault: the Hub does not make it.
        """
        self._ask(
            "create the repository",
            lambda: self.api.create_repo(repo, repo_type=_PLACE, private=private, exist_ok=True),
        )

    def commit(
        self,
        repo: str,
        parent: str | None,
        message: tuple[str, str],
        make: Callable[[], Sequence[Any]],
        done: Callable[[], str | None],
    ) -> str:
        """Make one commit on the main branch, and return its name.

        Args:
            repo: the repository.
            parent: the commit that the main branch must be at, or nothing is done.
            message: title and description.
            make: gives the operations, anew for every attempt.
            done: looks whether the commit was made by a request whose answer was lost, and returns its name.

        Raises:
            HubFault: there is none. OSError: a file cannot be read.
        """

        def ask() -> str:
            info = self.api.create_commit(
                repo,
                make(),
                repo_type=_PLACE,
                revision=MAIN,
                parent_commit=parent,
                commit_message=message[0],
                commit_description=message[1],
            )
            return str(info.oid)

        return self._ask("commit the files", ask, done)

    def tag(self, repo: str, tag: str, commit: str, done: Callable[[], str | None]) -> str:
        """Give a commit a tag that is not there yet, and return the commit that has it.

        Args:
            repo: the repository.
            tag: its name.
            commit: what it points to.
            done: looks where the tag points, if it is there; asked after every fault that is no refusal.

        Raises:
            HubFault: there is none, or it was there.
        """

        def ask() -> str:
            self.api.create_tag(repo, tag=tag, revision=commit, repo_type=_PLACE, exist_ok=False)
            return commit

        return self._ask("set the tag", ask, done)

    def _ask(self, step: str, ask: Callable[[], T], done: Callable[[], T | None] = lambda: None) -> T:
        def once() -> T:
            _set_timeouts()
            try:
                return ask()
            except Exception as error:
                fault = fault_of(error, self.redactor)
                if fault is None:
                    raise
                # Not chained: the client's own texts may hold what ours must not.
                raise fault from None

        return self.retries.run(step, once, done)


@contextmanager
def open_hub(
    endpoint: str | None = None,
    *,
    retries: Retries | None = None,
    progress: bool = False,
    redactor: Redactor | None = None,
) -> Iterator[Hub]:
    """Give the Hub that ``HF_ENDPOINT`` names, with the token of ``HF_TOKEN`` or of ``hf auth login``.

    Args:
        endpoint: another Hub's address.
        retries: how often to ask again.
        progress: show the client's progress bars.
        redactor: learns the token.
    """
    from huggingface_hub import HfApi, constants, get_token
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    redactor = redactor or Redactor()
    token = get_token()
    if token is not None:
        redactor.add(token)
    address = (endpoint or os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    redactor.add(urlsplit(address).netloc.rpartition("@")[0].partition(":")[2])
    handlers = logging.getLogger("huggingface_hub").handlers
    clean = _Clean(redactor)
    bars, xet = are_progress_bars_disabled(), constants.HF_HUB_DISABLE_XET
    try:
        for handler in handlers:
            handler.addFilter(clean)
        (enable_progress_bars if progress else disable_progress_bars)()
        constants.HF_HUB_DISABLE_XET = xet or _XET not in os.environ
        with warnings.catch_warnings():
            # A full disk is an error of ours; the other is between the client and its HTTP library.
            warnings.filterwarnings("ignore", "Not enough free disk space", UserWarning)
            warnings.filterwarnings("ignore", "Use 'content=", DeprecationWarning)
            yield Hub(address, retries or Retries(), redactor, HfApi(endpoint=address, token=token or False))
    finally:
        constants.HF_HUB_DISABLE_XET = xet
        (disable_progress_bars if bars else enable_progress_bars)()
        for handler in handlers:
            handler.removeFilter(clean)


class _Clean(logging.Filter):
    """Takes secrets, and the signatures of addresses, out of what the client logs."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Clean a record; it is always shown."""
        words = record.getMessage().split(" ")
        plain = " ".join(word.partition("?")[0] if "://" in word else word for word in words)
        record.msg, record.args = self._redactor.redact(plain), ()
        return True


def _set_timeouts() -> None:
    """Let no request wait for ever, which is what the client does by itself; a user's own limits stay."""
    import httpx2
    from huggingface_hub import get_session

    session = get_session()
    if session.timeout == httpx2.Timeout(None):
        session.timeout = httpx2.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS)


def _remote(entry: Any) -> RemoteFile:  # noqa: ANN401 - the client's own type
    return RemoteFile(entry.size, entry.blob_id, None if entry.lfs is None else entry.lfs.sha256)
