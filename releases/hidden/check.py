"""Nothing of a hidden-test story may be in a public file, and the public release commits to each."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...schemas.canonical import Json
from ...schemas.plain_files import json_lines, read_json
from ...schemas.values import Issue
from ...validators.codes import issue
from ...validators.katha.dataset import REVIEWS
from ...validators.retellings import PLAIN, Traces, links_between
from ..katha.composition import PARTS, SIZES
from ..katha.evidence import EVIDENCE, check_evidence
from ..layout import (
    ANNOTATIONS,
    CANARY,
    HIDDEN_SPLIT,
    JSONL_FILES,
    RELEASE,
    SUMS,
    VARIANTS,
    WITHDRAWN,
    files_in,
)
from .commitments import SCHEME, commitments_of
from .marks import marks_of, public_has_whole
from .search import CURE, search

_SHARED = ("about", "canary", "created_at", "inputs", "license", "prompts", "run", "tools")
"""What both folders of one pack say, word by word."""
_OTHER = "find the hidden folder and the salt that were packed together"


def check_hidden(
    public: Path, document: Mapping[str, Json], hidden: Path, salt: bytes | None = None
) -> Iterator[Issue]:
    """Yield every place where a public file names, quotes or resembles a hidden-test story.

    Args:
        public: the public release.
        document: its ``release.json``.
        hidden: the folder of the hidden-test stories.
        salt: the salt of the commitments, which no file may hold.
    """
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
        yield Issue(ANNOTATIONS, "$", "hidden-leak", "holds the whole text of a hidden story", CURE)
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
    """Yield what a folder of hidden-test stories holds beside them, or says of them and is not so.

    Args:
        folder: the hidden folder.
        document: its ``release.json``.
    """
    known = {*JSONL_FILES, *EVIDENCE, REVIEWS, CANARY, RELEASE, SUMS}
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


def check_promises(document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield what is wrong with the commitments of a public release, as far as anybody can see.

    Args:
        document: its ``release.json``; one that was packed before there were commitments has none.
    """
    if "commitments" not in document:
        return
    part, stories = document["commitments"], document.get("hidden_test", {}).get("stories")
    if not isinstance(part, dict) or part.get("scheme") != SCHEME:
        yield _issue(f"not of the scheme {SCHEME}", "use the version of Fabula that packed it")
    elif len(set(part["values"])) != stories or part["values"] != sorted(part["values"]):
        yield _issue(f"not one commitment for each of the {stories} hidden stories, sorted", CURE)


def check_commitments(document: Mapping[str, Json], hidden: Path, salt: bytes) -> Iterator[Issue]:
    """Yield the hidden stories to which a public release did not commit, and the commitments without story.

    Args:
        document: the ``release.json`` of this version of the public release, or of an older one.
        hidden: the folder of the hidden-test stories.
        salt: the salt of the commitments.
    """
    version = document.get("version")
    if "commitments" not in document:
        cure = (
            "fetch or pack this version again; if it is from before there were commitments, give a later one"
        )
        yield _issue(f"version {version} has no commitments to hidden stories", cure)
        return
    promised = {str(value) for value in document["commitments"]["values"]}
    actual = commitments_of(hidden, salt)
    kept = promised & set(actual.values())
    if promised and actual and not kept:
        message = f"none of the {len(promised)} commitments of version {version} fits stories and salt"
        yield _issue(message, _OTHER)
        return
    for story_id, value in sorted(actual.items()):
        if value not in promised:
            message = f"{story_id} is not as version {version} committed to it, or not one of its stories"
            yield Issue(f"{hidden.name}/{ANNOTATIONS}", "$", "commitment", message, _OTHER)
    if len(kept) < len(promised):
        message = (
            f"{len(promised) - len(kept)} of {len(promised)} commitments of version {version} fit no story"
        )
        yield _issue(message, _OTHER)


def _issue(message: str, cure: str) -> Issue:
    return Issue(RELEASE, "$.commitments", "commitment", message, cure)
