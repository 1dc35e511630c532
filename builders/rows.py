"""Reading rows from JSONL, CSV and folders of text files. Every problem is gathered, none is raised at once.

Files are UTF-8, strictly; a byte order mark at the start is dropped, and CRLF line ends are fine. NUL bytes
are refused.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from ..engine.edits import WHOLE, is_withdrawal
from ..errors import UserError
from ..schemas.canonical import Json
from ..schemas.paths import format_path
from ..schemas.plain_files import BadCsv, CsvTable, composed, json_reason, read_plain, reason_of, type_reason
from ..schemas.text import is_language_tag, is_story_id, normalize_text, quoted, slug
from ..schemas.values import Edit, Own, SourceDetails, Story, vocabulary
from .text.segments import guess_language

TEXT_FILES, JSON_FILES, TABLES = (".txt", ".md"), (".jsonl", ".ndjson", ".json"), (".csv", ".parquet")
BOM = b"\xef\xbb\xbf"
MAX_FRONT_MATTER = 64 * 1024
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_FENCE = re.compile(r"^---\r?(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: where it stands, as people would say it, and its columns."""

    where: str
    data: dict[str, Json]


@dataclass(slots=True)
class Reader:
    """Reads rows and gathers problems."""

    max_file_bytes: int  # larger files are refused
    problems: list[UserError] = field(default_factory=list)  # everything that was wrong so far

    def problem(self, where: str, expected: str, found: str, fix: str) -> None:
        self.problems.append(UserError(where, expected=expected, found=found, fix=fix))

    def rows(self, path: Path) -> Iterator[Row]:
        """Yield the rows of a file or folder; what cannot be read becomes a problem."""
        before = len(self.problems)
        count = 0
        for row in self._rows(path):
            count += 1
            yield row
        if count == 0 and len(self.problems) == before:
            self._nothing_in(path)

    def _nothing_in(self, path: Path) -> None:
        """Note that a file or folder holds no row, with what a folder holds instead."""
        entries = (file for file in path.rglob("*") if file.is_file()) if path.is_dir() else ()
        others = [file.relative_to(path).as_posix() for file in islice(entries, 3)]
        if not others:
            nothing = "an empty file or folder"
            self.problem(path.name, "at least one row", nothing, "add a story, or leave it out")
            return
        fix = f"of a folder only texts are read: name other files themselves, as {quoted(path / others[0])}"
        self.problem(path.name, f"texts ({', '.join(TEXT_FILES)})", ", ".join(others), fix)

    def _rows(self, path: Path) -> Iterator[Row]:
        if path.is_dir():
            yield from self._folder_rows(path)
            return
        data = self._read(path, path.name)
        if data is None:
            return
        suffix = path.suffix.lower()
        if suffix == ".parquet":
            yield from self._parquet_rows(data, path.name)
        elif suffix == ".csv":
            yield from self._csv_rows(data, path.name)
        elif suffix in TEXT_FILES:
            row = self._text_row(data, path, path.name)
            yield from [row] if row else []
        elif suffix and suffix not in JSON_FILES and data.lstrip()[:1] != b"{":
            ending, forms = f"a file {suffix}", ", ".join((*JSON_FILES, *TABLES, *TEXT_FILES))
            fix = "save it as one of these, or name another file"
            self.problem(path.name, f"one of {forms}", ending, fix)
        else:
            yield from self.json_rows(data, path.name)

    def _read(self, path: Path, where: str) -> bytes | None:
        try:
            size = path.stat().st_size
            if size > self.max_file_bytes:
                self.problem(
                    where, f"at most {self.max_file_bytes} bytes", f"{size} bytes",
                    "split the file, or raise load_stories.max_file_bytes",
                )  # fmt: skip
                return None
            data = read_plain(path, self.max_file_bytes, follow=True)
        except OSError as error:
            self.problem(where, "a file that can be read", reason_of(error), "check path and permissions")
            return None
        if data[:2] in _UTF16:
            self.problem(where, "UTF-8", "a UTF-16 byte order mark at byte 0", "save the file as UTF-8")
            return None
        return data

    def decode(self, data: bytes, where: str, offset: int = 0) -> str | None:
        """Return bytes as text, or None after noting where they are not UTF-8 or hold a NUL."""
        nul = data.find(b"\0")
        if nul >= 0:
            self.problem(
                where, "text", f"a NUL byte at byte {offset + nul}", "remove the NUL bytes; save as UTF-8"
            )
            return None
        try:
            return data.decode("utf-8-sig" if offset == 0 else "utf-8")
        except UnicodeDecodeError as error:
            # Behind a byte order mark, the codec counts from its end.
            at = offset + error.start + len(data) - len(error.object)
            found = f"byte 0x{error.object[error.start]:02x} at byte {at}, which is not UTF-8"
            self.problem(
                where,
                "UTF-8",
                found,
                "convert the file: iconv -f windows-1252 -t utf-8 (or its true encoding)",
            )
            return None

    # JSONL

    def json_rows(self, data: bytes, name: str) -> Iterator[Row]:
        """Yield one row per line that holds a JSON object, or per object of a file that is one list."""
        if data.removeprefix(BOM).lstrip()[:1] == b"[":
            yield from self._list_rows(data, name)
            return
        offset = 0
        for number, line in enumerate(io.BytesIO(data), 1):
            where = f"{name}:{number}"
            text = self.decode(line, where, offset)
            offset += len(line)
            if text is None:
                if len(self.problems) > 100:
                    return  # a file in another encoding: every line would be a problem
                continue
            if text.strip():
                value = self._parse(text, where)
                if isinstance(value, dict):
                    yield Row(where, value)
                elif value is not _BAD:
                    self.problem(
                        where,
                        "a JSON object",
                        f"a JSON {type(value).__name__}",
                        "write one object per line (JSONL)",
                    )

    def _parse(self, text: str, where: str) -> Json:
        try:
            return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
        except json.JSONDecodeError as error:
            self.problems.append(UserError(where, what=json_reason(error), fix="correct the JSON there"))
        except RecursionError:
            self.problem(where, "a JSON object", "JSON nested too deeply", "remove the nesting")
        except ValueError as error:
            self.problem(where, "a JSON object", str(error)[:200], "correct the value")
        return _BAD

    def _list_rows(self, data: bytes, name: str) -> Iterator[Row]:
        text = self.decode(data, name)
        value = _BAD if text is None else self._parse(text, name)
        for number, entry in enumerate(value if isinstance(value, list) else ()):
            if isinstance(entry, dict):
                yield Row(f"{name}[{number}]", entry)
            else:
                kind = f"a JSON {type(entry).__name__}"
                self.problem(f"{name}[{number}]", "a JSON object", kind, "write a list of objects")

    # Tables

    def _parquet_rows(self, data: bytes, name: str) -> Iterator[Row]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            number = 0
            for batch in parquet.ParquetFile(pa.BufferReader(data)).iter_batches(1024):
                for row in batch.to_pylist():
                    number += 1
                    yield Row(f"{name} row {number}", row)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0][:200]
            self.problem(name, "a Parquet table", reason, "write or copy it again")

    def _csv_rows(self, data: bytes, name: str) -> Iterator[Row]:
        text = self.decode(data, name)
        if text is None:
            return
        try:
            table = CsvTable(text)
            for line, cells in table.rows():
                if len(cells) != len(table.columns):
                    self.problem(
                        f"{name}:{line}", f"{len(table.columns)} columns", str(len(cells)),
                        "quote texts that hold commas or line ends",
                    )  # fmt: skip
                    continue
                yield Row(f"{name}:{line}", dict(table.by_name(cells)))
        except BadCsv as error:
            reason, _, fix = str(error).partition("; ")
            self.problem(f"{name}:{error.line}", "CSV with each column once", reason, fix)

    # Folders

    def _folder_rows(self, folder: Path) -> Iterator[Row]:
        files = (file for file in folder.rglob("*") if file.suffix.lower() in TEXT_FILES and file.is_file())
        named = sorted((file.relative_to(folder).as_posix(), file) for file in files)
        for name, file in named:
            if any(part.startswith(".") for part in Path(name).parts):
                continue
            where = f"{folder.name}/{name}"
            data = self._read(file, where)
            row = None if data is None else self._text_row(data, file, where)
            if row:
                yield row

    def _text_row(self, data: bytes, path: Path, where: str) -> Row | None:
        """Return a text file as a row: front matter, then the text.

        Where the front matter names none, the id is made of the file's name, and so is the title unless the
        text begins with a heading, as Markdown marks it.
        """
        text = self.decode(data, where)
        if text is None:
            return None
        front: dict[str, Json] | None = {}
        opening = _FENCE.match(text)
        if opening:
            closing = _FENCE.search(text, opening.end())
            if closing is None:
                self.problem(where, "front matter between two lines ---", "no closing line", "add a line ---")
                return None
            front = self._front_matter(text[opening.end() : closing.start()], where)
            # The text is sliced, not joined from lines: it keeps its line ends.
            text = text[closing.end() :]
        if front is None:
            return None
        title, text = _heading(text)
        plain = " ".join(composed(path.stem).replace("_", " ").replace("-", " ").split())
        defaults = {"id": slug(path.stem) or None, "title": title or plain[:1].upper() + plain[1:]}
        return Row(where, {**defaults, **front, "text": text})

    def _front_matter(self, head: str, where: str) -> dict[str, Json] | None:
        import yaml

        try:
            if len(head) > MAX_FRONT_MATTER:
                raise yaml.YAMLError(f"more than {MAX_FRONT_MATTER} characters")
            # The base loader keeps every value a string: no dates, no octal ids, no truth values.
            value = yaml.load(head, Loader=yaml.BaseLoader)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            found = " ".join(str(error).split())[:200] or "nested too deeply"
            self.problem(f"{where} front matter", "YAML", found, "correct the lines between the two ---")
            return None
        if value is None or value == "":
            return {}
        if not isinstance(value, dict):
            self.problem(
                f"{where} front matter", "names and values", f"a {type(value).__name__}", "write name: value"
            )
            return None
        return {str(key): entry for key, entry in value.items()}


