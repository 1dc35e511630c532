"""Importing an official KathaBench package: a folder that loads, validates and is judged as a release is.

Every line is fitted into the type of its file. Every file of the package is kept beside, byte for byte, so
that :func:`.package_export.export_package` gives it back.
"""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ConfigError, InputError, TargetError, UserError
from ...schemas.canonical import Json, canonical_bytes, pretty_bytes, sha256_bytes, sha256_file
from ...schemas.katha import SCHEMA_VERSION, StoryRecord
from ...schemas.paths import (
    ANNOTATIONS,
    CROISSANT,
    FORMAT,
    HIDDEN_SPLIT,
    IMPORTED,
    JSONL_FILES,
    MORAL_BALANCE,
    PRODUCERS,
    RELEASE,
    STATISTICS,
    SUMS,
    VARIANTS,
    WHOLE,
)
from ...schemas.plain_files import open_plain, reason_of
from ...schemas.text import is_language_tag, normalize_text, quoted, slug, tallied, tallies
from ...schemas.values import Issue, Own
from ...validators.katha.field_rules import record_hashes
from ...validators.lines import ignore, read_document, read_objects
from ...validators.report import label, show
from ...validators.statistics import HiddenCounts, StatisticsCollector, hidden_counts, moral_balance
from ..hub.client import looks_like_reference
from ..loading import KIND
from ..options import SEMVER, PackOptions, licence
from ..pack.packing import checksums, file_entries
from ..target import require_free, staged
from .package import GOLD, IDS, ORIGINALS, TYPES, Package, copy_file, fit, open_package, plain
from .selection import Composition

# -- The lines of an official package, fitted into our types

LISTED = 1000
"""Most problems that are gathered; a package of another kind is wrong in every line."""

DEEPEST = 100
"""Most levels of nesting in a line; readers elsewhere have limits of their own."""

_TOLERATED = ("byte-order-mark",)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a package."""

    where: str  # file and line, for problems
    id: str  # the text in the field that names it; empty where lines have no such field
    data: dict[str, Json]  # the object
    content: bytes  # its canonical JSON


class Problems:
    """The problems of a package, up to :data:`LISTED`."""

    def __init__(self) -> None:
        self.found: list[UserError] = []

    def add(self, where: str, expected: str, found: str, fix: str) -> None:
        self.note(UserError(where, expected=expected, found=found, fix=fix))

    def note(self, problem: UserError) -> None:
        """Note one problem that is told already."""
        self.found.append(problem)
        if len(self.found) >= LISTED:
            self.settle()

    def add_issue(self, issue: Issue) -> None:
        """Note what reading a file reports, unless nothing is lost by it."""
        if issue.code not in _TOLERATED:
            self.add(issue.where, "one JSON object a line, in UTF-8", issue.message, issue.cure)

    def settle(self) -> None:
        """Go on if there are none."""
        if self.found:
            raise InputError(self.found)


def read_rows(path: Path, name: str, key: str | None, problems: Problems) -> Iterator[Row]:
    """Yield the lines of a file that can be read, in its order.

    Blank lines, a byte order mark and any form of line end are passed over; values are not touched.

    ``key``: the field that names a line, whose values must be texts, each once; None where lines have none.
    """
    if _starts_with(path, _UTF16):
        problems.add(name, "a file in UTF-8", "one in UTF-16", "save it as UTF-8")
        return
    seen: dict[str, str] = {}
    for line in read_objects(path, name, problems.add_issue):
        where = f"{name}:{line.number}"
        if _deeper(line.data, DEEPEST):
            problems.add(where, f"at most {DEEPEST} levels of nesting", "more", "keep such values elsewhere")
            continue
        try:
            content = canonical_bytes(line.data)
        except ValueError as error:
            problems.add(where, "values that JSON can carry", str(error), "write the number or text again")
            continue
        row_id = "" if key is None else line.data.get(key)
        if not isinstance(row_id, str) or (key and not row_id):
            problems.add(where, f"a text in {key}", show(row_id), "name the line by it")
        elif key and row_id in seen:
            problems.add(
                where, f"each {key} once", f"{show(row_id)}, as {seen[row_id]} has", "keep one of the two"
            )
        else:
            seen[row_id] = where
            yield Row(where, row_id, line.data, content)


def _deeper(value: Json, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [child for one in level if isinstance(one, (dict, list)) for child in _children(one)]
        if not level:
            return False
    return True


def _children(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value


def _starts_with(path: Path, marks: tuple[bytes, ...]) -> bool:
    try:
        with open_plain(path, follow=True) as handle:
            return handle.read(2) in marks
    except OSError as error:
        found, fix = reason_of(error), "check its permissions"
        raise InputError.one(str(path), what=f"the file cannot be read: {found}", fix=fix) from error


_CURE = "correct it in a copy of the package, and import that"
_HASHES = ("source_prompt_hash", "source_annotations_sha256", "source_contrastives_sha256")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What a person says about a package.

    Attributes:
        name: short name of the data set [that of the folder or repository].
        version: semantic version [that of the package's metadata, else 0.0.0].
        language: language tag of stories whose records do not name one.
        fields: field of ours -> field of the package that holds its value, for whole records.
    """

    name: str | None = None
    version: str | None = None
    language: str = "en"
    fields: Mapping[str, str] = field(default_factory=dict)

    def checked(self) -> "ImportOptions":
        """Return the options after checking language and fields."""
        known = StoryRecord.model_fields
        if not is_language_tag(self.language):
            raise ConfigError(
                "--language",
                what=f"{self.language!r} is not a language tag",
                fix="give the tag of the stories' language, such as en",
            )
        for ours, theirs in self.fields.items():
            if ours not in known or theirs in known or not theirs:
                raise ConfigError(
                    "--field",
                    what=f"{ours}={theirs} does not fit: OURS must be one of {', '.join(known)}, and "
                    "THEIRS none of them",
                    fix="write OURS=THEIRS, our field first, for example story_text=story",
                )
        return self


