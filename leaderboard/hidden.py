"""The hidden test: the maintainer judges what a generator made of it, and publishes scores alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ..errors import ConfigError, FabulaError, InputError, UserError
from ..evaluation.archive.archive import EVALUATION, read_archive
from ..kinds.evaluations import score_tables
from ..schemas.canonical import pretty_bytes, sha256_file, write_atomic
from ..schemas.layout import RELEASE
from ..schemas.plain_files import read_plain, reason_of
from ..schemas.values import Own, Score
from .board import HIDDEN, NAME, Board, invalid, read_leaderboard, scores_of_method
from .checking import coverage_of
from .standing import rank_ranges, surely_better
from .submission import submission_named


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
    """Return the rows of a board of the hidden test, the best first."""
    rows = []
    for path in sorted((folder / HIDDEN).glob("*.json")):
        try:
            row = HiddenRow.model_validate_json(read_plain(path))
        except ValidationError as error:
            raise InputError(invalid(str(path), error)) from error
        except OSError as error:
            what = f"the file cannot be read: {reason_of(error)}"
            raise InputError.one(str(path), what=what, fix="score it again") from error
        if row.board == board.name:
            rows.append(row)
    sign = 1 if board.ranking.better == "low" else -1

    def key(row: HiddenRow) -> tuple[bool, float, str]:
        score = row.scores.get(board.rank_by)
        value = None if score is None else score.value
        return value is None, sign * (value or 0.0), row.name

    names = {row.name for row in rows}
    pairs = {(row.name, other) for row in rows for other in row.better if other in names}
    pairs |= {(other, row.name) for row in rows for other in row.worse if other in names}
    ranks = rank_ranges(sorted(names), pairs)
    return [row.model_copy(update={"rank": str(ranks[row.name])}) for row in sorted(rows, key=key)]


@dataclass(frozen=True)
class HiddenScored:
    """A row that was written."""

    path: Path  # its file
    row: HiddenRow  # the row

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"path": str(self.path), "row": self.row.as_json()}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        yield f"{self.path}: scores of {self.row.method} on the hidden test; the archive stays private"


def score_hidden(folder: Path, name: str, run: Path, board: str, release: Path) -> HiddenScored:
    """Write the row of a submission whose generator was evaluated on the hidden test.

    ``run``: the evaluation, never to be published; those of earlier rows, in folders of their names beside
    it, are compared with it.
    """
    chosen = read_leaderboard(folder).board(board)
    if chosen.subset != "hidden":
        raise ConfigError("--board", what=f"{board} is a public board", fix="make one with init --hidden")
    if not (release / RELEASE).is_file() or sha256_file(release / RELEASE) != chosen.manifest_sha256:
        what = f"this is not the hidden test of {board}"
        raise InputError.one(str(release), what=what, fix="give the folder that it was made with")
    with submission_named(folder, name) as (_, submission):
        pass
    archive = read_archive(run)
    problems = [
        UserError(f"protocol {each.path}", what=f"the board has {each.first}, and this is {each.second}",
                  fix="judge as the board asks")
        for each in chosen.differences(archive.manifest)
    ]  # fmt: skip
    methods = archive.manifest.subject.get("methods") or {}
    if len(methods) != 1:
        what = f"a row is of one method, and this evaluation has {', '.join(methods) or 'none'}"
        problems.append(UserError(str(run), what=what, fix="evaluate each method into a folder of its own"))
    if problems:
        raise InputError(problems)
    (method,) = methods
    seeds = max(1, len(methods[method].get("seeds") or ()))
    judged = submission.model_copy(update={"method": method, "seeds": seeds})
    coverage, issues = coverage_of(archive, judged, chosen)
    if issues:
        raise InputError([UserError(method, what=issue.message, fix=issue.cure) for issue in issues])
    better, worse = _compared(folder, name, run, chosen, release)
    row = HiddenRow(
        board=chosen.name, name=submission.name, method=submission.method, seeds=seeds,
        date=datetime.now(UTC).date().isoformat(), coverage=coverage, model=submission.model,
        prompt_rewriting=submission.prompt_rewriting, training_overlap=submission.training_overlap,
        scores=dict(scores_of_method(score_tables(run, release, chosen.resamples), method)),
        better=tuple(better), worse=tuple(worse),
    )  # fmt: skip
    path = folder / HIDDEN / f"{row.name}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, [pretty_bytes(row.as_json())])
    return HiddenScored(path, row)


def _compared(folder: Path, name: str, run: Path, board: Board, release: Path) -> tuple[list[str], list[str]]:
    """Return the earlier rows that a run surely beats, and those that surely beat it."""
    better: list[str] = []
    worse: list[str] = []
    known = {row.name for row in hidden_rows(folder, board)} - {name}
    for other in (run.absolute().parent / earlier for earlier in sorted(known)):
        if (other / EVALUATION).is_file():
            try:
                sign = surely_better(run, other, board, release)
            except FabulaError as error:
                raise InputError.one(str(other), what=str(error), fix="score it again") from error
            (better if sign > 0 else worse).extend([other.name] if sign else [])
    return better, worse
