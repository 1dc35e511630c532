"""Croissant 1.1 metadata with responsible-AI fields, made from the facts and the files of a release.

Record sets point at the Parquet tables: mlcroissant reads JSONL through pandas, which rewrites ids such as
00123. The document is built here and not by mlcroissant, which misspells two RAI properties.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...schemas.canonical import Json
from ...schemas.layout import DATA
from ..form import Facts
from ..tables import Column, Table

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
