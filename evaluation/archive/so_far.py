"""The archive of an evaluation that is not finished: what judges answered so far, marked as incomplete.

It is written when a run stops early, and can be written at any time from the run's journal.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from ...engine.lock import hold
from ...engine.manifest import NAME as RUN
from ...engine.manifest import write_manifest as write_run
from ...engine.pipeline import Pipeline
from ...engine.replay import Replay, replayed
from ...engine.sources import path_from
from ...errors import InputError, TargetError, UserError
from ...schemas.canonical import file_mode, pretty_bytes, write_atomic
from ...schemas.plain_files import open_plain, read_json
from ..words import counted
from .archive import EVALUATION, JUDGEMENTS, Archive, export_archive
from .replies import INCOMPLETE, lacking


@dataclass(frozen=True)
class SoFar:
    """What was written of an evaluation that may be unfinished.

    Attributes:
        folder: where the archive is.
        kind: katha or events.
        judgements: how many replies it holds.
        unasked: how many questions of the outputs that were reached are not answered yet.
        unreached: how many outputs were not reached, as they failed or wait for an earlier stage.
    """

    folder: Path
    kind: str
    judgements: int
    unasked: int
    unreached: int

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.unasked and not self.unreached

    def text(self) -> str:
        """Return it as one line for people."""
        return f"{counted(self.judgements, 'reply')} so far, {lacking(self.unasked, self.unreached)}"


def keep_so_far(folder: Path, pipeline: Pipeline) -> SoFar | None:
    """Write what is answered so far into the run folder itself; None where nothing is.

    Raises:
        RunError: somebody else is at work on the run, or its journal cannot be read.
        TargetError: the folder cannot be written.
    """
    with hold(folder):
        return write_so_far(folder, folder, pipeline)


def write_so_far(folder: Path, target: Path, pipeline: Pipeline) -> SoFar | None:
    """Write the archive of an evaluation run from its journal into a folder that exists.

    Nobody is asked, and the run may be at work meanwhile.

    Args:
        folder: the run folder.
        target: where; existing files of an archive are replaced.
        pipeline: that made the run.

    Returns:
        What was written; None where no judge answered anything, and then nothing is.

    Raises:
        RunError: its journal cannot be read.
        TargetError: the target cannot be written.
    """
    try:
        with (
            tempfile.TemporaryDirectory(prefix=".archive-", dir=target) as scratch,
            replayed(folder, pipeline) as found,
        ):
            draft = Path(scratch)
            sources = tuple(
                one.model_copy(update={"path": path_from(draft, source.path)})
                for source, one in zip(
                    found.manifest.source_list(folder), found.manifest.sources, strict=True
                )
            )
            write_run(draft, found.manifest.model_copy(update={"sources": sources}))
            if not len(found.items):
                return None
            found.loaded.finish(draft, found.items)
            written = _marked(draft, found)
            if not written.judgements:
                return None
            move_archive(draft, target)
            return replace(written, folder=target)
    except OSError as error:
        raise TargetError(
            str(target), what=f"the folder cannot be written: {error.strerror or error}",
            fix="check its permissions and the free space",
        ) from error  # fmt: skip


def export_so_far(folder: Path, target: Path, pipeline: Pipeline) -> Archive:
    """Write what a run has so far into a new folder, as :func:`.archive.export_archive` does; return it.

    Raises:
        InputError: no judge has answered anything.
        RunError: its journal cannot be read.
        TargetError: the new folder is not empty, or cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="fabula-so-far-") as scratch:
        if write_so_far(folder, Path(scratch), pipeline) is None:
            raise unanswered(folder)
        return export_archive(scratch, target)


def _marked(draft: Path, found: Replay) -> SoFar:
    """Say in the drafted manifest what is missing."""
    document = read_json(draft / EVALUATION)
    environment = document["environment"]
    unreached = sum(count for name, count in found.totals.items() if name in ("failed", "pending"))
    told = environment.get(INCOMPLETE, {"unasked": {}})
    if unreached or INCOMPLETE in environment:
        environment[INCOMPLETE] = {**told, "unreached": unreached}
        write_atomic(draft / EVALUATION, [pretty_bytes(document)])
    with open_plain(draft / JUDGEMENTS) as lines:
        count = sum(1 for _ in lines)
    return SoFar(draft, document["kind"], count, sum(told["unasked"].values()), unreached)


def move_archive(draft: Path, target: Path) -> None:
    """Move the files of a draft, the manifest first: what is there is never taken for more than it is.

    Raises:
        OSError: the target cannot be written.
    """
    names = sorted(path.name for path in draft.iterdir() if path.name != RUN)
    for name in sorted(names, key=lambda one: one != EVALUATION):
        (draft / name).chmod(file_mode(target))  # the draft's folder was for its owner only
        (draft / name).replace(target / name)


def unanswered(folder: Path) -> InputError:
    """Return the error for a run in which no judge has answered anything."""
    return InputError(
        [
            UserError(
                str(folder), what="no judge has answered yet",
                fix="run the command that began it again; it continues",
            )
        ]
    )  # fmt: skip
