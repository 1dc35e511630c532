"""A row as people look at it: the record in it first, what is said about it after."""

import json
import re
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from pydantic import ValidationError

from ..engine.edits import WHOLE
from ..schemas.entities import EntityEpisode
from ..schemas.katha import Question, Scene, StoryRecord, Transition, Variant
from ..schemas.paths import parse_quoted, quoted_path, value_at, with_value
from ..schemas.plain_files import open_plain, reason_of
from ..schemas.values import Edit, State, state_of

KEYS = ("story_id", "episode_id", "story_name", "id", "prompt_id", "unit", "variant_id")
"""Fields that name a row, the first that it has."""
INNER = ("record", "entry", "script", "prompt")
"""Where the payload of a run's row has the record itself."""
FIRST = (
    "title", "story_text", "text", "prompt", "story_overview", "scenes", "transitions", "questions", "events",
    "shots", "entity_schedule", "entity_descriptions",
)  # fmt: skip
LAST = ("evidence_status", "provenance", "source_text", "checks", "schema_version")
READ = tuple(tuple(type_.model_fields) for type_ in (StoryRecord, Scene, Transition, Question, Variant))
"""The fields of each part of a record, in the order in which its type has them."""
TARGETS = ("target_scene", "target_transition")
"""A question is about a scene or a transition: of these fields one applies."""
GIST = (
    "scene_text", "question", "expected_change", "contrastive_scene_text", "text", "prompt", "description",
)  # fmt: skip
"""Fields that say what a part is about, the first that it has; else its longest text does."""
LONGEST_GIST = 220
Row = Mapping[str, Any]
_INDEX = re.compile(r"\[\d+\]")
_PART = re.compile(r"\[(?:\d+|\*)\]")


@dataclass(frozen=True, slots=True)
class Laid:
    """A row, taken apart."""

    record: Row  # what the row is for, its fields in the order of interest
    made: Mapping[str, str]  # JSON path in the record -> who made what stands there
    about: Row  # what else the row says, such as variants and checks
    waiting: frozenset[str] = frozenset()  # paths whose corrections the run has not applied yet


def name_of(row: Row, number: int) -> str:
    """Return what names a row: its id, else its number, from 1."""
    return next((str(row[key]) for key in KEYS if isinstance(row.get(key), str | int)), f"row {number + 1}")


def item_in(row: Row, number: int) -> str:
    """Return the item of a run that a row is, as `fabula edit` takes it."""
    item = row.get("id")
    return item if isinstance(item, str) else name_of(row, number)


def record_of(row: Row) -> Row:
    """Return the record in a row of a run; any other row as it is."""
    payload = row.get("payload")
    if not isinstance(payload, Mapping):
        return row
    return next((payload[name] for name in INNER if isinstance(payload.get(name), Mapping)), payload)


def stated(row: Row) -> Row:
    """Return the record in a row, one of stories with its state: draft, checked or reviewed."""
    record, payload = record_of(row), row.get("payload")
    status = record.get("validation_status")
    if not isinstance(status, str):
        return record
    checks = payload.get("checks") if isinstance(payload, Mapping) else None
    made = [check for check in checks if isinstance(check, Mapping)] if isinstance(checks, list) else []
    return {**record, "state": state_of(status, [{"passed": check.get("passed")} for check in made])}


def laid_out(row: Row) -> Laid:
    record, payload = record_of(row), row.get("payload")
    about = payload if isinstance(payload, Mapping) and payload is not record else {}
    beside = {name: value for name, value in about.items() if value is not record and name != "producers"}
    order = sorted(record, key=_rank)
    read = {name: in_reading_order(record[name], record.get("story_id")) for name in order}
    return Laid(read, producers_in(about.get("producers")), in_reading_order(beside))


def corrected(laid: Laid, edits: Iterable[Edit]) -> Laid:
    """Return a row with the corrections that its run has not applied yet."""
    record, about, waiting = dict(laid.record), dict(laid.about), set()
    for edit in edits:
        with suppress(ValueError, LookupError):
            steps = parse_quoted(edit.path)
            whole = about if steps and steps[0] in about else record
            if value_at(whole, steps) != edit.new:
                waiting.add(edit.path)
                whole |= with_value(whole, steps, edit.new)
    return replace(laid, record=record, about=about, waiting=frozenset(waiting))


