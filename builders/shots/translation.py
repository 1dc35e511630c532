"""Stages: a script's texts in the other language of the format.

Names are translated first: ``names`` and ``prompts``, key of a character -> text or null. With them the
texts: ``plot``, ``settings``, ``statics``, one text or null for each shot. Perspectives and story types are
not translated: both languages have their words for them in lists.
"""

import asyncio
from collections.abc import Mapping, Sequence

from pydantic import field_validator

from ...engine.stage import Tools
from ...schemas.canonical import Json
from ...schemas.shots import LANGUAGES
from ...schemas.text import normalize_answer, normalize_text, unspaced_count
from ..step import Drafted, PlannerSettings, Problems, Step, ask, by_number, needed, optional
from .cast import Sketch, named_in

NAMES_OF_LANGUAGES = {"en": "English", "ch": "Chinese, in simplified characters"}
AT_ONCE = 8
"""Shots of one request."""
TRANSLATED: Mapping[str, str] = {"plot": "plot", "settings": "setting", "statics": "static"}
"""Lists of a translation with one text for each shot -> what a model is shown each as."""


class TranslationSettings(PlannerSettings):
    """Settings of the stages that translate."""

    languages: tuple[str, ...] = LANGUAGES

    @field_validator("languages")
    @classmethod
    def _known(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        if not languages or set(languages) - set(LANGUAGES):
            raise ValueError(f"languages are {' and '.join(LANGUAGES)}; Chinese is ch")
        return languages


def other_language(base: str) -> str:
    """Return the other language of the format."""
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
    unnamed = None in sketch.named["names"].values()
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
