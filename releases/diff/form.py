"""What a diff asks of a kind: what its files of records are called and mean, and what else it compares."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json, canonical_text, sha256_bytes, sha256_file
from ...schemas.paths import RELEASE, STATISTICS, parsed, value_at
from ...schemas.plain_files import open_plain, parse_json, read_json, reason_of
from ..loading import read_release_document
from ..options import SEMVER

# -- One side of a diff: what ``release.json`` says of its records, and the lines of those that differ

_NAMED = 5
_RESTORE = "fetch or pack it again; `fabula release verify` says what is amiss"


@dataclass(frozen=True)
class Side:
    """A release, or the draft of one, as a diff sees it."""

    folder: Path  # where its files are
    document: Mapping[str, Any]  # the content of its ``release.json``, finished or not
    # the content of ``statistics.json`` where the file is not written yet
    given_statistics: Mapping[str, Json] | None = None
    _places: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict, repr=False)

    @cached_property
    def records(self) -> dict[str, dict[str, str]]:
        """JSONL file -> record id -> SHA-256 of the record's canonical JSON."""
        return {str(name): dict(hashes) for name, hashes in self.document["records"].items()}

    @cached_property
    def statistics(self) -> Mapping[str, Json]:
        """The content of ``statistics.json``; empty where a release has none, as hidden ones."""
        if self.given_statistics is not None:
            return self.given_statistics
        if STATISTICS not in self.files:
            return {}
        with _reading(self.folder / STATISTICS, "statistics as packing wrote them") as path:
            statistics = read_json(path)
        if not isinstance(statistics, dict):
            raise InputError([_damaged(path, "a JSON object", type(statistics).__name__)])
        return statistics

    @property
    def files(self) -> Mapping[str, Mapping[str, Json]]:
        """Path -> size and hash of the files that ``release.json`` lists."""
        return self.document.get("files") or {}

    @cached_property
    def sha256(self) -> str | None:
        """SHA-256 of its ``release.json``; None for a draft."""
        path = self.folder / RELEASE
        return sha256_file(path) if path.is_file() else None

    def rows(self, name: str, ids: Collection[str]) -> dict[str, Json]:
        """Return id -> record of some records of one file; the other lines are not parsed."""
        rows: dict[str, Json] = {}
        if not ids:
            return rows
        with _reading(self.folder / name, "records as packing wrote them") as path:
            if name not in self._places:
                self.look(name)
            places, hashes = self._places[name], self.records[name]
            there = sorted((places[hashes[id_]], id_) for id_ in ids if hashes[id_] in places)
            with open_plain(path) as lines:
                for (start, length), record_id in there:
                    lines.seek(start)
                    line = lines.read(length)
                    if sha256_bytes(line) == hashes[record_id]:  # else it was changed since it was looked at
                        rows[record_id] = parse_json(line)
        if missing := sorted(set(ids) - rows.keys()):
            raise InputError([_other_records(path, missing, ())])
        return rows

    def look(self, name: str) -> tuple[list[str], list[str]]:
        """Hash the lines of a file, and remember where they begin and how long they are, in bytes.

        Returned: the ids of the records whose lines are not there, and the numbers of lines that are no
        record's.
        """
        stated = self.records[name]
        wanted, others, start = set(stated.values()), list[str](), 0
        places = self._places[name] = {}
        with open_plain(self.folder / name) as lines:
            for number, ended in enumerate(lines, 1):
                line = ended.removesuffix(b"\n")
                sha256 = sha256_bytes(line)
                if sha256 in wanted:
                    places[sha256] = (start, len(line))
                else:
                    others.append(str(number))
                start += len(ended)
        return sorted(id_ for id_, sha256 in stated.items() if sha256 not in places), others


def open_side(path: str | Path) -> Side:
    """Open a release for a diff, public or hidden."""
    folder = Path(path)
    try:
        side = Side(folder, read_release_document(folder))
    except RecursionError as error:
        raise InputError([_damaged(folder / RELEASE, "a release document", str(error))]) from error
    where, records = f"{folder / RELEASE} $.records", side.document.get("records")
    if not records:
        raise InputError([_damaged(where, "the hashes of the records by file", repr(records))])
    for name in records:
        if Path(name).name != name:
            raise InputError([_damaged(where, "a file of the release and its hashes", repr(name)[:80])])
    for problems_of in (_cut, _stale):
        if problems := [problem for name in side.records for problem in problems_of(side, name)]:
            raise InputError(problems)
    return side