_BAD = object()


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name}, which JSON does not have")


def _no_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:60]!r} twice in one object")
    return mapping


def _heading(text: str) -> tuple[str | None, str]:
    stripped = text.lstrip()
    if not stripped.startswith("# "):
        return None, text
    first, _, rest = stripped.partition("\n")
    return first[2:].strip(), rest


def read_edits(
    rows: Iterable[Row], stories: Mapping[str, Story], reader: Reader
) -> tuple[dict[str, list[Json]], dict[str, Json]]:
    """Return the edits by story id, in file order, and who withdrew which stories and why.

    Problems go to the reader.
    """
    edits: dict[str, list[Json]] = {}
    withdrawn: dict[str, Json] = {}
    for row in rows:
        try:
            edit = Edit.model_validate(row.data)
        except ValidationError as error:
            _report(row.where, error, reader)
            continue
        if edit.id not in stories:
            reader.problem(row.where, "the id of a story of this run", repr(edit.id[:80]), "correct the id")
            continue
        if is_withdrawal(edit):
            withdrawn.setdefault(edit.id, {"who": edit.who, "why": edit.why})
        elif edit.path == WHOLE:
            reader.problem(
                row.where, "a field's path, or null as the new value of the whole record", "another value",
                "edit field by field; to withdraw the record: fabula edit RUN ID --withdraw",
            )  # fmt: skip
        else:
            edits.setdefault(edit.id, []).append(edit.as_json())
    return edits, withdrawn


