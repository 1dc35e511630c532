"""What a diff asks of a kind: what its files of records are called and mean, and what else it compares."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

from ...errors import ConfigError
from ...schemas.canonical import Json
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
