"""Reading one script or split file of a set of episodes; whatever is wrong with it becomes an issue."""

import errno
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..schemas.entities import EntityEpisode, EntitySplits
from ..schemas.paths import format_path
from ..schemas.plain_files import read_plain
from ..validators.codes import show
from ..validators.entities.codes import issue
from ..validators.report import IssueBin
from .strict_json import load_strictly, what_is_wrong

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
        content = read_plain(path, MOST_BYTES, follow=True)
    except OSError as error:
        if error.errno == errno.EFBIG:
            found.add(issue("too-large", where, "$", f"expected at most {MOST_BYTES:,} bytes, found more"))
            return None
        linked = "a link to nothing: " if path.is_symlink() and not path.exists() else ""
        found.add(issue("unreadable", where, "$", f"expected a file, found {linked}{error.strerror}"))
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
        document = load_strictly(content, twice)
    except (ValueError, RecursionError) as error:
        code, message = what_is_wrong(error, content)
        found.add(issue(code, where, "$", message))
        return None
    for name in twice:
        found.add(issue("repeated-key", where, "$", f"{show(name)} occurs twice in one object"))
    if not isinstance(document, dict):
        found.add(issue("json", where, "$", f"expected a JSON object, found a {type(document).__name__}"))
        return None
    return None if twice else document
