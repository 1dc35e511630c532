"""What releases ask of a kind: its form, handed in by the caller, so that no verb names a kind."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ValidationError

from ..engine.manifest import Manifest
from ..engine.status import RunReport
from ..errors import ConfigError, InputError, UserError
from ..models.spec import stand_ins_among
from ..schemas.canonical import Json, Plain, canonical_bytes, sha256_bytes
from ..schemas.paths import CHANGES, CROISSANT, LICENSE, RELEASE, SUMS, WITHDRAWN, format_path
from ..schemas.plain_files import type_reason
from ..schemas.values import Issue
from ..validators.report import as_user_error
from ..validators.view import find_redacted
from .diff.form import DiffForm
from .loading import UNSTATED, read_rows, stated_languages
from .options import Licence, PackOptions, one_licence
from .parquet import VIEWER_BYTES, PlacedRow, Table, TableWriter, first_page

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
class LeftOut(Plain):
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
    def form(self) -> "ReleaseForm": ...

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


# -- Kinds whose releases are flat: one file of records, one split, no hidden test, an official form beside

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class FlatRecords:
    """The records of a kind whose releases are flat."""

    model: type[BaseModel]  # type of a record
    # folder with the official files, records -> content of ``statistics.json``; it has ``totals`` and
    # ``producers``
    statistics: Callable[[Path, Sequence[Any]], dict[str, Json]]
    # run, new folder, records; writes the official files
    write_official: Callable[[Path, Path, Sequence[Any]], None]
    # folder, records; the paths of the official files that the records ask for
    official: Callable[[Path, Sequence[Any]], Iterator[str]]
    # yields what is wrong with a record beyond its schema
    check_record: Callable[[Any, str], Iterator[Issue]]
    # folder, records; yields where the official files are not what the records say
    check_official: Callable[[Path, Sequence[Any]], Iterator[Issue]]
    notes: Callable[[Facts], Iterator[str]]  # facts -> what a person who packs should know
    items: str  # what the items of such a run are, where some were left out
    # file of a release and what it holds, for the card, before those that all have
    files: tuple[tuple[str, str], ...]
    item: str = ""  # the field of a record that holds the id of its item; empty: the one that names it
    texts: str = ""  # what of it is in a language that nobody else states; empty where nothing is
    # the same, and what a person said; writes what of the run's pictures may be given away, and yields what
    # that person should know
    write_pictures: Callable[[Path, Path, Sequence[Any], PackOptions], Iterator[str]] | None = None

    def parts(self) -> dict[str, Any]:
        """Return the parts of a form that all flat releases have alike."""
        return {
            "packing": self.packing, "reading": self.reading, "files": self._files, "makers": _makers,
            "document": _document, "record": self.model,
        }  # fmt: skip

    def _files(self, facts: Facts) -> Sequence[tuple[str, str]]:
        more = (CHANGES, "what changed since the version before, by record and path")
        return [*self.files, *LAST_FILES, *([more] if facts.since is not None else [])]

    def packing(self, form: ReleaseForm, options: PackOptions) -> "FlatPacking":
        return FlatPacking(self, form, _checked(options, form))

    def reading(self, form: ReleaseForm) -> "FlatReading":
        return FlatReading(self, form)


@dataclass(slots=True)
class FlatPacking:
    """One packing of a run of such a kind."""

    kind: FlatRecords
    form: ReleaseForm
    options: PackOptions
    records: tuple[Any, ...] = ()
    left_out: Sequence[LeftOut] = ()
    hidden: tuple[str, ...] = ()
    about_pictures: tuple[str, ...] = ()

    @property
    def licences(self) -> Counter[str | None]:
        """No record states a licence."""
        return Counter({None: 1})

    def take(self, run: FinishedRun) -> None:
        problems: list[UserError] = []
        lines, key = _lines_of(self.form)
        self.records = tuple(read_rows(run.folder / lines, self.kind.model, problems))
        for record in self.records:  # nobody wants to read a text without the secret that stood in it
            problems += map(as_user_error, find_redacted(record.as_json(), getattr(record, key)))
        if problems:
            raise InputError(problems)
        left_out = [
            LeftOut(item.id, str(item.code), item.meaning, item.stage, item.status)
            for item in run.report.items
        ]
        if not self.options.allow_drafts:
            left_out += self._leave_incomplete(run, self.kind.item or key)
        self.left_out = sorted(left_out)

    def _leave_incomplete(self, run: FinishedRun, name: str) -> list[LeftOut]:
        """Keep only the records whose model gave a usable answer at every step; return the others."""
        missed = {item.id: f"no usable answer in {item.stage}: {item.code}" for item in run.report.without}
        lacking = {of: missed[of] for one in self.records if (of := str(getattr(one, name))) in missed}
        self.records = tuple(one for one in self.records if str(getattr(one, name)) not in lacking)
        if lacking and not self.records:
            fix = f"`fabula run retry {run.folder} --failed` asks again"
            raise InputError([UserError(of, what=why, fix=fix) for of, why in sorted(lacking.items())])
        return [LeftOut(of, "incomplete", why) for of, why in lacking.items()]

    def write(self, run: FinishedRun, drafts: Sequence[Path], licence: Licence) -> Facts:
        """Write official files, the JSONL file and the tables."""
        draft = drafts[0]
        self.kind.write_official(run.folder, draft, self.records)
        if self.kind.write_pictures is not None:
            self.about_pictures = tuple(
                self.kind.write_pictures(run.folder, draft, self.records, self.options)
            )
        lines, key = _lines_of(self.form)
        contents = {getattr(record, key): canonical_bytes(record.as_json()) for record in self.records}
        with (draft / lines).open("wb") as file:
            for name in sorted(contents):
                file.write(contents[name] + b"\n")
        self._require_sound(draft)
        with TableWriter(draft) as writer:
            for split, table, row in self.form.rows(draft):
                writer.add(table, split, row)
        self.about_pictures += tuple(_beyond_viewer(draft, writer.counts, self.form))
        statistics = self.kind.statistics(draft, self.records)
        return Facts(
            form=self.form,
            options=self.options,
            licence=licence,
            created_at=run.created_at,
            statistics=statistics,
            totals=dict(statistics["totals"]),
            languages=_languages(self.options),
            left_out=self.left_out,
            rows=writer.counts,
            sizes=writer.bytes,
            hashes={lines: {name: sha256_bytes(content) for name, content in contents.items()}},
        )

    def _require_sound(self, draft: Path) -> None:
        """Refuse what verifying would refuse: records and official files are asked the same."""
        lines, key = _lines_of(self.form)
        issues = [
            *(issue for record in self.records
              for issue in self.kind.check_record(record, f"{lines}:{getattr(record, key)}")),
            *self.kind.check_official(draft, self.records),
        ]  # fmt: skip
        if problems := [as_user_error(issue) for issue in issues if issue.level == "error"]:
            raise InputError(problems)

    def notes(self, facts: Facts) -> Iterator[str]:
        """Yield what the person who packs should know."""
        if facts.left_out:
            yield f"{self.kind.items} rejected or failed: {len(facts.left_out)}; release.json names them"
        yield from self.kind.notes(facts)
        yield from self.about_pictures
        if self.kind.texts and facts.languages == [UNSTATED]:
            yield f"the language of the {self.kind.texts} is not stated; --language names it"


@dataclass(slots=True)
class FlatReading:
    """One verification of a release of such a kind."""

    kind: FlatRecords
    form: ReleaseForm
    records: list[Any] = field(default_factory=list)
    data: frozenset[str] = frozenset()
    _rows: list[Json] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        return {self.form.unit: len(self.records)}

    def visit(self, file: str, record: Json) -> None:  # noqa: ARG002 - there is one file
        self._rows.append(record)

    def check_rules(self, folder: Path) -> Iterator[Issue]:
        """Yield what is wrong with the records, and with the official files beside them."""
        lines, key = _lines_of(self.form)
        for row in self._rows:
            where = f"{lines}:{row.get(key)}"
            try:
                record = self.kind.model.model_validate(row)
            except ValidationError as error:
                for detail in error.errors(include_url=False, include_input=False):
                    yield Issue(
                        where, format_path(detail["loc"]), "schema", type_reason(detail), "correct the value"
                    )
                continue
            self.records.append(record)
            yield from self.kind.check_record(record, where)
        yield from self.kind.check_official(folder, self.records)

    def recount(self, stated: Facts, folder: Path, document: Mapping[str, Any], *, exact: bool) -> Facts:  # noqa: ARG002 - of a kind
        """Return the facts as the data and ``release.json`` give them."""
        lines, key = _lines_of(self.form)
        self.data = frozenset((lines, *self.kind.official(folder, self.records)))
        languages = document["languages"] if "languages" in document else stated_languages(folder)
        options = replace(stated.options, languages=tuple(map(str, languages)))
        statistics = self.kind.statistics(folder, self.records)
        hashes = {
            getattr(record, key): sha256_bytes(canonical_bytes(record.as_json())) for record in self.records
        }
        return replace(
            stated,
            options=options,
            statistics=statistics,
            totals=dict(statistics["totals"]),
            languages=_languages(options),
            hashes={lines: hashes},
        )

    def check_beside(
        self,
        folder: Path,  # noqa: ARG002 - of a kind
        document: Mapping[str, Any],  # noqa: ARG002
        *,
        exact: bool,  # noqa: ARG002
    ) -> Iterator[tuple[str, Iterable[Issue]]]:
        """Yield nothing: every part of such a release shows in a document."""
        yield from ()


def _beyond_viewer(folder: Path, paths: Iterable[str], form: ReleaseForm) -> Iterator[str]:
    """Yield the tables of pictures whose first page is more than the Hub's viewer reads."""
    names = {table.name for table in form.tables if table.pictures}
    for path in sorted(path for path in paths if path.split("/")[1] in names):
        if (size := first_page(folder / path)) > VIEWER_BYTES:
            yield (
                f"the Hub's viewer will not show {path}: its first page has {size:,} bytes of pictures, and "
                f"the viewer reads {VIEWER_BYTES:,}; programs read the table all the same"
            )


