"""Who stands where on a board: values with intervals, and ranks as ranges from paired differences.

A method's range goes from one more than the number of methods that are surely better to the number of all
less those that are surely worse. Surely: the 95 % interval of the paired difference, over the stories that
both have, lies on one side of zero (:func:`fabula.kinds.evaluations.compare`). Methods that cannot be told
apart share ranks.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ..errors import ConfigError, FabulaError, InputError, UserError
from ..evaluation.archive.archive import EVALUATION, read_archive
from ..evaluation.stats.uncertainty import Paired
from ..kinds.evaluations import compare, score_tables, scoring_options
from ..schemas.canonical import Json, digest, pretty_bytes, sha256_file, write_atomic
from ..schemas.paths import RELEASE
from ..schemas.plain_files import read_plain, reason_of
from ..schemas.values import Own, Score
from ..version import __version__
from .checking import Checked, Report, coverage_of
from .making import HIDDEN, NAME, Board, invalid, read_leaderboard, scores_of_method
from .submission import beside_any, opened, release_of, submission_named


@dataclass(frozen=True)
class Rank:
    """Where a submission stands."""

    low: int  # best rank that the data allow, from 1
    high: int  # worst rank
    of: int  # how many are ranked
    better: tuple[str, ...] = ()  # submissions that it surely beats
    worse: tuple[str, ...] = ()  # submissions that surely beat it

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}\N{EN DASH}{self.high}"


@dataclass(frozen=True)
class Standing:
    """A board with its rows."""

    board: Board  # the board
    rows: tuple[Checked, ...]  # ranked submissions, the best first
    unranked: tuple[Checked, ...]  # the others, by name: not sound, or withdrawn
    ranks: dict[str, Rank] = field(default_factory=dict)  # name of a ranked submission -> where it stands
    notes: tuple[str, ...] = ()  # pairs that could not be compared, and why


def standings(report: Report, folder: Path) -> tuple[Standing, ...]:
    """Return every board with its rows; archives of ranked submissions are compared in pairs."""
    return tuple(_standing(board, report, folder) for board in report.leaderboard.boards)


def _standing(board: Board, report: Report, folder: Path) -> Standing:
    own = [row for row in report.rows if row.board == board]
    ranked = sorted((row for row in own if row.ranked), key=lambda row: _key(row, board))
    pairs, notes = _told_apart(ranked, board, release_of(board, folder))
    ranks = rank_ranges([row.name for row in ranked], pairs)
    left = tuple(row for row in own if row not in ranked)
    return Standing(board, tuple(ranked), left, ranks, tuple(notes))


def _key(row: Checked, board: Board) -> tuple[float, str]:
    sign = 1 if board.ranking.better == "low" else -1
    return sign * (row.scores[board.rank_by].value or 0.0), row.name


def rank_ranges(names: Sequence[str], pairs: Iterable[tuple[str, str]]) -> dict[str, Rank]:
    better: dict[str, list[str]] = {name: [] for name in names}
    worse: dict[str, list[str]] = {name: [] for name in names}
    for winner, loser in pairs:
        better[winner].append(loser)
        worse[loser].append(winner)
    return {
        name: Rank(
            1 + len(worse[name]), len(names) - len(better[name]), len(names), tuple(better[name]),
            tuple(worse[name]),
        )
        for name in names
    }  # fmt: skip


def _told_apart(
    rows: Sequence[Checked], board: Board, release: Path | None
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the pairs of which one is surely better, that one first, and what could not be compared."""
    apart, notes = [], []
    made_from: Json = [board.as_json(), _content(release), __version__]
    folders: dict[str, Path] = {}
    with ExitStack() as stack:
        for first, second in combinations(rows, 2):
            kept = _kept([made_from, _files(first), _files(second)])
            try:
                if (better := _known(kept)) is None:
                    for row in (first, second):
                        if row.name not in folders:
                            folders[row.name] = stack.enter_context(opened(row.path, beside_any())).folder
                    better = surely_better(folders[first.name], folders[second.name], board, release)
                    with suppress(OSError):  # a cache that cannot be written costs time alone
                        kept.parent.mkdir(parents=True, exist_ok=True)
                        write_atomic(kept, [str(better).encode()])
            except Exception as error:  # noqa: BLE001 - anybody may have made them; the others are compared
                notes.append(f"{first.name} and {second.name} could not be compared: {error}"[:300])
                continue
            if better:
                apart.append((first.name, second.name) if better > 0 else (second.name, first.name))
    return apart, notes


def _kept(made_from: Json) -> Path:
    """Return where a comparison is kept: not in the leaderboard, where a submission could bring its own."""
    from platformdirs import user_cache_path

    return user_cache_path("fabula") / "pairs" / digest(made_from)


def _known(kept: Path) -> int | None:
    with suppress(OSError):
        return {b"1": 1, b"0": 0, b"-1": -1}.get(kept.read_bytes())
    return None


def _files(row: Checked) -> Json:
    submission = row.submission
    assert submission is not None
    return [submission.method, {name: file.sha256 for name, file in submission.files.items()}]


def _content(release: Path | None) -> Json:
    """Return what tells one release from every other: a release's document has the hash of each file."""
    if release is None:
        return None
    if release.is_file() or (release / RELEASE).is_file():
        return sha256_file(release if release.is_file() else release / RELEASE)
    files = sorted(path for path in release.rglob("*") if path.is_file())
    return {path.relative_to(release).as_posix(): sha256_file(path) for path in files}


def surely_better(first: Path, second: Path, board: Board, release: Path | None) -> int:
    """Return 1 if the first of two archives is surely better, -1 if the second is, 0 if nobody can say."""
    options = scoring_options(first, release, board.resamples)
    made = compare(first, second, options, board.may_differ)
    signs = {_sign(pair) for pair in _of_measure(made.comparisons, board.rank_by)}
    if len(signs) != 1:
        return 0
    return signs.pop() * (-1 if board.ranking.better == "low" else 1)


def _of_measure(pairs: Sequence[Paired], measure: str) -> Iterator[Paired]:
    """Yield the comparisons of a measure; all where a protocol compares by one measure alone."""
    named = [pair for pair in pairs if measure in pair.about.values()]
    yield from named or [pair for pair in pairs if "metric" not in pair.about]


def _sign(pair: Paired) -> int:
    if pair.low is None or pair.high is None or pair.low <= 0 <= pair.high:
        return 0
    return 1 if pair.low > 0 else -1


# -- The hidden test: the maintainer judges what a generator made of it, and publishes scores alone


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
        return {"path": str(self.path), "row": self.row.as_json()}

    def lines(self) -> Iterator[str]:
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
