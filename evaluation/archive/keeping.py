"""The archive of an evaluation that is not finished: what judges answered so far, marked as incomplete.

It is written when a run stops early, and can be written at any time from the run's journal.

An evaluation into a folder that has one: what it leaves there is the union of both.

The archive that stands in the folder waits in a folder beside it, ``earlier``, until the new one is written.
Then the two are united; what both answer is the new one's. What cannot be united, as it was judged in another
way, stays in ``earlier``: an evaluation removes nothing, unless it is told to replace what is there.
"""

import shutil
import tempfile
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from filecmp import cmp
from itertools import count
from pathlib import Path

from pydantic import ValidationError

from ...engine.lock import hold
from ...engine.manifest import NAME as RUN
from ...engine.manifest import path_from
from ...engine.manifest import write_manifest as write_run
from ...engine.pipeline import Pipeline
from ...engine.salvage import Replay, replayed
from ...errors import InputError
from ...schemas.canonical import file_mode, pretty_bytes, write_atomic, writing
from ...schemas.plain_files import open_plain, read_json
from ...schemas.text import counted
from .archive import (
    EVALUATION,
    JUDGEMENTS,
    Archive,
    ArchiveForm,
    export_archive,
    lines_of,
    read_archive,
    read_manifest,
    said_digest,
    sort_key,
)
from .merging import joined_protocol, merge_archives
from .replies import INCOMPLETE, lacking


@dataclass(frozen=True)
class SoFar:
    """What was written of an evaluation that may be unfinished."""

    folder: Path  # where the archive is
    kind: str  # name of the protocol
    judgements: int  # how many replies it holds
    unasked: int  # how many questions of the outputs that were reached are not answered yet
    unreached: int  # how many outputs were not reached, as they failed or wait for an earlier stage

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.unasked and not self.unreached

    def text(self) -> str:
        return f"{counted(self.judgements, 'reply')} so far, {lacking(self.unasked, self.unreached)}"


def keep_so_far(folder: Path, pipeline: Pipeline) -> SoFar | None:
    """Write what is answered so far into the run folder itself; None where nothing is."""
    with hold(folder):
        return write_so_far(folder, folder, pipeline)


def write_so_far(folder: Path, target: Path, pipeline: Pipeline) -> SoFar | None:
    """Write the archive of an evaluation run from its journal into a folder that exists.

    Nobody is asked, and the run may be at work meanwhile.

    Returned: what was written; None where no judge answered anything, and then nothing is.
    """
    with (
        writing(target, "check its permissions and the free space"),
        tempfile.TemporaryDirectory(prefix=".archive-", dir=target) as scratch,
        replayed(folder, pipeline) as replay,
    ):
        draft = Path(scratch)
        sources = tuple(
            entry.model_copy(update={"path": path_from(draft, source.path)})
            for source, entry in zip(
                replay.manifest.source_list(folder), replay.manifest.sources, strict=True
            )
        )
        write_run(draft, replay.manifest.model_copy(update={"sources": sources}))
        if not len(replay.items):
            return None
        replay.loaded.finish(draft, replay.items)
        written = _marked(draft, replay)
        if not written.judgements:
            return None
        move_archive(draft, target)
        return replace(written, folder=target)


def export_so_far(folder: Path, target: Path, pipeline: Pipeline, form: ArchiveForm) -> Archive:
    """Write what a run has so far into a new folder, as :func:`.archive.export_archive` does; return it."""
    with tempfile.TemporaryDirectory(prefix="fabula-so-far-") as scratch:
        if write_so_far(folder, Path(scratch), pipeline) is None:
            raise unanswered(folder)
        return export_archive(scratch, target, form)


def _marked(draft: Path, replay: Replay) -> SoFar:
    """Say in the drafted manifest what is missing."""
    document = read_json(draft / EVALUATION)
    environment = document["environment"]
    unreached = sum(count for name, count in replay.totals.items() if name in ("failed", "pending"))
    counts = environment.get(INCOMPLETE, {"unasked": {}})
    if unreached or INCOMPLETE in environment:
        environment[INCOMPLETE] = {**counts, "unreached": unreached}
        write_atomic(draft / EVALUATION, [pretty_bytes(document)])
    with open_plain(draft / JUDGEMENTS) as lines:
        count = sum(1 for _ in lines)
    return SoFar(draft, document["kind"], count, sum(counts["unasked"].values()), unreached)


