"""Whether the documents of a release are those that its data and ``release.json`` make."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...schemas.canonical import Json
from ...schemas.paths import (
    CARD,
    CHANGES,
    CROISSANT,
    LICENSE,
    README,
    RELEASE,
    SOURCE_MANIFEST,
    STAND_INS,
    SUMS,
    WITHDRAWN,
    files_in,
)
from ...schemas.plain_files import parse_json, read_json, read_plain
from ...schemas.text import tallied
from ...schemas.values import Issue
from ..diff.form import changes_between, path_text
from ..diff.since import Since
from ..form import Facts, LeftOut, Reading
from ..options import METADATA, PackOptions, licence
from ..pack.packing import EDITION, ORIGIN, SINCE, Origin, documents_of, file_entries, tools
from ..parquet import measured, parse_front_matter

_CURE = "pack the run again"
_SHOWN = 3
_OF_DOCUMENTS = ("fabula", "jinja2", "pyyaml", "pydantic")


def made_by_these_tools(document: Mapping[str, Any]) -> bool:
    """Return whether this Fabula, with these libraries, would write the same documents byte for byte."""
    stated, ours = document.get("tools"), tools()
    same = isinstance(stated, dict) and all(stated.get(name) == ours[name] for name in _OF_DOCUMENTS)
    return same and document.get("edition") == EDITION


@dataclass(frozen=True, slots=True)
class Recounted:
    """What a release should hold."""

    documents: Mapping[str, bytes]  # path -> content of every document, made again
    data: frozenset[str]  # the files that are no documents
    facts: Facts  # what they were made from


def recount(folder: Path, document: Mapping[str, Any], reading: Reading, *, exact: bool) -> Recounted:
    """Make the documents of a public release again."""
    rows, sizes = measured(folder, reading.form.rows(folder))
    stated = Facts(
        form=reading.form,
        options=_options(document),
        licence=licence(str(document["license"])),
        created_at=str(document["created_at"]),
        statistics={},
        totals={},
        languages=[],
        left_out=sorted(
            LeftOut(**entry) for entry in document.get("left_out", {}).get(reading.form.unit, ())
        ),
        rows=rows,
        sizes=sizes,
        hashes={},
        canary=str(document.get("canary", "")),
        since=_since(folder, document),
        checked_by=document.get(STAND_INS, ()),
    )
    facts = reading.recount(stated, folder, document, exact=exact)
    made = documents_of(facts, _origin(folder, document), file_entries(folder))
    edition = document.get("edition", 1)
    made = {path: content for path, content in made.items() if SINCE.get(path, 1) <= edition}
    return Recounted(made, frozenset((*reading.data, *facts.rows)), facts)


def _options(document: Mapping[str, Any]) -> PackOptions:
    """Return the options that say of a release what it says of itself."""
    about = document["about"]
    listed: dict[str, Any] = {name: tuple(about.get(name, ())) for name in METADATA}
    made = PackOptions(
        version=str(document["version"]),
        name=about["name"],
        title=about["title"],
        creators=tuple(about["creators"]),
        url=about["url"],
        contact=about["contact"],
        repo=about.get("repo"),
        **listed,
    )
    given = None if about["citation"] == made.reference else about["citation"]
    return replace(made, citation=given).checked()


def _origin(folder: Path, document: Mapping[str, Any]) -> Origin:
    """Return where a release says that it comes from; its first versions named their sources elsewhere."""
    origin = {name: document[name] for name in ORIGIN if name in document}
    if "inputs" not in origin:
        origin["inputs"] = read_json(folder / SOURCE_MANIFEST)["inputs"]
    return origin


def _since(folder: Path, document: Mapping[str, Any]) -> Since | None:
    """Return what is known of the version before; only :mod:`.diff.check` can say whether it is true."""
    if "previous" not in document:
        return None
    changes = read_json(folder / CHANGES)
    return Since(PackOptions(str(document["version"])), document["previous"], changes, ())


def check_documents(
    folder: Path, document: Mapping[str, Any], again: Recounted, *, exact: bool
) -> Iterator[Issue]:
    """Yield every document that is not what the data and ``release.json`` make, and every file beside them.

    ``exact``: compare bytes; else the facts that another version's documents state.
    """
    there = set(files_in(folder))
    wanted = again.data | again.documents.keys()
    for path in sorted(wanted - there):
        yield Issue(path, "$", "file-missing", "the file is missing: every release has it", _CURE)
    for path in sorted(there - wanted):
        made_with = f"Fabula {(document.get('tools') or {}).get('fabula')}"
        cure = "remove it" if exact else f"remove it; if {made_with} put it there, verify with that version"
        yield Issue(path, "$", "file-extra", "a release has no such file, even if it is listed", cure)
    for name in sorted((again.documents.keys() & there) - {SUMS}):
        stated, made = read_plain(folder / name), again.documents[name]
        if not exact:
            for what in false_facts(name, stated, made, again.facts):
                yield Issue(name, "$", "document", what, _CURE)
        elif stated != made:
            yield Issue(name, "$", "document", _difference(name, stated, made), _CURE)
    if read_plain(folder / README) != read_plain(folder / CARD):
        yield Issue(README, "$", "readme", f"differs from {CARD}", f"copy {CARD} over it")


def check_left_out(document: Mapping[str, Json], unit: str) -> Iterator[Issue]:
    """Yield records that ``release.json`` lists both as packed and as left out or withdrawn."""
    packed = {name for hashes in document.get("records", {}).values() for name in hashes}
    for part, name, how in (("left_out", unit, "left out"), (WITHDRAWN, "stories", "withdrawn")):
        for entry in document.get(part, {}).get(name, ()):
            if entry["id"] in packed:
                message = f"{entry['id']} is named as {how}, and is in the release"
                yield Issue(RELEASE, f"$.{part}", "left-out", message, _CURE)


def _difference(name: str, stated: bytes, made: bytes) -> str:
    """Say where a document differs from what the data make; what it holds there is not quoted."""
    if name.endswith(".json"):
        changes = changes_between(parse_json(stated), parse_json(made))
        parts = [f"{part.path} should be {_short(part.new)}" for part in changes if part.kind != "removed"]
        parts += [f"{change.path} should not be there" for change in changes if change.kind == "removed"]
        more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
        return "; ".join(parts[:_SHOWN]) + more if parts else "not written as packing writes it"
    lines, wanted = stated.splitlines(keepends=True), made.splitlines(keepends=True)
    number = next((n for n, pair in enumerate(zip(lines, wanted, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        return f"{tallied(len(lines), 'lines')}; the data give {len(wanted)}"
    return f"line {number + 1} should be {_short(wanted[number].decode('utf-8', 'replace').rstrip())}"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_WORDING = frozenset(("schema_version", "rights_scope", "label"))
"""Keys of JSON documents whose values another version may word otherwise."""
_STATED_IN_FRONT = ("pretty_name", "license", "language", "size_categories", "configs")
_STATED_IN_CROISSANT = (
    "name", "alternateName", "version", "url", "license", "creator", "datePublished", "inLanguage", "citeAs",
)  # fmt: skip


def false_facts(name: str, stated: bytes, made: bytes, facts: Facts) -> Iterator[str]:
    """Yield what a document of another version states that is not so, one sentence each."""
    if name == CROISSANT:
        yield from _false_metadata(parse_json(stated), parse_json(made))
    elif name.endswith(".json"):
        yield from _false_values(parse_json(stated), parse_json(made), ())
    elif name.endswith(".jsonl"):
        if stated != made:
            yield "not what the data give"
    else:
        before, now = stated.decode("utf-8"), made.decode("utf-8")
        yield from _false_numbers(before, now)
        required = [text for text in _required(name, facts) if text in _plain(now)]
        yield from _missing(_plain(before), required)
        if name in (CARD, README):
            yield from _false_front(before, now)
            yield from _false_tables(before, now)


def _false_values(stated: Json, made: Json, steps: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(stated, dict) and isinstance(made, dict):
        for key in sorted((stated.keys() & made.keys()) - _WORDING):
            yield from _false_values(stated[key], made[key], (*steps, key))
    elif isinstance(stated, list) and isinstance(made, list) and len(stated) == len(made):
        for number, (stated_part, other) in enumerate(zip(stated, made, strict=True)):
            yield from _false_values(stated_part, other, (*steps, number))
    elif stated != made or isinstance(stated, bool) != isinstance(made, bool):
        yield f"{path_text(steps)} is not {_short(made)}, which the data give"


def _false_metadata(stated: Json, made: Json) -> Iterator[str]:
    for key in _STATED_IN_CROISSANT:
        if stated.get(key) != made[key]:
            yield f"$.{key} is not {_short(made[key])}, which the data give"
    for key in sorted(stated.keys() & made.keys()):
        if key == "description" or key.startswith("rai:"):
            for what in _false_numbers(_lines(stated[key]), _lines(made[key])):
                yield f"$.{key}: {what}"
    files, wanted = _described_files(stated), _described_files(made)
    for path in sorted(files.keys() & wanted.keys()):
        if files[path] != wanted[path]:
            yield f"$.distribution: {path} has another size or hash"


def _described_files(metadata: Json) -> dict[str, Json]:
    """Return path -> size and hash of the files that Croissant metadata describe."""
    nodes = (node for node in metadata["distribution"] if node["@type"] == "cr:FileObject")
    return {node["contentUrl"]: (node["contentSize"], node["sha256"]) for node in nodes}


def _false_front(stated: str, made: str) -> Iterator[str]:
    before, now = parse_front_matter(stated), parse_front_matter(made)
    for key in _STATED_IN_FRONT:
        if before.get(key) != now[key]:
            yield f"$.{key} of the front matter is not {_short(now[key])}, which the data give"


def _false_numbers(stated: str, made: str) -> Iterator[str]:
    """Yield sentences that differ in their numbers only."""
    known: dict[str, set[tuple[str, ...]]] = {}
    for line in _sentences(made):
        known.setdefault(_NUMBER.sub("#", line), set()).add(tuple(_NUMBER.findall(line)))
    for line in _sentences(stated):
        wanted = known.get(_NUMBER.sub("#", line))
        if wanted is not None and tuple(_NUMBER.findall(line)) not in wanted:
            yield f"the data give other numbers than {_short(line)}"


def _sentences(text: str) -> Iterator[str]:
    return (_plain(line) for line in text.splitlines() if line.strip() and not line.startswith("|"))


def _false_tables(stated: str, made: str) -> Iterator[str]:
    before, now = _tables(stated), _tables(made)
    for title in sorted(before.keys() & now.keys()):
        if sorted(before[title]) != sorted(now[title]):
            yield f"the table {' '.join(filter(None, title))} has other rows than the data give"


def _tables(card: str) -> dict[tuple[str, str], list[str]]:
    """Return title and header -> rows of the tables that have a column of numbers."""
    tables: dict[tuple[str, str], list[str]] = {}
    title, rows = "", list[str]()
    lines = card.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("#", "**")):
            title = line
        if line.startswith("|---") and "---:" in line:
            rows = tables.setdefault((title, lines[number - 1]), [])
        elif line.startswith("|"):
            rows.append(_plain(line))
        else:
            rows = []
    return tables


def _missing(stated: str, required: Sequence[str]) -> Iterator[str]:
    for text in required:
        if text not in stated:
            yield f"does not state {_short(text)}"


def _required(name: str, facts: Facts) -> list[str]:
    """Return the names that a document states, as they read; not every kind states all of them."""
    about, licence = facts.options, facts.licence
    texts = [str(licence.spdx_id), str(licence.url), about.version]
    if name == LICENSE:
        texts += [about.title, *about.creators]
    elif facts.canary:
        texts += [facts.canary]
    if name in (CARD, README):
        texts += [f"# {about.title}", about.reference]
    return [_plain(text) for text in texts]


def _lines(value: Json) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _plain(text: str) -> str:
    """Return a text as it reads: versions escape it for Markdown in different ways."""
    return " ".join(html.unescape(text.replace("\\", "")).split())
