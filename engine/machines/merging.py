"""One run of its shards: journals and stored files are put together, then stages that need all items run.

Nothing is made twice: a result that a shard made counts as the run's own. Copying goes on where it was
stopped, as how far each shard was copied is written down with the rows themselves.
"""

import json
import math
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import RunError
from ...schemas.text import quoted, tallied
from .. import journal_file
from ..asker import FACT as ATTEMPTS
from ..calls import UNUSABLE, model_uses, usd_text
from ..execute import STORE, Options, RunRequest, prepare_folder
from ..journal import NAME as JOURNAL
from ..journal import Journal
from ..journal_file import explained
from ..lock import hold, is_private, keep_private
from ..manifest import EDITS, Manifest, read_manifest
from ..manifest import FACT as MADE_WITH
from ..manifest import NAME as MANIFEST
from ..pipeline import STATE, Shard, load_pipeline
from ..runner import PLACES
from ..running import RunKind
from ..status import RunReport
from .reuse import take_file

_TOGETHER = 500
_COPIED = "shard copied "
"""What the name of a fact starts with that says how far a shard was copied."""
_OTHER = " other reply "
"""What follows in the name of a fact about a question to which another shard's reply is kept."""
_WHOLE = ("batches", "batch_requests", "batch_pictures")
_SUMS = ("attempts", "cost", "input_tokens", "output_tokens", "cached_tokens", "written_tokens")
_LIST = "SELECT name FROM pragma_table_info(?) ORDER BY cid"