def _story_id(row: Row, stories: Mapping[str, Story], reader: Reader) -> str | None:
    story_id = row.data.get("story_id", row.data.get("id"))
    if not isinstance(story_id, str) or story_id not in stories:
        found = repr(story_id)[:80] if story_id is not None else "no story_id"
        reader.problem(row.where, "the id of a story of this run", found, "correct story_id")
        return None
    return story_id


def _report(where: str, error: ValidationError, reader: Reader) -> None:
    for detail in error.errors(include_url=False)[:5]:
        field = format_path([step for step in detail["loc"] if isinstance(step, str | int)])
        reader.problems.append(
            UserError(f"{where}, {field}", what=type_reason(detail), fix="see `fabula schemas export`")
        )


# -- Rows into stories: required columns, ids, word lists and sizes, with every problem named

COLUMNS = (
    "id",
    "title",
    "language",
    "text",
    "source_collection",
    "source_reference",
    "rights_status",
    "narrative_type",
    "moral_label",
    "moral",
    "dataset_license",
)
DETAILS = tuple(SourceDetails.model_fields)
"""Columns about where a story is from, none of them required."""
ALIASES = {
    "source": "source_collection",
    "source_dataset": "source_collection",
    "story_id": "id",
    "story": "text",
}
RESERVED = "sources"
UNSAID, UNRESOLVED = "unknown", "unresolved"
"""Collection and rights of a story where nobody says them; the latter keeps it out of releases."""
NOT_APPLICABLE: Literal["not_applicable"] = "not_applicable"
"""What the column ``moral`` may say: the story supports no value."""


