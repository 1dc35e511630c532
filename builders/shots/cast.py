"""A script as far as it is drafted, as its steps see it, and its characters.

A character is plain JSON with the fields ``key`` (the official key, English where it is known), ``name`` (in
the story's language, as the text has it), ``tag``, ``gender``, ``ethnicity`` (the author's word, never
drafted), ``prompt`` (appearance and clothing in the story's language), ``other_name`` and ``other_prompt``
(in the other language; null until translated).
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import Field, field_validator

from ...engine.stage import Item, Tools
from ...releases.shots.tree import is_safe_name
from ...schemas.canonical import Json
from ...schemas.shots import LANGUAGES
from ...schemas.text import (
    contains_phrase,
    normalize_answer,
    normalize_text,
    primary_language,
    unspaced_count,
)
from ...schemas.values import vocabulary
from ...validators.shots.script_rules import Camera
from ...validators.view import mentions
from ..step import Drafted, PlannerSettings, Problems, Step, ask, by_number, language, needed, optional
from ..text.segments import Analysis, lower_words, word_set

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


# -- Stage: who is in the story: name, tag, gender, appearance and clothing
#
# Rules take those whom an English text names most often, and know of them what their name says.

HUMAN = ("realistic_human", "unrealistic_human")
LONGEST_KEY = 60
NARRATOR = {"en": "Narrator", "ch": "叙述者"}
"""What a character is called that tells the story and that the story never names."""
SPEAKER = frozenset(("i", "me", "we", "us", "我", "我们", "俺", "咱", "咱们"))
"""Words, as answers are compared, by which a story calls who tells it: nobody can be drawn from them."""


class CastSettings(PlannerSettings):
    """CastSettings of the stage."""

    most: int = Field(default=10, ge=1, le=100, description="Characters of a story at most.")
    realistic: bool = Field(
        default=True,
        description="Whether people are to have photographs as references, where the author does not say.",
    )


def _human(sketch: Sketch, settings: CastSettings) -> str:
    """Return the tag of people."""
    realistic = sketch.facts().get("realistic")
    return (
        "realistic_human" if (settings.realistic if realistic is None else realistic) else "unrealistic_human"
    )


def _given_cast(sketch: Sketch) -> list[Json]:
    """Return the characters that the author gives, in the form of :mod:`.cast`."""
    base = sketch.base
    other = "ch" if base == "en" else "en"
    cast = []
    for row in sketch.facts().get("characters") or ():
        key = row["key"]
        names: Mapping[str, Json] = {"en": row["name_en"] or key, "ch": row["name_ch"]}
        cast.append(
            character(
                key, names[base] or key, tag=row["tag"], gender=row["gender"], ethnicity=row["ethnicity"],
                prompt=row[f"prompt_{base}"], other_name=names[other], other_prompt=row[f"prompt_{other}"],
            )
        )  # fmt: skip
    return cast


def _given(sketch: Sketch, settings: CastSettings) -> Json:
    named = _given_cast(sketch)
    return (
        named
        if named and all(person["tag"] and person["gender"] and person["prompt"] for person in named)
        else as_planned("cast")(sketch, settings)
    )


def _rules(sketch: Sketch, settings: CastSettings) -> list[Json]:
    human, given = _human(sketch, settings), _given_cast(sketch)
    if given:
        return [describe(character, human) for character in given]
    return find_people(sketch.analysis, human, settings.most)


def _show(sketch: Sketch, settings: CastSettings) -> Json:
    shown = ("key", "name", "tag", "gender", "prompt")
    return {
        "given": [
            {name: value for name, value in person.items() if name in shown} for person in _given_cast(sketch)
        ],
        "human": _human(sketch, settings),
        "language": language(sketch.story),
        "most": settings.most,
        "shots": list(sketch.plot),
        "title": sketch.story["title"],
    }


def _read(reply: Json, sketch: Sketch, settings: CastSettings) -> list[Json]:
    """Return the characters in the form of :mod:`.cast`; what the author gave of one stands.

    People get the tag that they are to have, whichever of the two the reply says.
    """
    given, human, most = _given_cast(sketch), _human(sketch, settings), settings.most
    entries, problems = reply["characters"], Problems()
    keys = [normalize_text(entry["key"]) for entry in entries]
    if given and keys != [character["key"] for character in given]:
        expected = ", ".join(character["key"] for character in given)
        problems.add(f"the characters must be exactly {expected}, in this order; found {', '.join(keys)}")
        problems.settle()
    if not given and len(keys) > most:
        problems.add(f"{len(keys)} characters; at most {most} are asked for, the most important ones")
    if len({key.casefold() for key in keys}) < len(keys):
        problems.add("two characters have one key; call them differently")
    known: Mapping[str, Json] = {character["key"]: character for character in given}
    cast = [
        _character(entry, key, known.get(key), human, problems)
        for entry, key in zip(entries, keys, strict=True)
    ]
    if not given:
        _check_names(cast, sketch, problems)
    problems.check_script(sketch.story, [character["prompt"] for character in cast])
    problems.settle()
    return cast


def _check_names(cast: Sequence[Json], sketch: Sketch, problems: Problems) -> None:
    """Note names that the story does not have, and pronouns; who tells the story may be the narrator."""
    text, narrator = normalize_answer(sketch.story["normalized_text"]), NARRATOR[sketch.base]
    tells_itself = any(mentions(text, word) for word in SPEAKER)
    for person in cast:
        name = person["name"]
        if SPEAKER.intersection(map(normalize_answer, (name, person["key"]))):
            problems.add(
                f"{name!r} with the key {person['key']!r} names nobody in a picture; take what the story"
                f" calls who tells it, such as child, or {narrator} with the key {NARRATOR['en']}"
            )
        elif not (mentions(text, normalize_answer(name)) or (tells_itself and name == narrator)):
            problems.add(f"the story does not have the name {name!r}; copy it letter for letter")


def _character(entry: Json, key: str, before: Json, human: str, problems: Problems) -> Json:
    where = f"character {key!r}"
    if before is None and (
        not is_safe_name(key) or not key.isascii() or len(key) > LONGEST_KEY or "/" in key
    ):
        problems.add(f"{where}: a key is a short name in Latin letters, such as Old Miller")
    look = needed(entry, "appearance", where, problems)
    tag = human if entry["tag"] in HUMAN else entry["tag"]
    drafted = {"tag": tag, "gender": entry["gender"], "prompt": look}
    if before is None:
        return character(key, needed(entry, "name", where, problems), **drafted)
    return {**before, **{name: before[name] or value for name, value in drafted.items()}}


def find_people(analysis: Json, human: str, most: int) -> list[Json]:
    """Return the characters that a story names in most of its clauses, in the order in which they come."""
    often = sorted(Analysis.from_json(analysis).entities, key=lambda one: (-len(one.at), one.at[0]))[:most]
    kept: dict[str, Json] = {}
    for entity in sorted(often, key=lambda one: one.at[0]):
        key = entity.name[:1].upper() + entity.name[1:]
        kept.setdefault(key.casefold(), describe(character(key, key), human))
    return list(kept.values())


def describe(person: Json, human: str) -> Json:
    """Return a character with the tag that its name says, where it is a noun for animals or for people."""
    last = lower_words(person["name"])[-1:]
    sorts = {"non_human": word_set("nouns", "animals"), human: word_set("nouns", "people", "titles")}
    said = next((tag for tag, nouns in sorts.items() if nouns.issuperset(last) and last), None)
    return {**person, "tag": person["tag"] or said}


WRITE_CHARACTERS = Step(
    id="shots/write_characters",
    version=4,
    writes=("cast",),
    reads=("story", "analysis", "given", "plot", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=_given,
    settings=CastSettings,
)


# -- Stages: a script's texts in the other language of the format
#
# Names are translated first: ``names`` and ``prompts``, key of a character -> text or null. With them the
# texts: ``plot``, ``settings``, ``statics``, one text or null for each shot. Perspectives and story types are
# not translated: both languages have their words for them in lists.

NAMES_OF_LANGUAGES = {"en": "English", "ch": "Chinese, in simplified characters"}
AT_ONCE = 8
"""Shots of one request."""
TRANSLATED: Mapping[str, str] = {"plot": "plot", "settings": "setting", "statics": "static"}
"""Lists of a translation with one text for each shot -> what a model is shown each as."""


class TranslationSettings(PlannerSettings):
    languages: tuple[str, ...] = LANGUAGES

    @field_validator("languages")
    @classmethod
    def _known(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        if not languages or set(languages) - set(LANGUAGES):
            raise ValueError(f"languages are {' and '.join(LANGUAGES)}; Chinese is ch")
        return languages


def other_language(base: str) -> str:
    return "ch" if base == "en" else "en"


def names_given(cast: Sequence[Json]) -> Json:
    """Return the names and descriptions that authors gave in the other language."""
    return {
        "names": {character["key"]: character["other_name"] for character in cast},
        "prompts": {character["key"]: character["other_prompt"] for character in cast},
    }


def untranslated(shots: int) -> Json:
    """Return texts of shots of which none is translated."""
    return {name: [None] * shots for name in TRANSLATED}


def _untold(sketch: Sketch, settings: TranslationSettings) -> Json:
    """Return None: rules do not translate."""
    return None


def _show_names(sketch: Sketch, settings: TranslationSettings) -> Json:
    """Return the names and descriptions; none where the language is not wanted or everything is given."""
    language = other_language(sketch.base)
    if language not in settings.languages or all(
        character["other_name"] and character["other_prompt"] for character in sketch.cast
    ):
        return None
    sheets = [
        {"number": number, "name": who["name"], "known_as": who["other_name"], "appearance": who["prompt"]}
        for number, who in enumerate(sketch.cast, start=1)
    ]
    return {
        "characters": sheets,
        "language": NAMES_OF_LANGUAGES[sketch.base],
        "target": NAMES_OF_LANGUAGES[language],
    }


def _read_names(reply: Json, sketch: Sketch, settings: TranslationSettings) -> Json:
    """Return ``names`` and ``prompts`` of a reply to ``shots/translate_names``; what was given stands."""
    cast, language = sketch.cast, other_language(sketch.base)
    numbers = list(range(1, len(cast) + 1))
    entries = by_number(reply["characters"], "number", numbers, "characters")
    problems = Problems()
    names, prompts = {}, {}
    for character, entry in zip(cast, entries, strict=True):
        where = f"character {entry['number']}"
        name = needed(entry, "name", where, problems)
        # An English key is the name in English, so that scripts and folders agree.
        fixed = character["other_name"] or (
            character["key"] if language == "en" and character["key"].isascii() else None
        )
        names[character["key"]] = fixed or name
        look = optional(entry, "appearance", where, problems)
        if character["prompt"] and look is None:
            problems.add(f"{where}: the description is not translated")
        prompts[character["key"]] = character["other_prompt"] or (look if character["prompt"] else None)
    if len({normalize_answer(name) for name in names.values()}) < len(names):
        problems.add("two characters have one name in the translation; tell them apart")
    _check_letters([*names.values(), *filter(None, prompts.values())], language, problems)
    problems.settle()
    return {"names": names, "prompts": prompts}


def _settle_names(drafted: Json, sketch: Sketch, settings: TranslationSettings) -> Json:
    return names_given(sketch.cast) if drafted is None else drafted


async def _ask_texts(tools: Tools, sketch: Sketch) -> Drafted[Json]:
    """Return the texts of the shots: all parts at once, each with all the names; nothing without these."""
    settings = tools.own(TranslationSettings)
    unnamed = None in sketch.named["names"].values() and not tools.rehearsed
    if unnamed or other_language(sketch.base) not in settings.languages:
        return Drafted(None, "")
    count = len(sketch.plot)
    parts = [range(first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE)]
    drafted = await asyncio.gather(*(_ask_part(tools, sketch, part) for part in parts))
    value = {name: [shot[name] for some in drafted for shot in some.value] for name in TRANSLATED}
    return Drafted(value, "; ".join(dict.fromkeys(some.maker for some in drafted)))


async def _ask_part(tools: Tools, sketch: Sketch, part: range) -> Drafted[list[Json]]:
    names, language = sketch.named["names"], other_language(sketch.base)
    texts = {name: getattr(sketch, name) for name in TRANSLATED}
    texts["plot"] = sketch.plot if sketch.narration is None else sketch.narration
    return await ask(
        tools,
        "shots/translate_shots",
        lambda reply: _read_texts(reply, sketch, part),
        language=NAMES_OF_LANGUAGES[sketch.base],
        names=[f"{character['name']} = {names[character['key']]}" for character in sketch.cast] or ["-"],
        shots=[
            {"shot": index + 1, **{shown: texts[name][index] for name, shown in TRANSLATED.items()}}
            for index in part
        ],
        target=NAMES_OF_LANGUAGES[language],
    )


def _read_texts(reply: Json, sketch: Sketch, part: range) -> list[Json]:
    """Return the texts of some shots, by index, from a reply to ``shots/translate_shots``, in order."""
    names, language = sketch.named["names"], other_language(sketch.base)
    problems, shots = Problems(), []
    entries = by_number(reply["shots"], "shot", [index + 1 for index in part], "shots")
    called = [{**person, "name": names[person["key"]], "key": names[person["key"]]} for person in sketch.cast]
    for index, entry in zip(part, entries, strict=True):
        where, texts = f"shot {index + 1}", {}
        for name, field in TRANSLATED.items():
            original = getattr(sketch, name)[index]
            texts[name] = None if original is None else needed(entry, field, where, problems)
        told = named_in(sketch.cast, sketch.statics[index] or "")
        retold = named_in(called, texts["statics"] or "")
        for person, other in zip(sketch.cast, called, strict=True):
            if person["key"] in told and other["key"] not in retold:
                problems.add(f"{where}: static must call {person['name']} {other['name']}")
        if texts["settings"] and named_in(called, texts["settings"]):
            problems.add(f"{where}: the setting names a character")
        _check_letters([normalize_text(text) for text in texts.values() if text], language, problems)
        shots.append(texts)
    problems.settle()
    return shots


def _check_letters(texts: Sequence[str], language: str, problems: Problems) -> None:
    """Note texts that are not in the language's script: each has Chinese characters, or hardly any."""
    for text in texts:
        letters, chinese = sum(char.isalpha() for char in text), unspaced_count(text)
        if letters and (not chinese if language == "ch" else 2 * chinese > letters):
            problems.add(f"{text[:60]!r} is not in {NAMES_OF_LANGUAGES[language].partition(',')[0]}")


def _settle_texts(drafted: Json, sketch: Sketch, settings: TranslationSettings) -> Json:
    return untranslated(len(sketch.plot)) if drafted is None else drafted


TRANSLATE_NAMES = Step(
    id="shots/translate_names",
    version=3,
    writes=("named",),
    reads=("story", "analysis", "cast"),
    sketch=Sketch.of,
    rules=_untold,
    show=_show_names,
    read=_read_names,
    settle=_settle_names,
    settings=TranslationSettings,
    spare=True,
)
TRANSLATE_SCRIPT = Step(
    id="shots/translate_script",
    version=4,
    writes=("translation",),
    reads=(
        "story",
        "analysis",
        "plot",
        "cast",
        "onstage",
        "settings",
        "cameras",
        "statics",
        "named",
        "narration",
    ),
    sketch=Sketch.of,
    rules=_untold,
    ask=_ask_texts,
    settle=_settle_texts,
    asks=("shots/translate_shots",),
    settings=TranslationSettings,
    spare=True,
)
