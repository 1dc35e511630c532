"""Who stands where on a board: values with intervals, and ranks as ranges from paired differences.

A method's range goes from one more than the number of methods that are surely better to the number of all
less those that are surely worse. Surely: the 95 % interval of the paired difference, over the stories that
both have, lies on one side of zero (:func:`fabula.kinds.evaluations.compare`). Methods that cannot be told
apart share ranks.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from ..evaluation.stats.paired import Paired
from ..kinds.evaluations import compare, scoring_options
from ..schemas.canonical import Json, digest, sha256_file, write_atomic
from ..schemas.layout import RELEASE
from ..version import __version__
from .board import Board
from .checking import Checked, Report
from .submission import beside_any, opened, release_of


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
    """Return name -> range of ranks."""
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
