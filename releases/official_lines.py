"""The lines of an official package, fitted into our types."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import ConfigError
from ..schemas.base import Own
from ..schemas.canonical import Json, canonical_bytes, sha256_bytes
from ..schemas.ids import is_language_tag
from ..schemas.katha import StoryRecord
from ..schemas.text import normalize_text
from ..validators.codes import label
from ..validators.provenance import record_hashes
from ..validators.statistics import StatisticsCollector
from .composition import Composition
from .layout import ANNOTATIONS, HIDDEN_SPLIT, JSONL_FILES, PRODUCERS, VARIANTS
from .official import GOLD, IDS, TYPES, Package
from .official_fit import Misfit, NoteCounts, Notes, fit, plain
from .official_rows import Problems, Row, read_rows

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
        """Return the options after checking language and fields.

        Raises:
            ConfigError: a language tag has a wrong form, or a field is none of a record.
        """
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
    """The lines of a package; nothing is in them unless all of it can be held.

    Attributes:
        made: file -> id -> the line as a type of ours holds it, in canonical JSON.
        gold: file -> its lines in canonical JSON, in their order.
        sidecar: file and id -> what was set aside, filled in and replaced, in canonical JSON.
        came: file -> id -> SHA-256 of the line as it came, in canonical JSON.
        counts: what was done, field by field.
        composition: counts over the records; ``statistics`` and ``labels`` likewise.
        hidden: ids of the stories of the hidden test split, in file order.
        created: the times at which the records say they were made.
        licences: the licences that the records state.
    """

    made: dict[str, dict[str, bytes]] = field(default_factory=lambda: {name: {} for name in JSONL_FILES})
    gold: dict[str, list[bytes]] = field(default_factory=dict)
    sidecar: dict[tuple[str, str], bytes] = field(default_factory=dict)
    came: dict[str, dict[str, str]] = field(default_factory=dict)
    counts: NoteCounts = field(default_factory=NoteCounts)
    composition: Composition = field(default_factory=Composition)
    statistics: StatisticsCollector = field(default_factory=StatisticsCollector)
    labels: list[str | None] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    created: set[str] = field(default_factory=set)
    licences: set[str] = field(default_factory=set)


def read_lines(package: Package, options: ImportOptions) -> PackageLines:
    """Read every file of lines in a package.

    Raises:
        InputError: lines cannot be read or held; all of them are listed.
    """
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

    def read_records(self, name: str, own: type[Own]) -> None:
        """Fit the lines of a file into their type."""
        lines = self._lines
        made, came = lines.made.setdefault(name, {}), lines.came.setdefault(name, {})
        for row in self._rows(name, IDS[name]):
            notes, misfits = Notes(), list[Misfit]()
            data = self._prepared(row.data, notes) if name == ANNOTATIONS else row.data
            fitted = fit(own, data, notes, misfits)
            for one in misfits:
                where = f"{row.where} {label(row.id)} {plain(one.place)}"
                self._problems.add(where, one.expected, one.found, _CURE)
            if misfits:
                continue
            if name == ANNOTATIONS:
                self._fill_hashes(fitted, notes)
                self._count_record(fitted)
            elif name == VARIANTS:
                self._variants.setdefault(fitted["base_story_id"], []).append(fitted)
                lines.statistics.add_variant(fitted)
            elif name == PRODUCERS:
                lines.composition.add_producers(fitted["fields"])
                lines.statistics.add_producers(fitted["fields"])
            made[row.id], came[row.id] = canonical_bytes(fitted), sha256_bytes(row.content)
            lines.counts.add(name, notes)
            if notes:
                entry = {"file": name, "id": row.id, **notes.as_json()}
                lines.sidecar[name, row.id] = canonical_bytes(entry)

    def read_gold(self, name: str) -> None:
        """Take over the lines of a file as they are."""
        rows = [row.content for row in self._rows(name, None)]
        self._lines.gold[name] = rows
        self._lines.came[name] = {f"{at:09}": sha256_bytes(row) for at, row in enumerate(rows)}

    def settled(self) -> PackageLines:
        """Return the lines, if there are no problems."""
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

    def _prepared(self, record: dict[str, Json], notes: Notes) -> dict[str, Json]:
        """Return a record with the fields that the caller names, and with those that follow from others."""
        made = dict(record)
        for ours, theirs in self._options.fields.items():
            if ours not in made and theirs in made:
                made[ours] = made.pop(theirs)
                notes.renamed[ours] = theirs
        for name, value in {"language": self._options.language, **_texts(made)}.items():
            if name not in made:
                made[name] = notes.filled[f"/{name}"] = value
        if isinstance(provenance := made.get("provenance"), dict):
            ids = sorted(str(one["variant_id"]) for one in self._variants.get(str(made["story_id"]), ()))
            derived: dict[str, Json] = {"contrastive_variant_ids": ids, **dict.fromkeys(_HASHES, "")}
            absent = {name: value for name, value in derived.items() if name not in provenance}
            made["provenance"] = {**provenance, **absent}
            notes.filled |= {f"/provenance/{name}": value for name, value in absent.items()}
        return made

    def _fill_hashes(self, record: dict[str, Json], notes: Notes) -> None:
        """Put the hashes where the package states none."""
        absent = [name for name in _HASHES if f"/provenance/{name}" in notes.filled]
        if absent:
            hashes = record_hashes(record, self._variants.get(record["story_id"], ()))
            for name in absent:
                record["provenance"][name] = notes.filled[f"/provenance/{name}"] = hashes[name]

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
