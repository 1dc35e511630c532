"""``edits.jsonl``: corrections of single fields, as data, applied by a stage of the pipeline."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError, InputError, RunBusy, UserError
from ..schemas.canonical import canonical_bytes, digest, write_atomic
from ..schemas.paths import parse_quoted
from ..schemas.plain_files import parse_json, read_plain, reason_of
from ..schemas.values import Edit
from .config import RunConfig
from .journal import Head, Journal, Known, decode, read_listing
from .journal_file import NAME as JOURNAL
from .journal_file import unwritable
from .manifest import EDITS as NAME
from .manifest import EDITS_ROLE, Fingerprint, Manifest, Source, place_of, read_manifest, unreadable
from .pipeline import SOURCES, LoadedPipeline, Stage, load_object
from .stage import Item, Made, Tools
from .walk import Walk, root_key

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

    Returned: the corrections. Where there are none, nothing is written.
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


# -- Whether a run is about to be replaced: what of it is gone, corrected or new in the sources named now

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Change:
    """What other sources make of the items of a run."""

    # ids of the run that the sources have no more, or that now stand for something else
    gone: tuple[str, ...] = ()
    corrected: tuple[str, ...] = ()  # ids that stand for something else in the same files
    added: tuple[str, ...] = ()  # ids that the run does not have

    def line(self) -> str:
        named = {"no longer there": self.gone, "corrected": self.corrected, "new": self.added}
        parts = [f"{len(ids)} {what} ({_some(ids)})" for what, ids in named.items() if ids]
        return f"the sources have changed: {', '.join(parts)}"


def changed_by(
    folder: Path, loaded: LoadedPipeline, known: Manifest, config: RunConfig, prints: tuple[Fingerprint, ...]
) -> Change:
    """Compare the items of a run with those of the sources that are named now, by id and content.

    Reads only. Where the files are does not matter, nor what the settings of other stages are.
    """
    identity = loaded.pipeline.identity
    now = [fingerprint for fingerprint in prints if fingerprint.role != EDITS_ROLE]
    before = [entry for entry in known.sources if entry.role != EDITS_ROLE]
    same = [fingerprint.field() for fingerprint in now] == [entry.field() for entry in before]
    if identity is None or same or not (folder / JOURNAL).exists():
        return Change()
    items, held = _items(loaded, known, config, prints), _held(folder, loaded, known)
    kept = {item for item, sha256 in held.items() if items.get(item, "") == sha256}
    others = [item for item in held if item in items and item not in kept]
    files = _same_files(folder, known, now, kept=bool(kept))
    return Change(
        gone=tuple(item for item in held if item not in items or (not files and item in others)),
        corrected=tuple(others) if files else (),
        added=tuple(item for item in items if item not in held),
    )


def refuse_gone(folder: Path, loaded: LoadedPipeline, change: Change) -> None:
    """Raise ConfigError where a run would lose items."""
    if not change.gone:
        return
    count, adding = len(change.gone), loaded.pipeline.adding
    raise ConfigError(
        f"--out {folder}",
        what=f"{count} of the run's items are not in these sources, or are something else there:"
        f" {_some(change.gone)}",
        fix="nothing was changed. Build into another folder with --out"
        + (f"; {adding.format(folder=folder)}" if adding else "")
        + "; or, if these sources are to take the place of the others, add --replace-sources",
    )


def _items(
    loaded: LoadedPipeline, known: Manifest, config: RunConfig, prints: tuple[Fingerprint, ...]
) -> dict[str, str | None]:
    """Return what the first stage would make of the sources; a run keeps nothing of it."""
    stage = loaded.stages[0]
    with tempfile.TemporaryDirectory(prefix="fabula-sources-") as scratch:
        tools = Tools(
            settings=config.stages[stage.name],
            created_at=known.created_at,
            seed=config.run.seed,
            paths=tuple(fingerprint.path for fingerprint in prints),
            store=Path(scratch),
        )
        fields = {SOURCES: [fingerprint.field() for fingerprint in prints]}
        made = {child.id: child.outcome for child in stage.run(Item(SOURCES, fields), tools)}
        return {
            item: _content(loaded, outcome.fields) if isinstance(outcome, Made) else None
            for item, outcome in made.items()
            if not isinstance(outcome, Made) or _content(loaded, outcome.fields) is not None
        }


def _held(folder: Path, loaded: LoadedPipeline, known: Manifest) -> dict[str, str | None]:
    """Return what the first stage made of the sources that the run was last made from."""
    stage = loaded.stages[0]
    with Journal.open(folder, writable=False) as journal:
        table = _table(journal, loaded, stage, known)
        if table is None:
            return {}
        heads = Known(journal, stage.name)
        held: dict[str, str | None] = {}
        for item, key in read_listing(journal, table):
            head = heads[key]
            if head.status != "made":
                held[item] = None
                continue
            content = _content(loaded, decode(journal.blobs([head.seq])[head.seq]))
            if content is not None:
                held[item] = content
        return held


def _table(journal: Journal, loaded: LoadedPipeline, stage: Stage, known: Manifest) -> Head | None:
    """Return the list of the run's items: that of its manifest's sources, else the last that there is."""
    tables = list(journal.heads(stage.name, part="table"))
    fields = [entry.field() for entry in known.sources]
    root = journal.head(root_key(fields))
    if root is not None:
        try:
            basis = Walk(loaded, known.config(loaded), journal).basis(stage)
        except ConfigError:  # settings of a version that had others
            return tables[-1] if tables else None
        key = basis.key(SOURCES, [root.outputs[name] for name in stage.spec.reads])
        same = next((table for table in tables if table.key == key), None)
        if same is not None:
            return same
    return tables[-1] if tables else None


def _content(loaded: LoadedPipeline, fields: Mapping[str, object]) -> str | None:
    """Return what makes an item the same item; None for one that does not come from the sources."""
    assert loaded.pipeline.identity is not None
    identity = load_object(loaded.pipeline.identity)(fields)
    return None if identity is None else digest(identity)


def _same_files(folder: Path, known: Manifest, now: list[Fingerprint], *, kept: bool) -> bool:
    """Whether the files of before are named again: at their place, or, where items stayed, by their name.

    What comes with the items, such as hand-written records, does not matter: only the first role does.
    """
    places = {place_of(Source(fingerprint.role, fingerprint.path)) for fingerprint in now}
    names = {(fingerprint.role, fingerprint.name) for fingerprint in now} if kept else set()
    listed = zip(known.source_list(folder), known.sources, strict=True)
    return all(
        place_of(source) in places or (entry.role, entry.name) in names
        for source, entry in listed
        if entry.role == known.sources[0].role
    )


def _some(ids: tuple[str, ...]) -> str:
    more = [f"and {len(ids) - SHOWN} more"] if len(ids) > SHOWN else []
    return ", ".join([*ids[:SHOWN], *more])
