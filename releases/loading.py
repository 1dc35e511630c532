"""Reading a release as typed records; ``release.json`` has to have its shape, whoever made it."""

import errno
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr, ValidationError

from ..errors import FabulaError, InputError, UserError, mismatch
from ..pages.grid import Grid, Tabular
from ..schemas.canonical import Json
from ..schemas.katha import ProducerLine, StoryRecord, Variant
from ..schemas.paths import ANNOTATIONS, CROISSANT, FORMAT, PRODUCERS, RELEASE, VARIANTS, format_path
from ..schemas.plain_files import alike, open_plain, read_json, read_plain, reason_of, type_reason
from ..schemas.values import Issue, vocabulary
from ..validators.report import IssueBin, show

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import DatasetDict

KIND = "katha"
"""Kind of the releases that are stories themselves."""
Hashes = dict[StrictStr, StrictStr]
Counts = dict[StrictStr, StrictInt]


class _Part(BaseModel):
    """Part of a document; what is not named here may be anything, what is absent is asked for elsewhere."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Version(_Part):
    version: StrictStr
    sha256: StrictStr | None = None


class _Commitments(_Part):
    scheme: StrictStr
    salt: StrictStr
    values: list[StrictStr]


class _About(_Part):
    name: StrictStr
    title: StrictStr
    creators: list[StrictStr]
    url: StrictStr | None = None
    contact: StrictStr | None = None
    citation: StrictStr | None = None


class _Story(_Part):
    id: StrictStr


class _Withdrawn(_Part):
    stories: list[_Story] = []
    hidden_test_stories: StrictInt = 0


class _LeftOut(_Withdrawn):
    prompts: list[_Story] = []
    episodes: list[_Story] = []
    files: list[dict[StrictStr, StrictStr]] = []


class _Imported(_Part):
    files: dict[StrictStr, dict[StrictStr, Any]] = {}
    missing: list[StrictStr] = []
    skipped: list[Any] = []
    fields: list[dict[StrictStr, Any]] = []
    hidden_in_place: dict[StrictStr, Any] = {}


class _File(_Part):
    bytes: StrictInt
    sha256: StrictStr


class _Document(_Part):
    format: StrictInt
    kind: StrictStr
    version: StrictStr
    schema_version: StrictStr | None = None
    visibility: StrictStr | None = None
    license: StrictStr | None = None
    created_at: StrictStr | None = None
    about: _About | None = None
    tools: Hashes = {}
    run: dict[StrictStr, Any] = {}
    prompts: dict[StrictStr, Any] = {}
    previous: _Version | None = None
    commitments: _Commitments | None = None
    canary: StrictStr | None = None
    counts: Counts = {}
    hidden_test: Counts = {}
    splits: Counts = {}
    checks: dict[StrictStr, Counts] = {}
    left_out: _LeftOut = _LeftOut()
    withdrawn: _Withdrawn | None = None
    imported: _Imported | None = None
    records: dict[StrictStr, Hashes] = {}
    files: dict[StrictStr, _File] = {}


def misshapen(document: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    """Yield the JSON path of every value of a ``release.json`` that is of another kind, and what is wrong."""
    try:
        _Document.model_validate(document)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            yield format_path(detail["loc"]), type_reason(detail)
    if isinstance(document, dict):
        for name in _NOT_NULL & document.keys():
            if document[name] is None:
                yield format_path((name,)), "null stands here, and must not"


_NOT_NULL = frozenset({"about", "previous", "commitments", "withdrawn", "imported", "canary"})


Row = TypeVar("Row", bound=BaseModel)


_AGAIN = "fetch the release again, or run `fabula release verify` on it"


@dataclass(frozen=True)
class LoadedRelease(Tabular, Generic[Row]):
    """A release in memory: frozen, typed records in order of their ids."""

    id_field: ClassVar[str]
    """The field that names a record."""

    path: Path  # its folder
    info: Mapping[str, Json] = field(repr=False)  # the content of its ``release.json``
    records: tuple[Row, ...] = field(repr=False)  # its records

    @property
    def name(self) -> str:
        """Its name; that of its folder where it states none."""
        return str(self.info.get("about", {}).get("name") or self.path.name)

    @property
    def version(self) -> str:
        """Its semantic version."""
        return str(self.info["version"])

    @cached_property
    def by_id(self) -> dict[str, Row]:
        return {getattr(record, self.id_field): record for record in self.records}

    def grids(self) -> Iterator[Grid]:
        info = self.info
        title = f"{self.name} {self.version}"
        about = {name: info.get(name) for name in ("kind", "license", "created_at", "visibility")}
        yield Grid("release", title, ("what", "value"), tuple(about.items()), words=(1,))
        for name, heading in (("counts", "Counts"), ("splits", "Splits")):
            if info.get(name):
                yield Grid(name, heading, (name, "count"), tuple(info[name].items()))

    def to_arrow(self, name: str | None = None) -> "pa.Table":
        """Return a flat table of the release, as its Parquet files have it, all splits together.

        The column ``split`` of records is theirs; a table that has none has its files' instead.
        """
        from .parquet import arrow_table

        return arrow_table(self.path, name)

    def to_datasets(self, name: str | None = None) -> "DatasetDict":
        """Return a flat table as ``datasets`` loads it, split by split, with the release's own features."""
        from .parquet import dataset_dict

        return dataset_dict(self.path, name)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.records)


