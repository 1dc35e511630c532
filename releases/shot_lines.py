"""The files beside the stories of a set, line by line: ``stories.jsonl`` and ``references.jsonl``."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from ..schemas.base import Own
from ..schemas.issue import Issue
from ..schemas.paths import format_path
from ..schemas.plain_files import open_plain
from ..schemas.shots import ReferenceImage, ShotScript, StoryFacts
from ..validators.shots.codes import issue
from ..validators.shots.fact_rules import check_facts

Line = TypeVar("Line", bound=Own)


def read_lines(path: Path, kind: type[Line]) -> Iterator[tuple[int, Line | list[tuple[str, str]]]]:
    """Yield every line by its number: what it holds, or where and why it has not the form.

    Nothing where there is no such file.
    """
    if not path.is_file():
        return
    with open_plain(path) as handle:
        for number, line in enumerate(handle, 1):
            try:
                yield number, kind.model_validate_json(line)
            except ValidationError as error:
                details = error.errors(include_url=False, include_input=False)
                yield number, [(format_path(one["loc"]), str(one["msg"])) for one in details]


def check_lines(stories: Path, references: Path, scripts: Mapping[str, ShotScript]) -> Iterator[Issue]:
    """Yield everything that is wrong with both files, as far as they are there.

    Args:
        stories: facts of the stories.
        references: source and rights of the images.
        scripts: story id -> its script.
    """
    seen: set[str] = set()
    for number, line in read_lines(stories, StoryFacts):
        where = f"{stories.name}:{number}"
        if isinstance(line, list):
            yield from (issue("facts-line", where, path, why) for path, why in line)
            continue
        if line.story_id in seen:
            yield issue("facts-line", where, "$.story_id", f"{line.story_id} has a line already")
        seen.add(line.story_id)
        if line.story_id in scripts:
            yield from check_facts(line, scripts[line.story_id], where)
        else:
            yield issue("facts-story", where, "$.story_id", f"{line.story_id} is not a story of the set")
    for number, image in read_lines(references, ReferenceImage):
        if isinstance(image, list):
            where = f"{references.name}:{number}"
            yield from (issue("facts-line", where, path, why) for path, why in image)
