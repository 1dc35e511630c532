"""What is known of a set of scripts beyond the official files: ``stories.jsonl``, ``references.jsonl``.

Bringing sets of shot scripts in and out: the official tree, and requests for generators.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...engine.manifest import SourceEntry, creation_time
from ...engine.sources import Source, fingerprint
from ...errors import InputError, UserError
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.shots import ReferenceImage, ShotRecord, StoryFacts
from ...schemas.text import tallies
from ...validators.report import ValidationReport
from ...validators.rules import RuleSet
from ...validators.shots.statistics import shot_statistics
from ..run_folder import write_imported_run
from ..target import require_free, require_outside, staged
from .layouts import Inputs
from .references import Line, read_lines
from .requests import RequestOptions, shot_requests
from .tree import (
    FOLDER,
    IMPORTED_SHOTS,
    REFERENCES,
    SCRIPT,
    SHOT_SCRIPTS,
    STORIES,
    ShotSet,
    check_shot_set,
    open_shot_set,
    read_shot_set,
    write_stories,
)


def read_story_facts(shot_set: ShotSet) -> dict[str, StoryFacts]:
    """Return what ``stories.jsonl`` says of each story of a set; nothing where there is no such file."""
    problems: list[UserError] = []
    facts: dict[str, StoryFacts] = {}
    path = shot_set.folder / STORIES
    for one in _lines(path, StoryFacts, problems):
        if one.story_id in facts:
            problems.append(_problem(str(path), "one line for each story", f"{one.story_id} twice"))
        facts[one.story_id] = one
    if problems:
        raise InputError(problems)
    return {key: value for key, value in facts.items() if key in shot_set.by_id}


def with_provenance(shot_set: ShotSet) -> tuple[ReferenceImage, ...]:
    """Return the reference images of a set with the source and rights that ``references.jsonl`` gives.

    A line counts for an image only where story, file and content are the same.
    """
    problems: list[UserError] = []
    given = _lines(shot_set.folder / REFERENCES, ReferenceImage, problems)
    known = {(one.story_id, one.file, one.sha256): one for one in given}
    if problems:
        raise InputError(problems)
    images = [one for story in shot_set.stories for some in story.references.values() for one in some]
    return tuple(
        one if found is None else one.model_copy(update={"source": found.source, "rights": found.rights})
        for one in images
        for found in (known.get((one.story_id, one.file, one.sha256)),)
    )


def write_facts(folder: Path, facts: Iterable[StoryFacts], images: Iterable[ReferenceImage]) -> None:
    """Write both files beside the stories of a set, sorted; no file of stories where nothing is known."""
    stories = sorted(facts, key=lambda one: one.story_id)
    if stories:
        write_atomic(folder / STORIES, jsonl_lines(one.as_json() for one in stories))
    lines = sorted(images, key=lambda one: (one.story_id, one.file))
    write_atomic(folder / REFERENCES, jsonl_lines(one.as_json() for one in lines))


def statistics_of_shots(path: Path) -> dict[str, Json]:
    """Return the counts over a set of shot scripts: the official tree, or a run or release that holds it."""
    shot_set, _ = read_shot_set(path)
    facts = read_story_facts(shot_set)
    return shot_statistics(
        (
            story.script,
            facts.get(story.story_id),
            {key: len(images) for key, images in story.references.items()},
        )
        for story in shot_set.stories
    )


def _lines(path: Path, kind: type[Line], problems: list[UserError]) -> list[Line]:
    made: list[Line] = []
    for number, line in read_lines(path, kind):
        if not isinstance(line, list):
            made.append(line)
            continue
        for place, why in line:
            problems.append(_problem(f"{path}:{number} {place}", "a value that the type allows", why))
    return made


def _problem(where: str, expected: str, found: str) -> UserError:
    return UserError(where, expected=expected, found=found, fix="correct the line; see docs/images.md")


RULES = RuleSet(open_shot_set, check_shot_set, statistics_of_shots)


REQUESTS = "requests.jsonl"
ROLE = "scripts"
GIVEN = "given"
"""Who made what was imported."""


@dataclass(frozen=True)
class ImportedSet:
    """A set that was brought in."""

    out: Path  # the new folder
    shot_set: ShotSet  # what was written
    report: ValidationReport  # everything that is wrong with the source

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        told = {"out": str(self.out), "sha256": self.shot_set.sha256, "written": self.shot_set.counts()}
        return told | self.report.as_json()

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people, without the findings."""
        yield self.report.summary()
        counts = tallies(self.shot_set.counts())
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

    ``source``: the official tree, or the folder above it.
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


RESULTS = "results.jsonl"
"""Which file the picture of each shot goes to."""


@dataclass(frozen=True)
class ExportedInputs:
    """What was written for a named generator."""

    files: tuple[str, ...]  # paths of its files, in the order of the description
    shots: int  # how many shots there are
    references: int  # how many reference images were copied
    missing: tuple[str, ...]  # texts that the scripts do not have, such as ``01 shot 2 plot.ch``
    unshown: tuple[tuple[str, str], ...]  # story and key of characters on stage without a reference image

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "files": list(self.files),
            "shots": self.shots,
            "references": self.references,
            "missing_texts": list(self.missing),
            "without_reference": [f"{story} {key}" for story, key in self.unshown],
        }


def export_inputs(
    shot_set: ShotSet,
    out: Path,
    generator: str,
    options: RequestOptions | None = None,
    values: Mapping[str, str | int | float] | None = None,
) -> ExportedInputs:
    """Write what a named generator reads into a new folder, the images, and where its results go."""
    inputs = Inputs(shot_set, generator, options or RequestOptions(), values or {})
    written = dict(inputs.files())
    require_free(out)
    with staged(out.absolute()) as (draft,):
        for name, image in inputs.images.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(image, draft / name)
        for name, text in written.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(draft / name, [text.encode()])
        write_atomic(draft / RESULTS, jsonl_lines(inputs.results))
    return ExportedInputs(
        tuple(written), len(inputs.results), len(inputs.images), tuple(inputs.missing), tuple(inputs.unshown)
    )