@dataclass(frozen=True, slots=True)
class Merge:
    """How shards are merged."""

    workers: int | None = None  # worker processes; None for the settings' number, else one per core
    # USD that the run may cost in all, what the shards have cost included; None for no limit
    max_cost: float | None = None
    # run only stages that need all items; what comes after them is left to the shards
    gather_only: bool = False
    pool: str = "local"  # where stages run that ask no model, ``local`` or ``ray``
    # where sources are that have moved since the shards were made, as for going on with a run
    sources: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A shard that is merged."""

    folder: Path  # its run folder
    shard: Shard  # which one it is
    spent: float  # USD that it has cost
    unpriced: int = 0  # calls that are not in it, as their price is not known


@dataclass(frozen=True, slots=True)
class MergedRun:
    """What came of a merge."""

    out: Path  # the run
    parts: tuple[Part, ...]  # the shards, by number
    report: RunReport  # how the run ended
    waiting: int = 0  # items that wait for another round of shards

    @property
    def spent(self) -> float:
        """USD that the shards have cost together."""
        return math.fsum(part.spent for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        shards = [
            {"folder": str(part.folder), "shard": str(part.shard), "spent": part.spent} for part in self.parts
        ]
        return {
            "out": str(self.out), "shards": shards, "spent": self.spent, "waiting": self.waiting,
            "report": self.report.as_json(),
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        yield from self.report.lines()
        yield from (
            f"shard {part.shard}: {usd_text(part.spent, part.unpriced)} USD, {part.folder}"
            for part in self.parts
        )
        cost = usd_text(self.spent, sum(part.unpriced for part in self.parts))
        yield f"{tallied(len(self.parts), 'shards')} cost {cost} USD together"
        if self.waiting:
            yield (
                f"{tallied(self.waiting, 'items')} waiting: give the command of each shard again "
                f"with --reuse {self.out},"
                " then merge again"
            )
        yield f"run: {self.out}"


def merge_shards(
    folders: Sequence[Path], out: Path, kind: RunKind, how: Merge, execute: Callable[[RunRequest], RunReport]
) -> MergedRun:
    """Make one run of all its shards."""
    out = Path(out).absolute()
    manifests = {Path(folder).absolute(): read_manifest(Path(folder)) for folder in folders}
    first = _checked(manifests)
    parts = _parts(manifests)
    _check_target(out, first)
    loaded = load_pipeline(kind.pipeline)
    prepare_folder(out)
    with hold(out):
        if kind.pipeline.private or any(is_private(folder) for folder in manifests):
            keep_private(out)
        with Journal.open(out):
            pass  # its tables are there, and one that was salvaged is in place
        for part in parts:
            _copy_store(part.folder / STORE, out / STORE)
            _copy_journal(part, out)
    folder = parts[0].folder
    attempts = max(manifest.run.attempts for manifest in manifests.values())
    config = first.config(loaded)
    options = Options(
        workers=how.workers,
        max_cost=how.max_cost,
        gather_only=how.gather_only,
        merging=True,
        pool=how.pool,
    )
    request = RunRequest(
        out,
        kind.pipeline,
        replace(config, run=replace(config.run, attempts=attempts)),
        manifests[folder].source_list(folder, how.sources),
        created_at=first.created_at,
        options=options,
        complete=True,
    )
    report = execute(request)
    waiting = report.totals["pending"] if how.gather_only else 0
    return MergedRun(out, parts, report, waiting)


# -- what is refused


def _checked(manifests: Mapping[Path, Manifest]) -> Manifest:
    """Return the manifest of the first shard, after all were compared with it."""
    problems = []
    (first_folder, first), *_ = manifests.items()
    by_number: dict[int, Path] = {}
    for folder, manifest in manifests.items():
        if manifest.shard is None:
            problems.append(f"{folder} is a whole run, not a shard")
            continue
        different = _differences(first, manifest)
        if different:
            problems.append(f"{folder} is foreign: {', '.join(different)} differ from {first_folder}")
        number = manifest.shard.number
        if number in by_number:
            problems.append(f"shard {manifest.shard} is there twice: {by_number[number]} and {folder}")
        by_number.setdefault(number, folder)
    if not problems and first.shard is not None:
        missing = [number for number in range(1, first.shard.of + 1) if number not in by_number]
        if missing:
            problems.append(f"missing: {', '.join(f'shard {number}/{first.shard.of}' for number in missing)}")
    if not problems:
        problems = [line for folder in manifests for line in _unfinished(folder)]
    if problems:
        raise RunError(
            "fabula run merge", what="these are not all the finished shards of one run:\n  "
            + "\n  ".join(problems),
            fix="name each shard of one run once, all made with the same command but for --shard and --out",
        )  # fmt: skip
    return first


def _unfinished(folder: Path) -> Iterator[str]:
    with Journal.open(folder, writable=False) as journal:
        state = journal.fact(STATE) or {}
    if not state.get("finished"):
        yield f"{folder} is not finished: give its command again, or fabula run retry {quoted(folder)}"
    if (folder / EDITS).exists():
        yield f"{folder} has {EDITS}: corrections belong into the merged run; move the file there afterwards"


def _differences(first: Manifest, other: Manifest) -> list[str]:
    """Return what two manifests say that shards of one run must agree on, and do not."""
    mine, theirs = _identity(first), _identity(other)
    different = [
        f"{name} of {key}" if key else name
        for name in mine
        for key in sorted({*mine[name], *theirs[name]})
        if mine[name].get(key) != theirs[name].get(key)
    ]
    of = {manifest.shard.of for manifest in (first, other) if manifest.shard is not None}
    return [*different, *(["the numbers of shards"] if len(of) > 1 else [])]


def _identity(manifest: Manifest) -> dict[str, dict[str, Any]]:
    document = manifest.as_json()
    run = {name: value for name, value in document["run"].items() if name != "attempts"}
    return {
        "kind": {"": document["kind"]},
        "creation time": {"": document["created_at"]},
        "setting": {f"run.{name}": value for name, value in run.items()},
        "settings": document["settings"],
        "version": {stage["name"]: stage for stage in document["stages"]},
        "prompts": document["prompts"],
        "model settings": document["models"],
        "content": {
            f"source {number} ({source['name']})": {**source, "path": None}
            for number, source in enumerate(document["sources"], 1)
        },
    }


def _check_target(out: Path, first: Manifest) -> None:
    if not (out / MANIFEST).exists():
        return
    known = read_manifest(out)
    different = _differences(first, known) if known.shard is None else ["one shard and a whole run"]
    if different:
        raise RunError(
            str(out), what=f"the folder holds another run: {', '.join(different)} differ from the shards",
            fix="choose another folder with --out",
        )  # fmt: skip


def _parts(manifests: Mapping[Path, Manifest]) -> tuple[Part, ...]:
    parts = []
    for folder, manifest in manifests.items():
        assert manifest.shard is not None
        uses = model_uses(folder / JOURNAL)
        spent = math.fsum(usd for use in uses for usd in (use.cost, use.uncertain_cost))
        parts.append(Part(folder, manifest.shard, spent, sum(use.unpriced for use in uses)))
    return tuple(sorted(parts, key=lambda part: part.shard.number))


# -- putting together


def _copy_store(source: Path, target: Path) -> None:
    for path in sorted(source.iterdir()) if source.is_dir() else ():
        if not path.name.startswith("."):
            take_file(path, target / path.name)


def _copy_journal(part: Part, out: Path) -> None:
    """Copy the rows of a shard's journal that the run does not have yet."""
    path, target = part.folder / JOURNAL, out / JOURNAL
    with (
        explained(target),
        closing(journal_file.connect(target, read_only=False)) as kept,
        explained(path),
        closing(journal_file.connect(path, read_only=True)) as shard,
    ):
        shard.execute("BEGIN")
        copying = _Copying(part, shard, kept)
        copying.facts()
        copying.calls()
        copying.results()


