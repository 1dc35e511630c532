"""What every wire format has: a path, a way to read requests, a way to write answers and errors."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Protocol

import yaml

from ...models.chat import Image, Part
from ...schemas.canonical import Json
from .answers import Answer, Problem
from .asked import Asked


class BadRequest(Exception):
    """A request that no service would understand; the text says why."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request: method, target and path, headers with names in lower case, body."""

    method: str
    target: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class WireError:
    """How a service reports a problem."""

    status: int  # HTTP status
    kind: str  # the service's type, code or status word
    message: str  # its usual words
    more: Mapping[str, Json] = field(default_factory=dict)  # further members of the error


def errors_of(*services: str) -> Mapping[str, WireError]:
    """Return how a service reports each problem, by the codes of this server; a later one goes first."""
    tables = yaml.safe_load((files(__package__) / "errors.yaml").read_text("utf-8"))
    return {code: WireError(*entry) for name in services for code, entry in tables[name].items()}


class Wire(Protocol):
    """One wire format."""

    errors: Mapping[str, WireError]

    @property
    def methods(self) -> frozenset[str]:
        """Methods of HTTP with which it is asked."""
        ...

    def takes(self, path: str) -> bool:
        """Return whether a path belongs to this format."""
        ...

    def read(self, request: HttpRequest, document: Mapping[str, Any]) -> Asked:
        """Return what was asked.

        Raises:
            BadRequest: the body does not have the shape of this format.
        """
        ...

    def reply(self, asked: Asked, answer: Answer) -> Mapping[str, Json] | bytes | Problem:
        """Return the body of a response of status 200, or the error that the service has for it."""
        ...

    def error(self, status: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
        """Return the body of an error response."""
        ...


def decode_image(data: str, media_type: str) -> Image:
    """Return a picture from base64, in the standard or the URL-safe alphabet."""
    try:
        return Image(base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True), media_type)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"an image is not base64: {error}") from None


def form_of(request: HttpRequest) -> dict[str, Any]:
    """Return the fields of a form: texts as they are, files as a tuple of pictures for each name."""
    _, _, boundary = request.headers.get("content-type", "").partition("boundary=")
    parts = request.body.split(b"--" + boundary.strip('"').encode("latin-1"))[1:-1]
    if not boundary or not parts:
        raise BadRequest("the body is no form")
    fields: dict[str, Any] = {}
    for part in parts:
        head, _, body = part.partition(b"\r\n\r\n")
        about = head.decode("utf-8", "replace")
        name, data = re.search(r'[; ]name="([^"]*)"', about), body.removesuffix(b"\r\n")
        if name is None:
            raise BadRequest("a field of the form has no name")
        media_type = re.search(r"content-type: *([^\s;]+)", about, re.IGNORECASE)
        if "filename=" in about:
            picture = Image(data, "" if media_type is None else media_type[1])
            fields[name[1]] = (*fields.get(name[1], ()), picture)
        else:
            fields[name[1]] = data.decode("utf-8", "replace")
    return fields


def data_url(url: str) -> Image:
    """Return the picture of a ``data:`` URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        raise BadRequest("an image URL must be a base64 data URL")
    return decode_image(data, head.removeprefix("data:").removesuffix(";base64"))


def joined(parts: list[Part]) -> str:
    """Return the texts among parts as one text."""
    return "\n".join(part for part in parts if isinstance(part, str))


def member(document: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Json:
    """Return a member that must be there and of a type."""
    value = document.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadRequest(f"{name!r} is missing or has the wrong type")
    return value


def given(**params: Json) -> dict[str, Any]:
    """Return those parameters that are not None."""
    return {name: value for name, value in params.items() if value is not None}
