"""What can go wrong with a request to the Hub."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong with one request."""


@dataclass(frozen=True, slots=True)
class Refused(Fault):
    """An HTTP error instead of an answer; nothing is done.

    Attributes:
        status: such as 401, 403, 409, 412, 429, 500.
        message: what the Hub says.
        code: its ``X-Error-Code``, if any.
        retry_after: seconds in ``Retry-After``; None for no such header.
        echo: put the caller's ``Authorization`` header into the message, as careless servers do.
    """

    status: int
    message: str = "the loopback Hub was told to refuse this"
    code: str | None = None
    retry_after: float | None = None
    echo: bool = False


@dataclass(frozen=True, slots=True)
class HtmlPage(Fault):
    """Status 200 with a web page, as a hotel's login or a wrong address gives it; nothing is done."""


@dataclass(frozen=True, slots=True)
class CutUpload(Fault):
    """The connection is reset in the middle of the request's body; nothing is done.

    Attributes:
        after: bytes of the body that are taken.
    """

    after: int = 0


@dataclass(frozen=True, slots=True)
class LostReply(Fault):
    """The request is done, and the connection is reset before the client hears of it.

    Attributes:
        after: bytes of the reply's body that are sent first, if any.
    """

    after: int = 0


@dataclass(frozen=True, slots=True)
class Tampered(Fault):
    """The last byte of the reply's body is another one; its length is right."""


@dataclass(frozen=True, slots=True)
class Held(Fault):
    """The request waits until the event is set, or the server stops, and is dropped then; nothing is done."""

    until: threading.Event = field(default_factory=threading.Event)


Plan: TypeAlias = Mapping[str, Fault | Sequence[Fault | None]]
"""Route -> a fault for every request, or one (or None) for each of its first requests."""


def planned(plan: Plan, route: str, number: int) -> Fault | None:
    """Return what goes wrong with the n-th request (from 1) of a route."""
    found = plan.get(route)
    if found is None or isinstance(found, Fault):
        return found
    return found[number - 1] if number <= len(found) else None