def _makers(facts: Facts) -> tuple[list[str], list[str]]:
    """Return who made parts of the records, each once, sorted, and which of them are machines."""
    makers = sorted({name.partition(": ")[2] for name in facts.statistics["producers"]})
    return makers, [maker for maker in makers if maker.startswith("rules@") or " via " in maker]


def _document(facts: Facts) -> dict[str, Json]:
    """Return what ``release.json`` of a flat release says: nobody else knows the language of its texts."""
    return {"languages": facts.languages}


def _checked(options: PackOptions, form: ReleaseForm) -> PackOptions:
    """Return the options of a release: it is not called a story benchmark unless somebody says so."""
    for tag in options.languages:
        if not _LANGUAGE.fullmatch(tag):
            raise ConfigError(
                "--language",
                expected="a language tag such as en or zh-Hant",
                found=repr(tag),
                fix="give its tag",
            )
    usual = {field.name: field.default for field in fields(PackOptions)}
    name = form.name if options.name == usual["name"] else options.name
    title = form.title if options.title == usual["title"] else options.title
    one_licence(Counter({None: 1}), options, form.what)
    return replace(options, name=name, title=title)


def _languages(options: PackOptions) -> list[str]:
    return sorted(set(options.languages)) or [UNSTATED]


def _lines_of(form: ReleaseForm) -> tuple[str, str]:
    """Return the JSONL file of the records, and the field that names one."""
    return next(iter(form.record_ids.items()))
