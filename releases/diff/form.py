"""What a diff asks of a kind: what its files of records are called and mean, and what else it compares."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...schemas.canonical import Json
from .sides import Side
from .version import Step

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