def episode_of(record: Row) -> EntityEpisode | None:
    """Return the episode of entities that a record is or holds; None where it is none, or a faulty one."""
    entry = next((record[name] for name in INNER if isinstance(record.get(name), Mapping)), record)
    if "entity_schedule" not in entry:
        return None
    try:
        return EntityEpisode.model_validate(entry)
    except ValidationError:
        return None


def _rank(name: str) -> int:
    if name in FIRST:
        return FIRST.index(name)
    return 200 + LAST.index(name) if name in LAST else 100


def in_reading_order(value: Any, story: object = None) -> Any:  # noqa: ANN401 - any JSON value
    """Return a part of a record with its fields as its type orders them, without what does not apply."""
    if isinstance(value, list):
        return [in_reading_order(inner, story) for inner in value]
    if not isinstance(value, Mapping):
        return value
    fields = max(READ, key=lambda names: len(value.keys() & set(names)))
    unused = {name for name in TARGETS if value.get(name) is None and value.keys() >= set(TARGETS)}
    gone = unused if len(unused) < len(TARGETS) else set()
    if story is not None and value.get("story_id") == story:
        gone.add("story_id")
    order = sorted(value, key=lambda name: fields.index(name) if name in fields else len(fields))
    return {name: in_reading_order(value[name], story) for name in order if name not in gone}


@dataclass(frozen=True, slots=True)
class Makers:
    """Who made what in a record: each under a letter, named once for a group of fields."""

    made: Mapping[str, str]  # JSON path -> producer
    letters: Mapping[str, str]  # producer -> its letter
    usual: Mapping[str, str]  # group, such as ``$.scenes``; ``$`` for fields in none -> who made most of it
    waiting: frozenset[str] = frozenset()  # paths whose corrections the run has not applied yet

    def of(self, path: str) -> str:
        """Return who made what stands at a path; of each scene alike where nothing is said of this one."""
        return self.made.get(path) or self.made.get(_INDEX.sub("[*]", path)) or ""

    def exception(self, path: str) -> str:
        """Return who made what stands at a path, where it is somebody else than of most of its group."""
        maker = self.of(path)
        return maker if maker != self.usual.get(group_of(path)) else ""

    def groups(self, maker: str) -> list[str]:
        """Return the groups that somebody made most of, as people call them."""
        return [
            group.rpartition(".")[2].replace("_", " ") if group != "$" else "fields of the whole record"
            for group, usual in self.usual.items() if usual == maker
        ]  # fmt: skip


def makers_in(made: Mapping[str, str], waiting: frozenset[str] = frozenset()) -> Makers:
    """Return who made what, of JSON path -> producer."""
    groups: dict[str, Counter[str]] = {}
    for path, maker in made.items():
        groups.setdefault(group_of(path), Counter())[maker] += 1
    usual = {group: counts.most_common(1)[0][0] for group, counts in groups.items()}
    letters = {
        maker: ascii_uppercase[number] if number < len(ascii_uppercase) else str(number + 1)
        for number, maker in enumerate(dict.fromkeys(made.values()))
    }
    return Makers(made, letters, usual, waiting)


def under(path: str, name: str) -> str:
    """Return the path of a field of what stands at a path; of no record, where the path begins with no $."""
    return path + quoted_path((name,))[1:]


def group_of(path: str) -> str:
    """Return the list that a path leads into, such as ``$.scenes``; ``$`` where it leads into none."""
    part = _PART.search(path)
    return path[: part.start()] if part is not None else "$"


def short_texts(record: Row) -> list[str]:
    """Return what tells one row from others of the same name: its first short texts."""
    return [value for value in record.values() if isinstance(value, str) and len(value) <= 40][:5]


