"""What tells apart the kinds of releases that are flat: one file of records, one split, no hidden test."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ..schemas.canonical import Json
from ..schemas.issue import Issue
from .shapes import Shape

if TYPE_CHECKING:
    from .suite_facts import SuiteFacts


@dataclass(frozen=True, slots=True)
class FlatKind:
    """A kind of flat releases.

    Attributes:
        shape: tables and files; its one JSONL file holds the records.
        model: type of a record.
        name: how a release is called where nobody says otherwise; ``title`` likewise.
        what: what a run of the kind makes, with an article.
        unit: what the records are, in the plural, as ``totals`` of the statistics calls them.
        items: what the items of such a run are, where some were left out.
        files: file of a release -> what it holds, for the card.
        tasks: task categories of the Hub; ``tags`` likewise.
        keywords: of the Croissant metadata.
        rights_scope: what the manifest of sources says of rights.
        templates: of card, licence notice and responsible-AI properties.
        statistics: folder with the official files, records -> content of ``statistics.json``; it has
            ``totals`` and ``producers``.
        write_official: run, new folder, records; writes the official files.
        official: folder, records; the paths of the official files that the records ask for.
        check_record: yields what is wrong with a record beyond its schema.
        check_official: folder, records; yields where the official files are not what the records say.
        summary: statistics -> what the release is, in two sentences.
        details: facts -> what only templates of this kind use.
        notes: facts -> what a person who packs should know.
    """

    shape: Shape
    model: type[BaseModel]
    name: str
    title: str
    what: str
    unit: str
    items: str
    files: tuple[tuple[str, str], ...]
    tasks: tuple[str, ...]
    tags: tuple[str, ...]
    keywords: tuple[str, ...]
    rights_scope: str
    templates: tuple[str, str, str]
    statistics: Callable[[Path, Sequence[Any]], dict[str, Json]]
    write_official: Callable[[Path, Path, Sequence[Any]], None]
    official: Callable[[Path, Sequence[Any]], Iterator[str]]
    check_record: Callable[[Any, str], Iterator[Issue]]
    check_official: Callable[[Path, Sequence[Any]], Iterator[Issue]]
    summary: Callable[[Mapping[str, Any]], str]
    details: Callable[["SuiteFacts"], dict[str, Any]]
    notes: Callable[["SuiteFacts"], Iterator[str]]

    @property
    def lines(self) -> str:
        """The JSONL file of the records."""
        return next(iter(self.shape.record_ids))

    @property
    def key(self) -> str:
        """The field that names a record."""
        return self.shape.record_ids[self.lines]

    def id_of(self, record: BaseModel) -> str:
        """Return what names a record."""
        return str(getattr(record, self.key))