@dataclass(slots=True)
class PackageLines:
    """The lines of a package; nothing is in them unless all of it can be held."""

    # file -> id -> the line as a type of ours holds it, in canonical JSON
    made: dict[str, dict[str, bytes]] = field(default_factory=lambda: {name: {} for name in JSONL_FILES})
    # file -> its lines in canonical JSON, in their order
    gold: dict[str, list[bytes]] = field(default_factory=dict)
    # file and field, positions in lists as ``*`` -> how many lines have it; no type of ours does
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    # counts over the records; ``statistics`` and ``labels`` likewise
    composition: Composition = field(default_factory=Composition)
    statistics: StatisticsCollector = field(default_factory=StatisticsCollector)
    labels: list[str | None] = field(default_factory=list)
    # ids of the stories of the hidden test split, in file order
    hidden: list[str] = field(default_factory=list)
    created: set[str] = field(default_factory=set)  # the times at which the records say they were made
    licences: set[str] = field(default_factory=set)  # the licences that the records state


def read_lines(package: Package, options: ImportOptions) -> PackageLines:
    """Read every file of lines in a package."""
    reader = _Reader(package, options)
    for name, own in TYPES.items():
        if name in package.files:
            reader.read_records(name, own)
    for name in GOLD:
        if name in package.files:
            reader.read_gold(name)
    return reader.settled()


