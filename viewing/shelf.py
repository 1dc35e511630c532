"""What a folder has to show: its files of rows, pictures, calls of models, and what it says of itself."""

import json
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from time import monotonic
from typing import Any

from ..engine.calls import ModelUse, unpacked
from ..engine.edits import NAME as EDITS
from ..engine.edits import read_edits
from ..engine.journal_file import NAME as JOURNAL
from ..engine.journal_file import connect, explained
from ..engine.manifest import NAME as MANIFEST
from ..engine.status import StageStatus, run_status
from ..engine.walk import Stop
from ..errors import FabulaError, UserError
from ..evaluation.archive.archive import EVALUATION, lines_of
from ..kinds import SPOKEN
from ..models.spec import made_up, stand_ins_in
from ..schemas.judgement import Judgement
from ..schemas.plain_files import read_json, read_plain
from ..schemas.values import Edit
from .records import Rows, stamp_of

# -- What models were asked in a run, and what came back: read from its journal, a page at a time

_COLUMNS = (
    "request", "sample", "stage", "model", "input_tokens", "output_tokens", "cost", "attempts", "prompt",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallLine:
    """One call, as a list shows it."""

    request: str  # hash of what was asked; with ``sample`` it names the call
    sample: int
    stage: str
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    attempts: int
    prompt: str | None
    items: tuple[str, ...] = ()  # the items whose results used it


class Asked:
    """The calls of a journal. It is opened to be read only.

    Raises RunError: the journal is damaged or of a newer version.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        with explained(path):
            self._sql = connect(path, read_only=True)
            there = {row[1] for row in self._sql.execute("PRAGMA table_info(calls)")}
        # Journals of earlier versions, which are not changed to be read, have fewer columns.
        self._columns = ", ".join(
            f"calls.{name}" if name in there else f"NULL AS {name}" for name in _COLUMNS
        )
        self.any = bool(there)

    def close(self) -> None:
        self._sql.close()

    def __enter__(self) -> "Asked":
        """Return the calls; the journal is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def page(self, first: int, most: int, **chosen: str) -> tuple[list[CallLine], int]:
        """Return some calls in the order of their stages, and how many there are.

        ``chosen``: column (``stage``, ``model``) -> its value.
        """
        where = " AND ".join(f"{column} = ?" for column in chosen)
        where = f"WHERE {where}" if where else ""
        values = tuple(chosen.values())
        with self._lock, explained(self._path):
            (count,) = self._sql.execute(f"SELECT count(*) FROM calls {where}", values).fetchone()
            sql = f"SELECT {self._columns} FROM calls {where} ORDER BY rowid LIMIT ? OFFSET ?"
            lines = [CallLine(*row) for row in self._sql.execute(sql, (*values, most, first))]
        return lines, int(count)

    def values(self, column: str) -> list[tuple[str, int]]:
        """Return the values of ``stage`` or ``model``, with how many calls have each."""
        with self._lock, explained(self._path):
            return list(self._sql.execute(f"SELECT {column}, count(*) FROM calls GROUP BY 1 ORDER BY 1"))

    def whole(
        self, request: str, sample: int
    ) -> tuple[CallLine, Mapping[str, Any], Mapping[str, Any]] | None:
        """Return a call, what was asked, and the reply as it came; None where there is none."""
        key = (request, sample)
        with self._lock, explained(self._path):
            sql = f"SELECT {self._columns}, asked, reply FROM calls WHERE request = ? AND sample = ?"
            row = self._sql.execute(sql, key).fetchone()
            if row is None:
                return None
            *line, asked, reply = row
            used = "SELECT DISTINCT item FROM results JOIN asks ON asks.result = results.key"
            sql = f"{used} WHERE request = ? AND sample = ? ORDER BY 1"
            items = self._sql.execute(sql, key).fetchall()
        return (
            replace(CallLine(*line), items=tuple(item for (item,) in items)),
            unpacked(asked),
            unpacked(reply),
        )

    def of_item(self, item: str) -> list[CallLine]:
        """Return the calls that results of an item used."""
        sql = (
            f"SELECT DISTINCT {self._columns} FROM results JOIN asks ON asks.result = results.key"
            " JOIN calls USING (request, sample) WHERE results.item = ? ORDER BY calls.rowid"
        )
        with self._lock, explained(self._path):
            return [CallLine(*row) for row in self._sql.execute(sql, (item,))]


# -- What a folder has to show

ENDING = ".jsonl"
PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}
ABOUT = ("release.json", "evaluation.json", "run.json")
"""What a folder says of itself, the first that it has."""
FIRST = ("annotations", "records", "scripts", "episodes", "prompts", "judgements")
"""Files that hold what the folder is for; they come first."""
FILTERS: Mapping[str, tuple[str, ...]] = {
    "frames": ("method", "unit"),
    "judgements": ("method", "kind", "condition", "judge", "outcome", "unit"),
    "annotations": ("split", "narrative_type", "moral_label", "language", "state"),
    "records": ("split", "narrative_type", "moral_label", "language", "state"),
}
"""File without its ending -> fields that its rows are filtered by."""
BESIDE = ("producers", "edits", "assignments", "human_validation", "contrastive_variants")
"""Files whose rows are shown with the record of the same id."""
_LOOKING = threading.Lock()


