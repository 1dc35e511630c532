"""Opening what can be validated: a run folder, a release folder or a bare JSONL file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Self

from ...engine.manifest import NAME as RUN
from ...engine.manifest import read_manifest
from ...errors import InputError, UserError
from ...schemas.canonical import Json
from ...schemas.katha import SCHEMA_VERSION
from ...schemas.paths import ANNOTATIONS, FORMAT, PRODUCERS, RECORDS, RELEASE, REVIEWS, VARIANTS
from ...schemas.plain_files import alike, open_plain, reason_of
from ...schemas.text import quoted
from ...schemas.values import Issue
from ..lines import (
    BOM,
    Line,
    RawLine,
    Report,
    ignore,
    is_blank,
    parse_object,
    raw_lines,
    read_document,
    read_objects,
)
from ..report import as_user_error, issue, label, show
from ..view import Part, Story


@dataclass(slots=True)
class VariantIndex:
    """Byte offsets and line numbers of variants, by the story that they belong to.

    Only two numbers per variant are kept in memory; the text is read again when its story comes by.
    Use it as a context manager while reading.
    """

    _places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _path: Path | None = None
    _mixed: bool = False
    _handle: BinaryIO | None = None

    @property
    def absent(self) -> bool:
        """Whether the data set has no place for variants: no file of theirs, or no line in a mixed file."""
        return self._path is None or (self._mixed and not self._places)

    def read(self, path: Path, report: Report, *, only: bool) -> None:
        self._path, self._mixed = path, only
        for raw in raw_lines(path, path.name, ignore if only else report):
            if only and (b'"variant_id"' not in raw.text or b'"source_text"' in raw.text):
                continue
            where = f"{path.name}:{raw.number}"
            data = parse_object(raw, where, ignore if only else report)
            if data is not None and ("variant_id" in data or "base_story_id" in data):
                self._places.setdefault(str(data.get("base_story_id")), []).append((raw.offset, raw.number))
            elif data is not None and not only:
                message = f"expected a variant, found an object with the keys {show(sorted(data))}"
                report(issue("kind", where, "$", message))

    def __enter__(self) -> Self:
        if self._path is not None and self._handle is None:
            self._handle = open_plain(self._path, follow=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def of(self, story_id: str) -> tuple[Part, ...]:
        """Return the variants of a story, in file order."""
        return tuple(self._load(self._places.get(story_id, ())))

    def strays(self, story_ids: set[str]) -> Iterator[Part]:
        """Yield the variants of stories that are not among the given ones."""
        for story_id in sorted(set(self._places) - story_ids):
            yield from self._load(self._places[story_id])

    def _load(self, places: Sequence[tuple[int, int]]) -> Iterator[Part]:
        if self._handle is None or self._path is None:
            return
        for offset, number in places:
            self._handle.seek(offset)
            raw = RawLine(number, offset, self._handle.readline().removeprefix(BOM).strip(), True)
            data = parse_object(raw, "", ignore)
            if data is not None:
                yield Part(f"{self._path.name}:{number} {label(data.get('variant_id'))}", data)


Kind = Literal["run", "release", "file"]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set on disk; nothing is read before it is asked for.

    Attributes:
        path: the folder or file.
        kind: ``run``, ``release`` or ``file``.
        manifest: ``run.json`` or ``release.json``; empty where there is none.
    """

    path: Path
    kind: Kind
    manifest: Mapping[str, Json]

    @property
    def main_file(self) -> Path:
        if self.kind == "file":
            return self.path
        return self.path / (RECORDS if self.kind == "run" else ANNOTATIONS)

    def stories(self, report: Report, index: VariantIndex | None = None) -> Iterator[Story]:
        """Yield each story with its variants, in file order."""
        path = self.main_file
        if not path.is_file():
            report(issue("missing-file", path.name, "$", "the file is missing"))
            return
        with index if index is not None else self.variant_index(ignore) as variants:
            for line in read_objects(path, path.name, report):
                story = self._story(line, variants, report)
                if story is not None:
                    yield story

    def _story(self, line: Line, variants: VariantIndex, report: Report) -> Story | None:
        where, data, name = f"{self.main_file.name}:{line.number}", line.data, self.main_file.name
        shape = recognise(data)
        if shape == "envelope":
            if not check_envelope(data, where, report):
                return None
            data = data["payload"]
            shape = recognise(data) if isinstance(data, dict) else None
        if shape == "bundle" and isinstance(data["record"], dict):
            return _bundle(data, where, name, line.number)
        if shape == "record":
            where = f"{where} {label(data.get('story_id'))}"
            # Records without a single variant beside them cannot be judged by what their variants should be.
            broken = ("variants",) if variants.absent else ()
            return Story(where, data, variants.of(str(data.get("story_id"))), broken)
        if self.kind != "file" or shape not in ("variant", "review", "producers"):
            expected = "a record" if self.kind == "release" else "an envelope around a bundle"
            expected = "a record, variant, bundle or review" if self.kind == "file" else expected
            found = (
                f"an object with the keys {show(sorted(map(str, data)) if isinstance(data, dict) else data)}"
            )
            report(issue("kind", where, "$", f"expected {expected}, found {found}"))
        return None

    def variant_index(self, report: Report) -> VariantIndex:
        """Return where the variants of each story stand, where they are on lines of their own."""
        index = VariantIndex()
        path = self.path / VARIANTS if self.kind == "release" else self.path
        if self.kind == "release" and not path.is_file():
            report(issue("missing-file", VARIANTS, "$", "the file is missing"))
        elif self.kind != "run":
            index.read(path, report, only=self.kind == "file")
        return index

    def reviews(self, report: Report) -> Iterator[Part]:
        """Yield the summaries of human review (Table 16)."""
        path = self.path if self.kind == "file" else self.path / REVIEWS
        if path.is_file():
            wanted = b'"annotator_ids"' if self.kind == "file" else b""
            yield from _parts(path, "review", "story_id", report, wanted)

    def producers(self, report: Report) -> Iterator[Part]:
        """Yield the lines of a release's producer file."""
        path = self.path / PRODUCERS
        if self.kind == "release" and path.is_file():
            yield from _parts(path, "producers", "id", report, b"")

    def lines(self, name: str, report: Report) -> Iterator[Part]:
        """Yield the objects of another JSONL file of the folder, if it is there."""
        path = self.path / name
        if self.kind != "file" and path.is_file():
            for line in read_objects(path, name, report):
                yield Part(f"{name}:{line.number}", line.data)

    def document(self, name: str, report: Report) -> Json:
        """Return a JSON document of the folder, ``None`` if it is not there or cannot be parsed."""
        if self.kind == "file" or not (self.path / name).is_file():
            return None
        return read_document(self.path / name, name, report)