class _Reader:
    def __init__(self, package: Package, options: ImportOptions) -> None:
        self._package = package
        self._options = options
        self._problems = Problems()
        self._variants: dict[str, list[dict[str, Json]]] = {}
        self._splits: dict[str, str] = {}
        self._lines = PackageLines()
        self._renamed = frozenset(options.fields.values())

    def read_records(self, name: str, own: type[Own]) -> None:
        """Fit the lines of a file into their type."""
        lines = self._lines
        made = lines.made.setdefault(name, {})
        for row in self._rows(name, IDS[name]):
            unknown: set[str] = set()
            data = self._prepared(row.data) if name == ANNOTATIONS else row.data
            fitted = fit(own, data, unknown)
            if isinstance(fitted, list):
                for place, reason in fitted:
                    where = f"{row.where} {label(row.id)} {plain(place)}"
                    self._problems.note(UserError(where, what=reason, fix=_CURE))
                continue
            record = fitted.as_json()
            if name == ANNOTATIONS:
                self._fill_hashes(record, row.data)
                self._count_record(record)
            elif name == VARIANTS:
                self._variants.setdefault(record["base_story_id"], []).append(record)
                lines.statistics.add_variant(record)
            elif name == PRODUCERS:
                lines.composition.add_producers(record["fields"])
                lines.statistics.add_producers(record["fields"], row.id)
            made[row.id] = canonical_bytes(record)
            lines.unknown.update((name, place) for place in unknown - {f"/{one}" for one in self._renamed})

    def read_gold(self, name: str) -> None:
        """Take over the lines of a file as they are."""
        self._lines.gold[name] = [row.content for row in self._rows(name, None)]

    def settled(self) -> PackageLines:
        made, composition = self._lines.made, self._lines.composition
        if not self._problems.found and not made[ANNOTATIONS]:
            self._problems.add(ANNOTATIONS, "at least one story", "none", "give the whole package")
        self._problems.settle()
        for base, variants in self._variants.items():
            if base in self._splits:
                composition.add_variants(self._splits[base], len(variants))
        if PRODUCERS not in self._package.files:
            for story_id in made[ANNOTATIONS]:
                made[PRODUCERS][story_id] = canonical_bytes({"id": story_id, "fields": []})
        return self._lines

    def _rows(self, name: str, key: str | None) -> Iterator[Row]:
        return read_rows(self._package.files[name], name, key, self._problems)

    def _prepared(self, record: dict[str, Json]) -> dict[str, Json]:
        """Return a record with the fields that the caller names, and with those that follow from others."""
        made = dict(record)
        for ours, theirs in self._options.fields.items():
            if theirs in made:
                made.setdefault(ours, made[theirs])
        made = {"language": self._options.language, **_texts(made), **made}
        if isinstance(provenance := made.get("provenance"), dict):
            ids = sorted(str(one["variant_id"]) for one in self._variants.get(str(made["story_id"]), ()))
            derived: dict[str, Json] = {"contrastive_variant_ids": ids, **dict.fromkeys(_HASHES, "")}
            made["provenance"] = derived | provenance
        return made

    def _fill_hashes(self, record: dict[str, Json], came: Mapping[str, Json]) -> None:
        """Put the hashes where the package states none."""
        absent = [name for name in _HASHES if name not in came["provenance"]]
        if absent:
            hashes = record_hashes(record, self._variants.get(record["story_id"], ()))
            record["provenance"] |= {name: hashes[name] for name in absent}

    def _count_record(self, record: dict[str, Json]) -> None:
        lines = self._lines
        self._splits[record["story_id"]] = record["split"]
        lines.composition.add_record(record)
        lines.statistics.add_record(record)
        lines.labels.append(record["moral_label"])
        lines.created.add(record["provenance"]["created_at"])
        lines.licences.add(record["provenance"]["dataset_license"])
        if record["split"] == HIDDEN_SPLIT:
            lines.hidden.append(record["story_id"])


def _texts(record: Mapping[str, Json]) -> dict[str, Json]:
    """Return both story texts, one from the other or both from the scenes; nothing where there is neither."""
    known = [record[name] for name in ("source_text", "story_text") if isinstance(record.get(name), str)]
    if not known:
        scenes = record.get("scenes")
        texts = [text for one in _objects(scenes) if isinstance(text := one.get("scene_text"), str)]
        if not texts or len(texts) != len(_objects(scenes)):
            return {}
        known = [" ".join(texts)]
    return {"source_text": known[0], "story_text": normalize_text(known[0])}


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


