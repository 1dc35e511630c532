"""An evaluation into a folder that has one: what it leaves there is the union of both.

The archive that stands in the folder waits in a folder beside it, ``earlier``, until the new one is written.
Then the two are united; what both answer is the new one's. What cannot be united, as it was judged in another
way, stays in ``earlier``: an evaluation removes nothing, unless it is told to replace what is there.
"""

import shutil
import tempfile
from collections.abc import Hashable
from contextlib import suppress
from filecmp import cmp
from itertools import count
from pathlib import Path

from pydantic import ValidationError

from ...engine.lock import hold
from ...errors import InputError, UserError
from ...releases.layout import SUITE
from ...schemas.canonical import digest
from ..images.found import IMAGES, read_found
from ..images.merging import ABOUT_PICTURES
from .archive import EVALUATION, JUDGEMENTS, lines_of, read_archive, read_manifest, said_digest, sort_key
from .merging import joined_protocol, merge_archives
from .so_far import move_archive

EARLIER = "earlier"
"""The folder in which an archive waits for the one that is made in its place."""
FILES = (EVALUATION, JUDGEMENTS, IMAGES, SUITE)
SHOWN = 3
"""So many reasons are told."""


def set_aside(folder: Path, *, replace: bool) -> tuple[str, ...]:
    """Put a copy of the archive of a folder aside, before another evaluation writes its own.

    Args:
        folder: the run folder; it need not exist.
        replace: let go what is there.

    Returns:
        What a person should know: why an earlier archive, of an evaluation that was killed, stays aside.

    Raises:
        RunError: somebody else is at work on the run.
        OSError: the folder cannot be read or written.
    """
    if not (folder / EVALUATION).is_file() or not (folder / JUDGEMENTS).is_file():
        return ()
    with hold(folder):
        told = () if replace else _united(folder)
        shutil.rmtree(folder / EARLIER, ignore_errors=True)
        if not replace:
            with tempfile.TemporaryDirectory(prefix=".earlier-", dir=folder) as scratch:
                for name in FILES:
                    with suppress(FileNotFoundError):
                        shutil.copyfile(folder / name, Path(scratch) / name)
                shutil.copytree(scratch, folder / EARLIER)
    return told


def unite(folder: Path) -> tuple[str, ...]:
    """Add what was put aside to the archive that is there now.

    Returns:
        What a person should know: where and why something stays aside.

    Raises:
        RunError: somebody else is at work on the run.
        OSError: the folder cannot be read or written.
    """
    if not (folder / EARLIER).is_dir():
        return ()
    with hold(folder):
        return _united(folder)


def _united(folder: Path) -> tuple[str, ...]:
    earlier = folder / EARLIER
    if not earlier.is_dir():
        return ()
    try:
        _unite(folder, earlier)
    except InputError as error:
        kept = _kept_in(folder)
        reasons = "; ".join(f"{one.where}: {one.what}" for one in error.problems[:SHOWN])
        return (f"what was in {folder} was judged in another way, and is kept in {kept}: {reasons}",)
    shutil.rmtree(earlier)
    return ()


def _unite(folder: Path, earlier: Path) -> None:
    """Make the archive of a folder the union of it and an earlier one."""
    now, then = _contents(folder), _contents(earlier)
    if then.items() <= now.items():
        return
    _check_prompts(folder, earlier)
    if then.keys() <= now.keys() and _are_alike(folder, earlier):
        return
    with tempfile.TemporaryDirectory(prefix=".union-", dir=folder) as scratch:
        if now.items() <= then.items():
            shutil.copytree(earlier, scratch, dirs_exist_ok=True)
        else:
            merge_archives([folder, earlier], scratch, first_wins=True)
        move_archive(Path(scratch), folder)


def _contents(folder: Path) -> dict[Hashable, object]:
    """Return key -> content of what an archive holds: replies, methods, and what was found in pictures."""
    manifest = read_manifest(folder)
    contents: dict[Hashable, object] = dict.fromkeys(manifest.subject.get("methods") or ())
    try:
        contents |= {sort_key(one): said_digest(one) for one in lines_of(folder / JUDGEMENTS)}
    except ValidationError:
        read_archive(folder)  # says everything that is wrong with it
        raise
    if manifest.kind == "images":
        for one in read_found(folder):
            parts = {"shots": one.shots_json(), "boxes": one.boxes, "crops": one.crops}
            parts |= one.pictures or {}
            contents |= {
                (one.method, one.story_id, name): digest(part)
                for name, part in parts.items()
                if part is not None and name not in ABOUT_PICTURES
            }
    return contents


def _check_prompts(folder: Path, earlier: Path) -> None:
    """Refuse two archives in which the same was asked in other words."""
    prompts = {sort_key(one): one.prompt for one in lines_of(earlier / JUDGEMENTS)}
    for one in lines_of(folder / JUDGEMENTS):
        before = prompts.get(sort_key(one), one.prompt)
        if before != one.prompt:
            what = f"{one.item} was asked by {before}, and now by {one.prompt}"
            raise InputError([UserError("prompts", what=what, fix="choose another folder")])


def _are_alike(folder: Path, earlier: Path) -> bool:
    try:
        joined_protocol([read_manifest(folder), read_manifest(earlier)])
    except InputError:
        return False
    return True


def _kept_in(folder: Path) -> Path:
    """Move what waits to a place of its own; what is there already is not kept twice."""
    earlier = folder / EARLIER
    for number in count(1):
        kept = folder / f"{EARLIER}-{number}"
        if not kept.exists():
            return earlier.rename(kept)
        if cmp(kept / JUDGEMENTS, earlier / JUDGEMENTS, shallow=False):
            shutil.rmtree(earlier)
            return kept
    raise AssertionError("numbers do not end")
