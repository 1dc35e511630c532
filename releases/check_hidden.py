"""Nothing of a hidden-test story may be in a public file."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from pathlib import Path

from ..schemas.canonical import Json, canonical_text
from ..schemas.issue import Issue
from .layout import ANNOTATIONS, RELEASE, VARIANTS, WITHDRAWN, files_in

_MARK = 120
_CURE = "do not publish this release; pack the run again"


def check_hidden(public: Path, document: Mapping[str, Json], hidden: Path) -> Iterator[Issue]:
    """Yield every place where a public file names or quotes a hidden-test story.

    Ids are compared wherever ids stand, and searched as text when they look like ids (a digit, six
    characters or more). Texts are searched by their openings and
    endings, but for those that a public story has as well. The Parquet tables are not searched: reading
    them back shows that they hold what the JSONL files hold.

    Args:
        public: the public release.
        document: its ``release.json``.
        hidden: the folder of the hidden-test stories.
    """
    secret = json.loads((hidden / RELEASE).read_bytes())
    ids = {name for hashes in secret["records"].values() for name in hashes}
    digests = {digest for hashes in secret["records"].values() for digest in hashes.values()}
    if secret.get("version") != document.get("version"):
        message = f"version {secret.get('version')} beside version {document.get('version')}"
        yield Issue(
            hidden.name, "$.version", "hidden-version", message, "put the folders of one pack together"
        )
    if secret.get("counts") != document.get("hidden_test"):
        yield Issue(RELEASE, "$.hidden_test", "hidden-count", "not the counts of the hidden folder", _CURE)
    records = document.get("records", {})
    listed = {name for hashes in records.values() for name in hashes}
    for part in ("left_out", WITHDRAWN):
        listed |= {entry["id"] for entry in document.get(part, {}).get("stories", ())}
    for name in sorted(ids & listed):
        yield Issue(RELEASE, "$", "hidden-leak", f"lists {name}, a hidden-test id", _CURE)
    if digests & {digest for hashes in records.values() for digest in hashes.values()}:
        yield Issue(RELEASE, "$.records", "hidden-leak", "holds the hash of a hidden-test record", _CURE)
    id_pattern = _any_of(name for name in ids if len(name) >= 6 and any(char.isdigit() for char in name))
    secret_texts, public_texts = set(_texts(hidden)), set(_texts(public))
    if secret_texts & public_texts:
        yield Issue(ANNOTATIONS, "$", "hidden-leak", "holds the whole text of a hidden story", _CURE)
    marks = {mark for text in secret_texts for mark in _marks(text)}
    # Tales of one frame begin alike: what a public story shares by itself is no sign of a leak.
    marks -= {mark for text in public_texts for mark in _marks(text)}
    text_pattern = _any_of(form for _, mark in marks for form in (canonical_text(mark)[1:-1], mark))
    for path in files_in(public):
        if not path.endswith(".parquet"):
            yield from _search(public / path, path, (id_pattern, text_pattern))


def _texts(folder: Path) -> Iterator[str]:
    """Yield the texts of the stories of a folder, and of their variants."""
    fields = {ANNOTATIONS: ("source_text", "story_text"), VARIANTS: ("contrastive_story_text",)}
    for name, texts in fields.items():
        with (folder / name).open("rb") as lines:
            for line in lines:
                row = json.loads(line)
                yield from (row[text] for text in texts)


def _marks(text: str) -> Iterator[tuple[str, str]]:
    """Yield how a text begins and how it ends, where that is long enough to tell."""
    if len(text) >= _MARK // 2:
        yield "opening", text[:_MARK]
        yield "ending", text[-_MARK:]


def _any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that finds any of the words, as a prefix tree that stays fast with many of them."""
    unique = sorted({word.encode("utf-8") for word in words})
    return re.compile(_tree(unique) if unique else rb"(?!)", re.DOTALL)


def _tree(words: Sequence[bytes]) -> bytes:
    # The words are sorted, so what the first and the last share, all share.
    prefix = bytes(
        one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(words[0], words[-1], strict=False))
    )
    rest = [word[len(prefix) :] for word in words]
    branches = [_tree(list(group)) for _, group in groupby(filter(None, rest), key=lambda word: word[0])]
    if not branches:
        return re.escape(prefix)
    optional = b"?" if b"" in rest else b""
    return re.escape(prefix) + b"(?:" + b"|".join(branches) + b")" + optional


def _search(file: Path, path: str, patterns: tuple[re.Pattern[bytes], re.Pattern[bytes]]) -> Iterator[Issue]:
    ids, texts = patterns
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            found = next((match[0] for match in ids.finditer(line) if _stands_alone(match)), None)
            text = texts.search(line)
            for quoted in (found, text and text[0]):
                if quoted:
                    shown = quoted.decode("utf-8", "replace")
                    message = f"holds {shown!r} of a hidden story"
                    yield Issue(f"{path}:{number}", "$", "hidden-leak", message, _CURE)


def _stands_alone(match: re.Match[bytes]) -> bool:
    start, end = match.span()
    return not match.string[max(start - 1, 0) : start].isalnum() and not match.string[end : end + 1].isalnum()
