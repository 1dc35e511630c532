"""Stage: the source stories, what authors say about them, and edits, all checked before the first is built.

Stories come as for the KathaBench builder. Each gets the number of its folder: its id where that is a number,
else the next free one in the order of the sources. So stories that are added behind the others move none.
"""

from collections.abc import Iterable, Iterator, Mapping

from pydantic import Field, ValidationError

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import InputError, UserError
from ...releases.shots.tree import is_safe_name
from ...schemas.canonical import Json
from ...schemas.paths import format_path
from ...schemas.plain_files import type_reason
from ...schemas.values import Own, Story, vocabulary
from ..rows import Reader, Row, StoryRows, read_edits
from ..rows import Settings as StorySettings

LABELS = {"story_type": "story_type", "culture": "culture", "style": "style_category"}
"""Field -> its vocabulary."""


class GivenCharacter(Own):
    """A character as its author gives it; what is left out is drafted, but for ethnicity."""

    tag: str | None = Field(default=None, description="realistic_human, unrealistic_human or non_human.")
    name_en: str | None = Field(default=None, description="Name in English; by default the key.")
    name_ch: str | None = Field(default=None, description="Name in Chinese.")
    prompt_en: str | None = Field(default=None, description="Appearance and clothing, in English.")
    prompt_ch: str | None = Field(default=None, description="Appearance and clothing, in Chinese.")
    gender: str | None = Field(default=None, description="male, female or other.")
    ethnicity: str | None = Field(default=None, description="Only what the author says.")


class GivenScript(Own):
    """One line of the file of given facts."""

    id: str = Field(description="Story id.")
    author: str = Field(default="unnamed", min_length=1, description="Who says so.")
    shots: int | None = Field(default=None, ge=4, le=30, description="How many shots the story gets.")
    story_type: str | None = Field(default=None, description="See the vocabulary story_type.")
    culture: str | None = Field(default=None, description="See the vocabulary culture.")
    style: str | None = Field(default=None, description="See the vocabulary style_category.")
    realistic: bool | None = Field(default=None, description="Whether the references are photographs.")
    characters: dict[str, GivenCharacter] = Field(
        default_factory=dict, description="Key -> character; if there are any, these are all there are."
    )


def read_given(rows: Iterable[Row], stories: Iterable[str], reader: Reader) -> dict[str, Json]:
    """Return what is given, by story id; problems go to the reader."""
    known, scripts = frozenset(stories), dict[str, Json]()
    for row in rows:
        try:
            given = GivenScript.model_validate(row.data)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                field = f"{row.where} {format_path(detail['loc'])}"
                reader.problems.append(UserError(field, what=type_reason(detail), fix="see docs/shots.md"))
            continue
        if given.id not in known or given.id in scripts:
            what = "a story of this build" if given.id not in known else "one line for each story"
            reader.problem(f"{row.where}, id", what, repr(given.id[:80]), "correct the id")
            continue
        _check_words(row, given, reader)
        # A list: the order of the characters is the author's, and objects have none.
        cast = [{"key": key, **character.as_json()} for key, character in given.characters.items()]
        scripts[given.id] = {**given.as_json(), "characters": cast}
    return scripts


def _check_words(row: Row, given: GivenScript, reader: Reader) -> None:
    values = {name: (words, getattr(given, name)) for name, words in LABELS.items()}
    for key, character in given.characters.items():
        values[f"characters[{key!r}].tag"] = ("character_tag", character.tag)
        values[f"characters[{key!r}].gender"] = ("gender", character.gender)
        if not is_safe_name(key) or key != key.strip():
            found = f"{key[:80]!r}, which cannot be the name of a folder"
            reader.problem(f"{row.where}, characters", "names of characters", found, "rename it")
    for field, (words, value) in values.items():
        listed = vocabulary(words).values
        if value is not None and value not in listed:
            cure = f"use one of these words; `fabula schemas words {words}` says what they mean"
            reader.problem(f"{row.where}, {field}", f"one of: {', '.join(listed)}", repr(value), cure)


class Settings(StorySettings):
    """Settings of the stage: as in the KathaBench builder, but for how stories without id are named."""

    id_prefix: str = Field(
        default="story_",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,55})?$",
        description="Stories without id are numbered in order, story_0001 and so on; empty: ids required.",
    )


SPEC = StageSpec(
    name="load_stories",
    version=4,
    shape="expand",
    reads=("sources",),
    writes=("story", "given", "edits", "withdrawn", "number"),
    libraries=("pyyaml",),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per story, in source order."""
    settings = tools.own(Settings)
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
