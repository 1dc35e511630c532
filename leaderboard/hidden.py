"""Rows of a hidden test: numbers that the maintainer computed; archives of it are never published."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from ..errors import InputError, UserError
from ..schemas.plain_files import read_plain
from ..schemas.values import Own, Score
from .board import HIDDEN, NAME, Board, invalid


class HiddenRow(Own):
    """``hidden/NAME.json``: the scores of one generator on the hidden stories."""

    board: str = Field(pattern=NAME, description="The board.")
    name: str = Field(pattern=NAME, description="The submission whose command was run.")
    method: str = Field(description="The method.")
    date: str = Field(description="When the maintainer ran it, YYYY-MM-DD.")
    seeds: int = Field(ge=1, description="Generations of each story.")
    coverage: float | None = Field(description="Share of outputs and replies.")
    model: str | None = Field(description="The generator.")
    prompt_rewriting: str | None = Field(description="Who rewrote prompts.")
    training_overlap: str | None = Field(description="Known overlap with training data.")
    scores: dict[str, Score] = Field(description="Measure -> score.")
    better: tuple[str, ...] = Field(default=(), description="Rows that it surely beats.")
    worse: tuple[str, ...] = Field(default=(), description="Rows that surely beat it.")
    rank: str = Field(default="", description="Range of ranks, filled in where all rows are known.")


def hidden_rows(folder: Path, board: Board) -> Sequence[HiddenRow]:
    """Return the rows of a board of the hidden test, the best first.

    Raises:
        InputError: a file of them cannot be read.
    """
    rows = []
    for path in sorted((folder / HIDDEN).glob("*.json")):
        try:
            row = HiddenRow.model_validate_json(read_plain(path))
        except ValidationError as error:
            raise InputError(invalid(str(path), error)) from error
        except OSError as error:
            what = f"the file cannot be read: {error.strerror or error}"
            raise InputError([UserError(str(path), what=what, fix="score it again")]) from error
        if row.board == board.name:
            rows.append(row)
    sign = 1 if board.ranking.better == "low" else -1

    def key(row: HiddenRow) -> tuple[bool, float, str]:
        score = row.scores.get(board.rank_by)
        value = None if score is None else score.value
        return value is None, sign * (value or 0.0), row.name

    return [_ranked(row, rows) for row in sorted(rows, key=key)]


def _ranked(row: HiddenRow, rows: Sequence[HiddenRow]) -> HiddenRow:
    """Return a row with its range of ranks; of two rows, the one that came later knows how they compare."""
    better = {*row.better, *(other.name for other in rows if row.name in other.worse)}
    worse = {*row.worse, *(other.name for other in rows if row.name in other.better)}
    low, high = 1 + len(worse), len(rows) - len(better)
    return row.model_copy(update={"rank": str(low) if low == high else f"{low}\N{EN DASH}{high}"})