@dataclass(frozen=True)
class Shelf:
    """An open folder; closed with :meth:`close`."""

    folder: Path  # the folder
    about: Mapping[str, Any]  # what it says of itself
    rows: dict[str, Rows]  # name of a file without its ending -> its rows
    calls: Asked | None  # what models were asked; None where it has no journal
    # of an evaluation, the records that outputs were judged by; None where they are not found
    judged_by: Rows | None
    _opened: ExitStack = field(repr=False)

    def close(self) -> None:
        """Close its files, and remove what was indexed of them."""
        self._opened.close()

    def look_again(self) -> None:
        """Take in files that are new, gone or were replaced since, as those of a run that is at work."""
        with _LOOKING:
            for gone in [name for name, rows in self.rows.items() if not rows.path.exists()]:
                del self.rows[gone]
            for file in sorted(self.folder.glob(f"*{ENDING}"), key=_order):
                known = self.rows.get(file.stem)
                if known is None or known.stamp != stamp_of(file):  # pages may still read the one before
                    rows = Rows(file, FILTERS.get(file.stem, ()))
                    self.rows[file.stem] = self._opened.enter_context(rows)

    def __enter__(self) -> "Shelf":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def kind(self) -> str:
        """What it is, in a word or two: run of katha, release of stories, evaluation of images."""
        what = {"release.json": "release", "evaluation.json": "evaluation", "run.json": "run"}
        word = next((what[name] for name in ABOUT if (self.folder / name).is_file()), "folder")
        of = self.about.get("kind") or self.about.get("form")
        return f"{word} ({SPOKEN.get(of, of)})" if isinstance(of, str) else word

    @property
    def judged(self) -> bool:
        return "judgements" in self.rows

    def made_up(self) -> tuple[str, ...]:
        """Return what says that stand-ins for models made what is here."""
        return _made_up(self.folder, tuple(stamp_of(rows.path) for rows in self.rows.values()))

    def picture(self, name: str) -> tuple[bytes, str] | None:
        """Return a picture of the folder and its type; None where it has none of this name."""
        path = (self.folder / name).resolve()
        kind = PICTURES.get(path.suffix.lower())
        if kind is None or not path.is_relative_to(self.folder.resolve()):
            return None
        try:
            return read_plain(path), kind
        except OSError:
            return None

    def outputs(self) -> dict[str, dict[str, int]]:
        """Return unit of an evaluation -> method whose output was judged -> replies about that output."""
        outputs: dict[str, dict[str, int]] = {}
        for file, replies in (("frames", 0), ("judgements", 1)):
            counts = self.rows[file].counts("unit", "method") if file in self.rows else {}
            for (unit, method), count in counts.items():
                if unit and method:  # what was asked about the text alone is of no method
                    outputs.setdefault(unit, {})[method] = count * replies
        return dict(sorted(outputs.items()))