# -- The import

_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Imported:
    """What was imported."""

    folder: Path  # the folder made
    version: str  # the version that it states
    counts: dict[str, int]  # how many stories, scenes, transitions, questions and variants
    # file, field and count of what no type of ours has; it stands in ``official/``
    fields: tuple[dict[str, Json], ...]
    hidden: int  # how many stories of the hidden test split the package holds among the others
    missing: tuple[str, ...]  # the files of Table 23 that the package does not have
    skipped: tuple[str, ...]  # files and folders that begin with a dot, which are not taken over

    def as_json(self) -> dict[str, Json]:
        return {
            "folder": str(self.folder),
            "version": self.version,
            "counts": dict(self.counts),
            "fields": list(self.fields),
            "hidden_in_place": self.hidden,
            "missing": list(self.missing),
            "skipped": list(self.skipped),
        }

    def lines(self) -> Iterable[str]:
        counted = tallies(self.counts)
        yield f"{self.folder}: version {self.version}; {counted}"
        for one in self.fields[:_SHOWN]:
            yield f"  only in {ORIGINALS}/: {one['file']} {plain(one['field'])} ({one['count']})"
        if len(self.fields) > _SHOWN:
            yield f"  ... and {tallied(len(self.fields) - _SHOWN, 'more fields')}; {RELEASE} lists them all"
        if self.hidden:
            some = (
                "1 hidden-test story stays" if self.hidden == 1 else f"{self.hidden} hidden-test stories stay"
            )
            yield f"  {some} among the others; {RELEASE} lists them"
        if self.missing:
            yield f"  not in the package: {', '.join(self.missing)}"
        if self.skipped:
            yield f"  not taken over: {plain(', '.join(self.skipped))}"
        yield f"next: fabula validate {quoted(self.folder)}"


