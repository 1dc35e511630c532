"""What a folder has to show: its files of rows, pictures, calls of models, and what it says of itself."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..engine.calls import unpacked
from ..engine.journal_file import NAME as JOURNAL
from ..engine.journal_file import connect, explained
from ..errors import UserError
from ..schemas.plain_files import json_lines, read_json, read_plain
from .index import Rows, stamp_of

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

    Raises:
        RunError: the journal is damaged or of a newer version.
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
        """Close the journal."""
        self._sql.close()

    def __enter__(self) -> "Asked":
        """Return the calls; the journal is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the journal."""
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
        """Return the shelf; it is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def kind(self) -> str:
        """What it is, in a word or two: run of katha, release of stories, evaluation of images."""
        what = {"release.json": "release", "evaluation.json": "evaluation", "run.json": "run"}
        word = next((what[name] for name in ABOUT if (self.folder / name).is_file()), "folder")
        of = self.about.get("kind") or self.about.get("form")
        return f"{word} ({of})" if isinstance(of, str) else word

    @property
    def judged(self) -> bool:
        """Whether it is an evaluation."""
        return "judgements" in self.rows

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

    def frames(self) -> Iterator[Mapping[str, Any]]:
        """Yield the storyboards of an evaluation: method, unit, seed and frames."""
        path = self.folder / "frames.jsonl"
        if path.is_file():
            yield from json_lines(path)


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
