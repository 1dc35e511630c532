"""A script as far as it is drafted, as its steps see it, and its characters.

A character is plain JSON with the fields ``key`` (the official key, English where it is known), ``name`` (in
the story's language, as the text has it), ``tag``, ``gender``, ``ethnicity`` (the author's word, never
drafted), ``prompt`` (appearance and clothing in the story's language), ``other_name`` and ``other_prompt``
(in the other language; null until translated).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from ...engine.stage import Item
from ...schemas.canonical import Json
from ...schemas.text import contains_phrase, normalize_answer, primary_language, unspaced_count
from ...schemas.vocabulary import vocabulary
from ...validators.shots.script_rules import Camera
from ..replies import Drafted, Problems, by_number, needed

BASES: Mapping[str, str] = {"en": "en", "zh": "ch"}
"""Primary language of a story -> its key in the format, which has these two."""


def base_language(story: Json) -> str | None:
    """Return the key of a story's language in the format; None where the format has none."""
    return BASES.get(primary_language(story["language"]))


@dataclass(frozen=True, slots=True)
class Sketch:
    """A script as far as it is drafted; lists have one element for each shot. Plain JSON throughout."""

    story: Json  # ``schemas.story.Story``
    analysis: Json = None  # what ``analyze_story`` read off it by rules
    plot: Sequence[str] = ()  # the part of the story that each shot tells; together they are the story
    # what the still of each shot shows, in the story's language; null where nobody settled it
    moments: Sequence[str | None] = ()
    cast: Sequence[Json] = ()  # the characters; see the head of this module
    onstage: Sequence[Sequence[str]] = ()  # the keys of the characters on stage
    settings: Sequence[str | None] = ()  # the places, in the story's language; null where the text tells none
    # ``{"distance": ..., "angle": ..., "type": ...}``, values of the vocabularies or null
    cameras: Sequence[Json] = ()
    # what is seen, in the story's language; null until somebody described it
    statics: Sequence[str | None] = ()
    given: Json = None  # what the author says about the story, or null; see :mod:`.given`
    named: Json = None  # names and descriptions in the other language; see :mod:`.translation`
    # the plots as narration and dialogue, or null where they stay the story's words
    narration: Sequence[str] | None = None
    planned: Json = None  # what one prompt drafted of a whole script, or null; see :mod:`.script_parts`
    planned_by: str | None = None  # who drafted that

    @classmethod
    def of(cls, item: Item) -> "Sketch":
        """Return the sketch that the fields of an item make."""
        return cls(**{field.name: item[field.name] for field in fields(cls) if field.name in item.fields})

    @property
    def base(self) -> str:
        """The key of the story's language in the format."""
        return base_language(self.story) or "en"

    def facts(self) -> Json:
        """Return what the author says about the story; empty where that is nothing."""
        return self.given or {}

    def casts(self) -> list[str]:
        """Return who is on stage in each shot, by the names that the texts use."""
        names = {member["key"]: member["name"] for member in self.cast}
        return [", ".join(names[key] for key in keys) or "-" for keys in self.onstage]

    def stills(self) -> list[str]:
        """Return the moments as prompts list them."""
        return [moment or "-" for moment in self.moments]

    def called(self) -> list[str]:
        """Return the cast as prompts list it: keys, with the names that the texts use where they differ."""
        same = [(member["key"], member["name"]) for member in self.cast]
        return [key if name == key else f"{key} ({name})" for key, name in same]

    def in_order(self, reply: Json) -> list[Json]:
        """Return the entries of a reply with one for each shot, in order."""
        return by_number(reply["shots"], "shot", list(range(1, len(self.plot) + 1)), "shots")

    def texts_of(self, reply: Json, name: str, check: Callable[[int, str, Problems], None]) -> list[str]:
        """Return one text for each shot of a reply, each checked by its number."""
        problems, texts = Problems(), []
        for number, entry in enumerate(self.in_order(reply), start=1):
            text = needed(entry, name, f"shot {number}", problems)
            check(number, text, problems)
            texts.append(text)
        problems.check_script(self.story, texts)
        problems.settle()
        return texts


MOST_ONSTAGE = 3


def as_planned(*fields: str) -> Callable[[Sketch, Any], Drafted[Json] | None]:
    """Return what gives fields as one prompt drafted them with the whole script; see :mod:`.script_parts`."""

    def given(sketch: Sketch, settings: Any) -> Drafted[Json] | None:  # noqa: ANN401 - the face of a step
        if sketch.planned is None:
            return None
        values = {field: sketch.planned[field] for field in fields}
        return Drafted(values if len(fields) > 1 else values[fields[0]], sketch.planned_by or "")

    return given


def character(key: str, name: str, **more: Json) -> Json:
    """Return a character; what is not said of it is null."""
    names = ("tag", "gender", "ethnicity", "prompt", "other_name", "other_prompt")
    return {"key": key, "name": name, **{field: more.get(field) for field in names}}


def names_of(character: Json) -> tuple[str, ...]:
    """Return the names of a character that its text may use: its name and its key."""
    return tuple(dict.fromkeys((character["name"], character["key"])))


def named_in(cast: Iterable[Json], text: str) -> list[str]:
    """Return the keys of the characters that a text names, in the order of the cast.

    A name within a longer name of somebody else is none: "the mice king" does not name the mice.
    """
    members = list(cast)
    plain, told = f" {normalize_answer(text)} ", set()
    for name in sorted({name for member in members for name in names_of(member)}, key=len, reverse=True):
        words = normalize_answer(name)
        if unspaced_count(name):
            if name in text:
                told.add(name)
                text = text.replace(name, " / ")
        elif words and contains_phrase(plain, words):
            told.add(name)
            plain = plain.replace(f" {words} ", " / ")
    return [member["key"] for member in members if told.intersection(names_of(member))]


def named_first(cast: Sequence[Json], text: str) -> list[str]:
    """Return the keys of the characters that a text names, by where it first does."""
    folded = text.casefold()

    def place(character: Json) -> int:
        places = [folded.find(name.casefold()) for name in names_of(character)]
        return min((at for at in places if at >= 0), default=len(folded))

    named = named_in(cast, text)
    return [member["key"] for member in sorted(cast, key=place) if member["key"] in named]


def by_key(cast: Iterable[Json]) -> dict[str, Json]:
    """Return key -> character."""
    return {member["key"]: member for member in cast}


# -- What the closed lists are called in the two languages of the format, and the cue lists of the rules

STORY_TYPES_CH = {
    "folktale": "民间故事",
    "romance": "爱情",
    "crime": "悬疑犯罪",
    "horror": "恐怖",
    "historical": "历史",
    "fantasy": "奇幻",
    "science_fiction": "科幻",
    "war": "战争",
    "social_life": "社会生活",
    "adventure": "冒险",
    "fairy_tale": "童话",
}


def story_type_texts(value: str | None) -> dict[str, str] | None:
    """Return a story type in both languages; None where there is none."""
    if value is None:
        return None
    english = value.replace("_", " ") if value in vocabulary("story_type").values else value
    return {"en": english, "ch": STORY_TYPES_CH.get(value, value)}


def camera_texts(camera: dict[str, str | None]) -> dict[str, str]:
    """Return a perspective in both languages."""
    words = Camera(camera["distance"], camera["angle"], camera["type"])
    return {language: words.text(language) for language in ("en", "ch")}


@cache
def words_for(name: str) -> frozenset[str]:
    """Return a list, ``places`` or ``times``."""
    return frozenset(json.loads((files(__package__) / "words.json").read_text("utf-8"))[name])
