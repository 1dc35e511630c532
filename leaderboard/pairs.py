"""Comparisons of two submissions, kept by what they were made from: a later build makes only new ones.

They lie in the user's cache, and not in the leaderboard, where a submission could bring its own.
"""

from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from ..schemas.canonical import Json, digest, sha256_file, write_atomic
from ..schemas.layout import RELEASE
from ..version import __version__
from .board import Board
from .checking import Checked

KNOWN = {b"1": 1, b"0": 0, b"-1": -1}


class KeptPairs:
    """The comparisons of one board.

    A comparison is made from the files of both submissions, the board, the release, and the versions of
    Fabula and of the libraries that compute it.

    Args:
        board: the board.
        release: what was judged; None where archives hold it.
        folder: where they are kept; that of the user by default.
    """

    def __init__(self, board: Board, release: Path | None, folder: Path | None = None) -> None:
        from platformdirs import user_cache_path

        self._folder = folder or user_cache_path("fabula") / "pairs"
        libraries = {name: version(name) for name in ("numpy", "scipy")}
        self._made_from: Json = [board.as_json(), _content(release), __version__, libraries]

    def better(self, first: Checked, second: Checked, compared: Callable[[], int]) -> int:
        """Return 1 if the first is surely better, -1 if the second is, 0 if nobody can say.

        Args:
            first: a submission whose files are those that it lists.
            second: another.
            compared: compares them, where that was not done before.

        Raises:
            FabulaError: as ``compared`` does; nothing is kept then.
        """
        file = self._folder / digest([self._made_from, _files(first), _files(second)])
        with suppress(OSError):
            known = KNOWN.get(file.read_bytes())
            if known is not None:
                return known
        better = compared()
        with suppress(OSError):  # a cache that cannot be written costs time alone
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomic(file, [str(better).encode()])
        return better


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
