"""Running an evaluation: what is checked before anybody is asked, and what is kept when it stops early."""

import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.execute import STOPS, RunRequest, execute
from ..engine.journal_file import NAME as JOURNAL
from ..engine.progress import Event
from ..errors import FabulaError, InputError, RunBusy, UserError
from ..releases.loading import read_release_document
from ..releases.verify.files import check_release_document
from ..schemas.layout import RELEASE as DOCUMENT
from .archive.archive import JUDGEMENTS
from .archive.form import ArchiveForm
from .archive.keeping import SoFar, keep_so_far, set_aside, unite

if TYPE_CHECKING:
    from ..engine.progress import Reporter
    from ..engine.report import RunReport

RELEASE = "release"
"""Role of a source that is a release."""


def check_request(request: RunRequest) -> None:
    """Check what an evaluation is about to be made from.

    Raises:
        InputError: the release is not what was packed.
    """
    for source in request.sources:
        if source.role == RELEASE:
            check_intact(source.path)


def run_evaluation(
    request: RunRequest, reporter: "Reporter | None" = None, *, form: ArchiveForm, replace: bool = False
) -> "RunReport":
    """Execute an evaluation; where it stops early, what is answered by then is written as its archive.

    An archive that stands in the folder is united with the new one; see :mod:`.archive.keeping`. What stays
    apart is told to the reporter, or as a Python warning.

    Args:
        request: what is asked for.
        reporter: takes the progress.
        form: what archives under its protocol have besides judgements.
        replace: let go the archive that stands in the folder.

    Raises:
        FabulaError: as :func:`fabula.engine.execute.execute`. An error that stops the run says what is kept.
    """
    folder = Path(request.folder)
    _tell(set_aside(folder, form, replace=replace), reporter)
    try:
        report = execute(request, reporter)
        if report.totals["failed"]:
            _kept(request)
    except STOPS as stop:
        kept = _kept(request)
        if kept is None:
            raise
        raise _told(stop, kept) from stop
    finally:
        with suppress(RunBusy):  # whoever holds the run unites
            _tell(unite(folder, form), reporter)
    return report


def _tell(lines: Iterable[str], reporter: "Reporter | None") -> None:
    for line in lines:
        if reporter is None:
            warnings.warn(line, stacklevel=3)
        else:
            reporter.emit(Event("warning", data={"message": line}))


def check_intact(folder: Path) -> None:
    """Check the files of a release against the hashes that it states for them.

    Raises:
        InputError: a file is missing, or is not the one that was packed; all of them are listed.
    """
    document = read_release_document(folder)
    stated = document.get("files")
    listed = sorted(stated) if isinstance(stated, dict) else []
    missing = [
        (name, f"the file is missing, and {DOCUMENT} names it")
        for name in listed
        if not (folder / name).is_file()
    ]
    changed = [
        (issue.where, f"the file was changed: its size or hash is not the one in {DOCUMENT}")
        for issue in check_release_document(folder, document)
        if issue.where != DOCUMENT
    ]
    if missing or changed:
        raise InputError(
            [
                UserError(
                    str(folder / name), what=found,
                    fix="fetch or pack the release again; fabula release verify lists all that is wrong",
                )
                for name, found in sorted([*missing, *changed])
            ]
        )  # fmt: skip


def _kept(request: RunRequest) -> SoFar | None:
    """Write what is answered so far; that it cannot be written is no reason to hide why the run stopped."""
    folder = Path(request.folder)
    if not (folder / JOURNAL).is_file():
        return None
    try:
        return keep_so_far(folder, request.pipeline)
    except FabulaError:
        return None


def _told(stop: FabulaError, kept: SoFar) -> FabulaError:
    line = f"kept: {kept.folder / JUDGEMENTS} has {kept.text()}; fabula score reads it as it is"
    if isinstance(stop, UserError):
        fix = f"{stop.fix}\n  {line}"
        return type(stop)(stop.where, what=stop.what, expected=stop.expected, found=stop.found, fix=fix)
    return type(stop)(f"{stop}\n  {line}")
