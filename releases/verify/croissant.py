"""What mlcroissant does not check in Croissant metadata, checked by us on the document itself."""

import fnmatch
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...schemas.canonical import Json, sha256_file
from ...schemas.layout import CROISSANT, DATA, files_in
from ...schemas.values import Issue
from ..form import ReleaseForm
from ..pack.croissant import CONFORMS_TO, CONTEXT

# The properties of the RAI vocabulary, version 1.0.
RAI = frozenset(
    f"rai:{name}"
    for name in (
        "dataCollection", "dataCollectionType", "dataCollectionMissingData", "dataCollectionRawData",
        "dataCollectionTimeframe", "dataImputationProtocol", "dataPreprocessingProtocol",
        "dataManipulationProtocol", "dataAnnotationProtocol", "dataAnnotationPlatform",
        "dataAnnotationAnalysis", "dataReleaseMaintenancePlan", "personalSensitiveInformation",
        "dataSocialImpact", "dataBiases", "dataLimitations", "dataUseCases", "annotationsPerItem",
        "annotatorDemographics", "machineAnnotationTools",
    )
)  # fmt: skip
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REQUIRED = ("name", "description", "url", "license", "version", "citeAs", "datePublished")


def check_croissant(folder: Path, metadata: Mapping[str, Any], form: ReleaseForm) -> Iterator[Issue]:
    """Yield what is wrong with the Croissant metadata of a release; damaged parts may also raise lookups."""
    yield from _check_dataset(metadata)
    distribution = metadata.get("distribution", [])
    nodes = [node for node in distribution if node.get("@type") == "cr:FileObject"]
    yield from _check_files(folder, nodes, form)
    sets = {node["@id"]: node for node in distribution if node.get("@type") == "cr:FileSet"}
    files = files_in(folder)
    for name, node in sets.items():
        if not any(fnmatch.fnmatchcase(path, str(node.get("includes"))) for path in files):
            yield _issue(name, "croissant-file", f"{node.get('includes')!r} matches no file", "name it")
    yield from _check_record_sets(metadata.get("recordSet", []), set(sets), form)
    twice = [name for name, count in Counter(_ids(metadata)).items() if count > 1]
    if twice:
        yield _issue("$", "croissant-id", f"used twice: {', '.join(sorted(twice))}", "make ids unique")


def _check_dataset(metadata: Mapping[str, Any]) -> Iterator[Issue]:
    for name in _REQUIRED:
        if not isinstance(metadata.get(name), str) or not metadata[name].strip():
            yield _issue(f"$.{name}", "croissant-property", "missing or empty", "fill it")
    creators = metadata.get("creator")
    if not isinstance(creators, list) or not creators or not all(creator.get("name") for creator in creators):
        yield _issue("$.creator", "croissant-property", "no creator with a name", "name who made the data")
    if metadata.get("conformsTo") != list(CONFORMS_TO):
        yield _issue("$.conformsTo", "croissant-property", f"not {list(CONFORMS_TO)}", "state both")
    if metadata.get("@context") != CONTEXT:
        yield _issue("$.@context", "croissant-property", "not the inline context of Croissant 1.1", "use it")
    odd = sorted(name for name in metadata if name.startswith("rai:") and name not in RAI)
    if odd:
        yield _issue("$", "croissant-rai", f"not in the RAI vocabulary: {', '.join(odd)}", "use its names")
    if not RAI & set(metadata):
        yield _issue("$", "croissant-rai", "no responsible-AI field", "describe collection, limits and uses")


def _check_files(folder: Path, nodes: list[Mapping[str, Any]], form: ReleaseForm) -> Iterator[Issue]:
    described = set()
    for node in nodes:
        where, path, sha256 = str(node.get("@id")), str(node.get("contentUrl")), str(node.get("sha256"))
        described.add(path)
        target = folder / path
        if not target.resolve().is_relative_to(folder.resolve()) or not target.is_file():
            yield _issue(
                where, "croissant-file", f"{path!r} is not a file of the release", "correct contentUrl"
            )
        elif not _SHA256.fullmatch(sha256) or sha256 != sha256_file(target):
            yield _issue(where, "croissant-hash", f"{sha256!r} is not the hash of {path}", "correct it")
    wanted = {path for path in files_in(folder) if path in form.described or path.startswith(f"{DATA}/")}
    for path in sorted(wanted - described):
        yield _issue("$.distribution", "croissant-file", f"{path} is not described", "add a FileObject")


def _check_record_sets(
    record_sets: list[Mapping[str, Any]], file_sets: set[str], form: ReleaseForm
) -> Iterator[Issue]:
    columns = {table.name: {column.name for column in table.columns} for table in form.tables}
    fields = {field["@id"] for node in record_sets for field in node["field"]}
    for node in record_sets:
        name = node["@id"]
        own = {field["@id"] for field in node["field"]}
        if own != {f"{name}/{column}" for column in columns.get(name, ())}:
            yield _issue(name, "croissant-field", "not the columns of its table", "list them all")
        if not node.get("key") or not own.issuperset(key["@id"] for key in node["key"]):
            yield _issue(name, "croissant-key", "the key is missing or names no field", "name its fields")
        for field in node["field"]:
            yield from _check_field(field, file_sets, fields)


def _check_field(field: Mapping[str, Any], file_sets: set[str], fields: set[str]) -> Iterator[Issue]:
    where, source = field["@id"], field.get("source") or {}
    if not field.get("dataType"):
        yield _issue(where, "croissant-field", "no data type", "state it")
    column = source.get("extract", {}).get("column")
    if source.get("fileSet", {}).get("@id") not in file_sets or column != where.partition("/")[2]:
        yield _issue(where, "croissant-source", "no source, or not its own column", "correct it")
    if "references" in field and field["references"].get("field", {}).get("@id") not in fields:
        yield _issue(where, "croissant-reference", "refers to a field that is not there", "correct it")


def _ids(node: Json) -> Iterator[str]:
    """Yield the ids that nodes define; an object with nothing but an id is a reference."""
    if isinstance(node, list):
        for member in node:
            yield from _ids(member)
    elif isinstance(node, dict):
        if "@id" in node and "@type" in node and len(node) > 1 and isinstance(node["@id"], str):
            yield node["@id"]
        for key, value in node.items():
            if key != "@context":
                yield from _ids(value)


def _issue(where: str, code: str, message: str, cure: str) -> Issue:
    return Issue(CROISSANT, where if where.startswith("$") else f"$ {where}", code, message, cure)
