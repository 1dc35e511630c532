"""A new journal with all that is sound in a damaged one. The damaged one is kept beside it."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..schemas.text import quoted
from . import journal_file
from .check_journal import Audit, JournalReport, Row, defaults, is_hash
from .execute import MAX_COST
from .journal_file import NAME, SALVAGED, finish_salvage
from .lock import hold

DAMAGED = "journal.sqlite.damaged"
_TOGETHER = 1000
_SETTLED = (  # of pages that are not in use any more: a line goes when the reply comes
    "DELETE FROM sent WHERE state = 'open' AND EXISTS"
    " (SELECT 1 FROM calls c WHERE c.request = sent.request AND c.sample = sent.sample)"
)


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was salvaged."""

    report: JournalReport  # what was found
    # the damaged journal; None where nothing was damaged, and nothing was written
    kept_as: Path | None = None
    notes: tuple[str, ...] = ()  # what a person should know

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        damaged = None if self.kept_as is None else str(self.kept_as)
        return {**self.report.as_json(), "damaged": damaged, "notes": list(self.notes)}

    def lines(self) -> Iterator[str]:
        """Return it as lines for people."""
        if self.kept_as is None:
            yield from self.report.lines()
            return
        *lines, _ = self.report.lines()
        yield from lines
        yield f"salvaged into {self.report.folder / NAME}; the damaged journal is kept as {self.kept_as}"
        yield from (f"note: {note}" for note in self.notes)
        yield f"next: fabula run retry {quoted(self.report.folder)}"


def salvage(folder: Path) -> Salvage:
    """Write a new journal with every sound row of a damaged one, replies first; leave a sound one alone.

    Killed at any moment, the run has either journal, whole; the next command goes on from there.
    """
    folder = Path(folder).absolute()
    path = folder / NAME
    if not path.is_file():
        raise journal_file.missing(path)
    with hold(folder), journal_file.explained(path), closing(Audit()) as audit:
        finish_salvage(path)
        part = folder / f".{SALVAGED}.part"
        try:
            facts = _write(part, path, audit)
            report = JournalReport(folder, audit.rows, tuple(audit.findings()))
            if not report.findings:
                return Salvage(report)
            part.chmod(path.stat().st_mode & 0o777)
            kept = _keep(path)
            part.replace(folder / SALVAGED)
        finally:
            part.unlink(missing_ok=True)
        finish_salvage(path)
        return Salvage(report, kept, tuple(_notes(audit, facts)))


def _write(part: Path, path: Path, audit: Audit) -> dict[str, Any]:
    """Write the sound rows of a journal into a new file; return the facts among them."""
    part.unlink(missing_ok=True)
    part.touch(0o600)
    facts: dict[str, Any] = {}
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA synchronous=FULL")
        connection.executescript(journal_file.TABLES)
        connection.execute("BEGIN")
        for number, (table, row) in enumerate(audit.sound_rows(path)):
            if table == "meta":
                facts[row[0]] = json.loads(row[1])
                if row[0] == "format":
                    _require_known(path, facts["format"])
                    continue
            _put(connection, table, row)
            if number % _TOGETHER == 0:
                connection.execute("COMMIT")
                connection.execute("BEGIN")
        connection.execute(journal_file.PUT_META, ("format", str(journal_file.FORMAT)))
        connection.execute(_SETTLED)
        for key in audit.broken_lists():
            connection.execute("DELETE FROM results WHERE key = ?", (key,))
        for key in audit.broken_asks():
            connection.execute("DELETE FROM asks WHERE result = ?", (key,))
        _keep_on_the_books(connection, audit)
        connection.execute("COMMIT")
    return facts


def _put(connection: sqlite3.Connection, table: str, row: Row) -> None:
    missing = defaults(table)[len(row) :]  # columns that came with a later format
    whole = (*row, *missing)[: len(defaults(table))]
    marks = ",".join("?" * len(whole))
    connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", whole)


def _keep_on_the_books(connection: sqlite3.Connection, audit: Audit) -> None:
    """Count what a reply cost that cannot be read any more: it will be paid for once more."""
    for (table, _), row in audit.unread.items():
        if table != "calls" or len(row) < 10 or not isinstance(row[8], float) or not 0 < row[8] < 1e6:
            continue
        request = row[0] if is_hash(row[0]) else "0" * 64
        stage, model = (value if _is_text(value) else "unknown" for value in (row[2], row[3]))
        sample = row[1] if isinstance(row[1], int) and row[1] >= 0 else 0
        connection.execute(
            "INSERT INTO sent (request, sample, stage, model, bound, state) VALUES (?, ?, ?, ?, ?, 'lost')",
            (request, sample, stage, model, row[8]),
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and value.isascii()


def _require_known(path: Path, version: object) -> None:
    if isinstance(version, int) and version > journal_file.FORMAT:
        raise RunError(
            str(path),
            what=f"the journal has format {version}, of a newer version of fabula",
            fix="use the version of fabula that made the run",
        )


def _keep(path: Path) -> Path:
    """Keep a damaged journal and its log under another name; return that."""
    kept, number = path.with_name(DAMAGED), 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{DAMAGED}-{number}")
    for suffix in ("-wal", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            target = kept.with_name(kept.name + suffix)
            target.unlink(missing_ok=True)
            os.link(source, target)
    return kept


def _notes(audit: Audit, facts: dict[str, Any]) -> Iterator[str]:
    lists = sorted(set(audit.broken_lists().values()))
    if lists:
        yield f"{', '.join(lists)} will decide anew: compare what comes of it with the records of before"
    if MAX_COST not in facts:
        yield "the cost limit of the run is lost: give it again with --max-cost"
    yield "what lost replies have cost is no longer on the books, unless it could be read"
