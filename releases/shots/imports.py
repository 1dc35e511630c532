"""Bringing sets of shot scripts in and out: the official tree, and requests for generators."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...engine.manifest import SourceEntry, creation_time
from ...engine.sources import Source, fingerprint
from ...errors import InputError, UserError
from ...schemas.canonical import jsonl_lines, write_atomic
from ...schemas.shots import ShotRecord, StoryFacts
from ...validators.report import ValidationReport
from ..layout import IMPORTED_SHOTS, SHOT_SCRIPTS
from ..run_folder import write_imported_run
from ..shot_facts import read_story_facts, with_provenance, write_facts
from ..target import require_free, require_outside, staged
from .requests import RequestOptions, shot_requests
from .tree import FOLDER, SCRIPT, ShotSet, read_shot_set, write_stories

REQUESTS = "requests.jsonl"
ROLE = "scripts"
GIVEN = "given"
"""Who made what was imported."""


@dataclass(frozen=True)
class ImportedSet:
    """A set that was brought in.

    Attributes:
        out: the new folder.
        shot_set: what was written.
        report: everything that is wrong with the source.
    """

    out: Path
    shot_set: ShotSet
    report: ValidationReport

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        told = {"out": str(self.out), "sha256": self.shot_set.sha256, "written": self.shot_set.counts()}
        return told | self.report.as_json()

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people, without the findings."""
        yield self.report.summary()
        counts = ", ".join(f"{count} {name}" for name, count in self.shot_set.counts().items())
        yield f"{self.out}: {counts}"


def is_shot_set(path: Path) -> bool:
    """Whether a folder holds shot scripts in the official tree."""
    folder = path / FOLDER if (path / FOLDER).is_dir() else path
    return folder.is_dir() and any(
        (entry / SCRIPT).is_file() for entry in folder.iterdir() if entry.name.isdigit()
    )


def import_set(source: Path, out: Path, created_at: str | None = None) -> ImportedSet:
    """Copy a set, and what is known of its stories and images, into a new folder of our own.

    Scripts stay equal as parsed JSON, images byte for byte. A story without a script that can be used, and an
    image that cannot be decoded, stay out; the report says so. The folder is like that of a finished run, so
    that it can be packed as a release.

    Args:
        source: the official tree, or the folder above it.
        out: the folder to make.
        created_at: time that releases of it bear, RFC 3339; else as for a new run.

    Raises:
        ConfigError: the time is none. InputError: there is no set, or none of its stories can be used.
        TargetError: the new folder is there already, lies in the source, or cannot be written.
    """
    time = creation_time(created_at)
    require_free(out)
    shot_set, report = read_shot_set(source)
    require_outside(out, source)
    if not shot_set.stories:
        problem = UserError(
            str(source), what=f"no story can be used: {report.summary()}",
            fix="correct what the findings name; fabula validate lists them",
        )  # fmt: skip
        raise InputError([problem])
    facts, images = read_story_facts(shot_set), with_provenance(shot_set)
    with staged(out.absolute()) as (draft,):
        write_stories(shot_set, draft)
        write_facts(draft / FOLDER, facts.values(), images)
        write_atomic(draft / SHOT_SCRIPTS, jsonl_lines(_records(shot_set, facts)))
        entry = SourceEntry(**fingerprint(Source(ROLE, source)).as_json(out))
        write_imported_run(draft, IMPORTED_SHOTS, entry, SHOT_SCRIPTS, time)
    return ImportedSet(out, shot_set, report)


def _records(shot_set: ShotSet, facts: Mapping[str, StoryFacts]) -> Iterator[dict[str, Any]]:
    for story in sorted(shot_set.stories, key=lambda one: one.story_id):
        yield ShotRecord(
            story_id=story.story_id,
            order=tuple(story.script.characters),
            script=story.script.as_json(),
            facts=facts.get(story.story_id, StoryFacts(story_id=story.story_id)),
            producers=({"path": "$", "producer": GIVEN},),
        ).as_json()


def export_requests(shot_set: ShotSet, out: Path, options: RequestOptions | None = None) -> dict[str, int]:
    """Write what a generator is given into a new folder: ``requests.jsonl`` and the images that it names.

    Returns:
        How many ``requests`` and ``references`` there are, how many prompts were ``cut``.

    Raises:
        ConfigError: an option is wrong. TargetError: the folder is there already, or cannot be written.
    """
    lines = list(shot_requests(shot_set, options))
    require_free(out)
    files = sorted({one["file"] for line in lines for one in line["references"]})
    with staged(out.absolute()) as (draft,):
        for name in files:
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(shot_set.folder / name, draft / name)
        write_atomic(draft / REQUESTS, jsonl_lines(lines))
    return {"requests": len(lines), "references": len(files), "cut": sum(line["cut"] > 0 for line in lines)}
