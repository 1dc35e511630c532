"""The documents of a release besides its data, made from the facts: by packing, and again by verifying.

What a document says and the data do not, ``release.json`` keeps: whoever has the folder can make it again.
"""

import platform
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...schemas.canonical import Json, pretty_bytes, sha256_bytes, sha256_file
from ...schemas.katha import SCHEMA_VERSION
from ...schemas.layout import (
    CARD,
    CHANGES,
    CROISSANT,
    FORMAT,
    LICENSE,
    README,
    RELEASE,
    SOURCE_MANIFEST,
    STAND_INS,
    STATISTICS,
    SUMS,
    files_in,
)
from ..form import Facts, FinishedRun
from ..tables import Table
from ..templates import Markup, render, render_plain, render_properties
from .croissant import Entries, describe
from .front_matter import front_matter, front_matter_text

# The libraries whose version can change the bytes of a release.
_TOOLS = ("fabula", "pyarrow", "jinja2", "pyyaml", "pydantic")


EDITION = 4
"""Raised where the same facts make other documents than before; releases of the first do not say it."""
Origin = Mapping[str, Json]
"""Where a release comes from: tools, run, prompts and sources, as ``release.json`` keeps them."""
ORIGIN = ("tools", "run", "prompts", "inputs")


def documents_of(facts: Facts, origin: Origin, files: Entries) -> dict[str, bytes]:
    """Return path -> content of every document of a public release."""
    card = render_card(facts, files).encode("utf-8")
    made = {
        STATISTICS: pretty_bytes(facts.statistics),
        SOURCE_MANIFEST: pretty_bytes(source_manifest(facts, origin)),
        LICENSE: render_licence(facts).encode("utf-8"),
        CARD: card,
        README: card,
        **facts.form.documents(facts),
    }
    if facts.since is not None:
        made[CHANGES] = pretty_bytes(facts.since.changes)
    return sealed(
        made,
        files,
        (*facts.form.described, *facts.rows),
        partial(croissant_document, facts),
        partial(release_document, facts, origin),
    )


def sealed(
    made: Mapping[str, bytes],
    files: Entries,
    described: Collection[str],
    croissant: Callable[[Entries], Json],
    release: Callable[[Entries], Json],
) -> dict[str, bytes]:
    """Return documents together with those that state size and hash of the other files."""
    entries = {**{path: _entry(content) for path, content in made.items()}, **files}
    documents = dict(made)
    shown = {path: entries[path] for path in described if path in entries}
    documents[CROISSANT] = pretty_bytes(croissant(shown))
    entries = {CROISSANT: _entry(documents[CROISSANT]), **entries}
    documents[RELEASE] = pretty_bytes(release(entries))
    hashes = {path: entry["sha256"] for path, entry in entries.items()}
    hashes[RELEASE] = sha256_bytes(documents[RELEASE])
    documents[SUMS] = _sums(hashes)
    return documents


def render_card(facts: Facts, files: Entries) -> str:
    """Return the dataset card of a release, which is also the Hub's README, front matter included."""
    return render(
        facts.form.templates[0],
        front_matter=front_matter_text(front_matter(facts, files)),
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        counts=facts.totals,
        statistics=facts.statistics,
        files=facts.form.files(facts),
        tables=_tables(facts),
        left_out=sorted(Counter(entry.why for entry in facts.left_out).items()),
        languages=facts.languages,
        stand_ins=facts.stand_ins,
        details=facts.form.details(facts),
        loading=_loading(facts),
        papers=[Markup(f"<https://arxiv.org/abs/{name}>") for name in facts.options.arxiv],
    )


def _loading(facts: Facts) -> Markup:
    """Return how the tables are loaded from where they are published; nothing where nobody knows."""
    table = next((table for table in facts.form.tables if table.name in _filled(facts)), None)
    if facts.options.repo is None or table is None:
        return Markup("")
    return Markup(
        "```python\nfrom datasets import load_dataset\n\n"
        f'{table.name} = load_dataset("{facts.options.repo}", "{table.name}", '
        f'revision="{facts.options.version}")\n```\n'
    )


def _filled(facts: Facts) -> set[str]:
    return {path.split("/")[1] for path in facts.rows}


def _tables(facts: Facts) -> list[Table]:
    """Return the tables that a card tells of: those of every release of the kind, and others with rows."""
    filled = _filled(facts)
    return [table for table in facts.form.tables if not table.optional or table.name in filled]


