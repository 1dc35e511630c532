"""Stage: the source stories, hand-written records and edits, all checked before the first story is built.

Stories come as JSONL, CSV or folders of ``.txt`` and ``.md`` files with optional YAML front matter. All
problems of all files are raised as one error.
"""

from collections.abc import Iterator

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import InputError
from ...schemas.story import Story
from .given_rows import read_edits, read_given
from .rows import Reader, Row
from .story_rows import Settings, StoryRows

__all__ = ["SPEC", "Settings", "run"]

SPEC = StageSpec(
    name="load_stories",
    version=2,
    shape="expand",
    reads=("sources",),
    writes=("story", "given", "edits"),
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
    rows: dict[str, list[Row]] = {"stories": [], "records": [], "edits": []}
    stories: dict[str, Story] = {}
    builder = StoryRows(settings, reader)
    for source, path in zip(item["sources"], tools.paths, strict=True):
        for row in reader.rows(path):
            if source["role"] != "stories":
                rows[source["role"]].append(row)
                continue
            story = builder.add(row)
            if story is not None:
                stories[story.id] = story
    if len(stories) > settings.max_stories:
        reader.problem(
            "the sources", f"at most {settings.max_stories} stories", f"{len(stories)}",
            "build them in parts, or raise load_stories.max_stories",
        )  # fmt: skip
    # Records and edits of stories that could not be read would only repeat the first problem.
    known = stories if not reader.problems else {}
    given = read_given(rows["records"] if known else (), known, reader)
    edits = read_edits(rows["edits"] if known else (), known, reader)
    if reader.problems:
        raise InputError(reader.problems)
    for story in stories.values():
        fields = {"story": story.as_json(), "given": given.get(story.id), "edits": edits.get(story.id, [])}
        yield Child(story.id, Made(fields))
