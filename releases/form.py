"""What releases ask of a kind: its form, handed in by the caller, so that no verb names a kind."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from ..engine.manifest import Manifest
from ..engine.status import RunReport
from ..models.spec import stand_ins_among
from ..schemas.canonical import Json
from ..schemas.paths import CROISSANT, LICENSE, RELEASE, SUMS, WITHDRAWN
from ..schemas.values import Issue
from .diff.form import DiffForm
from .options import Licence, PackOptions
from .tables import PlacedRow, Table

if TYPE_CHECKING:
    from .diff.since import Since

Hashes = Mapping[str, Mapping[str, str]]
"""JSONL file -> record id -> SHA-256 of the record's canonical JSON."""
CROISSANT_FILE = (CROISSANT, "machine-readable description (Croissant 1.1 with responsible-AI fields)")
LAST_FILES = (
    CROISSANT_FILE,
    (RELEASE, "version, content hashes, tool versions, what was left out"),
    (LICENSE, "licence notice"),
    (SUMS, "a checksum of every other file"),
)
"""The end of the list of files on the card of a kind."""


@dataclass(frozen=True, slots=True, order=True)
class LeftOut:
    """A record that the run knows and the release does not hold."""

    id: str  # its id
    code: str  # the stage's reject or failure code, or ``incomplete``, ``rights`` or ``reviewers``
    reason: str  # why, in one line; of what the run did not make, the meaning of the code
    stage: str = "release"  # the stage that rejected it or failed, or ``release`` when packing left it out
    status: str = "left_out"  # ``rejected``, ``failed``, ``left_out`` or ``withdrawn``

    @property
    def why(self) -> str:
        """Who decided so and on what ground, without the details: what can be counted."""
        if self.status == WITHDRAWN:
            return WITHDRAWN
        if self.status == "left_out":
            return f"left out by packing: {self.code}"
        return f"{self.status} by {self.stage}: {self.code}"

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the documents of a release are written from: known when its data files are written."""

    form: "ReleaseForm"  # the form of its kind
    options: PackOptions  # what a person said about it
    licence: Licence  # its licence
    created_at: str  # when the run was created
    statistics: Mapping[str, Any]  # the content of ``statistics.json``
    totals: dict[str, int]  # how many public records and parts of them there are
    languages: list[str]  # the language tags of its public texts, sorted
    left_out: Sequence[LeftOut]  # the records that are not in it
    rows: Mapping[str, int]  # Parquet path -> number of rows
    hashes: Hashes  # of its public records
    own: Any = None  # what only its kind knows
    canary: str = ""  # the line that marks copies of it; empty where it has none
    since: "Since | None" = None  # what changed since the release that it follows; None for a first one
    sizes: Mapping[str, int] = field(default_factory=dict)  # Parquet path -> bytes of their values
    checked_by: Sequence[str] = ()  # the stand-ins for models that checked records, which no data file names

    @property
    def stand_ins(self) -> list[str]:
        """The programs that wrote or checked records in the place of a model, as producers name them."""
        makers = (name.partition(": ")[2] or name for name in self.statistics.get("producers", ()))
        return stand_ins_among([*makers, *self.checked_by])

    @property
    def size(self) -> int:
        """How many records are public."""
        return self.totals[self.form.unit]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has nothing left to do."""

    folder: Path  # where it is
    manifest: Manifest  # its ``run.json``
    report: RunReport  # its ``report.json``
    # story id -> the split that it was last given, of every story that ever got as far
    splits: Mapping[str, str]

    @property
    def created_at(self) -> str:
        """When the run was created or last extended: the only time that enters a release as its own."""
        return self.manifest.changed_at


class Packing(Protocol):
    """One packing of a run: what it takes, and what it writes."""

    @property
    def options(self) -> PackOptions:
        """What a person said about the release, with what is usual for the kind."""
        ...

    @property
    def hidden(self) -> Collection[str]:
        """Ids of the records that are kept from the public; none where the kind has no hidden test."""
        ...

    @property
    def licences(self) -> Counter[str | None]:
        """Licence, None for none -> how many of the records that are taken state it."""
        ...

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """What the run knows and the release does not hold, hidden or not."""
        ...

    def take(self, run: FinishedRun) -> None:
        """Decide what the release takes of a run.

        Raises:
            InputError: the run has findings, or no record can be released; lists why.
        """
        ...

    def write(self, run: FinishedRun, drafts: Sequence[Path], licence: Licence) -> Facts:
        """Write the data files, of the hidden test into the second draft, and return the facts."""
        ...

    def notes(self, facts: Facts) -> Iterator[str]:
        """Yield what the person who packs should know, one sentence each."""
        ...


