"""One repository of a Hub, asked through the Hub's own client: every fault named, nothing secret in any text.

Large files go the client's own ways: through Xet where the Hub speaks it and HF_HUB_DISABLE_XET does not
switch it off, else through LFS. The client reads that variable when it is imported; here it counts as it is
when a Hub is opened.
"""

import glob
import hashlib
import json
import logging
import os
import random
import re
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from ...errors import ConfigError, HubUnavailable, TargetError, UserError
from ...models.faults import Problem, retry_after
from ...models.keys import Redactor
from ...schemas.canonical import sha256_file
from ...schemas.plain_files import open_plain
from ..options import REPO

if TYPE_CHECKING:
    from huggingface_hub import HfApi

LOG = logging.getLogger(__name__)

# -- Names on a Hub: of a data set repository, and of one version of it

_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,126}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_REFERENCE = re.compile(r"[^@/\\\s]+/[^@\\\s]+@[^@\\\s]*")


@dataclass(frozen=True, slots=True)
class Reference:
    """One version of a repository."""

    repo: str  # such as ``user/mine``
    revision: str  # a tag, or the 40 digits of a commit

    @property
    def is_commit(self) -> bool:
        """Whether the revision is a commit's own name, which nobody can move."""
        return _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}"


def checked_repo(text: str, where: str = "--repo") -> str:
    """Return the name of a repository after checking its form."""
    if REPO.fullmatch(text):
        return text
    raise ConfigError(
        where,
        expected="OWNER/NAME, each of 1 to 96 letters, digits, dots, dashes, underscores, without -- or ..",
        found=repr(text),
        fix="give the repository as its address has it, such as user/mine",
    )


def checked_endpoint(given: str | None = None) -> None:
    """Check the form of the Hub's address: the one given, else that of ``HF_ENDPOINT``; nobody is asked."""
    text = given or os.environ.get("HF_ENDPOINT")
    if not text:
        return
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise HubUnavailable(
            "HF_ENDPOINT" if given is None else "the Hub's address",
            expected="the web address of a Hub, such as https://huggingface.co",
            found=repr(text.rpartition("@")[2]),  # a password may stand before it
            fix="correct HF_ENDPOINT, or unset it for huggingface.co",
        )


def parse_reference(text: str, where: str = "REPO@VERSION") -> Reference:
    """Return what ``user/mine@0.2.0`` names."""
    repo, at, revision = text.partition("@")
    if at and _REVISION.fullmatch(revision) and ".." not in revision:
        return Reference(checked_repo(repo, where), revision)
    raise ConfigError(
        where,
        what=f"{text!r} has no version (OWNER/NAME@VERSION; a tag, or the 40 digits of a commit)",
        fix="add the version, such as user/mine@0.2.0, so that it stays clear which data were used",
    )


def looks_like_reference(text: str) -> bool:
    """Return whether a text is meant as ``user/mine@0.2.0``, rightly written or not."""
    return _REFERENCE.fullmatch(text) is not None and not text.startswith((".", "~"))


# -- What goes wrong with a Hub, from the exceptions of its client to words for people, and asking it again

FaultKind: TypeAlias = Literal[
    "offline", "no_token", "refused", "no_repository", "no_revision", "no_file", "conflict", "moved",
    "busy", "down", "not_a_hub", "bad_request",
]  # fmt: skip
_TRANSIENT = frozenset({"busy", "down"})
"""What may be over after a while."""
_LONGEST_MESSAGE = 500
_BY_STATUS: dict[int, FaultKind] = {
    401: "no_token", 403: "refused", 404: "no_repository", 408: "down", 409: "conflict", 412: "moved",
    425: "busy", 429: "busy",
}  # fmt: skip

T = TypeVar("T")


