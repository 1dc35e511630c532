"""Whether a release is the one that was published: its ``release.json`` by hash, address, or commit of a Hub.

``release.json`` holds the hash of every other file, so that its own hash stands for the whole release.
Whoever writes a whole release anew contradicts nothing in it; only what was published elsewhere tells.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import ConfigError, HubUnavailable
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.layout import RELEASE
from ...schemas.plain_files import parse_json, read_plain, reason_of
from ...schemas.values import Issue
from ...validators.report import by_line
from ..hub.client import looks_like_reference, open_hub, parse_reference
from .files import VerifyReport

_OPTION = "--against"
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_HUB = re.compile(r"hf://datasets/([^@]+@[^@/]+)(?:/release\.json)?")
_MOST, _SECONDS = 64 << 20, 60.0
"""Most bytes of a ``release.json``, and seconds to wait for an address."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Published:
    """What was published."""

    source: str  # where it was told, for people
    sha256: str  # of its ``release.json``
    # path -> size and hash of the files that it lists; None where only its hash is known
    files: Mapping[str, Json] | None = None


def published(text: str) -> Published:
    """Return what a hash, an address, a version on a Hub, or a file or folder says of a release."""
    if match := _HASH.fullmatch(text):
        return Published("the hash given", match[1].casefold())
    if text.startswith(("https://", "http://")):
        source, content = _from_web(text)
    elif (match := _HUB.fullmatch(text)) or (looks_like_reference(text) and not Path(text).exists()):
        source, content = _from_hub(match[1] if match else text)
    else:
        path = Path(text) / RELEASE if Path(text).is_dir() else Path(text)
        try:
            source, content = str(path), read_plain(path, _MOST, follow=True)
        except OSError as error:
            raise _unusable(str(path), f"it cannot be read: {reason_of(error)}") from None
    if not (files := _files(content)):
        raise _unusable(source, "this is no release.json")
    return Published(source, sha256_bytes(content), files)


def compare_with_published(report: VerifyReport, known: Published) -> VerifyReport:
    """Return a report that also says whether the release is the one that was published."""
    if report.path.is_file():
        raise ConfigError(
            _OPTION,
            what=f"{report.path} is a file: its other files cannot be checked",
            fix="give the release folder",
        )
    issues = (*report.issues, *_differences(report.path, known))
    return replace(report, issues=tuple(sorted(issues, key=by_line)), published=known.source)


def _differences(folder: Path, known: Published) -> Iterator[Issue]:
    """Yield that a release is not the one that was published, and which files are others."""
    cure = "do not use it for the published one: fetch that again; or give the hash of this version"
    try:
        content = read_plain(folder / RELEASE)
    except OSError as error:
        yield Issue(RELEASE, "$", "not-published", f"it cannot be read: {reason_of(error)}", cure)
        return
    if (own := sha256_bytes(content)) == known.sha256:
        return
    message = f"its SHA-256 is {own}; {known.source} has {known.sha256}"
    if known.files is not None:
        theirs, ours = known.files, _files(content)
        others = sorted(path for path in theirs.keys() | ours.keys() if theirs.get(path) != ours.get(path))
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        message += (
            f"; other files: {', '.join(others[:_SHOWN])}{more}" if others else "; no other file differs"
        )
    yield Issue(RELEASE, "$", "not-published", message, cure)


def _files(content: bytes) -> dict[str, Json]:
    """Return path -> size and hash of the files that a ``release.json`` lists; none where it is damaged."""
    try:
        document = parse_json(content)
    except ValueError:
        return {}
    files = document.get("files") if isinstance(document, dict) else None
    return files if isinstance(files, dict) else {}


def _from_hub(text: str) -> tuple[str, bytes]:
    reference = parse_reference(text, _OPTION)
    with open_hub(reference.repo) as hub:
        content = hub.read(reference.revision, RELEASE, 0, _MOST + 1)
    _require_bounded(content, str(reference))
    return str(reference), content


def _from_web(address: str) -> tuple[str, bytes]:
    """Return an address without what may be secret in it, and what it holds; no token is sent there."""
    import httpx2

    try:
        url = httpx2.URL(address)
        source = str(url.copy_with(userinfo=b"", query=None, fragment=None))
        with httpx2.stream("GET", url, timeout=_SECONDS, follow_redirects=True) as reply:
            if reply.status_code != httpx2.codes.OK:
                raise _unusable(source, f"it answers with status {reply.status_code}")
            content = bytearray()
            for piece in reply.iter_bytes():
                content += piece
                _require_bounded(content, source)
    except httpx2.InvalidURL as error:
        raise _unusable(address.partition("?")[0].rpartition("@")[2], f"no address: {error}") from None
    except httpx2.HTTPError as error:
        raise HubUnavailable(
            f"{_OPTION} {source}", what=f"it cannot be reached: {type(error).__name__}",
            fix="try again later, or give the hash or a copy of its release.json",
        ) from None  # fmt: skip
    return source, bytes(content)


def _require_bounded(content: bytes | bytearray, source: str) -> None:
    if len(content) > _MOST:
        raise _unusable(source, f"it has more than {_MOST:,} bytes")


def _unusable(source: str, what: str) -> ConfigError:
    return ConfigError(
        f"{_OPTION} {source}",
        what=what,
        fix="give a SHA-256 of 64 digits, a release.json, its address, or user/name@commit",
    )
