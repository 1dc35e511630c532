"""What a diff asks of a kind: what its files of records are called and mean, and what else it compares."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, Self

from ...errors import ConfigError
from ...schemas.canonical import Json, canonical_text
from ...schemas.paths import parsed, value_at
from ..options import SEMVER
from .sides import Side

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
        """Read a version."""
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
