"""Scores of shot images as tables: per method, story and metric; by kind of story and character; per shot."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...errors import TargetError
from ...schemas.canonical import write_atomic
from ...schemas.csv_text import csv_text
from .per_shot import ShotScore
from .scores import ImageScores
from .shot_table import NAMES, shot_rows

TABLE = "scores.csv"
STRATA = "strata.csv"
SHOTS = "shots.csv"


def write_scores(folder: Path, scores: ImageScores, shots: Iterable[ShotScore]) -> tuple[Path, ...]:
    """Write ``scores.csv``, ``strata.csv`` and ``shots.csv`` into a folder, made if missing; return them.

    An empty story is the whole set. An empty cell of a shot is a score that it does not have.

    Raises:
        TargetError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / TABLE, [_csv(scores.rows(), ())])
        write_atomic(folder / STRATA, [_csv(scores.strata_rows(), ("method", "by", "kind", "metric"))])
        write_atomic(folder / SHOTS, [_csv(shot_rows(shots), NAMES)])
    except OSError as error:
        raise TargetError(
            str(folder), what=f"the folder cannot be written: {error.strerror or error}",
            fix="choose another with --tables",
        ) from error  # fmt: skip
    return folder / TABLE, folder / STRATA, folder / SHOTS


def _csv(rows: Iterable[Mapping[str, object]], names: Iterable[str]) -> bytes:
    every = list(rows)
    columns = list(dict.fromkeys([*names, *(name for row in every for name in row)]))
    return csv_text(columns, ([row.get(name, "") for name in columns] for row in every)).encode("utf-8")
