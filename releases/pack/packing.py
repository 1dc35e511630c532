"""Packing a finished run into a release folder.

The bytes depend on the run, the options and the versions of the tools only. Nothing here reads the clock.
"""

import platform
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import yaml

from ...engine.lock import keep_private
from ...errors import ConfigError, InputError
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, pretty_bytes, sha256_bytes, sha256_file
from ...schemas.katha import SCHEMA_VERSION
from ...schemas.paths import (
    CARD,
    CHANGES,
    CROISSANT,
    DATA,
    FORMAT,
    LICENSE,
    README,
    RELEASE,
    SOURCE_MANIFEST,
    STAND_INS,
    STATISTICS,
    SUMS,
    TASKS,
    files_in,
    hidden_folder,
    parquet_path,
)
from ...schemas.plain_files import read_json
from ...schemas.text import tallies
from ...validators.report import as_user_error
from ..diff.form import Side
from ..diff.since import compare_with_previous, open_previous
from ..form import Facts, FinishedRun, HiddenTest, LeftOut, Packing, ReleaseForm
from ..hidden.marks import salt_beside, search_rows, write_salt
from ..options import FEATURES, PackOptions, one_licence, option_named
from ..parquet import Column, Table, features_of
from ..target import (
    Markup,
    finished_run,
    remove_half_placed,
    render,
    render_plain,
    render_properties,
    require_free,
    require_outside,
    staged,
    taken_back,
)

# -- What loaders read of a release, made from its facts: front matter of the card, and Croissant metadata

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_SIZE_IDS = (*(label for _, label in _SIZES), "1M<n<10M")
_LANGUAGE = re.compile(r"[a-z]{2,3}", re.ASCII)


def size_category(rows: int) -> str:
    """Return the Hub's size category of a number of examples."""
    return next((label for limit, label in _SIZES if rows < limit), _SIZE_IDS[-1])


def front_matter(facts: Facts, files: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    """Return the front matter of a release: licence, languages, size, tasks, tables and where they are.

    ``files``: path -> size in bytes and hash, of its tables at least.
    """
    options, configs = facts.options, list(configurations(facts.rows, facts.form))
    said = {
        "annotations_creators": options.annotations_creators or _annotators(facts),
        "source_datasets": options.source_datasets,
        "task_ids": options.task_ids,
    }
    return {
        "pretty_name": facts.options.title,
        "license": facts.licence.hub_id,
        "language": language_codes(facts.languages),
        "size_categories": [size_category(facts.size)],
        "task_categories": list(facts.form.tasks),
        "tags": list(facts.form.tags),
        **{name: list(values) for name, values in said.items() if values},
        "version": options.version,
        "dataset_info": [_info(config, facts, files) for config in configs],
        "configs": configs,
    }


def _annotators(facts: Facts) -> tuple[str, ...]:
    """Return who annotated, where the records show it: machines alone."""
    makers, machines = facts.form.makers(facts)
    return ("machine-generated",) if machines and set(machines) == set(makers) else ()


def _info(
    config: Mapping[str, Json], facts: Facts, files: Mapping[str, Mapping[str, Json]]
) -> dict[str, Json]:
    table = next(table for table in facts.form.tables if table.name == config["config_name"])
    paths = {entry["split"]: entry["path"] for entry in config["data_files"]}
    return table_info(table, paths, facts.rows, facts.sizes, files)


def table_info(
    table: Table,
    paths: Mapping[str, str],
    rows: Mapping[str, int],
    sizes: Mapping[str, int],
    files: Mapping[str, Mapping[str, Json]],
) -> dict[str, Json]:
    """Return the entry of ``dataset_info`` of a table: its columns, and what its splits hold.

    ``paths``: split -> its Parquet file. ``rows``: path -> number of rows. ``sizes``: path -> bytes of their
    values. ``files``: path -> size in bytes of the file, and its hash.
    """
    return {
        "config_name": table.name,
        "features": [_listed(name, feature) for name, feature in features_of(table).items()],
        "splits": [
            {"name": split, "num_bytes": sizes[path], "num_examples": rows[path]}
            for split, path in paths.items()
        ],
        "download_size": sum(files[path]["bytes"] for path in paths.values()),
        "dataset_size": sum(sizes[path] for path in paths.values()),
    }


def _listed(name: str, feature: Json) -> dict[str, Json]:
    """Return a feature as front matter lists it."""
    if feature["_type"] == "Sequence":
        return {"name": name, "sequence": feature["feature"]["dtype"]}
    return {"name": name, "dtype": feature.get("dtype", "image")}


def language_codes(tags: Iterable[str]) -> list[str]:
    """Return the ISO 639 codes of language tags, each once, sorted."""
    return sorted({_language_code(tag) for tag in tags})


def _language_code(tag: str) -> str:
    """Return the ISO 639 code that a BCP 47 tag begins with, or und where it begins with none."""
    code = tag.partition("-")[0].lower()
    return code if _LANGUAGE.fullmatch(code) else "und"


def configurations(rows: Mapping[str, int], form: ReleaseForm) -> Iterator[dict[str, Json]]:
    """Yield a configuration for every table with rows, the first of them the default."""
    for position, table in enumerate(form.tables):
        files = [
            {"split": split, "path": parquet_path(table.name, split)}
            for split in form.split_files
            if rows.get(parquet_path(table.name, split))
        ]
        if files:
            default = {"default": True} if position == 0 else {}
            yield {"config_name": table.name, **default, "data_files": files}


def front_matter_text(values: Mapping[str, Json]) -> str:
    """Return front matter as YAML, in the order given."""
    return yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=100)


