"""A subset of shot scripts as a folder like that of an imported set, which can be packed as a release."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..engine.manifest import SourceEntry
from ..errors import InputError, UserError
from ..schemas.canonical import jsonl_lines, write_atomic
from ..schemas.shots import ShotRecord, StoryFacts
from .imported_run import write_imported_run
from .layout import IMPORTED_SHOTS, SHOT_SCRIPTS
from .loading import read_rows
from .shot_import import GIVEN, ROLE
from .shot_tree import FOLDER, ShotSet


def write_subset_run(
    whole: ShotSet, part: ShotSet, facts: Mapping[str, StoryFacts], out: Path, time: str
) -> None:
    """Write ``scripts.jsonl``, ``run.json`` and ``report.json`` beside the tree of a subset.

    Who made what goes along where the whole has it: where it is a run or a release.

    Args:
        whole: the set that it was taken from.
        part: the subset.
        facts: what is known of its stories.
        out: the folder with its tree.
        time: when it was taken, RFC 3339; releases of it bear it.

    Raises:
        InputError: ``scripts.jsonl`` of the whole is damaged. OSError: the folder cannot be written.
    """
    root = whole.folder.parent if whole.folder.name == FOLDER else whole.folder
    write_atomic(out / SHOT_SCRIPTS, jsonl_lines(_records(part, facts, _known(root))))
    path, name = (
        text.encode("utf-8", "backslashreplace").decode("utf-8")
        for text in (str(root.absolute()), root.absolute().name)
    )
    entry = SourceEntry(role=ROLE, name=name, path=path, sha256=whole.sha256)
    write_imported_run(out, IMPORTED_SHOTS, entry, SHOT_SCRIPTS, time)


def _known(root: Path) -> dict[str, ShotRecord]:
    if not (root / SHOT_SCRIPTS).is_file():
        return {}
    problems: list[UserError] = []
    known = {record.story_id: record for record in read_rows(root / SHOT_SCRIPTS, ShotRecord, problems)}
    if problems:
        raise InputError(problems)
    return known


def _records(
    part: ShotSet, facts: Mapping[str, StoryFacts], known: Mapping[str, ShotRecord]
) -> Iterator[dict[str, Any]]:
    for story in sorted(part.stories, key=lambda one: one.story_id):
        script, before = story.script.as_json(), known.get(story.story_id)
        if before is not None and before.script != script:
            before = None  # somebody changed it since, and nothing says what
        yield ShotRecord(
            story_id=story.story_id,
            source_id=None if before is None else before.source_id,
            order=tuple(story.script.characters),
            script=script,
            facts=facts.get(story.story_id, StoryFacts(story_id=story.story_id)),
            producers=({"path": "$", "producer": GIVEN},) if before is None else before.producers,
        ).as_json()
