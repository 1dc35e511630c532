"""The folder that a release is packed into: checked first, filled beside itself, renamed when whole."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import TargetError

_MARK = ".packing-"


def require_free(target: Path) -> None:
    """Check that a release can be put at a path.

    Raises:
        TargetError: something is there already, or the parent folder cannot be written.
    """
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise TargetError(
            str(target),
            expected="a folder that does not exist yet",
            found="a file",
            fix="choose another --out",
        )
    try:
        filled = target.is_dir() and any(target.iterdir())
    except OSError as error:
        raise _unwritable(target, error) from error
    if filled:
        raise TargetError(
            str(target),
            expected="a folder that does not exist yet, or an empty one",
            found="a folder with files",
            fix="choose another --out, or remove the folder; a published version is never overwritten",
        )


@contextmanager
def staged(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """Give an empty folder beside each target; at the end rename them into place, the first target last.

    A folder that was not filled is dropped. When anything fails, or the process is killed, no target exists
    in part; what a killed process left beside the target is removed by the next one.

    Raises:
        TargetError: the place cannot be written, or the disk is full.
    """
    drafts = tuple(target.with_name(f".{target.name}{_MARK}{os.getpid()}") for target in targets)
    try:
        for target, draft in zip(targets, drafts, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(target)
            draft.mkdir()
        yield drafts
        for target, draft in reversed(list(zip(targets, drafts, strict=True))):
            if any(draft.iterdir()):
                draft.replace(target)
    except OSError as error:
        raise _unwritable(targets[0], error) from error
    finally:
        for draft in drafts:
            shutil.rmtree(draft, ignore_errors=True)


def _remove_abandoned(target: Path) -> None:
    import psutil

    for draft in target.parent.glob(f".{_escaped(target.name)}{_MARK}*"):
        owner = draft.name.rpartition("-")[2]
        if owner.isdigit() and (int(owner) == os.getpid() or not psutil.pid_exists(int(owner))):
            shutil.rmtree(draft, ignore_errors=True)


def _escaped(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _unwritable(target: Path, error: OSError) -> TargetError:
    return TargetError(
        str(target),
        expected="a place that can be written, with room for the release",
        found=f"{error.strerror or error} ({error.filename})" if error.filename else str(error),
        fix="choose another --out, or free the disk",
    )