class Reading(Protocol):
    """One verification of a release: what its records say."""

    @property
    def form(self) -> "ReleaseForm":
        """The form of releases of its kind."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """What was looked at -> how many."""
        ...

    @property
    def data(self) -> Collection[str]:
        """The files that are no documents and no tables, once the facts are counted."""
        ...

    def visit(self, file: str, record: Json) -> None:
        """Take one record of a JSONL file."""
        ...

    def check_rules(self, folder: Path) -> Iterator[Issue]:
        """Yield what is wrong with the records, beyond their bytes."""
        ...

    def recount(self, stated: Facts, folder: Path, document: Mapping[str, Any], *, exact: bool) -> Facts:
        """Return the facts as the data and ``release.json`` give them.

        Args:
            stated: what ``release.json`` states; counts, hashes and statistics are missing.
            folder: the release.
            document: its ``release.json``.
            exact: whether the documents will be compared byte for byte.

        Raises:
            UserError, OSError, ValueError, LookupError, TypeError, AttributeError: it is damaged.
        """
        ...

    def check_beside(
        self, folder: Path, document: Mapping[str, Any], *, exact: bool
    ) -> Iterator[tuple[str, Iterable[Issue]]]:
        """Yield names and findings of checks that only this kind has, after the facts were counted."""
        ...


@dataclass(frozen=True, slots=True)
class HiddenTest:
    """A feature: records that are kept from the public, in a folder of their own."""

    # facts, packing -> what ``release.json`` of that folder says beyond its head and files
    document: Callable[[Facts, Any], dict[str, Json]]
    salt: Callable[[Facts], bytes | None]  # facts -> what the commitments to its records are salted with
    # public folder, its ``release.json``, hidden folder, salt -> what of it shows in public
    check: Callable[[Path, Mapping[str, Json], Path, bytes | None], Iterator[Issue]]
    # hidden folder, its ``release.json`` -> what it holds or says that is not so
    check_folder: Callable[[Path, Mapping[str, Json]], Iterator[Issue]]


def no_documents(facts: Facts) -> Mapping[str, bytes]:  # noqa: ARG001 - as the form asks
    """Return no documents beyond those that all releases have."""
    return {}


def nothing_more(facts: Facts) -> dict[str, Json]:  # noqa: ARG001 - as the form asks
    """Return nothing beyond what documents of all kinds say."""
    return {}


@dataclass(frozen=True, slots=True)
class ReleaseForm:
    """How runs of a kind become releases, and how these are checked and read."""

    kind: str  # as ``release.json`` names it
    # the kinds of run folders that are packed as such -> the file that holds their records
    runs: Mapping[str, str]
    tables: tuple[Table, ...]  # the flat tables, the default configuration first
    record_ids: Mapping[str, str]  # JSONL file -> the field that names a line; lines are sorted by it
    described: tuple[str, ...]  # the files that Croissant lists beside the Parquet tables
    # yields every row that the JSONL files of a folder ask for, in the order of the tables' files
    rows: Callable[[Path], Iterator[PlacedRow]]
    name: str  # how a release is called where nobody says otherwise; ``title`` likewise
    title: str
    what: str  # what a run of the kind makes, with an article
    unit: str  # what the records are, in the plural, as ``counts`` calls them
    tasks: tuple[str, ...]  # task categories of the Hub; ``tags`` likewise
    tags: tuple[str, ...]
    keywords: tuple[str, ...]  # of the Croissant metadata
    rights_scope: str  # what the manifest of sources says of rights
    templates: tuple[str, str, str]  # of card, licence notice and responsible-AI properties
    changes: DiffForm  # how two of its releases are compared
    packing: Callable[["ReleaseForm", PackOptions], Packing]  # starts to pack with options in full
    reading: Callable[["ReleaseForm"], Reading]  # starts to verify
    load: Callable[[Path], Any]  # folder -> the release as typed records
    # facts -> file of a release and what it holds, for the card
    files: Callable[[Facts], Sequence[tuple[str, str]]]
    summary: Callable[[Facts], str]  # facts -> what the release is, in a few sentences
    details: Callable[[Facts], Mapping[str, Any]]  # facts -> what only templates of this kind use
    # facts -> who made parts of the records, and which of them are machines
    makers: Callable[[Facts], tuple[list[str], list[str]]]
    # facts -> content of the documents that only this kind has
    documents: Callable[[Facts], Mapping[str, bytes]] = no_documents
    # facts -> what only ``release.json`` of this kind says; ``left_out`` adds to its part
    document: Callable[[Facts], dict[str, Json]] = nothing_more
    # facts -> what only ``source_manifest.json`` of this kind says
    manifest: Callable[[Facts], dict[str, Json]] = nothing_more
    split_files: tuple[str, ...] = ("test",)  # the splits that ``datasets`` sees, in order
    split_stage: str | None = None  # the stage that assigns splits, if the kind has any
    additions: bool = False  # whether releases have subsets, reviews and a canary
    hidden: HiddenTest | None = None  # its hidden test, if the kind has one
    # type of a line of the first file of ``record_ids``; None where none is read by itself
    record: type[BaseModel] | None = None
    of_videos: bool = False  # whether its runs hold pictures from videos, whose rights somebody may state
