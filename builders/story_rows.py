"""Rows into stories: required columns, ids, word lists and sizes, with every problem named."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from pydantic import Field

from ..schemas.canonical import Json
from ..schemas.text import is_language_tag, is_story_id, normalize_text
from ..schemas.values import Own, SourceDetails, Story
from ..schemas.vocabulary import vocabulary
from .rows import Reader, Row

COLUMNS = (
    "id",
    "title",
    "language",
    "text",
    "source_collection",
    "source_reference",
    "rights_status",
    "narrative_type",
    "moral_label",
    "moral",
    "dataset_license",
)
DETAILS = tuple(SourceDetails.model_fields)
"""Columns about where a story is from, none of them required."""
ALIASES = {
    "source": "source_collection",
    "source_dataset": "source_collection",
    "story_id": "id",
    "story": "text",
}
RESERVED = "sources"
NOT_APPLICABLE: Literal["not_applicable"] = "not_applicable"
"""What the column ``moral`` may say: the story supports no value."""


class Settings(Own):
    """Settings of the stage ``load_stories``."""

    id_prefix: str = Field(
        default="kb25k_",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,55})?$",
        description="Stories without id are numbered in order, kb25k_0001 and so on; empty: ids required.",
    )
    language: str | None = Field(default=None, description="For rows that name no language.")
    source_collection: str | None = Field(default=None, description="For rows that name none.")
    rights_status: str | None = Field(default=None, description="For rows that name none.")
    max_file_bytes: int = Field(default=2**30, ge=1, description="Larger source files are refused.")
    max_story_characters: int = Field(default=1_000_000, ge=1, description="Longer stories are refused.")
    max_stories: int = Field(default=1_000_000, ge=1, description="More stories are refused.")


@dataclass(slots=True)
class StoryRows:
    """Turns rows into stories.

    A story that stands in an earlier source just so is there already. An id that stands for another story, or
    twice in one source, is a problem.
    """

    settings: Settings  # defaults and limits
    reader: Reader  # takes the problems
    stories: dict[str, Story] = field(default_factory=dict)  # id -> its story
    places: dict[str, str] = field(default_factory=dict)  # id -> where its row stands
    sources: dict[str, int] = field(default_factory=dict)  # id -> number of the source that it stands in
    # ids of stories that stand in a later source, too -> number of the last such source
    repeated: dict[str, int] = field(default_factory=dict)
    # id -> what its row says of where it is from; nothing for a row that says nothing
    details: dict[str, SourceDetails] = field(default_factory=dict)
    _folded: dict[str, str] = field(default_factory=dict)
    _unnumbered: int = 0

    def add(self, row: Row, source: int = 0) -> Story | None:
        """Return the story of a row.

        None for one that is there already, and after noting a row's problems.
        """
        before = len(self.reader.problems)
        data = self._columns(row)
        fields = {name: self._string(row, data, name) for name in COLUMNS}
        story_id = self._id(row, fields["id"])
        required = {
            "title": fields["title"],
            "language": fields["language"] or self.settings.language,
            "text": fields["text"],
            "source_collection": fields["source_collection"] or self.settings.source_collection,
            "rights_status": fields["rights_status"] or self.settings.rights_status,
        }
        self._require(row, data, required)
        self._check_words(row, required, fields)
        if len(self.reader.problems) > before or story_id is None:
            return None
        story = Story(
            id=story_id,
            title=str(required["title"]).strip(),
            language=str(required["language"]),
            text=str(required["text"]),
            normalized_text=normalize_text(str(required["text"])),
            source_collection=vocabulary("source_dataset").resolve(str(required["source_collection"])),
            source_reference=fields["source_reference"] or None,
            rights_status=vocabulary("rights_status").resolve(str(required["rights_status"])),
            narrative_type=_resolved("narrative_type", fields["narrative_type"]),
            moral_label=_resolved("moral_label", fields["moral_label"]),
            moral=NOT_APPLICABLE if fields["moral"] else None,
            dataset_license=(fields["dataset_license"] or "").strip() or None,
        )
        details = self._details(row)
        taken = self._taken_in(row, story, source)
        if taken is not None and details != SourceDetails():
            self.details[story_id] = details
        return taken

    def _details(self, row: Row) -> SourceDetails:
        """Return what a row says of where its story is from; years and pages may be numbers."""
        given = {name: row.data.get(name) for name in DETAILS}
        texts = {name: str(value).strip() for name, value in given.items() if isinstance(value, str | int)}
        return SourceDetails(**{name: text for name, text in texts.items() if text})

    def _taken_in(self, row: Row, story: Story, source: int) -> Story | None:
        known = self.stories.get(story.id)
        if known is None:
            self.stories[story.id], self.sources[story.id] = story, source
            self.places[story.id], self._folded[story.id.casefold()] = row.where, story.id
            return story
        if known == story and self.sources[story.id] != source:
            self.repeated[story.id] = source
        else:
            self.clash(row, story, known)
        return None

    def clash(self, row: Row, story: Story, known: Story) -> None:
        """Note that a row has the id of another story, or of one of the same source."""
        self.reader.problem(
            f"{row.where}, id", "an id of its own", f"{story.id!r}, used at {self.places[known.id]}",
            "rename one of the two",
        )  # fmt: skip

    def _columns(self, row: Row) -> dict[str, Json]:
        """Return the known columns under their names; misspelt ones are a problem, others are left out."""
        data: dict[str, Json] = {}
        for name, value in row.data.items():
            known = ALIASES.get(name, name)
            if known in COLUMNS:
                if data.get(known) is not None and data[known] != value:
                    self.reader.problem(
                        row.where, f"one value for {known}", f"another as {name}", "keep one of them"
                    )
                data[known] = value
            elif close := get_close_matches(name, COLUMNS, n=1, cutoff=0.85):
                self.reader.problem(
                    row.where, f"the column {close[0]}", f"a column {name[:60]!r}", f"rename it to {close[0]}"
                )
        return data

    def _string(self, row: Row, data: dict[str, Json], name: str) -> str | None:
        value = data.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            text = f"a JSON {type(value).__name__}"
            self.reader.problem(f"{row.where}, {name}", "a string", text, "put it in quotation marks")
            return None
        if any("\ud800" <= char <= "\udfff" for char in value) or "\0" in value:
            text = "half of a surrogate pair or a NUL"
            self.reader.problem(f"{row.where}, {name}", "Unicode text", text, "correct the \\u escapes")
            return None
        return value

    def _id(self, row: Row, given: str | None) -> str | None:
        story_id = given if given else self._next_id(row)
        if story_id is None:
            return None
        if not is_story_id(story_id) or story_id == RESERVED:
            found = repr(story_id[:80]) + (f" ({len(story_id)} characters)" if len(story_id) > 80 else "")
            self.reader.problem(
                f"{row.where}, id", "1 to 64 of a-z, A-Z, 0-9, _ and -, the first a letter or digit",
                found, "rename it, or leave the ids out to have the stories numbered",
            )  # fmt: skip
            return None
        other = self._folded.get(story_id.casefold())
        if other not in (None, story_id):
            used = f"{story_id!r}, used at {self.places[other]} as {other!r}"
            found = f"{used}; ids may not differ in case alone"
            self.reader.problem(f"{row.where}, id", "an id of its own", found, "rename one of the two")
            return None
        return story_id

    def _next_id(self, row: Row) -> str | None:
        if not self.settings.id_prefix:
            self.reader.problem(row.where, "a column id", "none", "add it, or set load_stories.id_prefix")
            return None
        while True:
            self._unnumbered += 1
            story_id = f"{self.settings.id_prefix}{self._unnumbered:04d}"
            if story_id.casefold() not in self._folded:
                return story_id

    def _require(self, row: Row, data: dict[str, Json], required: dict[str, str | None]) -> None:
        missing = [name for name, value in required.items() if value is None and data.get(name) is None]
        if missing:
            defaults = [name for name in missing if name in Settings.model_fields]
            fix = f"add the column {missing[0]}" if len(missing) == 1 else "add these columns"
            fix += f", or set load_stories.{defaults[0]} for all" if defaults else ""
            self.reader.problem(
                row.where, f"the columns {', '.join(required)}", f"no {', no '.join(missing)}", fix
            )
        for name, value in required.items():
            if value is not None and not normalize_text(value):
                self.reader.problem(
                    f"{row.where}, {name}", "some text", "nothing but white space", "fill it in"
                )
        text, limit = required["text"] or "", self.settings.max_story_characters
        if len(text) > limit:
            self.reader.problem(
                f"{row.where}, text", f"at most {limit} characters", f"{len(text)}",
                "split the story, or raise load_stories.max_story_characters",
            )  # fmt: skip

    def _check_words(self, row: Row, required: dict[str, str | None], fields: dict[str, str | None]) -> None:
        language = required["language"]
        if language and language.strip() and not is_language_tag(language):
            self.reader.problem(
                f"{row.where}, language",
                "a BCP 47 tag such as en, hi or zh-Hans",
                repr(language[:40]),
                "correct it",
            )
        closed = {**{name: fields[name] for name in ("narrative_type", "moral_label")},
                  "rights_status": required["rights_status"]}  # fmt: skip
        if fields["moral"] not in (None, "", NOT_APPLICABLE) or (fields["moral"] and fields["moral_label"]):
            self.reader.problem(
                f"{row.where}, moral", f"{NOT_APPLICABLE}, or nothing where there is a moral_label",
                repr(str(fields["moral"])[:60]), "leave it out unless the story supports no value",
            )  # fmt: skip
        for name, value in closed.items():
            words = vocabulary(name)
            if value and value.strip() and words.resolve(value) not in words.values:
                expected = f"one of: {', '.join(words.values)}"
                cure = f"use one of these words; `fabula schemas words {name}` says what they mean"
                self.reader.problem(f"{row.where}, {name}", expected, repr(value[:60]), cure)


def _resolved(name: str, value: str | None) -> str | None:
    return vocabulary(name).resolve(value) if value and value.strip() else None