class _Copying:
    """Copies one shard into the journal of the run."""

    def __init__(self, part: Part, shard: sqlite3.Connection, kept: sqlite3.Connection) -> None:
        self._part, self._shard, self._kept = part, shard, kept
        self._fact = f"{_COPIED}{part.shard}"
        self._copied: dict[str, Any] = {"calls": 0, "sent": 0, "last": None}
        for (value,) in kept.execute("SELECT value FROM meta WHERE name = ?", (self._fact,)):
            self._copied = json.loads(value)

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Write rows, and how far the shard is copied, together or not at all."""
        self._kept.execute("BEGIN IMMEDIATE")
        yield
        self._kept.execute(journal_file.PUT_META, (self._fact, json.dumps(self._copied)))
        self._kept.execute("COMMIT")

    def facts(self) -> None:
        """Copy what digests stand for, where the sources were, and the batches."""
        begins = ("settings:", "libraries:", MADE_WITH, UNUSABLE)
        names = " OR ".join((*(f"name LIKE '{begin}%'" for begin in begins), "name IN (?, ?)"))
        rows = self._shard.execute(f"SELECT name, value FROM meta WHERE {names}", (PLACES, ATTEMPTS))
        with self._together():
            self._kept.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", rows)
            for table in _WHOLE:
                columns = self._columns(table)
                for row in self._shard.execute(f"SELECT {', '.join(columns)} FROM {table}"):
                    self._put(table, columns, row)

    def calls(self) -> None:
        """Copy the replies and what was sent in vain; what two shards paid for the same is summed up."""
        self._check_same_journal()
        columns = self._columns("calls")
        for rows in self._rows("calls", columns):
            with self._together():
                for number, *row in rows:
                    self._put_call(columns, dict(zip(columns, row, strict=True)))
                    self._copied |= {"calls": number, "last": row[columns.index("request")]}
        columns = [name for name in self._columns("sent") if name != "id"]
        for rows in self._rows("sent", columns):
            with self._together():
                for number, *row in rows:
                    self._put("sent", columns, row, how="")
                    self._copied["sent"] = number

    def _check_same_journal(self) -> None:
        """Refuse a shard that was made anew since it was copied: what it cost would be counted wrongly."""
        at, last = self._copied["calls"], self._copied["last"]
        row = (
            self._shard.execute("SELECT request FROM calls WHERE rowid = ?", (at,)).fetchone() if at else None
        )
        if at and (row is None or row[0] != last):
            raise RunError(
                str(self._part.folder), what="the shard was made anew since it was merged",
                fix="merge into a new folder with --out",
            )  # fmt: skip

    def _put_call(self, columns: Sequence[str], row: Mapping[str, Any]) -> None:
        key = (row["request"], row["sample"])
        sql = f"SELECT {', '.join(_SUMS)}, reply FROM calls WHERE request = ? AND sample = ?"
        *known, reply = self._kept.execute(sql, key).fetchone() or (None,)
        if reply is None:
            self._put("calls", columns, tuple(row[name] for name in columns))
            return
        if reply != row["reply"]:
            # A line of its own: a list would be written anew with every few rows.
            other = f"{self._fact}{_OTHER}{row['request']} {row['sample']}"
            self._kept.execute(journal_file.PUT_META, (other, "null"))
        if row["attempts"]:
            mine = tuple(row[name] for name in _SUMS)
            total = [_sum(*pair) for pair in zip(known, mine, strict=True)] if known[0] else mine
            names = ", ".join(f"{name} = ?" for name in _SUMS)
            self._kept.execute(f"UPDATE calls SET {names} WHERE request = ? AND sample = ?", (*total, *key))

    def results(self) -> None:
        """Copy the results, but for those made of another reply than the one that is kept."""
        others = self._made_of_others()
        columns = [name for name in self._columns("results") if name != "seq"]
        key, status = columns.index("key"), columns.index("status")
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
        better = f"ON CONFLICT (key) DO UPDATE SET {changes} WHERE results.status = 'failed'"
        for rows in self._rows("results", columns, start=0):
            good = [row for _, *row in rows if row[key] not in others]
            with self._together():
                for row in good:
                    again = better if row[status] != "failed" else "ON CONFLICT (key) DO NOTHING"
                    marks = ",".join("?" * len(row))
                    self._kept.execute(
                        f"INSERT INTO results ({', '.join(columns)}) VALUES ({marks}) {again}", row
                    )
                for row in good:
                    asked = self._shard.execute("SELECT * FROM asks WHERE result = ?", (row[key],))
                    self._kept.executemany(journal_file.PUT_ASK, asked)

    def _made_of_others(self) -> frozenset[str]:
        """Return the results that were made of a reply to which another shard's is kept."""
        others = []
        names = "SELECT name FROM meta WHERE name GLOB ?"
        for (name,) in self._kept.execute(names, (f"{self._fact}{_OTHER}*",)):
            others.append(tuple(name.removeprefix(f"{self._fact}{_OTHER}").split()))
        sql = "SELECT result FROM asks WHERE request = ? AND sample = ?"
        return frozenset(result for key in others for (result,) in self._shard.execute(sql, key))

    def _rows(self, table: str, columns: Sequence[str], start: int | None = None) -> Iterator[list[Any]]:
        at = self._copied[table] if start is None else start
        rows_of = f"SELECT rowid, {', '.join(columns)} FROM {table}"
        sql = f"{rows_of} WHERE rowid > ? ORDER BY rowid LIMIT {_TOGETHER}"
        while rows := self._shard.execute(sql, (at,)).fetchall():
            yield rows
            at = rows[-1][0]

    def _columns(self, table: str) -> list[str]:
        """Return the columns of a table that both journals have."""
        there = [{name for (name,) in one.execute(_LIST, (table,))} for one in (self._shard, self._kept)]
        return [name for (name,) in self._kept.execute(_LIST, (table,)) if name in there[0] & there[1]]

    def _put(self, table: str, columns: Sequence[str], row: Sequence[Any], how: str = "OR IGNORE") -> None:
        marks = ",".join("?" * len(columns))
        self._kept.execute(f"INSERT {how} INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second