class Settings(Own):
    """Settings of the stage ``load_stories``."""

    id_prefix: str = Field(
        default="kb25k_",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,55})?$",
        description="Stories without id are numbered in order, kb25k_0001 and so on; empty: ids required.",
    )
    language: str | None = Field(default=None, description="For rows that name no language.")
    source_collection: str | None = Field(default=None, description="For rows that name none.")
    rights_status: str | None = Field(default=None, description="For rows that name none.")
    max_file_bytes: int = Field(default=2**30, ge=1, description="Larger source files are refused.")
    max_story_characters: int = Field(default=1_000_000, ge=1, description="Longer stories are refused.")
    max_stories: int = Field(default=1_000_000, ge=1, description="More stories are refused.")
    columns: tuple[str, ...] = Field(
        default=(), exclude_if=lambda columns: not columns,
        description="Columns by other names, each as theirs=ours.",
    )  # fmt: skip

    @field_validator("columns")
    @classmethod
    def _names_ours(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        for pair in columns:
            if pair.partition("=")[2] not in (*COLUMNS, *DETAILS):
                ours = ", ".join((*COLUMNS, *DETAILS))
                raise ValueError(f"{pair!r} is not written THEIRS=OURS, with OURS one of {ours}")
        return columns


def guessed_languages(paths: Iterable[Path], settings: Settings) -> Counter[str]:
    """Return how many of the first rows of sources name no language, by the one that is guessed for them."""
    reader = Reader(settings.max_file_bytes)
    known, columns = StoryRows(settings, reader), Counter[str]()
    for path in paths if settings.language is None else ():
        for row in islice(reader.rows(path), LOOKED_AT):
            data = known._columns(known.renamed(row))
            if not data.get("language") and (guess := guess_language(str(data.get("text") or ""))):
                columns[guess] += 1
    return columns


def unmarked_titles(paths: Iterable[Path], settings: Settings) -> list[str]:
    """Return which texts begin with a short line by itself without a mark: a title, maybe."""
    reader = Reader(settings.max_file_bytes)
    texts = (path for path in paths if path.is_dir() or path.suffix.lower() in TEXT_FILES)
    return [
        row.where
        for path in texts
        for row in islice(reader.rows(path), LOOKED_AT)
        if _UNMARKED.match(str(row.data["text"]))
    ]


_UNMARKED = re.compile(r"\s*[^\n]{0,78}[^\s.!?:;,…\"'”’»।。！？]\s*\n[ \t\r]*\n\s*\S")
LOOKED_AT = 1000
"""Rows of a source that are looked at before a build."""


@dataclass(slots=True)
class StoryRows:
    """Turns rows into stories.

    A story that stands in an earlier source just so is there already. An id that stands for another story, or
    twice in one source, is a problem.
    """

    settings: Settings  # defaults and limits
    reader: Reader  # takes the problems
    stories: dict[str, Story] = field(default_factory=dict)  # id -> its story
    places: dict[str, str] = field(default_factory=dict)  # id -> where its row stands
    sources: dict[str, int] = field(default_factory=dict)  # id -> number of the source that it stands in
    # ids of stories that stand in a later source, too -> number of the last such source
    repeated: dict[str, int] = field(default_factory=dict)
    # id -> what its row says of where it is from; nothing for a row that says nothing
    details: dict[str, SourceDetails] = field(default_factory=dict)
    _folded: dict[str, str] = field(default_factory=dict)
    _unnumbered: int = 0

    def add(self, row: Row, source: int = 0) -> Story | None:
        """Return the story of a row.

        None for one that is there already, and after noting a row's problems.
        """
        before = len(self.reader.problems)
        row = self.renamed(row)
        data = self._columns(row)
        fields = {name: self._string(row, data, name) for name in COLUMNS}
        story_id = self._id(row, fields["id"])
        required = {
            "title": fields["title"],
            "language": fields["language"] or self.settings.language or guess_language(fields["text"] or ""),
            "text": fields["text"],
            "source_collection": fields["source_collection"] or self.settings.source_collection or UNSAID,
            "rights_status": fields["rights_status"] or self.settings.rights_status or UNRESOLVED,
        }
        self._require(row, data, required)
        self._check_words(row, required, fields)
        if len(self.reader.problems) > before or story_id is None:
            return None
        story = Story(
            id=story_id,
            title=str(required["title"]).strip(),
            language=str(required["language"]),
            text=str(required["text"]),
            normalized_text=normalize_text(str(required["text"])),
            source_collection=vocabulary("source_dataset").resolve(str(required["source_collection"])),
            source_reference=fields["source_reference"] or None,
            rights_status=vocabulary("rights_status").resolve(str(required["rights_status"])),
            narrative_type=_resolved("narrative_type", fields["narrative_type"]),
            moral_label=_resolved("moral_label", fields["moral_label"]),
            moral=NOT_APPLICABLE if fields["moral"] else None,
            dataset_license=(fields["dataset_license"] or "").strip() or None,
        )
        details = self._details(row)
        taken = self._taken_in(row, story, source)
        if taken is not None and details != SourceDetails():
            self.details[story_id] = details
        return taken

    def _details(self, row: Row) -> SourceDetails:
        """Return what a row says of where its story is from; years and pages may be numbers."""
        given = {name: row.data.get(name) for name in DETAILS}
        texts = {name: str(value).strip() for name, value in given.items() if isinstance(value, str | int)}
        return SourceDetails(**{name: text for name, text in texts.items() if text})

    def _taken_in(self, row: Row, story: Story, source: int) -> Story | None:
        known = self.stories.get(story.id)
        if known is None:
            self.stories[story.id], self.sources[story.id] = story, source
            self.places[story.id], self._folded[story.id.casefold()] = row.where, story.id
            return story
        if known == story and self.sources[story.id] != source:
            self.repeated[story.id] = source
        else:
            self.clash(row, story, known)
        return None

    def clash(self, row: Row, story: Story, known: Story) -> None:
        """Note that a row has the id of another story, or of one of the same source."""
        self.reader.problem(
            f"{row.where}, id", "an id of its own", f"{story.id!r}, used at {self.places[known.id]}",
            "rename one of the two",
        )  # fmt: skip

    def renamed(self, row: Row) -> Row:
        """Return a row with its columns under our names, where settings say which they are."""
        ours = dict(pair.split("=", 1) for pair in self.settings.columns)
        return Row(row.where, {ours.get(name, name): value for name, value in row.data.items()})

    def _columns(self, row: Row) -> dict[str, Json]:
        """Return the known columns under their names; misspelt ones are a problem, others are left out."""
        data: dict[str, Json] = {}
        for name, value in row.data.items():
            known = ALIASES.get(name, name)
            if known in COLUMNS:
                if data.get(known) is not None and data[known] != value:
                    self.reader.problem(
                        row.where, f"one value for {known}", f"another as {name}", "keep one of them"
                    )
                data[known] = value
            elif close := get_close_matches(name, COLUMNS, n=1, cutoff=0.85):
                self.reader.problem(
                    row.where, f"the column {close[0]}", f"a column {name[:60]!r}", f"rename it to {close[0]}"
                )
        return data

    def _string(self, row: Row, data: dict[str, Json], name: str) -> str | None:
        value = data.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            text = f"a JSON {type(value).__name__}"
            self.reader.problem(f"{row.where}, {name}", "a string", text, "put it in quotation marks")
            return None
        if any("\ud800" <= char <= "\udfff" for char in value) or "\0" in value:
            text = "half of a surrogate pair or a NUL"
            self.reader.problem(f"{row.where}, {name}", "Unicode text", text, "correct the \\u escapes")
            return None
        return value

    def _id(self, row: Row, given: str | None) -> str | None:
        story_id = given if given else self._next_id(row)
        if story_id is None:
            return None
        if not is_story_id(story_id) or story_id == RESERVED:
            found = repr(story_id[:80]) + (f" ({len(story_id)} characters)" if len(story_id) > 80 else "")
            self.reader.problem(
                f"{row.where}, id", "1 to 64 of a-z, A-Z, 0-9, _ and -, the first a letter or digit",
                found, "rename it, or leave the ids out to have the stories numbered",
            )  # fmt: skip
            return None
        other = self._folded.get(story_id.casefold())
        if other not in (None, story_id):
            used = f"{story_id!r}, used at {self.places[other]} as {other!r}"
            found = f"{used}; ids may not differ in case alone"
            self.reader.problem(f"{row.where}, id", "an id of its own", found, "rename one of the two")
            return None
        return story_id

    def _next_id(self, row: Row) -> str | None:
        if not self.settings.id_prefix:
            self.reader.problem(row.where, "a column id", "none", "add it, or set load_stories.id_prefix")
            return None
        while True:
            self._unnumbered += 1
            story_id = f"{self.settings.id_prefix}{self._unnumbered:04d}"
            if story_id.casefold() not in self._folded:
                return story_id

    def _require(self, row: Row, data: dict[str, Json], required: dict[str, str | None]) -> None:
        missing = [name for name, value in required.items() if value is None and data.get(name) is None]
        if "text" in missing and "language" in missing:
            missing.remove("language")  # which a text says by itself
        needed = [name for name in ("title", "language", "text") if name != "language" or name in missing]
        if missing:
            defaults = [name for name in missing if name in Settings.model_fields]
            fix = f"add the column {missing[0]}" if len(missing) == 1 else "add these columns"
            fix += f", or set load_stories.{defaults[0]} for all" if defaults else ""
            others = [name for name in row.data if ALIASES.get(name, name) not in (*COLUMNS, *DETAILS)]
            if others:
                fix += f"; if another column holds it: --map {quoted(others[0])}={missing[0]}"
            columns = f"no {', no '.join(missing)}; it has {', '.join(map(str, row.data))[:200]}"
            self.reader.problem(row.where, f"the columns {', '.join(needed)}", columns, fix)
        for name, value in required.items():
            if value is not None and not normalize_text(value):
                self.reader.problem(
                    f"{row.where}, {name}", "some text", "nothing but white space", "fill it in"
                )
        text, limit = required["text"] or "", self.settings.max_story_characters
        if len(text) > limit:
            self.reader.problem(
                f"{row.where}, text", f"at most {limit} characters", f"{len(text)}",
                "split the story, or raise load_stories.max_story_characters",
            )  # fmt: skip

    def _check_words(self, row: Row, required: dict[str, str | None], fields: dict[str, str | None]) -> None:
        language = required["language"]
        if language and language.strip() and not is_language_tag(language):
            self.reader.problem(
                f"{row.where}, language",
                "a BCP 47 tag such as en, hi or zh-Hans",
                repr(language[:40]),
                "correct it",
            )
        closed = {**{name: fields[name] for name in ("narrative_type", "moral_label")},
                  "rights_status": required["rights_status"]}  # fmt: skip
        if fields["moral"] not in (None, "", NOT_APPLICABLE) or (fields["moral"] and fields["moral_label"]):
            self.reader.problem(
                f"{row.where}, moral", f"{NOT_APPLICABLE}, or nothing where there is a moral_label",
                repr(str(fields["moral"])[:60]), "leave it out unless the story supports no value",
            )  # fmt: skip
        for name, value in closed.items():
            words = vocabulary(name)
            if value and value.strip() and words.resolve(value) not in words.values:
                expected = f"one of: {', '.join(words.values)}"
                cure = f"use one of these words; `fabula schemas words {name}` says what they mean"
                self.reader.problem(f"{row.where}, {name}", expected, repr(value[:60]), cure)


def _resolved(name: str, value: str | None) -> str | None:
    return vocabulary(name).resolve(value) if value and value.strip() else None
