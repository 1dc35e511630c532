"""Translating a script: names first, then the shots in parts, each part with all the names."""

from collections.abc import Mapping, Sequence
from functools import partial

from ....engine.stage import Tools
from ....models.settings import ModelSettings
from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, normalize_text, unspaced_count
from ...katha.model.asking import ask_prompt
from ...katha.model.reading import Problems, by_number, needed, optional
from ..cast import is_named, named_in
from ..planner import Drafted, Sketch
from ..translation import PARTS, untranslated

NAMES_OF_LANGUAGES = {"en": "English", "ch": "Chinese, in simplified characters"}
AT_ONCE = 8
"""Shots of one request."""

_FIELDS: Mapping[str, str] = {"plot": "plot", "settings": "setting", "statics": "static"}


async def translate_script(tools: Tools, settings: ModelSettings, sketch: Sketch, language: str) -> Drafted:
    """Return a translation, see :mod:`..translation`; names that the author gave stand."""
    value = untranslated(sketch.cast, len(sketch.plot))
    told = {"language": NAMES_OF_LANGUAGES[sketch.base], "target": NAMES_OF_LANGUAGES[language]}
    makers: dict[str, None] = {}
    if any(one["other_name"] is None or (one["prompt"] and not one["other_prompt"]) for one in sketch.cast):
        sheets = [
            {
                "number": number,
                "name": one["name"],
                "known_as": one["other_name"],
                "appearance": one["prompt"],
            }
            for number, one in enumerate(sketch.cast, start=1)
        ]
        names = await ask_prompt(
            tools, settings, "shots/translate_names",
            lambda reply: read_names(reply, sketch.cast, language), characters=sheets, **told,
        )  # fmt: skip
        value, makers[names.maker] = {**value, **names.value}, None
    listed = [f"{one['name']} = {value['names'][one['key']]}" for one in sketch.cast]
    for first in range(0, len(sketch.plot), AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, len(sketch.plot)))
        part = await ask_prompt(
            tools, settings, "shots/translate_shots",
            partial(read_shots, sketch=sketch, part=(numbers, language), names=value["names"]),
            names=listed or ["-"],
            shots=[_shown(sketch, number) for number in numbers],
            **told,
        )  # fmt: skip
        makers[part.maker] = None
        for number, texts in zip(numbers, part.value, strict=True):
            for name in PARTS:
                value[name][number] = texts[name]
    return Drafted(value, "; ".join(makers))


def _shown(sketch: Sketch, place: int) -> Json:
    return {
        "shot": place + 1,
        **{field: getattr(sketch, name)[place] for name, field in _FIELDS.items()},
    }


def read_names(reply: Json, cast: Sequence[Json], language: str) -> Json:
    """Return ``names`` and ``prompts`` of a reply to ``shots/translate_names``; what was given stands.

    Raises:
        BadReply: a character is missing, two have one name, or texts are in the wrong script.
    """
    numbers = list(range(1, len(cast) + 1))
    entries = by_number(reply["characters"], "number", numbers, "characters")
    problems = Problems()
    names, prompts = {}, {}
    for one, entry in zip(cast, entries, strict=True):
        where = f"character {entry['number']}"
        name = needed(entry, "name", where, problems)
        # An English key is the name in English, so that scripts and folders agree.
        fixed = one["other_name"] or (one["key"] if language == "en" and one["key"].isascii() else None)
        names[one["key"]] = fixed or name
        look = optional(entry, "appearance", where, problems)
        if one["prompt"] and look is None:
            problems.add(f"{where}: the description is not translated")
        prompts[one["key"]] = one["other_prompt"] or (look if one["prompt"] else None)
    if len({normalize_answer(name) for name in names.values()}) < len(names):
        problems.add("two characters have one name in the translation; tell them apart")
    _check_letters([*names.values(), *filter(None, prompts.values())], language, problems)
    problems.settle()
    return {"names": names, "prompts": prompts}


def read_shots(reply: Json, sketch: Sketch, part: tuple[range, str], names: Mapping[str, str]) -> list[Json]:
    """Return the texts of some shots from a reply to ``shots/translate_shots``, in order.

    Args:
        reply: the reply.
        sketch: the script.
        part: indices of the shots, and the language.
        names: key -> name in that language.

    Raises:
        BadReply: a shot or a text is missing, a name is not the listed one, a setting names a character, or
            texts are in the wrong script.
    """
    places, language = part
    problems, shots = Problems(), []
    entries = by_number(reply["shots"], "shot", [place + 1 for place in places], "shots")
    called = [{**one, "name": names[one["key"]], "key": names[one["key"]]} for one in sketch.cast]
    for place, entry in zip(places, entries, strict=True):
        where, texts = f"shot {place + 1}", {}
        for name, field in _FIELDS.items():
            original = getattr(sketch, name)[place]
            texts[name] = None if original is None else needed(entry, field, where, problems)
        for one, other in zip(sketch.cast, called, strict=True):
            if is_named(one, sketch.statics[place]) and not is_named(other, texts["statics"] or ""):
                problems.add(f"{where}: static must call {one['name']} {other['name']}")
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
