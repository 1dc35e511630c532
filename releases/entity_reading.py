"""Reading one script or split file of a set of episodes; whatever is wrong with it becomes an issue."""

import json
import math
import stat
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..schemas.entities import EntityEpisode, EntitySplits
from ..schemas.paths import format_path
from ..validators.codes import show
from ..validators.entities.codes import issue
from ..validators.report import IssueBin

MOST_BYTES = 5_000_000
"""Of a script; the official ones have about 25,000. Mentions are looked for by shot and entity."""

Document = TypeVar("Document", bound=BaseModel)


def read_episode(path: Path, where: str, found: IssueBin) -> tuple[EntityEpisode | None, bytes]:
    """Return a script and the bytes of its file; no script where it cannot be used."""
    content = _read(path, where, found)
    return None if content is None else _typed(EntityEpisode, content, where, found), content or b""


def read_splits(path: Path, where: str, found: IssueBin) -> tuple[EntitySplits | None, bytes]:
    """Return the splits of a file and its bytes; no splits where it cannot be used."""
    content = _read(path, where, found)
    return None if content is None else _typed(EntitySplits, content, where, found), content or b""


def _read(path: Path, where: str, found: IssueBin) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would never end
            found.add(issue("unreadable", where, "$", "expected a file, found something else"))
            return None
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        linked = "a link to nothing: " if path.is_symlink() and not path.exists() else ""
        found.add(issue("unreadable", where, "$", f"expected a file, found {linked}{error.strerror}"))
        return None
    if len(content) > MOST_BYTES:
        found.add(issue("too-large", where, "$", f"expected at most {MOST_BYTES:,} bytes, found more"))
        return None
    if content.startswith(b"\xef\xbb\xbf"):
        found.add(issue("byte-order-mark", where, "$", "the file starts with a byte order mark"))
    return content


def _typed(kind: type[Document], content: bytes, where: str, found: IssueBin) -> Document | None:
    document = _parse(content, where, found)
    if document is None:
        return None
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            message = (
                str(detail["msg"]).replace("valid tuple", "list").replace("a valid dictionary", "an object")
            )
            found.add(issue("shape", where, format_path(detail["loc"]), message))
    return None


def _parse(content: bytes, where: str, found: IssueBin) -> dict[str, Any] | None:
    twice: list[str] = []
    try:
        document = _load(content, twice)
    except (ValueError, RecursionError) as error:
        code, message = _what_is_wrong(error, content)
        found.add(issue(code, where, "$", message))
        return None
    for name in twice:
        found.add(issue("repeated-key", where, "$", f"{show(name)} occurs twice in one object"))
    if not isinstance(document, dict):
        found.add(issue("json", where, "$", f"expected a JSON object, found a {type(document).__name__}"))
        return None
    return None if twice else document


def _load(content: bytes, twice: list[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON in bytes; names that occur twice in an object are added to the list."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice.extend(sorted(name for name, count in counts.items() if count > 1))
        return made

    text = content.decode("utf-8-sig")
    document = json.loads(text, object_pairs_hook=distinct, parse_constant=_no_number, parse_float=_finite)
    if b"\\u" in content:  # an escaped half of a character parses, but has no UTF-8 form
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    return document


def _no_number(name: str) -> None:
    raise ValueError(f"{name}, which is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]}, which is too large")
    return value


def _what_is_wrong(error: ValueError | RecursionError, content: bytes) -> tuple[str, str]:
    """Return code and message of what keeps bytes from being read."""
    if isinstance(error, UnicodeEncodeError):
        return "encoding", "an escape such as \\ud800 stands for half a character"
    if isinstance(error, UnicodeDecodeError):
        return "encoding", f"expected UTF-8, found {error.reason} at byte {error.start}"
    if isinstance(error, RecursionError):
        return "json", "expected a JSON object, found one that is nested too deeply"
    return "json", f"expected a JSON object, found {error if content.strip() else 'nothing'}"