def render_licence(facts: Facts) -> str:
    """Return the licence notice of a release."""
    return render_plain(
        facts.form.templates[1],
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        attribution=str(facts.licence.spdx_id).startswith("CC-BY"),
    )


def croissant_document(facts: Facts, files: Entries) -> dict[str, Json]:
    """Return the Croissant metadata of a release."""
    makers, machines = facts.form.makers(facts)
    properties = render_properties(
        facts.form.templates[2],
        left_out=len(facts.left_out),
        created_at=facts.created_at,
        producers=makers,
        people=len(machines) < len(makers),
        details=facts.form.details(facts),
    )
    return describe(facts, {**properties, "machineAnnotationTools": machines or ["none"]}, files)


def source_manifest(facts: Facts, origin: Origin) -> dict[str, Json]:
    """Return the content of ``source_manifest.json``, over the public records."""
    return {
        "format": FORMAT,
        "rights_scope": facts.form.rights_scope,
        "inputs": origin["inputs"],
        **facts.form.manifest(facts),
    }


def origin_of(run: FinishedRun) -> Origin:
    """Return what ``release.json`` keeps of the run and of the tools at hand."""
    return {
        "tools": tools(),
        "run": {
            "fabula_version": run.manifest.fabula_version,
            "seed": run.manifest.seed,
            "settings": run.manifest.settings,
            "stages": [stage.as_json() for stage in run.manifest.stages],
            **_times(run),
        },
        "prompts": run.manifest.prompts,
        "inputs": inputs_of(run),
    }


def inputs_of(run: FinishedRun) -> list[dict[str, Json]]:
    """Return role, name and hash of the sources of a run.

    Paths on the author's machine are nobody's business; names and hashes identify the inputs.
    """
    return [
        {"role": source.role, "name": source.name, "sha256": source.sha256}
        for source in sorted(run.manifest.sources, key=lambda source: (source.role, source.name))
    ]


def release_document(facts: Facts, origin: Origin, files: Entries) -> dict[str, Json]:
    """Return the content of the public ``release.json``.

    ``files``: path -> size and SHA-256 of every file but ``release.json`` and ``SHA256SUMS``.
    """
    previous = {} if facts.since is None else {"previous": facts.since.previous}
    own = facts.form.document(facts)
    return {
        **head(facts, origin, "public"),
        **previous,
        "counts": facts.totals,
        **({STAND_INS: facts.stand_ins} if facts.stand_ins else {}),
        **own,
        "left_out": {
            facts.form.unit: [entry.as_json() for entry in facts.left_out],
            "files": [],
            **own.get("left_out", {}),
        },
        "records": facts.hashes,
        "files": files,
    }


def file_entries(folder: Path) -> dict[str, dict[str, Json]]:
    """Return path -> size and SHA-256 of every file in a folder but ``release.json`` and ``SHA256SUMS``."""
    return {
        path: {"bytes": (folder / path).stat().st_size, "sha256": sha256_file(folder / path)}
        for path in files_in(folder)
        if path not in (RELEASE, SUMS)
    }


def _entry(content: bytes) -> dict[str, Json]:
    return {"bytes": len(content), "sha256": sha256_bytes(content)}


def checksums(folder: Path) -> bytes:
    """Return what ``SHA256SUMS`` must hold: a line per other file as ``sha256sum`` has it, sorted by path."""
    return _sums({path: sha256_file(folder / path) for path in files_in(folder) if path != SUMS})


def _sums(hashes: Mapping[str, Json]) -> bytes:
    return "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(hashes.items())).encode("utf-8")


def head(facts: Facts, origin: Origin, visibility: str) -> dict[str, Json]:
    """Return what ``release.json`` begins with."""
    return {
        "format": FORMAT,
        "edition": EDITION,
        "kind": facts.form.kind,
        "schema_version": SCHEMA_VERSION,
        "visibility": visibility,
        "version": facts.options.version,
        "license": facts.licence.spdx_id,
        "created_at": facts.created_at,
        "about": facts.options.as_json(),
        **origin,
    }


def _times(run: FinishedRun) -> dict[str, Json]:
    """Return the times that records bear, where the run was extended and there is more than one."""
    added = {entry.added_at for entry in run.manifest.sources if entry.added_at is not None}
    return {"times": sorted({run.manifest.created_at, *added})} if added else {}


def tools() -> dict[str, str]:
    """Return the versions of Python and of the libraries on which the bytes of a release depend."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _TOOLS}}


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