def open_shelf(folder: Path) -> Shelf:
    """Open a folder to look at."""
    if not folder.is_dir():
        raise UserError(str(folder), expected="the folder of a run, a release or an evaluation",
                         found="no folder", fix="give one of these")  # fmt: skip
    files = sorted(folder.glob(f"*{ENDING}"), key=_order)
    journal = folder / JOURNAL
    if not files and not journal.is_file():
        raise UserError(str(folder), expected="files of records or judgements, or a journal", found="none",
                         fix="give the folder of a run, a release or an evaluation")  # fmt: skip
    about = next((_document(folder / name) for name in ABOUT if (folder / name).is_file()), {})
    with ExitStack() as opening:
        rows = {file.stem: opening.enter_context(Rows(file, FILTERS.get(file.stem, ()))) for file in files}
        asked = opening.enter_context(Asked(journal)) if journal.is_file() else None
        calls = asked if asked is not None and asked.any else None
        release = _release_of(folder)
        judged_by = None if release is None else opening.enter_context(Rows(release))
        return Shelf(folder, about, rows, calls, judged_by, opening.pop_all())


@lru_cache(maxsize=2)
def _made_up(folder: Path, _stamps: tuple[tuple[int, int, int], ...]) -> tuple[str, ...]:
    if (folder / EVALUATION).is_file():
        from ..evaluation.archive.archive import read_manifest
        from ..evaluation.archive.replies import stand_in_notes

        with suppress(FabulaError):  # a damaged manifest is told where it is shown
            return tuple(stand_in_notes(read_manifest(folder)))
    return tuple(filter(None, [made_up(stand_ins_in(folder))]))


def _release_of(folder: Path) -> Path | None:
    """Return the file with the records of the release that a run's outputs were judged by."""
    sources = _document(folder / "run.json").get("sources")
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, dict) and source.get("role") in ("release", "suite"):
            release = folder / str(source.get("path"))
            for name in FIRST[:-1]:
                if (release / f"{name}{ENDING}").is_file():
                    return release / f"{name}{ENDING}"
    return None


def _document(path: Path) -> dict[str, Any]:
    """Return what a file says; nothing where it cannot be read, since all else is shown then, too."""
    try:
        document = read_json(path)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _order(file: Path) -> tuple[int, str]:
    return (FIRST.index(file.stem) if file.stem in FIRST else len(FIRST), file.stem)


# -- Two evaluations side by side: what both were asked, and where their answers differ

FILE = "judgements.jsonl"


@dataclass(frozen=True, slots=True)
class Pair:
    """One question that both were asked."""

    unit: str  # story, prompt or episode
    item: str  # what was asked
    what: str  # method, kind and condition, as text
    first: str  # what was answered in the first evaluation, judge by judge; empty where nothing was
    second: str  # the same of the second

    @property
    def same(self) -> bool:
        return self.first == self.second


@dataclass(frozen=True, slots=True)
class Pairs:
    """Some pairs, and how many there are."""

    pairs: tuple[Pair, ...]
    count: int
    asked: int
    differing: int
    alone: int


