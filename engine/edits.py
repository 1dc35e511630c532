"""``edits.jsonl``: corrections of single fields, as data, applied by a stage of the pipeline."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError, RunBusy, UserError
from ..schemas.canonical import canonical_bytes, digest, write_atomic
from ..schemas.paths import parse_quoted
from ..schemas.plain_files import parse_json, read_plain, reason_of
from ..schemas.values import Edit
from .journal_file import unwritable
from .manifest import Manifest, read_manifest
from .sources import EDITS as NAME
from .sources import unreadable

__all__ = [
    "NAME", "WHOLE", "append_edits", "edit_lines", "edits_of", "is_withdrawal", "parse_edits",
    "read_edits", "run_ids",
]  # fmt: skip

WHOLE = "$"
"""Path of a whole record; a correction that puts nothing in its place withdraws the record."""
LOCK = f".{NAME}.lock"
WAIT = 60.0  # seconds that one correction waits for others to be written


def is_withdrawal(edit: Edit) -> bool:
    """Return whether a correction takes the whole record out; its id is not used again."""
    return edit.path == WHOLE and edit.new is None


def append_edits(folder: Path, compose: Callable[[], Sequence[Edit]]) -> tuple[Edit, ...]:
    """Add corrections to a run's ``edits.jsonl``, all or none; the next build or retry applies them.

    The file is replaced as a whole, so that a kill never leaves half a line. Corrections that are added at
    the same time wait for each other; the run itself may be at work.

    Returns:
        The corrections. Where there are none, nothing is written.
    """
    folder = Path(folder)
    read_manifest(folder)
    path = folder / NAME
    with _alone(folder):
        edits = tuple(compose())
        if not edits:
            return ()
        problems = [problem for edit in edits if (problem := _bad_path("the edit", edit))]
        if problems:
            raise InputError(problems)
        known = read_edits(path) if path.exists() else ()
        try:
            for part in folder.glob(f".{NAME}.*.part"):  # of an earlier one that was killed
                part.unlink()
            write_atomic(path, (canonical_bytes(entry.as_json()) + b"\n" for entry in (*known, *edits)))
        except OSError as error:
            raise unwritable(path, error) from error
    return edits


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the file of corrections; the lock's name starts with a dot, so no output is mistaken for it."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=WAIT)
    try:
        lock.acquire()
    except Timeout as error:
        raise RunBusy(
            str(folder / NAME), what=f"another process has kept this file for {WAIT:g} seconds",
            fix="see which `fabula edit` still runs, then start again",
        ) from error  # fmt: skip
    except OSError as error:
        raise unwritable(folder / LOCK, error) from error
    try:
        yield
    finally:
        lock.release()


def edits_of(folder: Path, item: str) -> tuple[Edit, ...]:
    """Return the corrections of one item in a run's ``edits.jsonl``, in order; none if there is no file."""
    path = Path(folder) / NAME
    return tuple(edit for edit in (read_edits(path) if path.exists() else ()) if edit.id == item)


def read_edits(path: Path) -> tuple[Edit, ...]:
    """Return the corrections in a file, in order."""
    edits, problems = parse_edits(path, edit_lines(path))
    if problems:
        raise InputError(problems)
    return tuple(edit for _, edit in edits)


def edit_lines(path: Path) -> list[tuple[int, bytes]]:
    """Return the lines of a file that are not blank, with their numbers from 1."""
    try:
        data = read_plain(Path(path), follow=True)
    except OSError as error:
        raise InputError([unreadable(path, error)]) from error
    return list(_lines(data))


def parse_edits(
    path: Path, lines: Iterable[tuple[int, bytes]]
) -> tuple[list[tuple[int, Edit]], list[UserError]]:
    """Return the corrections on lines, with the numbers of these, and what is wrong with the other lines."""
    edits: list[tuple[int, Edit]] = []
    problems: list[UserError] = []
    for number, line in lines:
        where = f"{path}:{number}"
        try:
            edit = Edit.model_validate(parse_json(line))
        except ValueError as error:
            problems.append(_bad_line(where, reason_of(error)))
        else:
            problem = _bad_path(where, edit)
            if problem:
                problems.append(problem)
            else:
                edits.append((number, edit))
    return edits, problems


def run_ids(manifest: Manifest) -> tuple[str, ...]:
    """Return what a review of a run calls it: a hash of its kind, creation, seed and sources, edits aside.

    It stays when the run is corrected. A run that was extended also has the ids of before.
    """
    listed = [entry for entry in manifest.sources if Path(entry.path).name != NAME]
    times = sorted({entry.added_at for entry in listed if entry.added_at is not None}, reverse=True)
    extents = [[entry for entry in listed if (entry.added_at or "") <= time] for time in (*times, "")]
    return tuple(
        digest([manifest.kind, manifest.created_at, manifest.seed, [entry.field() for entry in extent]])
        for extent in extents
    )


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield number, line


def _bad_line(where: str, found: str) -> UserError:
    return UserError(
        where, what=f"this line is not an edit (JSON with id, path, old, new, who, why): {found}",
        fix="correct or remove that line",
    )  # fmt: skip


def _bad_path(where: str, edit: Edit) -> UserError | None:
    try:
        parse_quoted(edit.path)
    except ValueError as error:
        return UserError(
            where, what=f"this is not a JSON path: {error}", fix="write the path like $.scenes[0].action"
        )
    return None
