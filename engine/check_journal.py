"""Checking a run's journal, row by row: what is damaged, in plain words."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import journal_file
from .journal_file import NAME
from .journal_rows import NUMBERED, TABLES, Row, key_of, listed_keys, problem_of, read_rows

SHOWN = 5
WORDS = {
    "calls": "replies of models", "sent": "requests without a reply", "results": "results of stages",
    "asks": "notes of what a result was made from", "meta": "facts about the run",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a journal.

    Attributes:
        code: ``file``, ``row`` or ``reference``.
        what: what is damaged, and how.
        count: how often.
        first: the first of them.
    """

    code: str
    what: str
    count: int
    first: tuple[str, ...]

    def line(self) -> str:
        """Return it as one line for people."""
        more = f" and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return f"{self.what}: {self.count} ({', '.join(self.first)}{more})"


@dataclass(frozen=True, slots=True)
class JournalReport:
    """What a check of a journal found.

    Attributes:
        folder: the run.
        rows: table -> sound rows.
        findings: what is wrong.
    """

    folder: Path
    rows: Mapping[str, int]
    findings: tuple[Finding, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        findings = [
            {"code": finding.code, "what": finding.what, "count": finding.count, "first": list(finding.first)}
            for finding in self.findings
        ]
        return {"folder": str(self.folder), "rows": dict(self.rows), "findings": findings}

    def lines(self) -> Iterator[str]:
        """Return it as lines for people."""
        for finding in self.findings:
            yield f"damaged: {finding.line()}"
        counted = ", ".join(f"{count} {WORDS[table]}" for table, count in self.rows.items())
        yield f"{'sound' if self.findings else 'the journal is sound'}: {counted}"
        if self.findings:
            yield (
                f"next: fabula run check {self.folder} --salvage keeps all that is sound in a new journal;"
                " the run then makes and asks only what is lost"
            )


@dataclass(slots=True)
class Audit:
    """What goes through a journal's rows and keeps count.

    Attributes:
        problems: what is wrong with the file itself.
        keys: table -> keys of its sound rows.
        damaged: damaged rows: table, key and what is wrong.
    """

    problems: list[str] = field(default_factory=list)
    keys: dict[str, set[Row]] = field(default_factory=lambda: {table: set() for table in TABLES})
    damaged: dict[tuple[str, Row], str] = field(default_factory=dict)
    unread: dict[tuple[str, Row], Row] = field(default_factory=dict)
    lists: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    asked: dict[str, set[Row]] = field(default_factory=dict)

    def sound_rows(self, path: Path) -> Iterator[tuple[str, Row]]:
        """Yield every sound row of a journal once."""
        for table, row in read_rows(path, self.problems):
            key = key_of(table, row)
            if key in self.keys[table]:
                continue
            problem = problem_of(table, row)
            if problem is not None:
                self.damaged[table, key] = problem
                self.unread[table, key] = row
                continue
            self.keys[table].add(key)
            self._refer(table, row)
            yield table, row
        for place in [one for one in self.damaged if one[1] in self.keys[one[0]]]:
            del self.damaged[place], self.unread[place]  # found sound elsewhere

    def _refer(self, table: str, row: Row) -> None:
        if table == "asks":
            self.asked.setdefault(row[0], set()).add((row[2], row[3]))
        elif table == "results" and row[4] == "table":
            self.lists[row[1]] = (str(row[2]), listed_keys(row))

    def broken_lists(self) -> dict[str, str]:
        """Return key -> stage of the lists of items that name a result that is not there."""
        known = self.keys["results"]
        return {key: stage for key, (stage, keys) in self.lists.items()
                if any((one,) not in known for one in keys)}  # fmt: skip

    def broken_asks(self) -> list[str]:
        """Return the keys of results whose note names a reply that is not there."""
        return [result for result, calls in self.asked.items() if calls - self.keys["calls"]]

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong."""
        if self.problems:
            said = tuple(self.problems[:SHOWN])
            yield Finding("file", "faults that SQLite finds in the file", len(self.problems), said)
        for (table, problem), count in Counter(
            (place[0], why) for place, why in self.damaged.items()
        ).items():
            rows = [key for (name, key), why in self.damaged.items() if (name, why) == (table, problem)]
            first = tuple(_named(table, key) for key in rows[:SHOWN])
            yield Finding("row", f"{WORDS[table]} with {problem}", count, first)
        lists = sorted(set(self.broken_lists().values()))
        if lists:
            yield Finding("reference", "stages whose list of items names results that are not there",
                          len(lists), tuple(lists[:SHOWN]))  # fmt: skip
        asks = self.broken_asks()
        if asks:
            first = tuple(key[:12] for key in asks[:SHOWN])
            yield Finding("reference", "results made from replies that are not there", len(asks), first)


def _named(table: str, key: Row) -> str:
    if table in NUMBERED or table == "meta":
        return str(key[0])[:60]
    return " ".join(str(value)[:12] for value in key)


def check_journal(folder: Path) -> JournalReport:
    """Verify every row of a run's journal. Reads only; works while the run is at work.

    Raises:
        RunError: there is no journal. TargetError: it cannot be read.
    """
    folder = Path(folder)
    path = folder / NAME
    if not path.is_file():
        raise journal_file.missing(path)
    audit = Audit()
    with journal_file.explained(path):
        for _ in audit.sound_rows(path):
            pass
    rows = {table: len(audit.keys[table]) for table in TABLES}
    return JournalReport(folder, rows, tuple(audit.findings()))