class Differing:
    """Answers of two evaluations, aligned by what was asked, in a temporary file.

    A method that only one of them has is compared with the only method of the other, if each has one.

    Raises InputError: an archive cannot be read.
    """

    def __init__(self, first: Shelf, second: Shelf) -> None:
        self.first, self.second = first, second
        self._file = tempfile.NamedTemporaryFile(prefix="fabula-view-", suffix=".sqlite")  # noqa: SIM115
        self._sql = sqlite3.connect(self._file.name, check_same_thread=False, isolation_level=None)
        self._sql.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE pairs (unit TEXT, item TEXT, what TEXT, first TEXT, second TEXT,"
            " PRIMARY KEY (unit, item, what)) WITHOUT ROWID; BEGIN;"
        )
        methods = [shelf.about.get("subject", {}).get("methods", {}) for shelf in (first, second)]
        alike = all(len(judged) == 1 for judged in methods)
        for column, shelf in (("first", first), ("second", second)):
            sql = (
                f"INSERT INTO pairs (unit, item, what, {column}) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
                f" SET {column} = coalesce({column} || char(10), '') || excluded.{column}"
            )
            self._sql.executemany(
                sql, (row_of(judgement, alike=alike) for judgement in lines_of(shelf.folder / FILE))
            )
        self._sql.execute("COMMIT")

    def close(self) -> None:
        """Remove the temporary file."""
        self._sql.close()
        self._file.close()

    def __enter__(self) -> "Differing":
        """Return the pairs; the temporary file is removed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def page(self, words: str, first: int, most: int, *, everything: bool) -> Pairs:
        """Return some pairs, by unit and item."""
        where = ["1"] if everything else ["first IS NOT second"]
        values: list[str] = []
        if words.strip():
            where.append(
                "instr(lower(unit || ' ' || item || ' ' || what || ' ' || coalesce(first, '')"
                " || coalesce(second, '')), ?)"
            )
            values.append(words.strip().lower())
        clause = " AND ".join(where)
        (count,) = self._sql.execute(f"SELECT count(*) FROM pairs WHERE {clause}", values).fetchone()
        asked, differing, alone = self._sql.execute(
            "SELECT count(*), coalesce(sum(first IS NOT second), 0),"
            " coalesce(sum(first IS NULL OR second IS NULL), 0) FROM pairs"
        ).fetchone()
        sql = f"SELECT * FROM pairs WHERE {clause} ORDER BY unit, item, what LIMIT ? OFFSET ?"
        pairs = tuple(
            Pair(unit, item, what, said or "", other or "")
            for unit, item, what, said, other in self._sql.execute(sql, (*values, most, first))
        )
        return Pairs(pairs, count, asked, differing, alone)


def row_of(judgement: Judgement, *, alike: bool) -> tuple[str, str, str, str]:
    """Return unit, item, what was asked, and the answer of a judgement."""
    method = "" if alike or judgement.method is None else judgement.method
    vote = f"vote {judgement.vote + 1}" if judgement.vote else ""
    seed = "" if judgement.seed is None else f"seed {judgement.seed}"
    what = " · ".join(filter(None, (method, seed, judgement.kind, judgement.condition)))
    said = answer_of(judgement.parsed) if judgement.parsed is not None else judgement.outcome
    return judgement.unit, judgement.item, what, " · ".join(filter(None, (said, vote)))


def answer_of(parsed: Mapping[str, Any]) -> str:
    """Return what was read from a reply, in a line: its answer, if any, and what pictures say of it."""
    answer = parsed.get("answer", parsed.get("final_answer", parsed))
    if not isinstance(answer, str):
        return json.dumps(answer, ensure_ascii=False, sort_keys=True)
    support = parsed.get("image_support")
    return f"{answer} (pictures: {support})" if isinstance(support, str) else answer


# -- What a folder leads to: how its run goes, its corrections, and the pages that other commands make of it
#
# Report, audit and diff are made when somebody asks for them, from what the folder holds then; nothing is
# written. An audit with gold records or people's forms that lies beside the folder is shown as it is.

OFTEN = 5.0
"""Seconds after which the page of a run at work looks again, at the least."""
AUDITED = ("records", "annotations")
"""Files of rows that an audit of drafts reads."""


@dataclass(frozen=True, slots=True)
class StageLine:
    """Where a stage stands."""

    name: str
    made: int
    stopped: int  # items rejected or failed
    to_come: int  # items that have no result of it yet, or none that counts
    asked: int  # requests sent to models whose reply is not there
    spent: float | None  # USD; None where it asked no model, or the price is not known
    forecast: float | None  # USD at its end, if the items to come cost what those before did


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands."""

    holder: Mapping[str, Any] | None  # the process that works on it; None if there is none
    totals: Mapping[str, int]
    stages: tuple[StageLine, ...]
    stopped: tuple[tuple[str, Stop], ...]  # the first items that went no further, and why
    notes: tuple[str, ...]
    again: int  # seconds after which to look again; 0 where nothing is at work

    @property
    def spent(self) -> float:
        """USD so far, as far as prices are known."""
        return sum(stage.spent or 0.0 for stage in self.stages)

    @property
    def forecast(self) -> float:
        """USD at the end of the stages that have begun."""
        return sum(stage.forecast or stage.spent or 0.0 for stage in self.stages)

    @property
    def asked(self) -> int:
        """Requests whose reply is not there."""
        return sum(stage.asked for stage in self.stages)


