"""What is known of a set of scripts beyond the official files: ``stories.jsonl``, ``references.jsonl``."""

from collections.abc import Iterable
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import Json, jsonl_lines, write_atomic
from ..schemas.shots import ReferenceImage, StoryFacts
from ..validators.rules import RuleSet
from ..validators.shots.statistics import shot_statistics
from .shots.references import Line, read_lines
from .shots.tree import (
    REFERENCES,
    STORIES,
    ShotSet,
    check_shot_set,
    holds_scripts,
    open_shot_set,
    read_shot_set,
)


def read_story_facts(shot_set: ShotSet) -> dict[str, StoryFacts]:
    """Return what ``stories.jsonl`` says of each story of a set; nothing where there is no such file.

    Raises:
        InputError: a line is not what the type allows, or a story is there twice; every problem is listed.
    """
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

    Raises:
        InputError: a line is not what the type allows; every problem is listed.
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
    """Write both files beside the stories of a set, sorted; no file of stories where nothing is known.

    Raises:
        OSError: the folder cannot be written.
    """
    stories = sorted(facts, key=lambda one: one.story_id)
    if stories:
        write_atomic(folder / STORIES, jsonl_lines(one.as_json() for one in stories))
    lines = sorted(images, key=lambda one: (one.story_id, one.file))
    write_atomic(folder / REFERENCES, jsonl_lines(one.as_json() for one in lines))


def statistics_of_shots(path: Path) -> dict[str, Json]:
    """Return the counts over a set of shot scripts: the official tree, or a run or release that holds it.

    Raises:
        InputError: there is none, or what is known of its stories cannot be read.
    """
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


RULES = RuleSet(holds_scripts, open_shot_set, check_shot_set, statistics_of_shots)
