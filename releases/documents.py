"""The JSON documents of a release besides its data: source manifest, release.json and checksums."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..schemas.canonical import Json, sha256_file
from ..schemas.katha import SCHEMA_VERSION
from .card import Described
from .facts import Facts
from .layout import FORMAT, RELEASE, SUMS, WITHDRAWN, files_in
from .run_folder import FinishedRun
from .selection import LeftOut, Selection

RIGHTS_SCOPE = (
    "This manifest documents where the stories come from, so that they can be traced. It is no licence: it "
    "gives no right to copy or redistribute the text of any third-party edition, translation, reference "
    "website or publisher page."
)
# The libraries whose version can change the bytes of a release.
_TOOLS = ("fabula", "pyarrow", "jinja2", "pyyaml", "pydantic")


def source_manifest(facts: Facts, run: FinishedRun) -> dict[str, Json]:
    """Return the content of ``source_manifest.json``, over the public records."""
    return {
        "format": FORMAT,
        "rights_scope": RIGHTS_SCOPE,
        "collections": facts.composition.manifest(),
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
    facts: Facts, run: FinishedRun, records: Mapping[str, Mapping[str, str]], files: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the content of the public ``release.json``.

    Args:
        facts: what is known about the release.
        run: the run that it was packed from.
        records: JSONL file -> record id -> SHA-256 of the record's canonical JSON.
        files: path -> size and SHA-256 of every file but ``release.json`` and ``SHA256SUMS``.
    """
    previous = {} if facts.since is None else {"previous": facts.since.previous}
    commitments = {} if facts.more.commitments is None else {"commitments": dict(facts.more.commitments)}
    return {
        **head(facts, run, "public"),
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
    run: FinishedRun,
    selection: Selection,
    records: Mapping[str, Mapping[str, str]],
    files: Mapping[str, Json],
) -> dict[str, Json]:
    """Return the ``release.json`` of the folder that holds the hidden-test stories."""
    left_out = selection.left_out_hidden
    return {
        **head(facts, run, "hidden"),
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


def file_entries(folder: Path) -> dict[str, Json]:
    """Return path -> size and SHA-256 of every file in a folder but ``release.json`` and ``SHA256SUMS``."""
    return {
        path: {"bytes": (folder / path).stat().st_size, "sha256": sha256_file(folder / path)}
        for path in files_in(folder)
        if path not in (RELEASE, SUMS)
    }


def checksums(folder: Path) -> bytes:
    """Return what ``SHA256SUMS`` must hold: a line per other file as ``sha256sum`` has it, sorted by path."""
    lines = [f"{sha256_file(folder / path)}  {path}\n" for path in files_in(folder) if path != SUMS]
    return "".join(lines).encode("utf-8")


def head(facts: Described, run: FinishedRun, visibility: str) -> dict[str, Json]:
    """Return what ``release.json`` begins with, whatever the kind of the release."""
    return {
        "format": FORMAT,
        "kind": run.manifest.kind,
        "schema_version": SCHEMA_VERSION,
        "visibility": visibility,
        "version": facts.options.version,
        "license": facts.licence.spdx_id,
        "created_at": facts.created_at,
        "about": facts.options.as_json(),
        "tools": {"python": platform.python_version(), **_versions()},
        "run": {
            "fabula_version": run.manifest.fabula_version,
            "seed": run.manifest.seed,
            "settings": run.manifest.settings,
            "stages": [stage.as_json() for stage in run.manifest.stages],
            **_times(run),
        },
        "prompts": run.manifest.prompts,
    }


def _times(run: FinishedRun) -> dict[str, Json]:
    """Return the times that records bear, where the run was extended and there is more than one."""
    added = {entry.added_at for entry in run.manifest.sources if entry.added_at is not None}
    return {"times": sorted({run.manifest.created_at, *added})} if added else {}


def _versions() -> dict[str, str]:
    found = {}
    for name in _TOOLS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