@dataclass(eq=False)
class HubFault(Exception):
    """A Hub did not do what it was asked."""

    kind: FaultKind  # what is wrong
    message: str  # in one line, without secrets
    retry_after: float | None = None  # seconds that the Hub asks to wait
    maybe_done: bool = False  # whether it may have done what it was asked, and its answer was lost

    def __str__(self) -> str:
        return self.message

    @property
    def transient(self) -> bool:
        """Whether it may be over after a while."""
        return self.kind in _TRANSIENT

    def for_people(self, where: str, repo: str) -> UserError:
        """Return the fault as an error that says what to do."""
        if self.kind in ("no_repository", "no_revision", "no_file", "bad_request"):
            kind: type[UserError] = ConfigError
        elif self.kind in ("conflict", "moved"):
            kind = TargetError
        else:
            kind = HubUnavailable
        said, fix = _WORDS[self.kind]
        what = f"{said.format(repo=repo)}: {self.message}"
        return kind(where, what=what, fix=fix.format(repo=repo))


_TOKEN = "set HF_TOKEN to a token of your account, or log in with `hf auth login`"
_WORDS: dict[FaultKind, tuple[str, str]] = {
    "offline": ("the Hub is not asked", "unset HF_HUB_OFFLINE"),
    "no_token": ("the Hub does not accept the token", _TOKEN),
    "refused": (
        "the token has no right to do this",
        "use a token with write access to {repo}: set HF_TOKEN, or `hf auth login`",
    ),
    "no_repository": (
        "the Hub has no data set {repo}, or does not show it",
        "check the name; if the data set is private, " + _TOKEN,
    ),
    "no_revision": ("{repo} has no such version", "choose one of its tags, or a full commit"),
    "no_file": ("a file is missing in {repo}", "check that the repository holds a release made by Fabula"),
    "conflict": ("it is there already", "look at {repo} on the Hub, then run the command again"),
    "moved": (
        "{repo} has changed since this command began",
        "somebody else has committed meanwhile: look at {repo} on the Hub, then run the command again",
    ),
    "busy": ("the Hub is busy", "run the command again later; it goes on where it stopped"),
    "down": (
        "the Hub does not answer",
        "check the network, and run the command again; it goes on where it stopped",
    ),
    "not_a_hub": (
        "what answered is not a Hub",
        "check HF_ENDPOINT, and whether a login page or a proxy is in between",
    ),
    "bad_request": (
        "the Hub refused the request",
        "read what it says; something in the release itself may be wrong",
    ),
}


def fault_of(error: BaseException, redactor: Redactor) -> HubFault | None:
    """Return the fault that an exception of the client stands for; None where it is none of the Hub's.

    A full or failing disk, and our own mistakes, are none of the Hub's.
    """
    named = (_named(cause, redactor) for cause in _chain(error))
    return next((fault for fault in named if fault is not None), None) or _odd(error, redactor)


def _named(error: BaseException, redactor: Redactor) -> HubFault | None:
    import httpx2
    from huggingface_hub import errors

    if isinstance(error, HubFault):
        return error
    if isinstance(error, errors.OfflineModeIsEnabled):
        return HubFault("offline", "HF_HUB_OFFLINE is set")
    if isinstance(error, errors.HfHubHTTPError) and getattr(error, "response", None) is not None:
        return _answered(error, redactor)
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return HubFault("not_a_hub", _line(str(error), redactor))
    if isinstance(error, httpx2.TransportError):
        never_sent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        return HubFault(
            "down", _line(f"{type(error).__name__}: {error}", redactor), maybe_done=not never_sent
        )
    return None


def _odd(error: BaseException, redactor: Redactor) -> HubFault | None:
    """Return the fault behind an exception by which the client stumbles over an answer."""
    from huggingface_hub import errors

    if not _raised_by_client(error):
        return None
    if isinstance(error, errors.FileMetadataError | json.JSONDecodeError | LookupError | TypeError):
        # The client looked for fields in something that is no answer of a Hub.
        return HubFault(
            "not_a_hub", _line(f"the answer makes no sense: {_plain(error)}", redactor), maybe_done=True
        )
    if isinstance(error, OSError) and error.errno is None and "Consistency check" in str(error):
        return HubFault("down", "a file arrived with another size than announced")
    if isinstance(error, RuntimeError):  # what its library for Xet raises, of which there are no kinds
        return HubFault("down", _line(str(error), redactor), maybe_done=True)
    if isinstance(error, ValueError):
        return HubFault("bad_request", _line(str(error), redactor))
    return None