def gist_of(part: Row) -> str:
    """Return what a part of a record is about, in a line or two."""
    texts = [value for value in part.values() if isinstance(value, str)]
    lead = next((part[name] for name in GIST if isinstance(part.get(name), str)), "")
    text = lead or max(texts, key=len, default="")
    answer = part.get("gold_answer")
    whole = f"{text} \N{RIGHTWARDS ARROW} {answer}" if lead and isinstance(answer, str) else text
    return whole if len(whole) <= LONGEST_GIST else whole[: LONGEST_GIST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def are_checks(value: object) -> bool:
    """Return whether a value is a list of checks, each with its code and whether it passed."""
    return isinstance(value, list) and all(
        isinstance(check, Mapping) and {"code", "passed"} <= check.keys() for check in value
    )


def are_rewritten(value: object) -> bool:
    """Return whether a value is what became of the parts of a draft in which a check found something."""
    return isinstance(value, list) and all(
        isinstance(part, Mapping)
        and {"part", "number", "outcome", "findings"} <= part.keys()
        and all(isinstance(part.get(name, {}), Mapping) for name in ("first", "second"))
        for part in value
    )


def part_name(path: str, number: int, part: Row) -> str:
    """Return how people call a part of a list: scene 2, or the transition from scene 1 to 2."""
    if {"from_scene", "to_scene"} <= part.keys():
        return f"scene {part['from_scene']} to {part['to_scene']}"
    noun = path.rpartition(".")[2].replace("_", " ").removesuffix("s")
    return f"{noun} {number}" if noun else str(number)


def drafted_in(writes: Iterable[Row]) -> Row:
    """Return a record as the stages of a run left it.

    ``writes``: field -> value of each stage, in the order of the pipeline.
    """
    fields = _fields_in(writes)
    if whole := _whole_in(fields):
        return laid_out({"payload": whole}).record
    return {name: in_reading_order(fields[name]) for name in FIRST if fields.get(name)}


def state_in(writes: Iterable[Row], edits: Sequence[Row]) -> tuple[State | None, str]:
    """Return the state of a record of stories in a run, and who withdrew it why; None of other records.

    ``writes``: as in :func:`drafted_in`. ``edits``: its corrections, in order.
    """
    for edit in edits:
        if edit["path"] == WHOLE and edit["new"] is None:
            return "withdrawn", f"by {edit['who']}: {edit['why']}"
    whole = _whole_in(_fields_in(writes))
    return (stated({"payload": whole}).get("state") if whole else None), ""


def _fields_in(writes: Iterable[Row]) -> dict[str, Any]:
    return {name: value for written in writes for name, value in written.items()}


def _whole_in(fields: Row) -> Row | None:
    """Return what a stage wrote that holds the whole record, the last; None where none did."""
    whole = [value for value in fields.values() if isinstance(value, Mapping) and value.keys() & set(INNER)]
    return whole[-1] if whole else None


def record_lines(value: Row, path: str = "$", indent: str = "") -> Iterator[str]:
    """Yield a record as lines for people, nothing cut: parts with their JSON paths, and their fields.

    ``path``: its JSON path.
    """
    unknown = [name for name, inner in value.items() if inner is None]
    for name, inner in value.items():
        where, label = f"{path}.{name}", name.replace("_", " ")
        if isinstance(inner, list) and inner and isinstance(inner[0], Mapping):
            for number, part in enumerate(inner):
                yield f"{indent}{part_name(where, number + 1, part)}  {where}[{number}]"
                yield from record_lines(part, f"{where}[{number}]", f"{indent}  ")
        elif isinstance(inner, Mapping):
            yield f"{indent}{label}"
            yield from record_lines(inner, where, f"{indent}  ")
        elif inner is not None:
            text = "; ".join(map(str, inner)) or "none" if isinstance(inner, list) else str(inner)
            yield f"{indent}{label}: " + text.replace("\n", f"\n{indent}  ")
    if unknown:
        yield f"{indent}not known: {', '.join(name.replace('_', ' ') for name in unknown)}"


def listed_of(row: Row) -> Row:
    """Return what a list shows of a row: its record; of the distances of edits, which fields they changed."""
    record = record_of(row)
    fields = record.get("fields")
    if not isinstance(fields, Mapping) or not all(
        isinstance(field, Mapping) and {"compared", "changed", "distance"} <= field.keys()
        for field in fields.values()
    ):
        return stated(row)
    changed = [
        f"{path} {field['changed']} of {field['compared']}, distance {field['distance']:g}"
        for path, field in fields.items() if field["changed"]
    ]  # fmt: skip
    return {
        **record, "values_changed": sum(field["changed"] for field in fields.values()),
        "values_compared": sum(field["compared"] for field in fields.values()),
        "where": "; ".join(changed) or "nothing was changed",
    }  # fmt: skip


def producers_in(lines: object) -> dict[str, str]:
    """Return JSON path -> who made what stands there, of a list of such lines."""
    return {
        str(line["path"]): str(line["producer"])
        for line in (lines if isinstance(lines, Sequence) else ())
        if isinstance(line, Mapping) and {"path", "producer"} <= line.keys()
    }


def asked_about(record: Row, item: str) -> Row | None:
    """Return the part of a record that an item of an evaluation is about: a question, a variant, a shot."""
    return next((part for part in _parts(record) if item in (part.get(key) for key in _PART_KEYS)), None)


_PART_KEYS = ("question_id", "variant_id", "transition_id", "shot_id", "event_id")


def _parts(value: Any) -> Iterator[Row]:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts(inner)


# -- Rows of a file of JSON lines: found by id and by words, given a page at a time, never all in memory
#
# Where each row begins and what can be searched lies in a temporary SQLite file. A thread of its own fills it
# while pages are shown, so that the first page of a large file is there at once.

FIRST_LISTED, TOGETHER = 50, 500
LONGEST_ROW = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, in the order of the file."""

    rows: tuple[tuple[int, Mapping[str, Any]], ...]  # number of the row in its file, from 0, and its content
    count: int  # how many rows fit in all, as far as is known
    whole: bool  # whether the whole file has been looked at


def words_of(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yield every text of a record."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from words_of(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from words_of(inner)


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is written or replaced; zeros where it cannot be looked at."""
    try:
        about = path.stat()
    except OSError:
        return (0, 0, 0)
    return about.st_ino, about.st_size, about.st_mtime_ns


class Rows:
    """The rows of a file of JSON lines.

    ``fields``: fields that rows can be filtered by, such as ``method``.
    """

    def __init__(self, path: Path, fields: Sequence[str] = ()) -> None:
        self.path, self.fields, self.stamp = path, tuple(fields), stamp_of(path)
        self._lock = threading.Lock()
        self._file = tempfile.NamedTemporaryFile(prefix="fabula-view-", suffix=".sqlite")  # noqa: SIM115
        self._sql = sqlite3.connect(self._file.name, check_same_thread=False)
        columns = "".join(f", f{number} TEXT" for number in range(len(self.fields)))
        self._sql.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE rows (number INTEGER PRIMARY KEY, start INTEGER, size INTEGER, name TEXT"
            f"{columns});"
            "CREATE INDEX rows_name ON rows (name);"
            "CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='unicode61');"
        )
        self._whole, self._stopped, self._problem = False, False, ""
        self._begun = threading.Event()
        self._filling = threading.Thread(target=self._fill, name=f"index of {path.name}", daemon=True)
        self._filling.start()

    def close(self) -> None:
        """End the thread, and remove the temporary file."""
        self._stopped = True
        self._filling.join()
        self._sql.close()
        self._file.close()

    def __enter__(self) -> "Rows":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the whole file has been looked at; return whether it has."""
        self._filling.join(seconds)
        return self._whole

    @property
    def whole(self) -> bool:
        """Whether the whole file has been looked at."""
        return self._whole

    @property
    def problem(self) -> str:
        """What is wrong with the file, if anything."""
        return self._problem

    def _fill(self) -> None:
        try:
            with open_plain(self.path, follow=True) as lines:
                number, together = 0, FIRST_LISTED  # what the first page shows comes first
                while chunk := list(islice(_located(lines), together)):
                    self._put(number, chunk)
                    number, together = number + len(chunk), TOGETHER
                    if self._stopped:
                        return
            self._whole = True
        except Exception as error:  # noqa: BLE001 - anybody may have made the file; the page says so
            self._problem = f"{self.path.name}: {reason_of(error)}"
        finally:
            self._begun.set()

    def _put(self, number: int, chunk: Sequence[tuple[int, bytes]]) -> None:
        rows, texts = [], []
        for at, (start, line) in enumerate(chunk, start=number):
            row = _read(line, self.path, at)
            record = stated(row)
            filtered = (_plain(record.get(field)) for field in self.fields)
            rows.append((at, start, len(line), name_of(row, at), *filtered))
            texts.append((at, _searched(row)))
        marks = ", ".join("?" * (4 + len(self.fields)))
        with self._lock, self._sql:
            self._sql.executemany(f"INSERT INTO rows VALUES ({marks})", rows)
            self._sql.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", texts)
        self._begun.set()

    def page(self, words: str = "", first: int = 0, most: int = 50, **chosen: str) -> Page:
        """Return some of the rows that hold all words and have the chosen values.

        ``words``: words or beginnings of words, in any order; all rows if empty. ``chosen``: field -> the
        value that it has.
        """
        self._begun.wait()
        where, values = self._where(words, chosen)
        with self._lock:
            (count,) = self._sql.execute(f"SELECT count(*) FROM rows {where}", values).fetchone()
            ordered = f"SELECT number, start, size FROM rows {where} ORDER BY number LIMIT ? OFFSET ?"
            places = self._sql.execute(ordered, (*values, most, first)).fetchall()
        rows = tuple((number, self._at(number, start, size)) for number, start, size in places)
        return Page(rows, count, self._whole)

    def _where(self, words: str, chosen: Mapping[str, str]) -> tuple[str, list[str]]:
        parts, values = [], []
        if terms := re.findall(r"\w+", words):
            parts.append("number IN (SELECT rowid FROM texts WHERE texts MATCH ?)")
            values.append(" ".join(f'"{term}"*' for term in terms))
        for field, value in chosen.items():
            parts.append(f"f{self.fields.index(field)} = ?")
            values.append(value)
        return ("WHERE " + " AND ".join(parts) if parts else ""), values

    def named(self, name: str) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the rows of a name; several where a file has several of one story."""
        with self._lock:
            sql = "SELECT number, start, size FROM rows WHERE name = ? ORDER BY number"
            places = self._sql.execute(sql, (name,)).fetchall()
        return [(number, self._at(number, start, size)) for number, start, size in places]

    def values(self, field: str, most: int = 200) -> list[tuple[str, int]]:
        """Return the values of a field, with how many rows have each; the most frequent first."""
        column = f"f{self.fields.index(field)}"
        sql = (
            f"SELECT {column}, count(*) FROM rows WHERE {column} != '' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?"
        )
        with self._lock:
            return list(self._sql.execute(sql, (most,)))

    def counts(self, *fields: str) -> dict[tuple[str, ...], int]:
        """Return values of fields that rows have together -> how many rows have them; by the first field."""
        self._begun.wait()
        columns = ", ".join(f"f{self.fields.index(field)}" for field in fields)
        sql = f"SELECT {columns}, count(*) FROM rows GROUP BY {columns} ORDER BY {columns}"
        with self._lock:
            return {tuple(values): count for *values, count in self._sql.execute(sql)}

    def _at(self, number: int, start: int, size: int) -> Mapping[str, Any]:
        with open_plain(self.path, follow=True) as file:
            file.seek(start)
            return _read(file.read(size), self.path, number)


def _located(lines: Any) -> Iterator[tuple[int, bytes]]:  # noqa: ANN401 - an open file
    """Yield each line with where it begins; empty ones are passed over."""
    start = lines.tell()
    while line := lines.readline(LONGEST_ROW):
        if line.strip():
            yield start, line
        start += len(line)


def _read(line: bytes, path: Path, number: int) -> Mapping[str, Any]:
    """Return the content of a line; of one that is no JSON object, what is wrong with it or what it is."""
    try:
        row = json.loads(line)
        if b"\\ud" in line.lower():  # halves of surrogate pairs have no place in pages and addresses
            row = json.loads(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        return {"unreadable": f"{path.name}, line {number + 1}: {error}"}
    return row if isinstance(row, Mapping) else {"value": row}


def _searched(row: Mapping[str, Any]) -> str:
    try:
        return " ".join(words_of(record_of(row)))
    except RecursionError:  # lists in lists; the row is shown, and not found by its words
        return ""


def _plain(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):  # a judge
        value = value.get("spec") or value.get("id")
    return "" if value is None else str(value)
