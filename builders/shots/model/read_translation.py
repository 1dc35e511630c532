"""Reading the replies that translate a script: names, and the texts of some shots."""

from collections.abc import Mapping, Sequence

from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, normalize_text, unspaced_count
from ...katha.model.reading import Problems, by_number, needed, optional
from ..cast import is_named, named_in
from ..planner import Sketch

NAMES_OF_LANGUAGES = {"en": "English", "ch": "Chinese, in simplified characters"}
AT_ONCE = 8
"""Shots of one request."""

_FIELDS: Mapping[str, str] = {"plot": "plot", "settings": "setting", "statics": "static"}


def parts_of(sketch: Sketch) -> list[range]:
    """Return the indices of the shots that are translated together."""
    count = len(sketch.plot)
    return [range(first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE)]


def shot_shown(sketch: Sketch, place: int) -> Json:
    """Return the texts of a shot, by index, as a model is shown them."""
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
