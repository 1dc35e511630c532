"""Nothing of a hidden-test story may be in a public file, and a hidden folder holds nothing else."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...schemas.canonical import Json
from ...schemas.layout import (
    ANNOTATIONS,
    CANARY,
    HIDDEN_SPLIT,
    JSONL_FILES,
    RELEASE,
    REVIEWS,
    SUMS,
    VARIANTS,
    WITHDRAWN,
    files_in,
)
from ...schemas.plain_files import json_lines, read_json
from ...schemas.values import Issue
from ...validators.codes import issue
from ...validators.retellings import PLAIN, Traces, links_between
from ...validators.review_marks import VOTES
from ..hidden.commitments import CURE, RETELL
from ..hidden.marks import marks_of, public_has_whole
from ..hidden.search import search
from .composition import PARTS, SIZES
from .evidence import EVIDENCE, check_evidence

_SHARED = ("about", "canary", "created_at", "inputs", "license", "prompts", "run", "tools")
"""What both folders of one pack say, word by word."""


def check_hidden(
    public: Path, document: Mapping[str, Json], hidden: Path, salt: bytes | None = None
) -> Iterator[Issue]:
    """Yield every place where a public file names, quotes or resembles a hidden-test story."""
    secret = read_json(hidden / RELEASE)
    ids = {name for hashes in secret["records"].values() for name in hashes}
    digests = {digest for hashes in secret["records"].values() for digest in hashes.values()}
    if secret.get("version") != document.get("version"):
        message = f"version {secret.get('version')} beside version {document.get('version')}"
        yield Issue(
            hidden.name, "$.version", "hidden-version", message, "put the folders of one pack together"
        )
    for name in _SHARED:
        if name in secret and name in document and secret[name] != document[name]:
            message = f"not what the hidden folder says under {name}"
            yield Issue(
                RELEASE, f"$.{name}", "hidden-version", message, "put the folders of one pack together"
            )
    if secret.get("counts") != document.get("hidden_test"):
        yield Issue(
            RELEASE, "$.hidden_test", "hidden-count", "the counts are not those of the hidden folder", CURE
        )
    records = document.get("records", {})
    listed = {name for hashes in records.values() for name in hashes}
    for part in ("left_out", WITHDRAWN):
        listed |= {entry["id"] for entry in document.get(part, {}).get("stories", ())}
    for name in sorted(ids & listed):
        yield Issue(RELEASE, "$", "hidden-leak", f"lists {name}, the id of a hidden story", CURE)
    if digests & {digest for hashes in records.values() for digest in hashes.values()}:
        yield Issue(RELEASE, "$.records", "hidden-leak", "holds the hash of a hidden-test record", CURE)
    marks = marks_of(public, hidden, ids)
    if public_has_whole(public, marks):
        yield Issue(ANNOTATIONS, "$", "hidden-leak", "holds the whole text of a hidden story", RETELL)
    yield from _retold(public, hidden)
    yield from search(public, marks, salt)


def _retold(public: Path, hidden: Path) -> Iterator[Issue]:
    """Yield the public stories that retell a hidden one; what shows it is named, not quoted."""
    traces, secret = {}, set()
    for folder in (public, hidden):
        for row in json_lines(folder / ANNOTATIONS):
            reference = row["provenance"]["source_reference"]
            traces[row["story_id"]] = Traces.of(row["title"], row["story_text"], reference)
            secret |= {row["story_id"]} if folder == hidden else set()
    across: dict[tuple[str, str], set[str]] = {}
    for link in links_between(traces, PLAIN):
        if (link.first in secret) != (link.second in secret):
            across.setdefault((link.first, link.second), set()).add(link.by)
    for pair, by in across.items():
        known = next(story for story in pair if story not in secret)
        code = "split-retelling" if "text" in by else "split-twin"
        message = f"{known} is like a hidden story by its {' and '.join(sorted(by))}"
        yield issue(code, ANNOTATIONS, "$.split", message)


def check_hidden_folder(folder: Path, document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield what a folder of hidden-test stories holds beside them, or says of them and is not so."""
    known = {*JSONL_FILES, *EVIDENCE, REVIEWS, VOTES, CANARY, RELEASE, SUMS}
    for path in files_in(folder):
        if path not in known:
            yield Issue(
                path, "$", "file-extra", "a hidden folder has no such file, even if it is listed", "remove it"
            )
    yield from check_evidence(folder)
    counts = Counter[str]()
    for row in json_lines(folder / ANNOTATIONS):
        counts.update({"stories": 1, **{part: len(row[part]) for part in PARTS}})
        if row["split"] != HIDDEN_SPLIT:
            message = f"{row['story_id']} is of the split {row['split']}"
            yield Issue(ANNOTATIONS, "$", "hidden-split", message, "pack the run again")
    counts["variants"] = sum(1 for _ in json_lines(folder / VARIANTS))
    stated = document.get("counts")
    if not isinstance(stated, dict) or any(stated.get(size) != counts[size] for size in SIZES):
        message = f"{stated} are stated, {dict(counts)} are there"
        yield Issue(RELEASE, "$.counts", "release-counts", message, "pack the run again")
