"""The documents of a flat release: card, licence notice, Croissant metadata, ``release.json``."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..schemas.canonical import Json, pretty_bytes
from .croissant import Entries, describe
from .documents import Origin, head, sealed
from .front_matter import configurations, front_matter_text, language_codes, size_category
from .layout import CARD, CHANGES, FORMAT, LICENSE, README, SOURCE_MANIFEST, STATISTICS
from .suite_facts import SuiteFacts
from .templates import render, render_plain, render_properties

_CHANGES = (CHANGES, "what changed since the version before, by record and path")


def flat_documents(
    facts: SuiteFacts, origin: Origin, records: Mapping[str, str], files: Entries
) -> dict[str, bytes]:
    """Return path -> content of every document of a flat release.

    Args:
        facts: what is known about the release.
        origin: what :func:`.documents.origin_of` says of the run that it was packed from.
        records: id -> SHA-256 of the record's canonical JSON.
        files: size and hash of the files on disk; see :func:`.documents.sealed`.
    """
    card = suite_card(facts).encode("utf-8")
    made = {
        STATISTICS: pretty_bytes(facts.statistics),
        SOURCE_MANIFEST: pretty_bytes(suite_manifest(facts, origin)),
        LICENSE: suite_licence(facts).encode("utf-8"),
        CARD: card,
        README: card,
    }
    if facts.since is not None:
        made[CHANGES] = pretty_bytes(facts.since.changes)
    return sealed(
        made,
        files,
        (*facts.kind.shape.described, *facts.rows),
        partial(suite_croissant, facts),
        partial(suite_document, facts, origin, records),
    )


def suite_card(facts: SuiteFacts) -> str:
    """Return the dataset card of a flat release, front matter included."""
    kind = facts.kind
    front = {
        "pretty_name": facts.options.title,
        "license": facts.licence.hub_id,
        "language": language_codes(facts.languages),
        "size_categories": [size_category(facts.totals[kind.unit])],
        "task_categories": list(kind.tasks),
        "tags": list(kind.tags),
        "configs": list(configurations(facts.rows, kind.shape)),
    }
    return render(
        kind.templates[0],
        front_matter=front_matter_text(front),
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        counts=facts.totals,
        statistics=facts.statistics,
        details=kind.details(facts),
        files=[*kind.files, *([_CHANGES] if facts.since is not None else [])],
        tables=kind.shape.tables,
        left_out=sorted(Counter(entry.why for entry in facts.left_out).items()),
        languages=facts.languages,
    )


def suite_licence(facts: SuiteFacts) -> str:
    """Return the licence notice of a flat release."""
    return render_plain(
        facts.kind.templates[1],
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        attribution=str(facts.licence.spdx_id).startswith("CC-BY"),
    )


def suite_croissant(facts: SuiteFacts, files: Entries) -> dict[str, Json]:
    """Return the Croissant metadata of a flat release."""
    own: dict[str, Json] = {
        "keywords": list(facts.kind.keywords),
        **{f"rai:{name}": value for name, value in _responsible(facts).items()},
    }
    return describe(facts, facts.kind.shape, own, files)


def _responsible(facts: SuiteFacts) -> dict[str, Any]:
    machines = [maker for maker in facts.makers if maker.startswith("rules@") or " via " in maker]
    properties = render_properties(
        facts.kind.templates[2],
        left_out=len(facts.left_out),
        details=facts.kind.details(facts),
        created_at=facts.created_at,
        producers=facts.makers,
        people=len(machines) < len(facts.makers),
    )
    return {**properties, "machineAnnotationTools": machines or ["none"]}


def suite_manifest(facts: SuiteFacts, origin: Origin) -> dict[str, Json]:
    """Return the content of ``source_manifest.json``."""
    return {"format": FORMAT, "rights_scope": facts.kind.rights_scope, "inputs": origin["inputs"]}


def suite_document(
    facts: SuiteFacts, origin: Origin, records: Mapping[str, str], files: Entries
) -> dict[str, Json]:
    """Return the content of ``release.json``.

    Args:
        facts: what is known about the release.
        origin: what :func:`.documents.origin_of` says of the run that it was packed from.
        records: id -> SHA-256 of the record's canonical JSON.
        files: path -> size and SHA-256 of every file but ``release.json`` and ``SHA256SUMS``.
    """
    previous = {} if facts.since is None else {"previous": facts.since.previous}
    return {
        **head(facts, origin, facts.kind.shape.kind, "public"),
        "languages": facts.languages,
        **previous,
        "counts": facts.totals,
        "left_out": {facts.kind.unit: [entry.as_json() for entry in facts.left_out], "files": []},
        "records": {facts.kind.lines: records},
        "files": files,
    }