def progress_of(folder: Path) -> Progress:
    """Return where a run stands now; works while another process works on it."""
    from ..kinds.verbs import pipeline_of

    begun = monotonic()
    status = run_status(folder, pipeline_of(folder))
    again = 0 if status.holder is None else round(max(OFTEN, 5 * (monotonic() - begun)))
    lines = tuple(map(partial(_stage_line, status.models), status.stages))
    return Progress(status.holder, status.totals, lines, status.stopped, status.notes, again)


def _stage_line(models: Sequence[ModelUse], stage: StageStatus) -> StageLine:
    uses = [use for use in models if use.stage == stage.name]
    stopped, to_come = stage.rejected + stage.failed, stage.pending + stage.stale
    done, asked = stage.made + stopped, sum(use.uncertain for use in uses)
    spent = forecast = None
    if uses and not any(use.unpriced for use in uses):
        spent = sum(use.cost for use in uses)
        forecast = spent / done * (done + to_come) if done else None
    return StageLine(stage.name, stage.made, stopped, to_come, asked, spent, forecast)


def corrections_in(folder: Path) -> tuple[Edit, ...]:
    """Return all corrections of a run, the last first."""
    path = folder / EDITS
    return read_edits(path)[::-1] if path.is_file() else ()


def leads_of(folder: Path, files: Mapping[str, object]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what a folder leads to: a name, and the steps of its address. ``files``: its files of rows."""
    if (folder / MANIFEST).is_file() and (folder / JOURNAL).is_file():
        yield "progress", ("progress",)
    if (folder / EDITS).is_file():
        yield "corrections", ("corrections",)
    if "judgements" in files or (folder / "evaluation.json").is_file():
        yield "report", ("report",)
    elif any(name in files for name in AUDITED):
        yield "audit", ("audit",)
    yield from ((f"diff to {old.name}", ("diff", old.name)) for old in releases_before(folder))


@lru_cache(maxsize=2)
def report_page(folder: Path, _stamp: tuple[int, int, int]) -> str:
    """Return the page of ``fabula report``; ``_stamp`` is that of the judgements, so that it is made once."""
    from ..evaluation.report.formats import render_page
    from ..kinds.evaluations import make_report

    return render_page(make_report(folder))


def audit_page(folder: Path) -> str:
    """Return the last audit of a folder that lies in it or beside it; else what one says without gold."""
    from ..people.audits.auditing import PAGE, RESULT, audit
    from ..people.audits.form import page_of

    results = [*folder.glob(f"*/{RESULT}"), *folder.parent.glob(f"*/{RESULT}"), folder / RESULT]
    pages = [result.with_name(PAGE) for result in results if _is_of(result, folder)]
    there = sorted((page for page in pages if page.is_file()), key=lambda page: page.stat().st_mtime)
    return read_plain(there[-1]).decode("utf-8") if there else page_of(audit(folder))


def _is_of(result: Path, folder: Path) -> bool:
    """Return whether an audit is of a folder, which it names as it was typed, with the number of records."""
    try:
        draft = Path(str(read_json(result)["facts"]["draft"]).rpartition(" (")[0])
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return draft.name == folder.resolve().name and (not draft.exists() or draft.samefile(folder))


def releases_before(folder: Path) -> list[Path]:
    """Return the releases beside a release that are earlier versions of it, the last first."""
    from packaging.version import InvalidVersion, Version

    versions = {}
    for path in (folder / "release.json", *folder.resolve().parent.glob("*/release.json")):
        try:
            document = read_json(path)
            versions[path.parent] = document["about"]["name"], Version(document["version"])
        except (OSError, ValueError, LookupError, TypeError, InvalidVersion):
            continue
    if folder not in versions:
        return []
    name, version = versions[folder]
    older = [(other, path) for path, (known, other) in versions.items() if known == name and other < version]
    return [path for _, path in sorted(older, reverse=True)]


def diff_page(old: Path, new: Path) -> str:
    """Return the page of ``fabula release diff``."""
    from ..kinds.verbs import diff
    from ..releases.diff.since import render_page

    return render_page(diff(old, new))