def recognise(data: Mapping[str, Json]) -> str | None:
    """Return envelope, bundle, record, variant, review or producers, by an object's keys; else ``None``."""
    if "payload" in data and "kind" in data:
        return "envelope"
    if "record" in data:
        return "bundle"
    if "scenes" in data or "source_text" in data or "story_text" in data:
        return "record"
    if "variant_id" in data or "base_story_id" in data:
        return "variant"
    if "annotator_ids" in data or "decision" in data:
        return "review"
    return "producers" if "fields" in data and "id" in data else None


def check_envelope(data: Mapping[str, Json], where: str, report: Report) -> bool:
    """Report an envelope that does not fit what is in it; return whether its content can be checked."""
    wanted: dict[str, Json] = {"kind": "katha", "schema_version": SCHEMA_VERSION}
    payload = data["payload"]
    record = payload.get("record") if isinstance(payload, dict) else None
    if isinstance(record, dict):
        wanted["id"] = record.get("story_id")
    for name, value in wanted.items():
        if data.get(name) != value:
            message = f"expected {show(value)}, found {show(data.get(name))}"
            report(issue("envelope", where, f"$.{name}", message))
            if name == "kind":
                return False
    return True


def _bundle(data: Mapping[str, Json], where: str, name: str, number: int) -> Story:
    record, variants = data["record"], data.get("variants")
    parts = [
        Part(f"{name}:{number} {label(variant.get('variant_id'))}", variant)
        for variant in (variants if isinstance(variants, list) else ())
        if isinstance(variant, dict)
    ]
    return Story(f"{where} {label(record.get('story_id'))}", record, parts, bundle=data)