@dataclass(frozen=True)
class Release(LoadedRelease[StoryRecord]):
    """Released stories in memory."""

    id_field = "story_id"
    variants: tuple[Variant, ...] = field(repr=False)  # the contrastive variants
    producers: tuple[ProducerLine, ...] = field(repr=False)  # who made which field, one line per record

    @cached_property
    def splits(self) -> dict[str, tuple[StoryRecord, ...]]:
        """Split -> its records, in the order of the vocabulary; only splits that hold a record."""
        order = (*vocabulary("split").values, *sorted({record.split for record in self.records}))
        groups = {name: tuple(record for record in self.records if record.split == name) for name in order}
        return {name: records for name, records in groups.items() if records}

    @cached_property
    def variants_of(self) -> dict[str, tuple[Variant, ...]]:
        """Story id -> its variants, in id order; every story has an entry."""
        groups: dict[str, list[Variant]] = {record.story_id: [] for record in self.records}
        for variant in self.variants:
            groups.setdefault(variant.base_story_id, []).append(variant)
        return {story_id: tuple(variants) for story_id, variants in groups.items()}


def load(path: str | Path) -> Release:
    """Load released stories, public or hidden.

    The shape of every record is checked. What a record means is the matter of ``fabula validate``; whether
    the files are untouched is that of ``fabula release verify``.
    """
    folder = Path(path)
    info = read_release_document(folder, KIND)
    problems: list[UserError] = []
    records = tuple(read_identified(folder / ANNOTATIONS, StoryRecord, "story_id", problems))
    variants = tuple(read_identified(folder / VARIANTS, Variant, "variant_id", problems))
    producers = tuple(read_rows(folder / PRODUCERS, ProducerLine, problems))
    if problems:
        raise InputError(problems)
    return Release(folder, info, records, variants, producers)


def load_records(
    folder: Path, kind: str, lines: str, release: type[LoadedRelease[Row]], model: type[Row]
) -> tuple[dict[str, Json], tuple[Row, ...]]:
    """Return ``release.json`` and the records of a release of a kind with one file of records."""
    info = read_release_document(folder, kind)
    problems: list[UserError] = []
    records = tuple(read_identified(folder / lines, model, release.id_field, problems))
    if problems:
        raise InputError(problems)
    return info, records


def read_identified(path: Path, model: type[Row], key: str, problems: list[UserError]) -> Iterator[Row]:
    """Yield the lines that can be read; add a problem for each of the others, and for an id that returns."""
    ids: list[str] = []
    for row in read_rows(path, model, problems):
        ids.append(getattr(row, key))
        yield row
    problems.extend(repeated(path, ids))


def read_release_document(folder: Path, *kinds: str) -> dict[str, Json]:
    document, where = _of_kind(folder, kinds), folder / RELEASE
    problems = [UserError(f"{where} {path}", what=why, fix=_AGAIN) for path, why in misshapen(document)]
    if problems:
        raise InputError(problems)
    return document


