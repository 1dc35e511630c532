"""Packing a finished run into a release folder.

The bytes depend on the run, the options and the versions of the tools only. Nothing here reads the clock.
"""

import platform
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...engine.lock import keep_private
from ...errors import ConfigError, InputError
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, pretty_bytes, sha256_bytes, sha256_file
from ...schemas.katha import SCHEMA_VERSION
from ...schemas.paths import (
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
    hidden_folder,
)
from ...schemas.plain_files import read_json
from ...schemas.text import tallies
from ...validators.report import as_user_error
from ..diff.form import Side
from ..diff.since import compare_with_previous, open_previous
from ..form import Facts, FinishedRun, HiddenTest, LeftOut, Packing, ReleaseForm
from ..hidden.commitments import salt_beside, write_salt
from ..hidden.marks import search_rows
from ..options import FEATURES, PackOptions, one_licence, option_named
from ..tables import Table
from ..target import finished_run, remove_half_placed, require_free, require_outside, staged, taken_back
from ..templates import Markup, render, render_plain, render_properties
from .front_matter import Entries, describe, front_matter, front_matter_text

# -- The documents of a release besides its data, made from the facts: by packing, and again by verifying
#
# What a document says and the data do not, ``release.json`` keeps: whoever has the folder can make it again.

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


# -- Packing


@dataclass(frozen=True, slots=True)
class PackResult(Tabular):
    """What was packed."""

    folder: Path  # the public release
    hidden: Path | None  # the folder of the hidden-test stories, if there are any; their salt lies beside it
    version: str  # its version
    counts: dict[str, int]  # how many records and parts of them are public
    left_out: tuple[LeftOut, ...]  # the records of the run that are in neither folder
    notes: tuple[str, ...]  # what a person should know, one sentence each

    def grids(self) -> Iterator[Grid]:
        """Yield what was packed, and what was left out."""
        note = " ".join(self.notes)
        title = f"{self.folder.name}, version {self.version}"
        yield Grid("packed", title, ("part", "public"), tuple(self.counts.items()), note)
        if self.left_out:
            columns = ("record", "status", "stage", "code", "reason")
            rows = ((out.id, out.status, out.stage, out.code, out.reason) for out in self.left_out)
            yield Grid("left_out", "Left out", columns, tuple(rows), words=(1, 2, 3, 4))

    def as_json(self) -> dict[str, Json]:
        """Return the result as plain JSON."""
        return {
            "folder": str(self.folder),
            "hidden": None if self.hidden is None else str(self.hidden),
            "salt": None if self.hidden is None else str(salt_beside(self.hidden)),
            "version": self.version,
            "counts": dict(self.counts),
            "left_out": [entry.as_json() for entry in self.left_out],
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """Return the result as lines for people."""
        counted = tallies(self.counts)
        lines = [f"packed version {self.version}: {counted}", f"  release: {self.folder}"]
        if self.hidden is not None:
            lines.append(f"  hidden test, do not publish it: {self.hidden}")
            lines.append(
                f"  salt of the hidden test: {salt_beside(self.hidden)}\n"
                "    keep it secret and backed up; without it nobody can prove what the hidden test was"
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def pack(run: Path, out: Path, options: PackOptions, form: ReleaseForm) -> PackResult:
    """Pack a finished run into a release folder (paper, A.15, Table 23)."""
    _require_features(options, form)
    packing = form.packing(form, options.checked())
    options = packing.options
    require_outside(out, run)
    require_free(out)
    hidden_out = hidden_folder(out.absolute())
    folders: tuple[Path, ...] = (out.absolute(),)
    if form.hidden is not None:
        remove_half_placed(out.absolute(), hidden_out)
        require_free(hidden_out)
        folders = (*folders, hidden_out)
    previous = None if options.since is None else open_previous(options.since, options)
    with finished_run(run, form) as finished:
        packing.take(finished)
        licence = one_licence(packing.licences, options, str(run))
        with taken_back() as made, staged(*folders, private={hidden_out}) as drafts:
            facts = packing.write(finished, drafts, licence)
            _require_models(facts)
            origin = origin_of(finished)
            if previous is not None:
                side = Side(drafts[0], release_document(facts, origin, {}), facts.statistics)
                since = compare_with_previous(
                    previous, side, form.changes, options, finished.folder, packing.hidden
                )
                facts = replace(facts, options=since.options, since=since)
            for name, content in documents_of(facts, origin, file_entries(drafts[0])).items():
                (drafts[0] / name).write_bytes(content)
            if form.hidden is not None and packing.hidden:
                _write_hidden(drafts[1], finished, facts, packing)
                salt = form.hidden.salt(facts)
                _require_untold(drafts[0], drafts[1], form.hidden, salt)
                if salt is not None and write_salt(salt_beside(hidden_out), salt):
                    made.append(salt_beside(hidden_out))
    return PackResult(
        folder=out,
        hidden=hidden_out if packing.hidden else None,
        version=facts.options.version,
        counts=facts.totals,
        left_out=tuple(packing.left_out),
        notes=(*(facts.since.notes if facts.since is not None else ()), *packing.notes(facts)),
    )


def _require_models(facts: Facts) -> None:
    """Refuse what stand-ins for models wrote, unless the options allow it."""
    if facts.stand_ins and not facts.options.allow_stand_in:
        raise ConfigError(
            "--allow-stand-in",
            what="a stand-in for a model wrote or checked records of this run, so they mean nothing: "
            + "; ".join(facts.stand_ins),
            fix="build with a model or with the rules; or, to try things out, pack them as what they are, "
            "with --allow-stand-in",
        )


def _require_features(options: PackOptions, form: ReleaseForm) -> None:
    """Refuse options that mean nothing to the kind."""
    usual = {each.name: each.default for each in fields(PackOptions)}
    for feature, (names, whose) in FEATURES.items():
        wrong = [name for name in names if getattr(options, name) != usual[name]]
        if wrong and not getattr(form, feature):
            flags = ", ".join(map(option_named, wrong))
            raise ConfigError(flags, what=f"{whose}; this is {form.what}", fix="leave it out")


def _write_hidden(draft: Path, run: FinishedRun, facts: Facts, packing: Packing) -> None:
    """Write ``release.json`` and checksums of the folder that holds the hidden-test records."""
    keep_private(run.folder)
    own = {} if facts.form.hidden is None else facts.form.hidden.document(facts, packing)
    document = {**head(facts, origin_of(run), "hidden"), **own, "files": file_entries(draft)}
    (draft / RELEASE).write_bytes(pretty_bytes(document))
    (draft / SUMS).write_bytes(checksums(draft))


def _require_untold(public: Path, hidden: Path, test: HiddenTest, salt: bytes | None) -> None:
    """Refuse to place folders of which verifying would say that the one tells of the other."""
    issues = [*test.check(public, read_json(public / RELEASE), hidden, salt), *search_rows(public)]
    problems = [as_user_error(issue) for issue in issues if issue.level == "error"]
    if problems:
        raise InputError(problems)
