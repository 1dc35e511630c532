"""Stage: the source stories, hand-written records and edits, all checked before the first story is built.

Stories come as JSONL, CSV or folders of ``.txt`` and ``.md`` files with optional YAML front matter. All
problems of all files are raised as one error.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import InputError
from ...schemas.canonical import Json
from ..rows import Reader, Row
from ..story_rows import Settings, StoryRows
from .given_rows import read_edits, read_given

__all__ = ["SPEC", "Settings", "read_sources", "run"]

SPEC = StageSpec(
    name="load_stories",
    version=4,
    shape="expand",
    reads=("sources",),
    writes=("story", "given", "edits", "withdrawn", "added_at"),
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
    fields = read_sources(item["sources"], tools.paths, StoryRows(settings, reader))
    if reader.problems:
        raise InputError(reader.problems)
    for story_id, values in fields.items():
        yield Child(story_id, Made(values))


def identity(fields: Mapping[str, Json]) -> Json:
    """Return what makes a story the same story."""
    return fields["story"]


def read_sources(
    sources: Sequence[Mapping[str, Json]], paths: Sequence[Path], builder: StoryRows
) -> dict[str, dict[str, Json]]:
    """Return the fields of each story that the sources hold, in their order; problems go to the reader.

    Args:
        sources: role of each source, and when it was added to the run, if it was.
        paths: where they are.
        builder: makes the stories.
    """
    settings, reader = builder.settings, builder.reader
    rows: dict[str, list[Row]] = {"stories": [], "records": [], "edits": []}
    for number, (source, path) in enumerate(zip(sources, paths, strict=True)):
        for row in reader.rows(path):
            if source["role"] != "stories":
                rows[source["role"]].append(row)
            else:
                builder.add(row, number)
    stories = builder.stories
    if len(stories) > settings.max_stories:
        reader.problem(
            "the sources", f"at most {settings.max_stories} stories", f"{len(stories)}",
            "build them in parts, or raise load_stories.max_stories",
        )  # fmt: skip
    # Records and edits of stories that could not be read would only repeat the first problem.
    known = stories if not reader.problems else {}
    given = read_given(rows["records"] if known else (), known, reader)
    edits, withdrawn = read_edits(rows["edits"] if known else (), known, reader)
    return {
        story_id: {
            "story": story.as_json(),
            "given": given.get(story_id),
            "edits": edits.get(story_id, []),
            "withdrawn": withdrawn.get(story_id),
            "added_at": sources[builder.sources[story_id]].get("added_at"),
        }
        for story_id, story in stories.items()
    }