def _cut(side: Side, name: str) -> Iterator[UserError]:
    """Yield a problem where a file of records is missing or has another size than is stated."""
    path = side.folder / name
    try:
        size = path.stat().st_size
    except OSError as error:
        yield _damaged(path, "a file of records", reason_of(error))
        return
    stated = side.files.get(name, {}).get("bytes")
    if stated is not None and stated != size:
        yield _damaged(path, f"{stated} bytes, as {RELEASE} states", str(size))


def _stale(side: Side, name: str) -> Iterator[UserError]:
    """Yield a problem where lines are not those whose hashes are stated: one was changed after packing."""
    path = side.folder / name
    try:
        missing, others = side.look(name)
    except OSError as error:
        yield _damaged(path, "a file of records", reason_of(error))
        return
    if missing or others:
        yield _other_records(path, missing, others)


@contextmanager
def _reading(path: Path, expected: str) -> Iterator[Path]:
    """Give a path to read; what it cannot be read by is named."""
    try:
        yield path
    except (OSError, ValueError, RecursionError) as error:
        raise InputError([_damaged(path, expected, reason_of(error))]) from error


def _other_records(path: Path, missing: Sequence[str], others: Sequence[str]) -> UserError:
    parts = [f"{len(missing)} with another hash: {_named(missing)}"] if missing else []
    parts += [f"other lines: {_named(others)}"] if others else []
    return _damaged(path, f"the records whose hashes {RELEASE} states", "; ".join(parts))


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def _damaged(where: Path | str, expected: str, found: str) -> UserError:
    return UserError(str(where), expected=expected, found=found, fix=_RESTORE)


# -- Which version a change of a release asks for (semver.org 2.0.0, applied to data)
#
# From 1.0.0 on: *major* when a record changes its meaning or goes, *minor* when records are added, *patch*
# for the rest. While the major number is 0, a major step raises the minor number, as a minor step does.