def move_archive(draft: Path, target: Path) -> None:
    """Move the files of a draft, the manifest first: what is there is never taken for more than it is."""
    names = sorted(path.name for path in draft.iterdir() if path.name != RUN)
    for name in sorted(names, key=lambda name: name != EVALUATION):
        (draft / name).chmod(file_mode(target))  # the draft's folder was for its owner only
        (draft / name).replace(target / name)


def unanswered(folder: Path) -> InputError:
    """Return the error for a run in which no judge has answered anything."""
    return InputError.one(
        str(folder), what="no judge has answered yet",
        fix="run the command that began it again; it continues",
    )  # fmt: skip


EARLIER = "earlier"
"""The folder in which an archive waits for the one that is made in its place."""
SHOWN = 3
"""So many reasons are told."""


def set_aside(folder: Path, form: ArchiveForm, *, replace: bool) -> tuple[str, ...]:
    """Put a copy of the archive of a folder aside, before another evaluation writes its own.

    Returned: what a person should know: why an earlier archive, of an evaluation that was killed, stays
    aside.
    """
    if not (folder / EVALUATION).is_file() or not (folder / JUDGEMENTS).is_file():
        return ()
    with hold(folder):
        reasons = () if replace else _united(folder, form)
        shutil.rmtree(folder / EARLIER, ignore_errors=True)
        if not replace:
            with tempfile.TemporaryDirectory(prefix=".earlier-", dir=folder) as scratch:
                for name in (EVALUATION, JUDGEMENTS, *form.files):
                    with suppress(FileNotFoundError):
                        shutil.copyfile(folder / name, Path(scratch) / name)
                shutil.copytree(scratch, folder / EARLIER)
    return reasons


def unite(folder: Path, form: ArchiveForm) -> tuple[str, ...]:
    """Add what was put aside to the archive that is there now.

    Returned: what a person should know: where and why something stays aside.
    """
    if not (folder / EARLIER).is_dir():
        return ()
    with hold(folder):
        return _united(folder, form)


def _united(folder: Path, form: ArchiveForm) -> tuple[str, ...]:
    earlier = folder / EARLIER
    if not earlier.is_dir():
        return ()
    try:
        _unite(folder, earlier, form)
    except InputError as error:
        kept = _kept_in(folder)
        reasons = "; ".join(f"{problem.where}: {problem.what}" for problem in error.problems[:SHOWN])
        return (f"what was in {folder} was judged in another way, and is kept in {kept}: {reasons}",)
    shutil.rmtree(earlier)
    return ()


def _unite(folder: Path, earlier: Path, form: ArchiveForm) -> None:
    """Make the archive of a folder the union of it and an earlier one."""
    now, then = _contents(folder, form), _contents(earlier, form)
    if then.items() <= now.items():
        return
    _check_prompts(folder, earlier)
    if then.keys() <= now.keys() and _are_alike(folder, earlier, form):
        return
    with tempfile.TemporaryDirectory(prefix=".union-", dir=folder) as scratch:
        if now.items() <= then.items():
            shutil.copytree(earlier, scratch, dirs_exist_ok=True)
        else:
            merge_archives([folder, earlier], scratch, form, first_wins=True)
        move_archive(Path(scratch), folder)


def _contents(folder: Path, form: ArchiveForm) -> dict[Hashable, object]:
    """Return key -> content of what an archive holds: replies, methods, and what is in the files beside."""
    manifest = read_manifest(folder)
    contents: dict[Hashable, object] = dict.fromkeys(manifest.subject.get("methods") or ())
    try:
        contents |= {
            sort_key(judgement): said_digest(judgement) for judgement in lines_of(folder / JUDGEMENTS)
        }
    except ValidationError:
        read_archive(folder)  # says everything that is wrong with it
        raise
    return contents if form.contents is None else {**contents, **form.contents(folder)}


def _check_prompts(folder: Path, earlier: Path) -> None:
    """Refuse two archives in which the same was asked in other words."""
    prompts = {sort_key(judgement): judgement.prompt for judgement in lines_of(earlier / JUDGEMENTS)}
    for judgement in lines_of(folder / JUDGEMENTS):
        before = prompts.get(sort_key(judgement), judgement.prompt)
        if before != judgement.prompt:
            what = f"{judgement.item} was asked by {before}, and now by {judgement.prompt}"
            raise InputError.one("prompts", what=what, fix="choose another folder")


def _are_alike(folder: Path, earlier: Path, form: ArchiveForm) -> bool:
    try:
        joined_protocol([read_manifest(folder), read_manifest(earlier)], form)
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
