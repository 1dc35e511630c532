"""Scores of shot images as a table: one row per method, story and metric."""

import csv
import io
from pathlib import Path

from ...errors import TargetError
from ...schemas.canonical import write_atomic
from .scores import ImageScores

TABLE = "scores.csv"


def write_scores(folder: Path, scores: ImageScores) -> Path:
    """Write ``scores.csv`` into a folder, made if missing; an empty story is the whole set.

    Raises:
        TargetError: the folder cannot be written.
    """
    rows = list(scores.rows())
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / TABLE, [text.getvalue().encode("utf-8")])
    except OSError as error:
        raise TargetError(
            str(folder), expected="a folder that can be written", found=error.strerror or str(error),
            fix="choose another with --tables",
        ) from error  # fmt: skip
    return folder / TABLE
