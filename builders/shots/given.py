"""What an author gives about a story beside its text: who is in it, and what is known about it."""

from collections.abc import Iterable

from pydantic import Field, ValidationError

from ...releases.shot_references import is_safe_name
from ...schemas.base import Own
from ...schemas.canonical import Json
from ...schemas.paths import format_path
from ...schemas.vocabulary import vocabulary
from ..katha.rows import Reader, Row

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
    known, found = frozenset(stories), dict[str, Json]()
    for row in rows:
        try:
            given = GivenScript.model_validate(row.data)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_input=False):
                place = f"{row.where} {format_path(one['loc'])}"
                reader.problem(place, "a field of a given script", str(one["msg"]), "see docs/shots.md")
            continue
        if given.id not in known or given.id in found:
            what = "a story of this build" if given.id not in known else "one line for each story"
            reader.problem(f"{row.where}, id", what, repr(given.id[:80]), "correct the id")
            continue
        _check_words(row, given, reader)
        # A list: the order of the characters is the author's, and objects have none.
        cast = [{"key": key, **one.as_json()} for key, one in given.characters.items()]
        found[given.id] = {**given.as_json(), "characters": cast}
    return found


def _check_words(row: Row, given: GivenScript, reader: Reader) -> None:
    values = {name: (words, getattr(given, name)) for name, words in LABELS.items()}
    for key, one in given.characters.items():
        values[f"characters[{key!r}].tag"] = ("character_tag", one.tag)
        values[f"characters[{key!r}].gender"] = ("gender", one.gender)
        if not is_safe_name(key) or key != key.strip():
            found = f"{key[:80]!r}, which cannot be the name of a folder"
            reader.problem(f"{row.where}, characters", "names of characters", found, "rename it")
    for place, (words, value) in values.items():
        listed = vocabulary(words).values
        if value is not None and value not in listed:
            cure = f"use one of these words; `fabula schemas words {words}` says what they mean"
            reader.problem(f"{row.where}, {place}", f"one of: {', '.join(listed)}", repr(value), cure)
