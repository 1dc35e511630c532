"""Reading official files in JSON strictly: what they hold must come out again the same."""

import errno
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..schemas.paths import format_path
from ..schemas.plain_files import read_plain
from ..schemas.values import Issue
from ..validators.report import IssueBin, show

Document = TypeVar("Document", bound=BaseModel)


@dataclass(frozen=True)
class OfficialFiles:
    """Files of one official form; whatever is wrong with one becomes an issue."""

    issue: Callable[[str, str, str, str], Issue]  # code, file, path and message -> the issue
    most_bytes: int  # of a file
    too_large: str  # code of a file that has more; ``missing`` of one that cannot be read
    missing: str
    expected: str  # what is expected where nothing can be read, with an article
    # words of the checking library -> how they are said
    wording: Mapping[str, str] = field(default_factory=dict)

    def read(
        self, path: Path, where: str, kind: type[Document], issues: IssueBin
    ) -> tuple[Document | None, bytes]:
        """Return what a file holds, and its bytes; None where it cannot be used."""
        try:
            content = read_plain(path, self.most_bytes, follow=True)
        except OSError as error:
            code, what = self.missing, f"expected {self.expected}, found {error.strerror}"
            if error.errno == errno.EFBIG:
                code, what = self.too_large, f"expected at most {self.most_bytes:,} bytes, found more"
            elif path.is_symlink() and not path.exists():
                what = f"expected {self.expected}, found a link to nothing: {error.strerror}"
            issues.add(self.issue(code, where, "$", what))
            return None, b""
        if content.startswith(b"\xef\xbb\xbf"):
            issues.add(self.issue("byte-order-mark", where, "$", "the file starts with a byte order mark"))
        document = self._parse(content, where, issues)
        if document is None:
            return None, content
        try:
            return kind.model_validate(document), content
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                message = str(detail["msg"])
                for theirs, ours in self.wording.items():
                    message = message.replace(theirs, ours)
                issues.add(self.issue("shape", where, format_path(detail["loc"]), message))
        return None, content

    def _parse(self, content: bytes, where: str, issues: IssueBin) -> dict[str, Any] | None:
        twice: list[str] = []
        try:
            document = load_strictly(content, twice)
        except (ValueError, RecursionError) as error:
            code, message = what_is_wrong(error, content)
            issues.add(self.issue(code, where, "$", message))
            return None
        for name in twice:
            issues.add(self.issue("repeated-key", where, "$", f"{show(name)} occurs twice in one object"))
        if not isinstance(document, dict):
            message = f"expected a JSON object, found a {type(document).__name__}"
            issues.add(self.issue("json", where, "$", message))
            return None
        return None if twice else document


def load_strictly(content: bytes, twice: list[str]) -> Any:  # noqa: ANN401 - any JSON value
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


def what_is_wrong(error: ValueError | RecursionError, content: bytes) -> tuple[str, str]:
    """Return code and message of what keeps bytes from being read."""
    if isinstance(error, UnicodeEncodeError):
        return "encoding", "an escape such as \\ud800 stands for half a character"
    if isinstance(error, UnicodeDecodeError):
        return "encoding", f"expected UTF-8, found {error.reason} at byte {error.start}"
    if isinstance(error, RecursionError):
        return "json", "expected a JSON object, found one that is nested too deeply"
    return "json", f"expected a JSON object, found {error if content.strip() else 'nothing'}"


def _no_number(name: str) -> None:
    raise ValueError(f"{name}, which is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]}, which is too large")
    return value
