"""What goes wrong with a Hub, from the exceptions of its client to words for people, and asking it again."""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

from ...errors import ConfigError, HubUnavailable, TargetError, UserError
from ...models.faults import Problem, retry_after
from ...models.keys import Redactor

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
    "refused": ("the token has no right to do this", "use a token with write access to {repo}"),
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
                self.tell(f"cannot {step} yet: {fault.message}; trying again in {pause:.1f} s")
                self.sleep(pause)
