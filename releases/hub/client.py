"""One repository of a Hub, asked through the Hub's own client: every fault named, nothing secret in any text.

Large files go the client's own ways: through Xet where the Hub speaks it and HF_HUB_DISABLE_XET does not
switch it off, else through LFS. The client reads that variable when it is imported; here it counts as it is
when a Hub is opened.
"""

import glob
import hashlib
import logging
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from ...models.keys import Redactor
from ...schemas.canonical import sha256_file
from ...schemas.plain_files import open_plain
from .faults import HubFault, Retries, fault_of

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")
MAIN, DATASET = "main", "dataset"
_XET, _YES = "HF_HUB_DISABLE_XET", ("1", "ON", "YES", "TRUE")
_PART = 206
"""Status of an answer that is the part of a file that was asked for, and not the whole."""
_CONNECT_SECONDS, _SILENT_SECONDS = 15.0, 120.0


@dataclass(frozen=True, slots=True)
class HubFile:
    """What a file of a version is."""

    size: int  # in bytes
    sha256: str | None = None  # of its content; None where only git's name is known
    # git's SHA-1 of its content, 40 hexadecimal digits; None where the SHA-256 is known
    oid: str | None = None

    def problem(self, path: Path) -> str | None:
        """Return in which way a file is another one; None where it is the one."""
        if not path.is_file() or path.is_symlink():
            return "is not there"
        if (size := path.stat().st_size) != self.size:
            return f"has {size} bytes, not {self.size}"
        if self.sha256 is not None and sha256_file(path) != self.sha256:
            return "has another SHA-256"
        if self.oid is not None and git_oid(path) != self.oid:
            return "is not the file that the commit has"
        return None


def git_oid(path: Path) -> str:
    """Return git's name of a file's content: SHA-1 of a short head and the content, 40 hexadecimal digits."""
    with open_plain(path) as handle:
        digest = hashlib.sha1(f"blob {os.fstat(handle.fileno()).st_size}\0".encode(), usedforsecurity=False)
        while piece := handle.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Refs:
    """Where a repository's names point."""

    head: str | None  # the newest commit of the main branch; None for an empty repository
    tags: Mapping[str, str]  # tag -> commit
    branches: tuple[str, ...] = ()  # the names of the branches