def _of_kind(folder: Path, named: Sequence[str]) -> dict[str, Json]:
    """Return the content of ``release.json``, of which no more than kind, version and format is certain."""
    where = folder / RELEASE
    try:
        document = read_json(where)
    except (OSError, ValueError) as error:
        expected = f"a release folder with a readable {RELEASE}"
        raise _unusable(str(folder), expected, _instead(folder, error)) from error
    usable = isinstance(document, dict) and (document.get("kind") in named or not named)
    if not usable or "version" not in document:
        of_kind = f" of kind {' or '.join(map(repr, named))}" if named else ""
        expected = f"a release{of_kind} with a version"
        raise _unusable(str(where), expected, _shortened(document))
    made_with = document.get("format")
    if not isinstance(made_with, int) or isinstance(made_with, bool) or made_with > FORMAT:
        raise InputError.one(
            str(where),
            what=f"this release has format {made_with!r}; this version of Fabula reads up to {FORMAT}",
            fix="use the version of Fabula that packed it, or a newer one",
        )
    return dict(document)


def kind_of(folder: Path) -> str | None:
    """Return the kind of the release in a folder; None where ``release.json`` does not tell it."""
    try:
        return require_release(folder)
    except (InputError, KeyError):
        return None


def require_release(folder: Path, *kinds: str) -> str:
    """Return the kind of the release in a folder."""
    return str(_of_kind(folder, kinds)["kind"])


def read_rows(
    path: Path, model: type[Row], problems: list[UserError], fix: str = _AGAIN, *, follow: bool = False
) -> Iterator[Row]:
    """Yield the lines that can be read; add a problem for each of the others, with what to do about it."""
    try:
        with open_plain(path, follow=follow) as handle:
            for number, line in enumerate(handle, 1):
                try:
                    yield model.model_validate_json(line)
                except ValidationError as error:
                    for detail in error.errors(include_url=False):
                        field = f"{path}:{number} {format_path(detail['loc'])}"
                        problems.append(UserError(field, what=type_reason(detail), fix=fix))
    except OSError as error:
        problems.append(mismatch(str(path), f"the file {path.name}", reason_of(error), fix))


def whole_rows(path: Path, model: type[Row]) -> tuple[Row, ...]:
    """Return all lines of a file; raise where one cannot be read."""
    problems: list[UserError] = []
    rows = tuple(read_rows(path, model, problems))
    if problems:
        raise InputError(problems)
    return rows


def repeated(path: Path, ids: list[str]) -> Iterator[UserError]:
    """Yield a problem for every id that is there again."""
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            yield mismatch(str(path), "each id once", f"{name!r} again", _AGAIN)
        seen.add(name)


def _unusable(where: str, expected: str, found: str) -> InputError:
    fix = "give the folder of a packed release, or OWNER/NAME@VERSION"
    return InputError.one(where, expected=expected, found=found, fix=fix)


def _instead(folder: Path, error: Exception) -> str:
    """Say what lies where a release should."""
    if not folder.exists():
        return f"nothing there{alike(folder)}"
    if not folder.is_dir():
        return "a file"
    if (folder / "run.json").is_file():
        return "a run folder: `fabula release pack` makes a release of it"
    if not (folder / RELEASE).exists():
        return f"a folder without {RELEASE}"
    return reason_of(error)


