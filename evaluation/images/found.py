"""What was found in the pictures of an evaluation: the lines of ``images.jsonl``, read and checked."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from ...errors import InputError, UserError
from ...schemas.paths import format_path
from ...schemas.plain_files import open_plain, parse_json
from ..metrics.story import FoundStory
from .looking import boxes_are

IMAGES = "images.jsonl"
"""One line per method and story: boxes, vectors and values, from which everything but ratings is scored."""


def read_found(folder: str | Path) -> tuple[FoundStory, ...]:
    """Return the stories of an evaluation folder, sorted by method and story.

    Raises:
        InputError: the file is missing, a line has something that the type does not allow, or a story is
            there twice; every problem is listed.
    """
    path = Path(folder) / IMAGES
    problems: list[UserError] = []
    found: dict[tuple[str, str], FoundStory] = {}
    for where, line in _lines(path, problems):
        try:
            one = FoundStory.model_validate(parse_json(line))
            boxes_are(one.boxes)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                place = f"{where} {format_path(detail['loc'])}"
                problems.append(_problem(place, "a value that the type allows", str(detail["msg"])))
            continue
        except ValueError as error:
            problems.append(_problem(where, "a line of an evaluation of images", str(error)))
            continue
        if (one.method, one.story_id) in found:
            problems.append(_problem(where, "each story of a method once", f"{one.story_id} again"))
        found[one.method, one.story_id] = one
    if problems:
        raise InputError(problems)
    return tuple(found[key] for key in sorted(found))


def _lines(path: Path, problems: list[UserError]) -> Iterator[tuple[str, bytes]]:
    try:
        with open_plain(path, follow=True) as handle:
            for number, line in enumerate(handle, 1):
                yield f"{path}:{number}", line
    except OSError as error:
        problems.append(
            _problem(str(path), f"the file {IMAGES} of an evaluation folder", str(error.strerror))
        )


def _problem(where: str, expected: str, found: str) -> UserError:
    return UserError(
        where, expected=expected, found=found, fix="give the folder that fabula evaluate images wrote"
    )
