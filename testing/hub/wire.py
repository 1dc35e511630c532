"""Requests and answers of the Hub, and which route a path is."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
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
    """A request, read.

    Attributes:
        route: its name.
        places: the parts of the path that the route names, unquoted.
        query: its parameters.
        headers: by lower-case name.
        body: its content.
        user: whose token came with it; None for none.
    """

    route: str
    places: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    user: str | None

    def document(self) -> dict[str, Any]:
        """Return the body as a JSON object.

        Raises:
            Refusal: it is none.
        """
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