@dataclass(frozen=True)
class Hub:
    """One data set repository, asked with the user's token. Every method may raise HubFault."""

    repo: str  # its name, such as ``user/mine``
    endpoint: str  # the Hub's address
    retries: Retries  # how often to ask again
    redactor: Redactor = field(repr=False)  # takes secrets out of texts
    api: "HfApi" = field(repr=False)  # the Hub's client

    @property
    def address(self) -> str:
        """The address of the repository's page, without a password that the Hub's may hold."""
        parts = urlsplit(self.endpoint)
        plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return f"{plain}/datasets/{self.repo}"

    def ask(self, step: str, call: Callable[["HfApi"], T], done: Callable[[], T | None] = lambda: None) -> T:
        """Ask the Hub's client for one step, again where that may help."""

        def once() -> T:
            _set_timeouts()
            try:
                return call(self.api)
            except Exception as error:
                fault = fault_of(error, self.redactor)
                if fault is None:
                    raise
                # Not chained: the client's own texts may hold what ours must not.
                raise fault from None

        return self.retries.run(step, once, done)

    def refs(self) -> Refs:
        """Return where the names of the repository point."""
        refs = self.ask("list versions", lambda api: api.list_repo_refs(self.repo, repo_type=DATASET))
        heads = {branch.name: branch.target_commit for branch in refs.branches}
        tags = {tag.name: tag.target_commit for tag in refs.tags}
        return Refs(heads.get(MAIN), tags, tuple(sorted(heads)))

    def tree(self, revision: str) -> dict[str, HubFile]:
        """Return path -> file of everything in a revision."""
        from huggingface_hub.hf_api import RepoFile

        entries = self.ask(
            "list files",
            lambda api: list(
                api.list_repo_tree(self.repo, repo_type=DATASET, revision=revision, recursive=True)
            ),
        )
        return {
            entry.path: HubFile(entry.size, entry.lfs.sha256)
            if entry.lfs
            else HubFile(entry.size, oid=entry.blob_id)
            for entry in entries
            if isinstance(entry, RepoFile)
        }

    def settle_xet(self) -> bool:
        """Find out whether the Hub takes uploads by Xet; if not, switch it off until the Hub is closed.

        Downloads need no such question: a Hub says with each file whether it can be had by Xet.

        Returns:
            Whether uploads go by Xet.
        """
        from huggingface_hub import constants, get_session
        from huggingface_hub.utils._headers import build_hf_headers
        from huggingface_hub.utils._http import hf_raise_for_status
        from huggingface_hub.utils._runtime import is_xet_available

        if not is_xet_available():
            return False

        def call(api: "HfApi") -> bool:
            address = f"{self.endpoint}/api/datasets/{self.repo}/xet-write-token/{MAIN}"
            reply = get_session().get(address, headers=build_hf_headers(token=api.token))
            hf_raise_for_status(reply)
            return constants.HUGGINGFACE_HEADER_X_XET_ENDPOINT in reply.headers

        try:
            speaks = self.ask("ask for a way to upload", call)
        except HubFault as fault:
            if fault.transient:
                raise
            speaks = False  # what else is wrong, the upload itself says better
        constants.HF_HUB_DISABLE_XET = not speaks
        return speaks

    def read(self, commit: str, path: str, start: int, stop: int) -> bytes:
        """Return the bytes of a file from one place to before another, as far as it has them."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils._headers import build_hf_headers
        from huggingface_hub.utils._http import hf_raise_for_status

        def call(api: "HfApi") -> bytes:
            address = hf_hub_url(self.repo, path, repo_type=DATASET, revision=commit, endpoint=self.endpoint)
            headers = {**build_hf_headers(token=api.token), "Range": f"bytes={start}-{stop - 1}"}
            reply = get_session().get(address, headers=headers, follow_redirects=True)
            hf_raise_for_status(reply)
            data: bytes = reply.content
            return data if reply.status_code == _PART else data[start:stop]

        return self.ask(f"read {path}", call)

    def download(
        self, commit: str, tree: Collection[str], paths: Collection[str], folder: Path, *, anew: bool = False
    ) -> None:
        """Put files under their paths into a folder; what is there from the same commit already stays."""
        wanted = set(paths) & set(tree)
        unwanted = set(tree) - wanted
        if not wanted:
            return

        def call(api: "HfApi") -> None:
            # Every path is compared with every pattern, so the shorter list of the two is given.
            few = len(wanted) < len(unwanted)
            api.snapshot_download(
                self.repo,
                repo_type=DATASET,
                revision=commit,
                local_dir=folder,
                allow_patterns=[glob.escape(path) for path in wanted] if few else None,
                ignore_patterns=None if few else [glob.escape(path) for path in unwanted],
                force_download=anew,
            )
            # Where it cannot list the files, the client is content with what is in the folder already.
            if any(not (folder / path).is_file() for path in wanted):
                raise HubFault("down", "files did not come")

        try:
            self.ask("download the files", call)
        except HubFault as fault:
            missing = sorted(path for path in wanted if not (folder / path).is_file())
            raise HubFault(fault.kind, f"{fault.message}; missing: {', '.join(missing[:5])}") from None


@contextmanager
def open_hub(
    repo: str, endpoint: str | None = None, *, retries: Retries | None = None, progress: bool = False
) -> Iterator[Hub]:
    """Give a repository of ``HF_ENDPOINT``'s Hub, with the token of ``HF_TOKEN`` or of a login."""
    from huggingface_hub import HfApi, constants, get_token
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    redactor = Redactor()
    token = get_token()
    if token is not None:
        redactor.add(token)
    address = (endpoint or os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    redactor.add(urlsplit(address).netloc.rpartition("@")[0].partition(":")[2])
    hub = Hub(repo, address, retries or Retries(), redactor, HfApi(endpoint=address, token=token or False))
    handlers = logging.getLogger("huggingface_hub").handlers
    clean = _Clean(redactor)
    bars, xet = are_progress_bars_disabled(), constants.HF_HUB_DISABLE_XET
    try:
        for handler in handlers:
            handler.addFilter(clean)
        (enable_progress_bars if progress else disable_progress_bars)()
        constants.HF_HUB_DISABLE_XET = os.environ.get(_XET, "").upper() in _YES
        with warnings.catch_warnings():
            # A full disk is an error of ours; the other is between the client and its HTTP library.
            warnings.filterwarnings("ignore", "Not enough free disk space", UserWarning)
            warnings.filterwarnings("ignore", "Use 'content=", DeprecationWarning)
            yield hub
    except HubFault as fault:
        raise fault.for_people(hub.address, repo) from None
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
