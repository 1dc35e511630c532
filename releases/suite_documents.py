"""The documents of a flat release: card, licence notice, Croissant metadata, ``release.json``."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..schemas.canonical import Json
from .croissant import describe
from .documents import head, inputs_of
from .front_matter import configurations, front_matter_text, language_codes, size_category
from .layout import CHANGES, FORMAT
from .run_folder import FinishedRun
from .suite_facts import SuiteFacts
from .templates import render, render_plain, render_properties

_CHANGES = (CHANGES, "what changed since the version before, by record and path")


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


def suite_croissant(
    facts: SuiteFacts, sizes: Mapping[str, int], hashes: Mapping[str, str]
) -> dict[str, Json]:
    """Return the Croissant metadata of a flat release."""
    own: dict[str, Json] = {
        "keywords": list(facts.kind.keywords),
        **{f"rai:{name}": value for name, value in _responsible(facts).items()},
    }
    return describe(facts, facts.kind.shape, own, sizes, hashes)


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


def suite_manifest(facts: SuiteFacts, run: FinishedRun) -> dict[str, Json]:
    """Return the content of ``source_manifest.json``."""
    return {"format": FORMAT, "rights_scope": facts.kind.rights_scope, "inputs": inputs_of(run)}


def suite_document(
    facts: SuiteFacts, run: FinishedRun, records: Mapping[str, str], files: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the content of ``release.json``.

    Args:
        facts: what is known about the release.
        run: the run that it was packed from.
        records: id -> SHA-256 of the record's canonical JSON.
        files: path -> size and SHA-256 of every file but ``release.json`` and ``SHA256SUMS``.
    """
    previous = {} if facts.since is None else {"previous": facts.since.previous}
    return {
        **head(facts, run, "public"),
        "kind": facts.kind.shape.kind,
        **previous,
        "counts": facts.totals,
        "left_out": {facts.kind.unit: [entry.as_json() for entry in facts.left_out], "files": []},
        "records": {facts.kind.lines: records},
        "files": files,
    }
