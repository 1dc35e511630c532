"""``run compact``: the journal of a finished run without the results that count no more."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import RunError
from .. import journal_file
from ..batches.books import running_lines
from ..execute import is_settled
from ..journal import Head, Known, read_listing
from ..journal_file import NAME as JOURNAL
from ..journal_file import explained
from ..lock import hold
from ..manifest import read_manifest
from ..pipeline import Pipeline, Stage
from ..runner import Options
from ..survey import Survey, surveyed

_TOGETHER = 1000
_UNUSED = (
    "DELETE FROM results WHERE seq NOT IN (SELECT seq FROM used)",
    "DELETE FROM asks WHERE result NOT IN (SELECT key FROM results)",
)


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of a journal.

    Attributes:
        folder: the run.
        dropped: results that counted no more, and are gone.
        kept: results that it holds.
        before: bytes of the journal before.
        after: bytes now.
    """

    folder: Path
    dropped: int
    kept: int
    before: int
    after: int

    def lost(self) -> str:
        """Return what is lost, in words."""
        return (
            f"{self.dropped} results of earlier settings, sources or versions: whoever goes back to those"
            " makes them again; replies of models are all kept, so that nothing is asked twice"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "folder": str(self.folder), "dropped": self.dropped, "kept": self.kept,
            "bytes_before": self.before, "bytes_after": self.after, "lost": [self.lost()],
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Return it as lines for people."""
        yield f"{self.folder / JOURNAL}: {self.before:,} bytes before, {self.after:,} now"
        yield f"lost: {self.lost()}"


class _Using(Survey):
    """A survey that gives out the places of all results that count, and follows what stateful stages keep."""

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - as a survey
        super().__init__(*given)
        self.use: sqlite3.Connection
        self._waiting: list[tuple[int]] = []

    def note(self, head: Head) -> None:
        """Take in a result that counts."""
        self._waiting.append((head.seq,))
        if len(self._waiting) >= _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Write down what was taken in."""
        self.use.executemany("INSERT OR IGNORE INTO used VALUES (?)", self._waiting)
        self._waiting.clear()

    def settle(self, stage: Stage, head: Head, *, ran: bool) -> None:
        """Take over a result, which counts."""
        self.note(head)
        super().settle(stage, head, ran=ran)

    def listed(self, stage: Stage, table: Head) -> None:
        """Take in a table, and of a gather what it keeps of items that have gone."""
        self.note(table)
        if stage.spec.shape == "gather":
            known = Known(self.journal, stage.name)
            for _, key in read_listing(self.journal, table, "kept"):
                self.note(known[key])


def compact_run(folder: Path, pipeline: Pipeline) -> Compacted:
    """Drop results that count no more from a finished run's journal, and give their space back.

    Killed at any moment, the journal is whole: as it was, without them, or smaller, too.

    Args:
        folder: the run.
        pipeline: its stages.

    Raises:
        RunError: it is not finished, or this version of Fabula or of a library would make results anew.
            RunBusy: somebody works on it. TargetError: the disk is full.
    """
    folder = Path(folder).absolute()
    path = folder / JOURNAL
    read_manifest(folder)
    with hold(folder), explained(path):
        running = running_lines(path, folder)
        if running or not is_settled(folder, Options()):
            what = "\n".join(["the run is not finished", *running])
            raise RunError(str(folder), what=what, fix=f"finish it first: fabula run retry {folder}")
        before = path.stat().st_size
        with closing(journal_file.connect(path, read_only=False)) as connection:
            connection.execute("CREATE TEMP TABLE used (seq INTEGER PRIMARY KEY)")
            _note_used(folder, pipeline, connection)
            connection.execute("BEGIN IMMEDIATE")
            dropped = connection.execute(_UNUSED[0]).rowcount
            connection.execute(_UNUSED[1])
            kept = connection.execute("SELECT count(*) FROM results").fetchone()[0]
            connection.execute("COMMIT")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return Compacted(folder, dropped, kept, before, path.stat().st_size)


def _note_used(folder: Path, pipeline: Pipeline, connection: sqlite3.Connection) -> None:
    def using(*given: Any) -> _Using:  # noqa: ANN401 - as a survey
        survey = _Using(*given)
        survey.use = connection
        return survey

    connection.execute("BEGIN")
    with surveyed(folder, pipeline, walker=using) as survey:
        for name, counts in survey.counts.items():
            if counts.stale or counts.pending:
                why = ", ".join(survey.reasons[name])
                raise RunError(
                    str(folder), what=f"stage {name} would run again ({why}), so what counts is not clear",
                    fix=f"bring it up to date first: fabula run retry {folder}",
                )  # fmt: skip
        assert isinstance(survey, _Using)
        root = survey.journal.head(survey.root.key)
        survey.note(root or survey.root)
        survey.flush()
    connection.execute("COMMIT")