def import_package(
    source: str | Path,
    out: str | Path,
    options: ImportOptions | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Import an official package from a folder or a repository on a Hub.

    ``source``: the folder with the files of Table 23, of which ``annotations.jsonl`` must be there; or a
    version on a Hub, such as ``user/package@1.0``. A folder of that name goes first.

    Returned: what was imported. The same package and options give the same bytes.
    """
    chosen = (options or ImportOptions()).checked()
    target = Path(out)
    require_free(target)
    package = _found(source, tell)
    if target.absolute().resolve().is_relative_to(package.folder.resolve()):
        raise TargetError(
            str(out),
            what=f"it lies inside the package {package.folder}",
            fix="choose another --out",
        )
    about = described(package, chosen)
    lines = read_lines(package, chosen)
    with staged(target.absolute()) as (draft,):
        _write_data(draft, package, lines)
        hidden = _write_statistics(draft, package, lines)
        document = import_document(draft, package, lines, about, hidden)
        (draft / RELEASE).write_bytes(pretty_bytes(document))
        (draft / SUMS).write_bytes(checksums(draft))
    return Imported(
        folder=target,
        version=about.version,
        counts=lines.composition.totals,
        fields=tuple(_unknown(lines)),
        hidden=len(lines.hidden),
        missing=package.missing,
        skipped=package.skipped,
    )


def _found(source: str | Path, tell: Callable[[str], None]) -> Package:
    """Return the package in a folder, or in a repository that is fetched into the cache."""
    if Path(source).exists() or not looks_like_reference(str(source)):
        return open_package(Path(source))
    from ..hub.fetch import fetch_repository

    fetched = fetch_repository(str(source), tell=tell)
    return open_package(fetched.folder, f"{fetched.reference.repo}@{fetched.commit}")


def _write_data(draft: Path, package: Package, lines: PackageLines) -> None:
    for name, rows in lines.made.items():
        _write_lines(draft / name, (rows[row_id] for row_id in sorted(rows)))
    for name, content in lines.gold.items():
        _write_lines(draft / name, content)
    for name, path in package.files.items():
        copy_file(path, draft / ORIGINALS / name)


def _unknown(lines: PackageLines) -> list[dict[str, Json]]:
    return [
        {"file": file, "field": place, "count": count}
        for (file, place), count in sorted(lines.unknown.items())
    ]


def _write_statistics(draft: Path, package: Package, lines: PackageLines) -> HiddenCounts:
    """Write the statistics of the records; return how many hidden stories there are elsewhere."""
    # Where a package holds its hidden stories, they are counted among the others.
    hidden = HiddenCounts() if lines.hidden else hidden_counts(metadata(package, STATISTICS))
    (draft / STATISTICS).write_bytes(pretty_bytes(lines.statistics.result(hidden)))
    (draft / MORAL_BALANCE).write_bytes(pretty_bytes(moral_balance(lines.labels)))
    return hidden


def _write_lines(path: Path, rows: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(row + b"\n" for row in rows)


UNKNOWN_VERSION = "0.0.0"
"""The version of a package that states none in its metadata."""

_MOST = 16 * 1024 * 1024


def metadata(package: Package, name: str) -> Json:
    """Return a JSON document of the package, ``None`` if it is not there, is huge or cannot be parsed."""
    path = package.files.get(name)
    return None if path is None or path.stat().st_size > _MOST else read_document(path, name, ignore)


def described(package: Package, options: ImportOptions) -> PackOptions:
    """Return version, name and makers of a package, as the caller or its Croissant metadata state them."""
    document = metadata(package, CROISSANT)
    stated: dict[str, Any] = document if isinstance(document, dict) else {}
    version = stated.get("version")
    version = version if isinstance(version, str) and SEMVER.fullmatch(version) else UNKNOWN_VERSION
    makers = stated.get("creator")
    makers = makers if isinstance(makers, list) else [makers]
    names = [one.get("name") for one in makers if isinstance(one, dict)]
    creators = tuple(one for one in names if isinstance(one, str) and one.strip() and one.isprintable())
    name = options.name or slug(package.name) or "imported"
    return PackOptions(
        options.version or version,
        name=name,
        title=name,
        creators=creators or ("not stated in the package",),
    ).checked()


def import_document(
    draft: Path, package: Package, lines: PackageLines, about: PackOptions, hidden: HiddenCounts
) -> dict[str, Json]:
    """Return the content of ``release.json``."""
    return {
        "format": FORMAT,
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "visibility": WHOLE if lines.hidden else "public",
        "version": about.version,
        "license": _licence(lines.licences),
        "created_at": next(iter(lines.created)) if len(lines.created) == 1 else None,
        "about": about.as_json(),
        "tools": {"python": platform.python_version(), "fabula": _own_version()},
        "prompts": {},
        IMPORTED: {
            "from": package.origin,
            "files": {
                name: {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
                for name, path in sorted(package.files.items())
            },
            "missing": list(package.missing),
            "skipped": list(package.skipped),
            "fields": _unknown(lines),
            "hidden_in_place": {"stories": len(lines.hidden), "ids": sorted(lines.hidden)},
        },
        "counts": lines.composition.totals,
        "hidden_test": hidden.as_json(),
        "splits": {split: counts["stories"] for split, counts in lines.composition.by_split.items()},
        "checks": {},
        "left_out": {
            "stories": [],
            "hidden_test_stories": 0,
            "files": [{"name": name, "reason": "not in the package"} for name in package.missing],
        },
        "records": {
            name: {row_id: sha256_bytes(content) for row_id, content in lines.made[name].items()}
            for name in JSONL_FILES
        },
        "files": file_entries(draft),
    }


def _licence(stated: set[str]) -> str | None:
    """Return the licence that all records state, by its SPDX id where it has one."""
    if len(stated) != 1:
        return None
    (name,) = stated
    try:
        return licence(name).spdx_id
    except ConfigError:
        return name


def _own_version() -> str:
    from ... import version

    return version.__version__
