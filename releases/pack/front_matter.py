"""What loaders read of a release, made from its facts: front matter of the card, and Croissant metadata."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from ...schemas.canonical import Json
from ...schemas.paths import DATA, parquet_path
from ..form import Facts, ReleaseForm
from ..parquet import features_of
from ..tables import Column, Table

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