def _shortened(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 80 else f"{text[:77]}..."


UNSTATED = "und"
"""Language tag of texts whose language nobody said."""


def stated_languages(folder: Path) -> tuple[str, ...]:
    """Return the language tags that the metadata of a release state; none where they state none."""
    try:
        document = read_json(folder / CROISSANT)
    except (OSError, ValueError, RecursionError):
        return ()
    tags = document.get("inLanguage") if isinstance(document, dict) else None
    listed = tags if isinstance(tags, list) else []
    return tuple(tag for tag in listed if isinstance(tag, str) and tag != UNSTATED)


# -- What the release that lies at a place is called


def release_name(place: Path) -> str:
    """Return name and version of the release that a folder or file belongs to, such as "fables 0.2.0".

    Empty where no ``release.json`` lies in it or in the two folders above.
    """
    for folder in (place, *place.absolute().parents)[:3]:
        try:
            document = read_json(folder / RELEASE, follow=True)
            return f"{document['about']['name'] or folder.name} {document['version']}"
        except (OSError, ValueError, KeyError, TypeError, FabulaError):
            continue
    return ""


def evaluated_name(places: Sequence[Path], sha256_of: Callable[[Path], str], wanted: object) -> str:
    """Return name and version of the release that was evaluated; empty where it is not at hand."""
    for place in places:
        name = release_name(place)
        try:
            if name and sha256_of(place) == wanted:
                return name
        except (OSError, ValueError, FabulaError):
            continue
    return ""


# -- Reading official files in JSON strictly: what they hold must come out again the same

Document = TypeVar("Document", bound=BaseModel)


@dataclass(frozen=True)
class OfficialFiles:
    """Files of one official form; whatever is wrong with one becomes an issue."""

    issue: Callable[[str, str, str, str], Issue]  # code, file, path and message -> the issue
    most_bytes: int  # of a file
    too_large: str  # code of a file that has more; ``missing`` of one that cannot be read
    missing: str
    expected: str  # what is expected where nothing can be read, with an article

    def read(
        self, path: Path, where: str, kind: type[Document], issues: IssueBin
    ) -> tuple[Document | None, bytes]:
        """Return what a file holds, and its bytes; None where it cannot be used."""
        try:
            content = read_plain(path, self.most_bytes, follow=True)
        except OSError as error:
            code, what = self.missing, f"expected {self.expected}, found {error.strerror}"
            if error.errno == errno.EFBIG:
                code, what = self.too_large, f"expected at most {self.most_bytes:,} bytes, found more"
            elif path.is_symlink() and not path.exists():
                what = f"expected {self.expected}, found a link to nothing: {error.strerror}"
            issues.add(self.issue(code, where, "$", what))
            return None, b""
        if content.startswith(b"\xef\xbb\xbf"):
            issues.add(self.issue("byte-order-mark", where, "$", "the file starts with a byte order mark"))
        document = self._parse(content, where, issues)
        if document is None:
            return None, content
        try:
            return kind.model_validate(document), content
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                issues.add(self.issue("shape", where, format_path(detail["loc"]), type_reason(detail)))
        return None, content

    def _parse(self, content: bytes, where: str, issues: IssueBin) -> dict[str, Any] | None:
        twice: list[str] = []
        try:
            document = load_strictly(content, twice)
        except (ValueError, RecursionError) as error:
            code, message = what_is_wrong(error, content)
            issues.add(self.issue(code, where, "$", message))
            return None
        for name in twice:
            issues.add(self.issue("repeated-key", where, "$", f"{show(name)} occurs twice in one object"))
        if not isinstance(document, dict):
            message = f"expected a JSON object, found a {type(document).__name__}"
            issues.add(self.issue("json", where, "$", message))
            return None
        return None if twice else document


def load_strictly(content: bytes, twice: list[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON in bytes; names that occur twice in an object are added to the list."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice.extend(sorted(name for name, count in counts.items() if count > 1))
        return made

    text = content.decode("utf-8-sig")
    document = json.loads(text, object_pairs_hook=distinct, parse_constant=_no_number, parse_float=_finite)
    if b"\\u" in content:  # an escaped half of a character parses, but has no UTF-8 form
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    return document


def what_is_wrong(error: ValueError | RecursionError, content: bytes) -> tuple[str, str]:
    """Return code and message of what keeps bytes from being read."""
    if isinstance(error, UnicodeEncodeError):
        return "encoding", "an escape such as \\ud800 stands for half a character"
    if isinstance(error, UnicodeDecodeError):
        return "encoding", f"expected UTF-8, found {error.reason} at byte {error.start}"
    if isinstance(error, RecursionError):
        return "json", "expected a JSON object, found one that is nested too deeply"
    if isinstance(error, json.JSONDecodeError) and content.strip():
        return "json", f"this is no JSON: {reason_of(error)}"
    return "json", f"expected a JSON object, found {error if content.strip() else 'nothing'}"


def _no_number(name: str) -> None:
    raise ValueError(f"{name}, which is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]}, which is too large")
    return value
