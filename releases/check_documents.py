"""Whether the documents of a release agree with its records and with each other."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..schemas.canonical import Json
from ..schemas.issue import Issue
from .composition import SIZES, Composition
from .documents import RIGHTS_SCOPE
from .front_matter import check_front_matter
from .layout import (
    CARD,
    DATA,
    HIDDEN_SPLIT,
    LICENSE,
    README,
    RELEASE,
    SOURCE_MANIFEST,
    STATISTICS,
    WITHDRAWN,
    files_in,
)
from .licence import licence

_CURE = "pack the run again"


def check_documents(folder: Path, document: Mapping[str, Json], composition: Composition) -> Iterator[Issue]:
    """Yield every disagreement between the documents of a public release and its records.

    Args:
        folder: the release.
        document: its ``release.json``.
        composition: counted over the records that are in the folder.
    """
    card = (folder / CARD).read_text("utf-8")
    if (folder / README).read_text("utf-8") != card:
        yield Issue(README, "$", "readme", f"differs from {CARD}", f"copy {CARD} over it")
    parquet = [path for path in files_in(folder) if path.startswith(f"{DATA}/")]
    yield from check_front_matter(card, composition.totals["stories"], parquet)
    yield from _check_counts(document, composition)
    yield from _check_manifest(folder, composition)
    yield from _check_totals(folder, document, composition)
    released_under = licence(str(document.get("license")))
    notice = (folder / LICENSE).read_text("utf-8")
    marks = (f"SPDX-License-Identifier: {released_under.spdx_id}\n", str(released_under.url))
    if not all(mark in notice for mark in marks):
        yield Issue(LICENSE, "$", "licence", f"does not name {released_under.spdx_id} and its address", _CURE)


def check_left_out(document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield stories that ``release.json`` lists both as packed and as left out or withdrawn."""
    packed = {name for hashes in document.get("records", {}).values() for name in hashes}
    for entry in document.get("left_out", {}).get("stories", ()):
        if entry["id"] in packed:
            yield Issue(RELEASE, "$.left_out", "left-out", f"{entry['id']} is packed and left out", _CURE)
    for entry in document.get(WITHDRAWN, {}).get("stories", ()):
        if entry["id"] in packed:
            yield Issue(RELEASE, "$.withdrawn", "left-out", f"{entry['id']} is packed and withdrawn", _CURE)


def _check_counts(document: Mapping[str, Json], composition: Composition) -> Iterator[Issue]:
    if document.get("counts") != composition.totals:
        message = f"{document.get('counts')} are stated, {composition.totals} are there"
        yield Issue(RELEASE, "$.counts", "release-counts", message, _CURE)
    stories = {name: counts["stories"] for name, counts in composition.by_split.items() if counts["stories"]}
    if document.get("splits") != stories:
        message = f"{document.get('splits')} are stated, {stories} are there"
        yield Issue(RELEASE, "$.splits", "release-counts", message, _CURE)
    if HIDDEN_SPLIT in stories:
        message = "holds stories of the hidden test split"
        yield Issue(RELEASE, "$.splits", "hidden-leak", message, f"do not publish this release; {_CURE}")


def _check_manifest(folder: Path, composition: Composition) -> Iterator[Issue]:
    manifest = json.loads((folder / SOURCE_MANIFEST).read_bytes())
    if manifest.get("collections") != composition.manifest():
        yield Issue(SOURCE_MANIFEST, "$.collections", "source-manifest", "not what the records say", _CURE)
    if manifest.get("rights_scope") != RIGHTS_SCOPE:
        yield Issue(SOURCE_MANIFEST, "$.rights_scope", "source-manifest", "the rights note is missing", _CURE)


def _check_totals(folder: Path, document: Mapping[str, Json], composition: Composition) -> Iterator[Issue]:
    statistics = json.loads((folder / STATISTICS).read_bytes())
    hidden = document.get("hidden_test", {})
    stated = statistics.get("totals", {})
    for size in SIZES:
        if stated.get(size) != composition.totals[size] + hidden.get(size, 0):
            message = f"{stated.get(size)} is not the sum of the public and the hidden {size}"
            yield Issue(STATISTICS, f"$.totals.{size}", "release-counts", message, _CURE)
