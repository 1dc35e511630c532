"""The documents of a release besides its data, made from the facts: by packing, and again by verifying.

What a document says and the data do not, ``release.json`` keeps: whoever has the folder can make it again.
"""

import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..schemas.canonical import Json, pretty_bytes, sha256_bytes, sha256_file
from ..schemas.katha import SCHEMA_VERSION
from .canary import canary_file
from .card import Described, render_card, render_licence
from .croissant import Entries, croissant_document
from .facts import Facts
from .layout import (
    CANARY,
    CARD,
    CHANGES,
    CROISSANT,
    FORMAT,
    KIND,
    LICENSE,
    MORAL_BALANCE,
    README,
    RELEASE,
    SOURCE_MANIFEST,
    STATISTICS,
    SUMS,
    WITHDRAWN,
    files_in,
)
from .run_folder import FinishedRun
from .selection import LeftOut, Selection
from .shapes import KATHA
from .subsets.stories import subset_files

RIGHTS_SCOPE = (
    "This manifest documents where the stories come from, so that they can be traced. It is no licence: it "
    "gives no right to copy or redistribute the text of any third-party edition, translation, reference "
    "website or publisher page."
)
# The libraries whose version can change the bytes of a release.
_TOOLS = ("fabula", "pyarrow", "jinja2", "pyyaml", "pydantic")


Origin = Mapping[str, Json]
"""Where a release comes from: tools, run, prompts and sources, as ``release.json`` keeps them."""
ORIGIN = ("tools", "run", "prompts", "inputs")


def story_documents(
    facts: Facts, origin: Origin, records: Mapping[str, Mapping[str, str]], files: Entries
) -> dict[str, bytes]:
    """Return path -> content of every document of a public release of stories.

    Args:
        facts: what is known about the release.
        origin: what :func:`origin_of` says of the run that it was packed from.
        records: JSONL file -> record id -> SHA-256 of the record's canonical JSON.
        files: size and hash of the files on disk; see :func:`sealed`.
    """
    card = render_card(facts).encode("utf-8")
    made = {
        STATISTICS: pretty_bytes(facts.statistics),
        MORAL_BALANCE: pretty_bytes(facts.balance),
        SOURCE_MANIFEST: pretty_bytes(source_manifest(facts, origin)),
        LICENSE: render_licence(facts).encode("utf-8"),
        CARD: card,
        README: card,
        **subset_files(facts.more.subsets),
    }
    if facts.more.canary:  # the first releases had none
        made[CANARY] = canary_file(facts.more.canary, facts.options.title)
    if facts.since is not None:
        made[CHANGES] = pretty_bytes(facts.since.changes)
    return sealed(
        made,
        files,
        (*KATHA.described, *facts.rows),
        partial(croissant_document, facts),
        partial(release_document, facts, origin, records),
    )


def sealed(
    made: Mapping[str, bytes],
    files: Entries,
    described: Collection[str],
    croissant: Callable[[Entries], Json],
    release: Callable[[Entries], Json],
) -> dict[str, bytes]:
    """Return documents together with those that state size and hash of the other files.

    Args:
        made: the documents that state none.
        files: size and hash of the files on disk; where a document is on disk already, it is that file whose
            hash is stated, so that one wrong document does not make all the others wrong.
        described: the files that the Croissant metadata describe.
        croissant: makes these from the files that are described.
        release: makes ``release.json`` from all files but itself and ``SHA256SUMS``.
    """
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


def source_manifest(facts: Facts, origin: Origin) -> dict[str, Json]:
    """Return the content of ``source_manifest.json``, over the public records."""
    return {
        "format": FORMAT,
        "rights_scope": RIGHTS_SCOPE,
        "collections": facts.composition.manifest(),
        "inputs": origin["inputs"],
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


def release_document(
    facts: Facts, origin: Origin, records: Mapping[str, Mapping[str, str]], files: Entries
) -> dict[str, Json]:
    """Return the content of the public ``release.json``.

    Args:
        facts: what is known about the release.
        origin: what :func:`origin_of` says of the run that it was packed from.
        records: JSONL file -> record id -> SHA-256 of the record's canonical JSON.
        files: path -> size and SHA-256 of every file but ``release.json`` and ``SHA256SUMS``.
    """
    previous = {} if facts.since is None else {"previous": facts.since.previous}
    commitments = {} if facts.more.commitments is None else {"commitments": dict(facts.more.commitments)}
    return {
        **head(facts, origin, KIND, "public"),
        **previous,
        **commitments,
        "canary": facts.more.canary,
        "counts": facts.composition.totals,
        "hidden_test": dict(facts.hidden),
        "splits": {split: facts.composition.by_split[split]["stories"] for split in facts.splits},
        "checks": {code: dict(sorted(row.items())) for code, row in facts.composition.checks.items()},
        "left_out": {
            "stories": [entry.as_json() for entry in facts.left_out],
            # Their ids are as secret as those of the stories that are packed.
            "hidden_test_stories": facts.left_out_hidden,
            "files": list(facts.left_out_files),
        },
        **withdrawn(facts.withdrawn, facts.withdrawn_hidden),
        "records": records,
        "files": files,
    }


def hidden_document(
    facts: Facts,
    origin: Origin,
    selection: Selection,
    records: Mapping[str, Mapping[str, str]],
    files: Entries,
) -> dict[str, Json]:
    """Return the ``release.json`` of the folder that holds the hidden-test stories."""
    left_out = selection.left_out_hidden
    return {
        **head(facts, origin, KIND, "hidden"),
        "canary": facts.more.canary,
        "counts": dict(facts.hidden),
        "left_out": {"stories": [entry.as_json() for entry in left_out], "files": []},
        **withdrawn(selection.withdrawn_hidden),
        "records": records,
        "files": files,
    }


def withdrawn(gone: Sequence[LeftOut], hidden: int = 0) -> dict[str, Json]:
    """Return what ``release.json`` says of stories that were taken out for good; nothing if there are none.

    Args:
        gone: those that may be named.
        hidden: how many more there are, of the hidden test split.
    """
    if not gone and not hidden:
        return {}
    stories = [{"id": entry.id, "reason": entry.reason} for entry in gone]
    return {WITHDRAWN: {"stories": stories, "hidden_test_stories": hidden}}


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


def head(facts: Described, origin: Origin, kind: str, visibility: str) -> dict[str, Json]:
    """Return what ``release.json`` begins with, whatever the kind of the release."""
    return {
        "format": FORMAT,
        "kind": kind,
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