def _raised_by_client(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in ("huggingface_hub", "httpx2", "json")


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception and what caused it; the client wraps faults of uploads in others."""
    exceptions: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(exceptions) < 10:
        exceptions.append(cause)
        cause = cause.__cause__
    return exceptions


def _answered(error: object, redactor: Redactor) -> HubFault:
    response = getattr(error, "response")  # noqa: B009 - typed as optional by the library
    status, headers = response.status_code, response.headers
    code = headers.get("X-Error-Code")
    said = headers.get("X-Error-Message") or getattr(error, "server_message", None) or "no text"
    message = _line(f"status {status}: {said}", redactor)
    kind = _BY_STATUS.get(status, "down" if status >= 500 else "bad_request")
    if status == 404 and code is None:
        # The Hub names what is missing; something else does not.
        kind = "not_a_hub"
    by_code: dict[str | None, FaultKind] = {"RevisionNotFound": "no_revision", "EntryNotFound": "no_file"}
    if code == "RepoNotFound":
        # The Hub says so with 401, too, where it does not know who is asking.
        kind = "no_repository"
    wait = retry_after(headers, Problem(status, frozenset(), ""))
    return HubFault(by_code.get(code, kind), message, retry_after=wait, maybe_done=status >= 500)


def _plain(error: BaseException) -> str:
    return "no JSON" if isinstance(error, json.JSONDecodeError) else f"{type(error).__name__}: {error}"


def _line(text: str, redactor: Redactor) -> str:
    return redactor.redact(" ".join(text.split()))[:_LONGEST_MESSAGE]


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long to ask again."""

    attempts: int = 6  # most requests for one step
    first: float = 1.0  # seconds of the longest first pause; each next one may be twice as long
    longest: float = 20.0  # seconds of the longest pause of our own
    # seconds that a Hub may ask to wait in one answer; if it asks for more, we give up
    patience: float = 300.0
    # waits
    sleep: Callable[[float], None] = lambda seconds: time.sleep(seconds)  # noqa: PLW0108 - a test may replace it
    draw: Callable[[], float] = random.random  # gives a number from 0 to 1
    tell: Callable[[str], None] = lambda _: None  # is told in one line when there is a pause

    def pause(self, attempt: int, asked: float | None) -> float | None:
        """Return how long to wait after the n-th attempt (from 1); None for giving up.

        A pause that the Hub asks for is never cut short; the jitter comes on top.
        """
        if attempt >= self.attempts or (asked is not None and asked > self.patience):
            return None
        drawn = (1 + self.draw()) / 2 * min(self.longest, self.first * 2.0 ** (attempt - 1))
        return drawn if asked is None else asked + min(drawn, self.first)

    def run(self, step: str, ask: Callable[[], T], done: Callable[[], T | None] = lambda: None) -> T:
        """Ask until there is an answer.

        ``done``: looks whether the step was done by a request whose answer was lost; None if not. It is
        called before asking again where that is possible.
        """
        attempt, maybe_done = 0, False
        while True:
            attempt += 1
            try:
                made = done() if maybe_done else None
                return ask() if made is None else made
            except HubFault as fault:
                pause = self.pause(attempt, fault.retry_after) if fault.transient else None
                if pause is None:
                    raise replace(fault, message=f"cannot {step}: {fault.message}") from None
                maybe_done = maybe_done or fault.maybe_done
                LOG.info("attempt %d: cannot %s: %s", attempt, step, fault.message)
                self.tell(f"cannot {step} yet: {fault.message}; trying again in {pause:.1f} s")
                self.sleep(pause)


# -- One repository, asked through the Hub's own client

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

        Returned: whether uploads go by Xet.
        """
        from huggingface_hub import constants, get_session
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        if constants.HF_HUB_DISABLE_XET or find_spec("hf_xet") is None:
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
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

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
    from huggingface_hub.utils import (
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