def _parts(path: Path, shape: str, id_name: str, report: Report, wanted: bytes) -> Iterator[Part]:
    """Yield the objects of one shape; with ``wanted``, lines without it are passed over in silence."""
    for raw in raw_lines(path, path.name, ignore if wanted else report):
        if wanted not in raw.text:
            continue
        data = parse_object(raw, f"{path.name}:{raw.number}", ignore if wanted else report)
        if data is None:
            continue
        if recognise(data) == shape:
            yield Part(f"{path.name}:{raw.number} {label(data.get(id_name))}", data)
        elif not wanted:
            found = f"an object with the keys {show(sorted(data))}"
            report(
                issue("kind", f"{path.name}:{raw.number}", "$", f"this is not a {shape} line, but {found}")
            )


def open_dataset(path: Path) -> Dataset:
    """Open a run folder, a release folder or a bare JSONL file.

    A bare file may hold records, variants, bundles, envelopes and review summaries, mixed.
    """
    try:
        return _open(path)
    except OSError as error:
        raise _not_a_dataset(path, reason_of(error)) from error


def _open(path: Path) -> Dataset:
    if path.is_file():
        if is_blank(path):
            raise _not_a_dataset(path, "an empty file")
        return Dataset(path, "file", {})
    if not path.is_dir():
        raise _not_a_dataset(path, "a pipe or a device" if path.exists() else f"nothing there{alike(path)}")
    if (path / RUN).is_file() or (path / RECORDS).is_file():
        return _open_run(path)
    if (path / RELEASE).is_file() or (path / ANNOTATIONS).is_file():
        return _open_release(path)
    found = "an empty folder" if not any(path.iterdir()) else "a folder with none of their files"
    raise _not_a_dataset(path, found)


_OTHERS = {"shots": "shot scripts", "entities": "episodes", "events": "prompts"}
"""Kind of a run that makes no records of stories -> what it makes."""


def _open_run(path: Path) -> Dataset:
    manifest = read_manifest(path)
    if not (path / RECORDS).is_file() and manifest.kind in _OTHERS:
        raise UserError(
            str(path), what=f"this run has made no {_OTHERS[manifest.kind]}",
            fix=f"see what became of its items with `fabula run status {quoted(path)}`",
        )  # fmt: skip
    if not (path / RECORDS).is_file() and manifest.kind != "katha":
        raise UserError(
            str(path), what=f"a run of kind {manifest.kind} builds no records of stories",
            fix="give the folder of a `fabula build stories` run",
        )  # fmt: skip
    if not (path / RECORDS).is_file():
        raise UserError(
            str(path),
            what=f"this run is not finished: it has no {RECORDS}",
            fix=f"see what is left with `fabula run status {quoted(path)}`",
        )
    return Dataset(path, "run", manifest.as_json())


def _open_release(path: Path) -> Dataset:
    manifest = read_document(path / RELEASE, RELEASE, ignore)
    manifest = manifest if isinstance(manifest, dict) else {}
    made_with = manifest.get("format", FORMAT)
    if not isinstance(made_with, int) or made_with > FORMAT:
        raise UserError(
            str(path / RELEASE),
            what=f"format {made_with!r} is not known; this version reads up to {FORMAT}",
            fix="use the version of Fabula that made it, or a newer one",
        )
    if manifest.get("kind", "katha") != "katha":
        raise UserError(
            str(path), what=f"this is a release of kind {manifest['kind']}, not of stories",
            fix=f"check it with `fabula release verify {quoted(path)}`",
        )  # fmt: skip
    return Dataset(path, "release", manifest)


def _not_a_dataset(path: Path, found: str) -> UserError:
    return UserError(
        str(path),
        what=f"this is not a run folder, a release folder or a JSONL file: {found}",
        fix="give the folder that `fabula build` or `fabula release pack` wrote, or a file of records",
    )


def iter_bundles(run: Path) -> Iterator[dict[str, Json]]:
    """Yield the bundles of a finished run, in the order of its file."""
    problems: list[Issue] = []
    for story in open_dataset(run).stories(problems.append):
        yield dict(story.bundle)
    if problems:
        raise InputError([as_user_error(problem) for problem in problems])
