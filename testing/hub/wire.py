"""Requests and answers of the Hub, and which route a path is."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote

from ...schemas.canonical import Json, canonical_bytes
from .store import Refusal

_REPO = r"(?:datasets/|(?=spaces/))(?P<repo>(?:spaces/)?[^/]+/[^/]+)"
"""A data set, or a Space, whose name here begins with ``spaces/``."""
_REV = r"(?P<rev>[^/]+)"
_ROUTES: tuple[tuple[str, str, str], ...] = (
    ("create-repo", "POST", r"/api/repos/create"),
    ("whoami", "GET", r"/api/whoami-v2"),
    ("validate-yaml", "POST", r"/api/validate-yaml"),
    ("refs", "GET", rf"/api/{_REPO}/refs"),
    ("tree", "GET", rf"/api/{_REPO}/tree/{_REV}(?:/(?P<path>.*))?"),
    ("paths-info", "POST", rf"/api/{_REPO}/paths-info/{_REV}"),
    ("commits", "GET", rf"/api/{_REPO}/commits/{_REV}"),
    ("info", "GET", rf"/api/{_REPO}(?:/revision/{_REV})?"),
    ("xet-token", "GET", rf"/api/{_REPO}/xet-(?:read|write)-token/{_REV}"),
    ("preupload", "POST", rf"/api/{_REPO}/preupload/{_REV}"),
    ("commit", "POST", rf"/api/{_REPO}/commit/{_REV}"),
    ("tag", "POST", rf"/api/{_REPO}/tag/{_REV}"),
    ("tag-delete", "DELETE", rf"/api/{_REPO}/tag/{_REV}"),
    ("lfs-batch", "POST", rf"/{_REPO}\.git/info/lfs/objects/batch"),
    ("lfs-upload", "PUT", r"/lfs-storage/(?P<sha256>[0-9a-f]{64})"),
    ("lfs-part", "PUT", r"/lfs-storage/(?P<sha256>[0-9a-f]{64})/part/(?P<part>\d+)"),
    ("lfs-complete", "POST", r"/lfs-storage/(?P<sha256>[0-9a-f]{64})/complete"),
    ("lfs-verify", "POST", r"/lfs-storage/(?P<sha256>[0-9a-f]{64})/verify"),
    ("lfs-download", "GET", r"/lfs-storage/(?P<sha256>[0-9a-f]{64})"),
    ("resolve-head", "HEAD", rf"/{_REPO}/resolve/{_REV}/(?P<path>.+)"),
    ("resolve", "GET", rf"/{_REPO}/resolve/{_REV}/(?P<path>.+)"),
)
ROUTES = tuple((name, method, re.compile(pattern)) for name, method, pattern in _ROUTES)


@dataclass(frozen=True, slots=True)
class Call:
    """A request, read."""

    route: str  # its name
    places: Mapping[str, str]  # the parts of the path that the route names, unquoted
    query: Mapping[str, str]  # its parameters
    headers: Mapping[str, str]  # by lower-case name
    body: bytes  # its content
    user: str | None  # whose token came with it; None for none

    def document(self) -> dict[str, Any]:
        """Return the body as a JSON object."""
        try:
            document = json.loads(self.body)
        except ValueError as error:
            raise Refusal(400, f"the body is not JSON: {error}") from None
        if not isinstance(document, dict):
            raise Refusal(400, "the body is not a JSON object")
        return document


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def find_route(method: str, path: str) -> tuple[str, dict[str, str]]:
    """Return the route of a request and the named parts of its path; ``unknown`` where there is none."""
    for name, wanted, pattern in ROUTES:
        match = pattern.fullmatch(path) if method == wanted else None
        if match:
            return name, {
                key: unquote(value) for key, value in match.groupdict().items() if value is not None
            }
    return "unknown", {}


def refused(refusal: Refusal, retry_after: float | None = None) -> Reply:
    """Return a refusal as an answer in the form of the Hub."""
    message = refusal.message.encode("ascii", "replace").decode()
    headers = {"X-Error-Message": message}
    if refusal.code is not None:
        headers["X-Error-Code"] = refusal.code
    if retry_after is not None:
        headers["Retry-After"] = f"{retry_after:g}"
    return json_reply({"error": refusal.message, **refusal.more}, refusal.status, headers)


def ranged(call: Call, content: bytes, headers: Mapping[str, str]) -> Reply:
    """Return a content as an answer, or the part of it that the call asks for."""
    wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("range", ""))
    if wanted is None:
        return Reply(content, headers=headers)
    start, end = int(wanted[1]), int(wanted[2] or len(content) - 1)
    part = content[start : end + 1]
    span = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
    return Reply(part, 206, {**headers, "Content-Range": span})


def json_reply(value: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Return a JSON value as an answer."""
    return Reply(canonical_bytes(value), status, {"Content-Type": "application/json", **(headers or {})})


# What can go wrong with a request to the Hub.


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong with one request."""


@dataclass(frozen=True, slots=True)
class Refused(Fault):
    """An HTTP error instead of an answer; nothing is done."""

    status: int  # such as 401, 403, 409, 412, 429, 500
    message: str = "the loopback Hub was told to refuse this"  # what the Hub says
    code: str | None = None  # its ``X-Error-Code``, if any
    retry_after: float | None = None  # seconds in ``Retry-After``; None for no such header
    echo: bool = False  # put the caller's ``Authorization`` header into the message, as careless servers do


@dataclass(frozen=True, slots=True)
class HtmlPage(Fault):
    """Status 200 with a web page, as a hotel's login or a wrong address gives it; nothing is done."""


@dataclass(frozen=True, slots=True)
class CutUpload(Fault):
    """The connection is reset in the middle of the request's body; nothing is done."""

    after: int = 0  # bytes of the body that are taken


@dataclass(frozen=True, slots=True)
class LostReply(Fault):
    """The request is done, and the connection is reset before the client hears of it."""

    after: int = 0  # bytes of the reply's body that are sent first, if any


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
