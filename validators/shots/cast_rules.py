"""Every code that the rules about shot scripts and their files report.

Rules about who is on stage: the lists in both languages, and the texts that name people or must not.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from ...schemas.shots import CharacterSheet, Shot, ShotScript, TwoLists, TwoTexts
from ...schemas.text import contains_phrase, normalize_answer
from ...schemas.values import Issue
from ..codes import issue_of, read_codes, show

CODES = read_codes(__package__)
issue = partial(issue_of, CODES)
"""Code, place, path and message -> an issue."""


MOST_ONSTAGE = 3
_LINKS = frozenset({"a", "an", "and", "of", "the"})
"""Words of a name that tell nobody."""


def check_languages(lists: TwoLists, where: str, path: str) -> Iterator[Issue]:
    """Yield what is wrong with the languages of a shot's lists; an empty list needs no translation."""
    if "zh" in lists.unknown_fields():
        yield issue("language-key", where, path, "expected the keys en and ch, found zh")
    there = {language: getattr(lists, language) for language in ("en", "ch")}
    missing = [language for language, names in there.items() if names is None]
    if len(missing) == len(there):
        yield issue("missing-field", where, path, "there is no list in either language")
    elif missing and any(there.values()):
        yield issue("one-language", where, path, f"the list in {missing[0]} is missing")


def check_cast(script: ShotScript, shot: Shot, where: str, path: str) -> Iterator[Issue]:
    """Yield what is wrong with who is on stage in a shot, and with how its texts name people."""
    yield from _lists(script, shot, where, path)
    yield from _settings(script, shot, where, path)
    yield from _unnamed(script, shot, where, path)
    yield from _offstage(script, shot, where, path)


def folded(name: str) -> str:
    """Return a name as names are compared: case and space do not count."""
    return " ".join(name.split()).casefold()


def _lists(script: ShotScript, shot: Shot, where: str, path: str) -> Iterator[Issue]:
    if shot.onstage is None:
        return
    path = f"{path}['Characters Appearing']"
    for language in ("en", "ch"):
        names = getattr(shot.onstage, language)
        if isinstance(names, str):
            yield issue("onstage-list", where, f"{path}.{language}", f"expected a list, found {show(names)}")
    english, chinese = shot.onstage.en, shot.onstage.ch
    field = f"{path}.ch" if isinstance(chinese, tuple) and not isinstance(english, tuple) else f"{path}.en"
    cast = script.cast(shot)
    known = {folded(key): key for key in script.characters}
    for name in cast:
        if name not in script.characters:
            near = known.get(folded(name))
            hint = f"; {show(near)} differs only in space or case" if near else ""
            yield issue("onstage-unknown", where, field, f"{show(name)} is no character{hint}")
    if len(cast) > MOST_ONSTAGE:
        yield issue("onstage-count", where, field, f"expected at most {MOST_ONSTAGE}, found {len(cast)}")
    for name in (name for name, count in Counter(cast).items() if count > 1):
        yield issue("onstage-repeated", where, field, f"{show(name)} is there more than once")
    if isinstance(english, tuple) and isinstance(chinese, tuple):
        yield from _aligned(script, english, chinese, where, path)


def _aligned(
    script: ShotScript, english: tuple[str, ...], chinese: tuple[str, ...], where: str, path: str
) -> Iterator[Issue]:
    if len(chinese) != len(english):
        yield issue("list-length", where, path, f"{len(english)} in en, {len(chinese)} in ch")
        return
    for key, name in zip(english, chinese, strict=True):
        sheet = script.characters.get(key, CharacterSheet())
        if sheet.name("ch") and folded(sheet.name("ch")) != folded(name):
            message = f"expected {show(sheet.name('ch'))} for {show(key)}, found {show(name)}"
            yield issue("onstage-language", where, f"{path}.ch", message)


def _settings(script: ShotScript, shot: Shot, where: str, path: str) -> Iterator[Issue]:
    """Settings are without people."""
    setting = shot.setting or TwoTexts()
    for key, sheet in script.characters.items():
        for language, name in _named(key, sheet, normalize_answer(setting.of("en")), setting.of("ch")):
            field = f"{path}['Setting Description'].{language}"
            yield issue("setting-character", where, field, f"names {show(name)}")


def _unnamed(script: ShotScript, shot: Shot, where: str, path: str) -> Iterator[Issue]:
    """Static descriptions name who is on stage; a part of a name will do."""
    static = shot.static or TwoTexts()
    words, chinese = set(normalize_answer(static.of("en")).split()), static.of("ch")
    for key in dict.fromkeys(script.cast(shot)):
        sheet = script.characters.get(key)
        if sheet is None:
            continue
        missing = []
        if words and not words & words_of(key, sheet.name("en")):
            missing.append(("en", key))
        name = sheet.name("ch")
        if chinese and name and not any(part in chinese for part in _parts(name)):
            missing.append(("ch", name))
        for language, who in missing:
            field = f"{path}['Static Shot Description'].{language}"
            yield issue("onstage-unnamed", where, field, f"does not name {show(who)}")


def words_of(*names: str) -> set[str]:
    """Return the words of a character's names that tell it in a text; articles where there are no others."""
    words = {word for name in names for word in normalize_answer(name).split()}
    return words - _LINKS or words


def _parts(name: str) -> list[str]:
    """Return the pairs of neighbouring signs of a Chinese name; a name of one sign is its only part."""
    return [name[start : start + 2] for start in range(max(1, len(name) - 1))]


def _offstage(script: ShotScript, shot: Shot, where: str, path: str) -> Iterator[Issue]:
    """Static descriptions show those who are on stage; a name within the name of one of them is no other."""
    listed = shot.onstage
    if listed is None or not (isinstance(listed.en, tuple) or isinstance(listed.ch, tuple)):
        return  # nobody says who is on stage
    static, present = shot.static or TwoTexts(), set(script.cast(shot))
    english, chinese = f" {normalize_answer(static.of('en'))} ", static.of("ch")
    there = [(key, sheet) for key, sheet in script.characters.items() if key in present]
    for name in sorted({name for key, sheet in there for name in (key, sheet.name("en"))}, key=len)[::-1]:
        if plain := normalize_answer(name):
            english = english.replace(f" {plain} ", " / ")
    for name in sorted({sheet.name("ch") for _, sheet in there}, key=len)[::-1]:
        chinese = chinese.replace(name, "/") if name else chinese
    for key, sheet in script.characters.items():
        if key in present:
            continue
        for language, name in _named(key, sheet, english, chinese):
            field = f"{path}['Static Shot Description'].{language}"
            yield issue("offstage-named", where, field, f"names {show(name)}, who is not on stage")


def _named(key: str, sheet: CharacterSheet, english: str, chinese: str) -> Iterator[tuple[str, str]]:
    """Yield in which languages texts name a character, and by which name."""
    for name in (key, sheet.name("en")):
        if contains_phrase(english, normalize_answer(name)):
            yield "en", name
            break
    if sheet.name("ch") and sheet.name("ch") in chinese:
        yield "ch", sheet.name("ch")
