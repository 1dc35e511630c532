"""Two evaluations side by side: what both were asked, and where their answers differ."""

import json
import sqlite3
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..evaluation.archive.archive import lines_of
from ..schemas.judgement import Judgement
from .shelf import Shelf

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
        """Whether the answers are the same."""
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

    Raises:
        InputError: an archive cannot be read.
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
        """Remove it."""
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
