"""Whether the documents of a release are those that its data and ``release.json`` make."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..schemas.canonical import Json
from ..schemas.issue import Issue
from ..schemas.plain_files import parse_json, read_plain, read_text
from ..validators.dataset import REVIEWS
from .compare_facts import false_facts
from .diffing.changes import changes_between
from .documents import tools
from .front_matter import check_front_matter
from .layout import ANNOTATIONS, CARD, README, RELEASE, SUMS, WITHDRAWN, files_in
from .recount_facts import Recounted

_CURE = "pack the run again"
_SHOWN = 3
_OF_DOCUMENTS = ("fabula", "jinja2", "pyyaml", "pydantic")


def made_by_these_tools(document: Mapping[str, Any]) -> bool:
    """Return whether this Fabula, with these libraries, would write the same documents byte for byte.

    ``inputs`` came with the first version whose documents can be made again whole.
    """
    stated, ours = document.get("tools"), tools()
    same = isinstance(stated, dict) and all(stated.get(name) == ours[name] for name in _OF_DOCUMENTS)
    return same and "inputs" in document


def check_documents(
    folder: Path, document: Mapping[str, Any], again: Recounted, *, exact: bool
) -> Iterator[Issue]:
    """Yield every document that is not what the data and ``release.json`` make, and every file beside them.

    Args:
        folder: the release.
        document: its ``release.json``.
        again: its documents, made again.
        exact: compare bytes; else the facts that another version's documents state.
    """
    there = set(files_in(folder))
    wanted = again.data | again.documents.keys()
    for path in sorted(wanted - there):
        yield Issue(path, "$", "file-missing", "the file is missing: every release has it", _CURE)
    for path in sorted(there - wanted):
        made_with = f"Fabula {(document.get('tools') or {}).get('fabula')}"
        cure = "remove it" if exact else f"remove it; if {made_with} put it there, verify with that version"
        yield Issue(path, "$", "file-extra", "a release has no such file, even if it is listed", cure)
    for name in sorted((again.documents.keys() & there) - {SUMS}):
        stated, made = read_plain(folder / name), again.documents[name]
        if not exact:
            for what in false_facts(name, stated, made, again.facts):
                yield Issue(name, "$", "document", what, _CURE)
        elif stated != made:
            yield Issue(name, "$", "document", _difference(name, stated, made), _CURE)
    yield from _check_card(folder, again)
    for story_id in again.reviewed_otherwise if exact else ():
        message = f"{story_id} says something else of its review than {REVIEWS} does"
        yield Issue(ANNOTATIONS, "$", "review-differs", message, _CURE)
    if exact and document.get("hidden_test", {}).get("stories") and "commitments" not in document:
        message = "hidden-test stories are counted, and there is no commitment to them"
        yield Issue(RELEASE, "$.commitments", "commitment", message, _CURE)


def _check_card(folder: Path, again: Recounted) -> Iterator[Issue]:
    if read_plain(folder / README) != read_plain(folder / CARD):
        yield Issue(README, "$", "readme", f"differs from {CARD}", f"copy {CARD} over it")
    card, facts = read_text(folder / CARD), again.facts
    yield from check_front_matter(card, facts.size, facts.rows, facts.shape)


def check_left_out(document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield stories that ``release.json`` lists both as packed and as left out or withdrawn."""
    packed = {name for hashes in document.get("records", {}).values() for name in hashes}
    for entry in document.get("left_out", {}).get("stories", ()):
        if entry["id"] in packed:
            yield Issue(
                RELEASE,
                "$.left_out",
                "left-out",
                f"{entry['id']} is named as left out, and is in the release",
                _CURE,
            )
    for entry in document.get(WITHDRAWN, {}).get("stories", ()):
        if entry["id"] in packed:
            yield Issue(
                RELEASE,
                "$.withdrawn",
                "left-out",
                f"{entry['id']} is named as withdrawn, and is in the release",
                _CURE,
            )


def _difference(name: str, stated: bytes, made: bytes) -> str:
    """Say where a document differs from what the data make; what it holds there is not quoted."""
    if name.endswith(".json"):
        changes = changes_between(parse_json(stated), parse_json(made))
        told = [f"{one.path} should be {_short(one.new)}" for one in changes if one.kind != "removed"]
        told += [f"{one.path} should not be there" for one in changes if one.kind == "removed"]
        more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        return "; ".join(told[:_SHOWN]) + more if told else "not written as packing writes it"
    lines, wanted = stated.splitlines(keepends=True), made.splitlines(keepends=True)
    number = next((n for n, pair in enumerate(zip(lines, wanted, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        return f"{len(lines)} lines; the data give {len(wanted)}"
    return f"line {number + 1} should be {_short(wanted[number].decode('utf-8', 'replace').rstrip())}"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
