"""Stage: the source stories, what authors say about them, and edits, all checked before the first is built.

Stories come as for the KathaBench builder. Each gets the number of its folder: its id where that is a number,
else the next free one in the order of the sources. So stories that are added behind the others move none.
"""

from collections.abc import Iterator, Mapping

from pydantic import Field

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import InputError
from ...schemas.canonical import Json
from ...schemas.story import Story
from ..katha.given_rows import read_edits
from ..katha.rows import Reader, Row
from ..katha.story_rows import Settings as StorySettings
from ..katha.story_rows import StoryRows
from .given import read_given


class Settings(StorySettings):
    """Settings of the stage: as in the KathaBench builder, but for how stories without id are named."""

    id_prefix: str = Field(
        default="story_",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,55})?$",
        description="Stories without id are numbered in order, story_0001 and so on; empty: ids required.",
    )


SPEC = StageSpec(
    name="load_stories",
    version=2,
    shape="expand",
    reads=("sources",),
    writes=("story", "given", "edits", "withdrawn", "number"),
    libraries=("pyyaml",),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per story, in source order.

    Raises:
        InputError: something in the files is wrong; every problem is listed.
    """
    settings = tools.settings
    assert isinstance(settings, Settings)
    reader = Reader(settings.max_file_bytes)
    builder = StoryRows(settings, reader)
    rows: dict[str, list[Row]] = {"scripts": [], "edits": []}
    for number, (source, path) in enumerate(zip(item["sources"], tools.paths, strict=True)):
        for row in reader.rows(path):
            if source["role"] == "stories":
                builder.add(row, number)
            else:
                rows[source["role"]].append(row)
    # What is said about stories that could not be read would only repeat the first problem.
    sound = not reader.problems
    given = read_given(rows["scripts"] if sound else (), builder.stories, reader)
    edits, withdrawn = read_edits(rows["edits"] if sound else (), builder.stories, reader)
    numbers = _numbers(builder.stories, builder)
    if reader.problems:
        raise InputError(reader.problems)
    for story_id, story in builder.stories.items():
        fields: Mapping[str, Json] = {
            "story": story.as_json(),
            "given": given.get(story_id),
            "edits": edits.get(story_id, []),
            "withdrawn": withdrawn.get(story_id),
            "number": numbers[story_id],
        }
        yield Child(story_id, Made(fields))


def identity(fields: Mapping[str, Json]) -> Json:
    """Return what makes a story the same story."""
    return fields["story"]


def _numbers(stories: Mapping[str, Story], builder: StoryRows) -> dict[str, int]:
    """Return the number of each story's folder."""
    taken: dict[int, str] = {}
    for story_id in stories:
        if story_id.isdecimal():
            other = taken.setdefault(int(story_id), story_id)
            if other != story_id:
                found = f"{story_id!r}, the same number as {other!r}"
                where = f"{builder.places[story_id]}, id"
                builder.reader.problem(where, "a number of its own", found, "rename one")
    numbers = {story_id: number for number, story_id in taken.items()}
    free = 1
    for story_id in stories:
        if story_id in numbers or story_id.isdecimal():
            continue
        while free in taken:
            free += 1
        taken[free], numbers[story_id] = story_id, free
    return numbers