class Step(IntEnum):
    """How far two releases are apart; a larger one includes the smaller."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version."""

    core: tuple[int, int, int]  # major, minor and patch number
    pre: tuple[str, ...]  # the parts of the pre-release, none for a release proper
    text: str  # as it was written, build metadata included; the metadata orders nothing

    @classmethod
    def of(cls, text: str, where: str) -> Self:
        if not isinstance(text, str) or not SEMVER.fullmatch(text):
            raise ConfigError(
                where, expected="a semantic version such as 0.1.0", found=repr(text),
                fix="number it MAJOR.MINOR.PATCH",
            )  # fmt: skip
        plain = text.partition("+")[0]
        numbers, _, pre = plain.partition("-")
        major, minor, patch = (int(number) for number in numbers.split("."))
        return cls((major, minor, patch), tuple(pre.split(".")) if pre else (), text)

    @property
    def order(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        """What versions sort by: a pre-release comes before its release, numbers before words."""
        parts = tuple((False, int(part), "") if part.isdecimal() else (True, 0, part) for part in self.pre)
        return (self.core, not self.pre, parts)

    def __str__(self) -> str:
        return self.text


def next_version(old: Version, step: Step) -> Version:
    """Return the lowest version that a step from an old one asks for.

    A pre-release promises nothing: what follows it is its own release, whatever changed.
    """
    major, minor, patch = old.core
    if step is Step.NONE:
        return old
    if not old.pre:
        if step is Step.PATCH:
            patch += 1
        elif step is Step.MINOR or major == 0:
            minor, patch = minor + 1, 0
        else:
            major, minor, patch = major + 1, 0, 0
    core = (major, minor, patch)
    return Version(core, (), ".".join(str(number) for number in core))


def is_enough(old: Version, step: Step, new: Version) -> bool:
    """Return whether a new version says as much as the step from the old one asks for."""
    if step is Step.NONE:
        return new.order >= old.order
    # A candidate of the version that is due may come before it: 0.2.0-rc.1 after 0.1.0.
    return new.order > old.order and new.core >= next_version(old, step).core


# -- What a diff asks of a kind

Rows = Sequence[Any]
Reasons = Iterator[tuple[Step, str]]


def _as_list(rows: Rows) -> Json:
    return [asdict(row) for row in rows]


def _no_reasons(*_: object) -> Reasons:
    yield from ()


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a diff beside the records. JSON, text, page and the version that is due follow from it."""

    name: str  # its key in JSON
    title: str  # what it lists, for people
    compare: Callable[[Side, Side], Rows]  # old side, new side -> rows that differ
    line: Callable[[Any], str]  # a row -> one line for people
    shown: Callable[[Rows], Rows] = tuple  # rows -> those that people are shown, or groups of them
    as_json: Callable[[Rows], Json] = _as_list  # rows -> plain JSON
    # rows, old side, new side -> the steps of the version that they ask for, and why
    reasons: Callable[[Rows, Side, Side], Reasons] = _no_reasons


@dataclass(frozen=True, slots=True)
class FileSection(Section):
    """A section about files of a kind, which are no documents.

    Its rows have a ``path`` and a ``kind``: ``added``, ``removed`` or ``changed``.
    """

    owns: Callable[[str], bool] = bool  # whether a path of a release is one of these files
    # what ``changes.json`` says of a row, all but ``old`` and ``new`` -> the row
    row: Callable[[Mapping[str, Any]], Any] = dict
    # rows, old folder, new folder -> the first rows with their pictures, for a page
    pictures: Callable[[Rows, Path, Path], Sequence[Any]] = lambda *_: ()


@dataclass(frozen=True, slots=True)
class RecordFile:
    """What a diff knows of a JSONL file of records."""

    noun: str  # what one record is called; ``nouns`` several
    nouns: str
    # fields that say nothing about what a record means: a change of them asks for a patch
    quiet: frozenset[str] = frozenset()
    aside: bool = False  # whether it is beside the records: whatever changes in it asks for a patch
    # whether its field ``split`` says where the record stands, which is told apart from changes
    splits: bool = False
    # the field that names the main record that a record belongs to and makes mean more
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class DiffForm:
    """How releases of a kind are compared."""

    # JSONL file -> what a diff knows of it; the first holds what a benchmark is made of
    files: Mapping[str, RecordFile]
    sections: tuple[FileSection, ...] = ()  # further sections

    @property
    def main(self) -> str:
        """The JSONL file of the stories, or of what stands in their place."""
        return next(iter(self.files))

    def file(self, name: str) -> RecordFile:
        """Return what is known of a JSONL file, of another than the kind has, too."""
        return self.files.get(name) or RecordFile(f"record of {name}", f"records of {name}")


# -- What differs between two JSON documents, by JSON path
#
# Parts that have a number or an id of their own (scenes, transitions, questions) are told apart by it, so
# that a question put in between does not seem to change all that follow. Other lists are aligned by their
# values.

Kind = Literal["added", "removed", "changed", "reordered"]
Steps = tuple[str | int, ...]

IDENTITIES: dict[str, tuple[str, ...]] = {
    "scenes": ("scene_index",),
    "transitions": ("from_scene", "to_scene"),
    "questions": ("question_id",),
    "fields": ("path",),
}
"""Name of a list -> the fields that tell its parts apart."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INDEX = re.compile(r"\[\d+\]")
_MOST_ALIGNED = 400
"""Longest list that is aligned by its values; longer ones are compared place by place."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference."""

    path: str  # JSON path: in the new document, and in the old one for what was removed
    kind: Kind  # ``added``, ``removed``, ``changed``, or ``reordered`` for parts that stand in another order
    old: Json = None  # the old value; None where there was none
    new: Json = None  # the new value; None where there is none any more

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON; ``old`` and ``new`` are there only where there was or is a value."""
        values = {} if self.kind == "added" else {"old": self.old}
        if self.kind != "removed":
            values["new"] = self.new
        return {"path": self.path, "kind": self.kind, **values}


def changes_between(old: Json, new: Json) -> tuple[Change, ...]:
    """Return every difference between two JSON documents, in the order of the new one."""
    return tuple(_changes(old, new, ()))


def pattern_of(path: str) -> str:
    """Return a path with the parts of its lists taken together, such as ``$.scenes[*].action``."""
    return _INDEX.sub("[*]", path)


def path_text(steps: Steps) -> str:
    """Return a JSON path; names that are no plain words stand in brackets and quotes."""
    return "$" + "".join(_step_text(step) for step in steps)


_PART = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")


def has_path(document: Json, path: str) -> bool:
    """Return whether a document has something at a path that :func:`path_text` wrote."""
    try:
        value_at(document, parsed(path, _PART, _step_of))
    except (LookupError, ValueError):
        return False
    return True


def _step_of(match: re.Match[str]) -> str | int:
    if match[3] is not None:
        return str(json.loads(match[3]))
    return match[1] if match[1] is not None else int(match[2])


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _NAME.fullmatch(step) else f"[{canonical_text(step)}]"


def _changes(old: Json, new: Json, steps: Steps) -> Iterator[Change]:
    if _equal(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            inner = (*steps, name)
            if name not in new:
                yield Change(path_text(inner), "removed", old=old[name])
            elif name not in old:
                yield Change(path_text(inner), "added", new=new[name])
            else:
                yield from _changes(old[name], new[name], inner)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_changes(old, new, steps)
    else:
        yield Change(path_text(steps), "changed", old, new)


def _equal(old: Json, new: Json) -> bool:
    # In Python 1 == 1.0 == True; in JSON they are written differently, and so are their forms here.
    return bool(old == new) and (isinstance(old, str) or repr(old) == repr(new))


def _list_changes(old: Sequence[Json], new: Sequence[Json], steps: Steps) -> Iterator[Change]:
    before, after = _places(old, steps), _places(new, steps)
    if before is not None and after is not None:
        yield from _identified(old, new, steps, before, after)
        return
    removed: Sequence[int]
    added: Sequence[int]
    if max(len(old), len(new)) > _MOST_ALIGNED:
        pairs = [(index, index) for index in range(min(len(old), len(new)))]
        removed, added = range(len(new), len(old)), range(len(old), len(new))
    else:
        pairs, removed, added = _aligned(old, new)
    for first, second in pairs:
        yield from _changes(old[first], new[second], (*steps, second))
    yield from (Change(path_text((*steps, index)), "removed", old=old[index]) for index in removed)
    yield from (Change(path_text((*steps, index)), "added", new=new[index]) for index in added)


def _places(values: Sequence[Json], steps: Steps) -> dict[str, int] | None:
    """Return identity -> index of the parts of a list; None where they have none, or share one."""
    fields = IDENTITIES.get(str(steps[-1])) if steps else None
    if fields is None:
        return None
    places: dict[str, int] = {}
    for index, value in enumerate(values):
        if not isinstance(value, dict) or any(name not in value for name in fields):
            return None
        places[canonical_text([value[name] for name in fields])] = index
    return places if len(places) == len(values) else None


def _identified(
    old: Sequence[Json], new: Sequence[Json], steps: Steps, before: dict[str, int], after: dict[str, int]
) -> Iterator[Change]:
    for name, index in after.items():
        if name in before:
            yield from _changes(old[before[name]], new[index], (*steps, index))
        else:
            yield Change(path_text((*steps, index)), "added", new=new[index])
    for name, index in before.items():
        if name not in after:
            yield Change(path_text((*steps, index)), "removed", old=old[index])
    stayed, now = [name for name in before if name in after], [name for name in after if name in before]
    if stayed != now:
        yield Change(path_text(steps), "reordered", stayed, now)


def _aligned(
    old: Sequence[Json], new: Sequence[Json]
) -> tuple[list[tuple[int, int]], Sequence[int], Sequence[int]]:
    """Return which places of two lists correspond, and those of either that do not."""
    texts = [canonical_text(value) for value in old], [canonical_text(value) for value in new]
    pairs: list[tuple[int, int]] = []
    removed: list[int] = []
    added: list[int] = []
    for _, start, end, first, last in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        shared = min(end - start, last - first)
        pairs += [(start + number, first + number) for number in range(shared)]
        removed += range(start + shared, end)
        added += range(first + shared, last)
    return pairs, removed, added