# -- Croissant 1.1 metadata with responsible-AI fields, made from the facts and the files of a release
#
# Record sets point at the Parquet tables: mlcroissant reads JSONL through pandas, which rewrites ids such as
# 00123. The document is built here and not by mlcroissant, which misspells two RAI properties.

Entries = Mapping[str, Mapping[str, Json]]
"""Path -> size and SHA-256 of a file."""

CONFORMS_TO = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
ENCODINGS = {
    ".jsonl": "application/jsonlines",
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".md": "text/markdown",
    "": "text/plain",
}

CONTEXT: dict[str, Json] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        term: f"cr:{term}"
        for term in (
            "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field",
            "fileProperty", "fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset",
            "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated",
            "replace", "samplingRate", "separator", "source", "subField", "transform",
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}  # fmt: skip
"""The standard context of Croissant 1.1, inline as mlcroissant wants it."""

_TYPES: dict[str, Json] = {
    "text": "sc:Text",
    "texts": "sc:Text",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "integers": "sc:Integer",
    "boolean": "sc:Boolean",
    "picture": "sc:ImageObject",
}


def describe(facts: Facts, responsible: Mapping[str, Json], files: Entries) -> dict[str, Json]:
    """Return the Croissant metadata of a release.

    ``files``: path of a data file -> its size and SHA-256, as ``release.json`` has them.
    """
    about = facts.options.as_json()
    present = [
        table
        for table in facts.form.tables
        if any(path.startswith(f"{DATA}/{table.name}/") for path in files)
    ]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": about["name"],
        "alternateName": about["title"],
        "description": facts.form.summary(facts),
        "conformsTo": list(CONFORMS_TO),
        "version": facts.options.version,
        "url": about["url"],
        "license": facts.licence.url,
        "creator": [{"@type": "sc:Organization", "name": name} for name in about["creators"]],
        "datePublished": facts.created_at,
        "inLanguage": facts.languages,
        "citeAs": about["citation"],
        "isLiveDataset": False,
        "keywords": list(facts.form.keywords),
        **{f"rai:{name}": value for name, value in responsible.items()},
        "distribution": [*_files(files), *(_file_set(table) for table in present)],
        "recordSet": [_record_set(table) for table in present],
    }


def _files(files: Entries) -> Iterator[dict[str, Json]]:
    for path in sorted(files):
        yield {
            "@type": "cr:FileObject",
            "@id": path,
            "name": path,
            "contentUrl": path,
            "contentSize": f"{files[path]['bytes']} B",
            "encodingFormat": ENCODINGS[Path(path).suffix],
            "sha256": files[path]["sha256"],
        }


def _file_set(table: Table) -> dict[str, Json]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{table.name}-files",
        "name": f"{table.name}-files",
        "description": f"The Parquet files of the table {table.name}, one per split.",
        "encodingFormat": ENCODINGS[".parquet"],
        "includes": f"{DATA}/{table.name}/*.parquet",
    }


def _record_set(table: Table) -> dict[str, Json]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.description,
        "key": [{"@id": f"{table.name}/{column}"} for column in table.key],
        "field": [_field(table, column) for column in table.columns],
    }


def _field(table: Table, column: Column) -> dict[str, Json]:
    field: dict[str, Json] = {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": column.description,
        # cr:Split alone is refused on a field that has a source.
        "dataType": ["sc:Text", "cr:Split"] if column.name == "split" else _TYPES[column.kind],
        "source": {"fileSet": {"@id": f"{table.name}-files"}, "extract": {"column": column.name}},
    }
    if column.kind == "picture":
        field["source"]["transform"] = {"jsonPath": "bytes"}
    if column.kind in ("texts", "integers"):
        field |= {"isArray": True, "arrayShape": str(column.length or -1)}
    if column.name in table.references:
        other, key = table.references[column.name]
        field["references"] = {"field": {"@id": f"{other}/{key}"}}
    return field


# -- The documents of a release besides its data, made from the facts: by packing, and again by verifying
#
# What a document says and the data do not, ``release.json`` keeps: whoever has the folder can make it again.

# The libraries whose version can change the bytes of a release.
_TOOLS = ("fabula", "pyarrow", "jinja2", "pyyaml", "pydantic")


EDITION = 5
"""Raised where the same facts make other documents than before; releases of the first do not say it."""
SINCE = {TASKS: 5}
"""Document -> the first edition whose releases have it, of those that came later."""
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
    return render_plain(
        facts.form.templates[1],
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        attribution=str(facts.licence.spdx_id).startswith("CC-BY"),
    )


def croissant_document(facts: Facts, files: Entries) -> dict[str, Json]:
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
