"""Shot scripts in the official ViStoryBench shape: ``story.json``, one per story.

Both languages stand side by side; the key of Chinese is ``ch``. Names of characters in the English list of a
shot are keys of ``Characters``. Unknown fields are kept, absent is not null; semantic rules are validators.
"""

from typing import Any

from pydantic import Field

from .values import Own, Wire

LANGUAGES = ("en", "ch")
"""The two languages of the format, by its own keys."""

LITE = ("01", "08", "09", "15", "17", "19", "24", "27", "28", "29",
        "32", "41", "52", "53", "55", "57", "60", "64", "68", "79")  # fmt: skip
"""The stories of the official Lite subset."""


class TwoTexts(Wire):
    """A text in both languages."""

    en: str | None = Field(default=None, description="In English.")
    ch: str | None = Field(default=None, description="In Chinese.")

    def of(self, language: str) -> str:
        """Return the text in a language; empty where there is none."""
        return (self.en if language == "en" else self.ch) or ""


class TwoLists(Wire):
    """Names in both languages. A single string, as some files have it, is kept and reported."""

    en: tuple[str, ...] | str | None = Field(default=None, description="In English: keys of characters.")
    ch: tuple[str, ...] | str | None = Field(default=None, description="In Chinese.")

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the characters, in order; none where there is no list."""
        return self.en if isinstance(self.en, tuple) else ()


class Shot(Wire):
    """One shot of a script."""

    index: int = Field(description="Number of the shot, counted from 1.")
    plot: TwoTexts | None = Field(
        default=None, alias="Plot Correspondence", description="The part of the story that the shot tells."
    )
    setting: TwoTexts | None = Field(
        default=None, alias="Setting Description", description="The place, without any character."
    )
    perspective: TwoTexts | None = Field(
        default=None, alias="Shot Perspective Design", description="Shot distance, camera angle, camera type."
    )
    onstage: TwoLists | None = Field(
        default=None, alias="Characters Appearing", description="Who is on stage, 0 to 3 characters."
    )
    static: TwoTexts | None = Field(
        default=None, alias="Static Shot Description", description="What is seen, as a still."
    )

    @property
    def characters(self) -> tuple[str, ...]:
        """The keys of the characters on stage, in order."""
        return self.onstage.keys if self.onstage is not None else ()


class CharacterSheet(Wire):
    """One character of a script."""

    tag: str | None = Field(
        default=None, description="realistic_human, unrealistic_human or non_human; decides the encoder."
    )
    name_en: str | None = Field(default=None, description="Name in English.")
    name_ch: str | None = Field(default=None, description="Name in Chinese.")
    prompt_en: str | None = Field(default=None, description="Appearance and clothing, in English.")
    prompt_ch: str | None = Field(default=None, description="Appearance and clothing, in Chinese.")
    num_of_appearances: int | None = Field(default=None, description="Shots in which it is on stage.")

    def prompt(self, language: str) -> str:
        """Return appearance and clothing in a language; empty where there is none."""
        return (self.prompt_en if language == "en" else self.prompt_ch) or ""

    def name(self, language: str) -> str:
        """Return the name in a language; empty where there is none."""
        return (self.name_en if language == "en" else self.name_ch) or ""


class ShotScript(Wire):
    """The content of one ``story.json``."""

    story_type: TwoTexts | None = Field(default=None, alias="Story_type", description="Kind of the story.")
    characters: dict[str, CharacterSheet] = Field(
        default_factory=dict, alias="Characters", description="Key -> character, in the order of the file."
    )
    shots: tuple[Shot, ...] = Field(default=(), alias="Shots", description="The shots, in order.")

    @property
    def kind(self) -> str | None:
        """The type of the story, as words of the vocabulary ``story_type`` are written; None if not said."""
        text = "" if self.story_type is None else self.story_type.of("en")
        return text.strip().casefold().replace(" ", "_") or None

    def cast(self, shot: Shot) -> tuple[str, ...]:
        """Return who is on stage in a shot, as listed: by key, or without an English list by Chinese names.

        A name that is no character's stays as it is.
        """
        listed = shot.onstage
        if listed is None or isinstance(listed.en, tuple) or not isinstance(listed.ch, tuple):
            return shot.characters
        keys = {sheet.name("ch"): key for key, sheet in self.characters.items()}
        return tuple(keys.get(name, name) for name in listed.ch)

    def appearances(self) -> dict[str, int]:
        """Return how many shots each character of the script is on stage in."""
        counts = dict.fromkeys(self.characters, 0)
        for shot in self.shots:
            for key in set(self.cast(shot)) & counts.keys():
                counts[key] += 1
        return counts


class CharacterFacts(Own):
    """What is known about a character beyond the official fields; for stratified scores."""

    gender: str | None = Field(default=None, description="male, female or other.")
    ethnicity: str | None = Field(default=None, description="Only where the author of the set gives it.")


class StoryFacts(Own):
    """What is known about a story beyond the official fields: one line of ``stories.jsonl``."""

    story_id: str = Field(description="Name of the story's folder, such as 01.")
    style: str | None = Field(default=None, description="Visual style of the references (Table S1).")
    culture: str | None = Field(default=None, description="Cultural origin of the story.")
    realistic: bool | None = Field(default=None, description="Whether the references are photographs.")
    characters: dict[str, CharacterFacts] = Field(default_factory=dict, description="Character key -> facts.")


class ReferenceImage(Own):
    """One reference image: one line of ``references.jsonl``."""

    story_id: str = Field(description="Name of the story's folder.")
    character: str = Field(description="Key of the character.")
    file: str = Field(description="Path below the story's folder.")
    sha256: str = Field(description="Hash of the file.")
    width: int = Field(ge=1, description="Pixels.")
    height: int = Field(ge=1, description="Pixels.")
    source: str | None = Field(default=None, description="Where the image comes from.")
    rights: str | None = Field(default=None, description="On what ground it may be used.")


class ShotRecord(Own):
    """One script with its history: one line of ``scripts.jsonl``."""

    story_id: str = Field(description="Name of the story's folder, such as 01.")
    source_id: str | None = Field(default=None, description="Id of the story that it was made from.")
    order: tuple[str, ...] = Field(description="Keys of the characters, in the order of the script.")
    script: dict[str, Any] = Field(description="The content of story.json.")
    facts: StoryFacts = Field(description="What is known beyond the official fields.")
    producers: tuple[dict[str, str], ...] = Field(
        default=(), description="Who made which field: path and producer."
    )

    def parsed(self) -> ShotScript:
        """Return the script, its characters in their order."""
        characters = self.script.get("Characters", {})
        if sorted(self.order) != sorted(characters):
            raise ValueError("order: expected the keys of Characters")
        ordered = {key: characters[key] for key in self.order}
        return ShotScript.model_validate(
            {**self.script, **({"Characters": ordered} if "Characters" in self.script else {})}
        )
