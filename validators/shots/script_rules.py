"""Rules about one shot script, whatever it was read from."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from ...schemas.canonical import Json
from ...schemas.shots import CharacterSheet, Shot, ShotScript, StoryFacts, TwoLists, TwoTexts
from ...schemas.text import contains_phrase, normalize_answer, unspaced_count
from ...schemas.values import Issue, vocabulary
from ..report import issue_of, read_codes, show
from ..statistics import NO_VALUE, distribution
from ..view import find_redacted

# -- Every code that the rules about shot scripts and their files report
#
# Rules about who is on stage: the lists in both languages, and the texts that name people or must not.

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


# -- Shot Perspective Design as words of the closed lists: distance, angle and camera type
#
# The scripts and the judge of the source system use different words: what the scripts call a close up, the
# judge calls an extreme close-up, and its close-up begins at the chest. :meth:`Camera.for_judge` maps them.

LISTS = ("shot_distance", "camera_angle", "camera_type")
_MARKS = re.compile(r"[,，、;；]")


@dataclass(frozen=True, slots=True)
class Camera:
    # value of the vocabulary ``shot_distance``, if one is named; ``angle`` and ``type`` likewise
    distance: str | None = None
    angle: str | None = None
    type: str | None = None
    unknown: tuple[str, ...] = ()  # the parts that are in no list

    @property
    def words(self) -> tuple[str | None, str | None, str | None]:
        """Distance, angle and type."""
        return self.distance, self.angle, self.type

    @property
    def rank(self) -> int | None:
        """How near the camera is: 0 for a wide shot to 5 for a close up."""
        if self.distance is None:
            return None
        return int(vocabulary("shot_distance").entries[self.distance]["rank"])

    def text(self, language: str) -> str:
        """Return the perspective in a language of the format, ``en`` or ``ch``."""
        words = [
            str(vocabulary(name).entries[value][language])
            for name, value in zip(LISTS, self.words, strict=True)
            if value is not None
        ]
        if language == "ch":
            return "，".join(words)
        joined = ", ".join(words)
        return joined[:1].upper() + joined[1:]

    def for_judge(self) -> tuple[str, ...]:
        """Return distance and type in the words of the judge's rubric; what it has no word for is left out.

        An angle is left in the script's words: the rubric has none of its own.
        """
        words = []
        for name, value in zip(LISTS, self.words, strict=True):
            if value is not None:
                entry = vocabulary(name).entries[value]
                words.append(entry.get("judge", entry["en"]))
        return tuple(word for word in words if word is not None)


def read_camera(text: str) -> Camera:
    """Return the perspective that a text names, in either language; parts may come in any order.

    Of two words of one list the first counts, the other is unknown.
    """
    values: dict[str, str] = {}
    unknown = []
    for part in filter(None, (piece.strip(" .。\t\n") for piece in _MARKS.split(text))):
        name, value = _listed(part)
        if name is None or name in values:
            unknown.append(part)
        else:
            values[name] = value
    distance, angle, kind = (values.get(name) for name in LISTS)
    return Camera(distance, angle, kind, tuple(unknown))


def _listed(part: str) -> tuple[str | None, str]:
    """Return the list that has a word, and the value that it stands for there."""
    for name in LISTS:
        value = vocabulary(name).resolve(part)
        if value in vocabulary(name).values:
            return name, value
    return None, part


def is_repeated(before: Camera, after: Camera) -> bool:
    """Return whether two neighbouring shots are composed alike, as far as both are known."""
    return before.distance is not None and before.words == after.words


def is_jump(before: Camera, after: Camera) -> bool:
    """Return whether two neighbouring shots jump from the farthest distance to the nearest, or back."""
    first, second = before.rank, after.rank
    widest = len(vocabulary("shot_distance").values) - 1
    return first is not None and second is not None and abs(first - second) == widest


# -- Rules about one shot script, whatever it was read from

SHOTS = (4, 30)
"""Fewest and most shots of a published story."""

FIELDS = {
    "plot": "Plot Correspondence",
    "setting": "Setting Description",
    "perspective": "Shot Perspective Design",
    "onstage": "Characters Appearing",
    "static": "Static Shot Description",
}
"""Attribute of a shot -> the field's official name."""


def check_script(script: ShotScript, where: str) -> Iterator[Issue]:
    """Yield everything that is wrong with a script."""
    yield from find_redacted(script.as_json(), where)
    yield from _numbers(script, where)
    if script.story_type is not None:
        yield from _both(script.story_type, where, "$.Story_type")
    yield from _characters(script, where)
    yield from _names(script, where)
    for index, shot in enumerate(script.shots):
        yield from _fields(shot, where, f"$.Shots[{index}]")
        yield from check_cast(script, shot, where, f"$.Shots[{index}]")
    yield from _cameras(script, where)


def _numbers(script: ShotScript, where: str) -> Iterator[Issue]:
    numbers = [shot.index for shot in script.shots]
    if not numbers:
        yield issue("no-shots", where, "$.Shots", "expected at least one shot, found none")
        return
    if not SHOTS[0] <= len(numbers) <= SHOTS[1]:
        yield issue(
            "shot-count", where, "$.Shots", f"expected {SHOTS[0]} to {SHOTS[1]}, found {len(numbers)}"
        )
    if numbers == list(range(len(numbers))):
        found = f"found 0 to {len(numbers) - 1}"
        yield issue("shots-from-zero", where, "$.Shots", f"expected 1 to {len(numbers)}, {found}")
    elif numbers != list(range(1, len(numbers) + 1)):
        twice = sorted(number for number, count in Counter(numbers).items() if count > 1)
        found = f"{twice} more than once" if twice else f"{show(numbers)}"
        yield issue("shot-order", where, "$.Shots", f"expected 1 to {len(numbers)}, found {found}")


def _characters(script: ShotScript, where: str) -> Iterator[Issue]:
    counts = script.appearances()
    for key, sheet in script.characters.items():
        path = f"$.Characters[{show(key)}]"
        if sheet.tag not in vocabulary("character_tag").values:
            listed = ", ".join(vocabulary("character_tag").values)
            yield issue("tag", where, f"{path}.tag", f"expected one of {listed}, found {show(sheet.tag)}")
        wrong = [name for name in ("name_zh", "prompt_zh") if name in sheet.unknown_fields()]
        if wrong:
            message = f"expected name_ch and prompt_ch, found {' and '.join(wrong)}"
            yield issue("language-key", where, path, message)
        for name in ("name_en", "name_ch", "prompt_en", "prompt_ch"):
            if not (getattr(sheet, name) or "").strip():
                yield issue("character-text", where, f"{path}.{name}", "expected a text, found none")
        if sheet.num_of_appearances != counts[key]:
            stated = "none" if sheet.num_of_appearances is None else str(sheet.num_of_appearances)
            message = f"expected {counts[key]}, found {stated}"
            yield issue("appearances", where, f"{path}.num_of_appearances", message)
        if not counts[key]:
            yield issue("never-onstage", where, path, "the character is on stage in no shot")


def _fields(shot: Shot, where: str, path: str) -> Iterator[Issue]:
    for attribute, name in FIELDS.items():
        value = getattr(shot, attribute)
        if value is None:
            yield issue("missing-field", where, path, f"{name} is missing")
        elif isinstance(value, TwoTexts):
            yield from _both(value, where, f"{path}[{show(name)}]")
        else:
            yield from check_languages(value, where, f"{path}[{show(name)}]")


def _both(text: TwoTexts, where: str, path: str) -> Iterator[Issue]:
    if "zh" in text.unknown_fields():
        yield issue("language-key", where, path, "expected the keys en and ch, found zh")
    missing = [language for language in ("en", "ch") if not text.of(language).strip()]
    if len(missing) == 1:
        yield issue("one-language", where, path, f"the text in {missing[0]} is missing")
    elif missing:
        yield issue("missing-field", where, path, "the text is empty in both languages")
    for language in ("en", "ch"):
        letters = sum(char.isalpha() for char in text.of(language))
        chinese = unspaced_count(text.of(language))
        if letters and (2 * chinese > letters if language == "en" else not chinese):
            found = "Chinese characters" if language == "en" else "none"
            expected = "no Chinese characters" if language == "en" else "Chinese characters"
            yield issue(
                "language-letters", where, f"{path}.{language}", f"expected {expected}, found {found}"
            )


def _names(script: ShotScript, where: str) -> Iterator[Issue]:
    """Characters are told apart by their names, in texts and by people."""
    for language in ("name_en", "name_ch"):
        first: dict[str, str] = {}
        for key, sheet in script.characters.items():
            name = getattr(sheet, language)
            if not name or not name.strip():
                continue
            owner = first.setdefault(folded(name), key)
            if owner != key:
                message = f"{show(name)} is the name of {show(owner)}, too"
                yield issue("repeated-name", where, f"$.Characters[{show(key)}].{language}", message)


def _cameras(script: ShotScript, where: str) -> Iterator[Issue]:
    before: Camera | None = None
    for index, shot in enumerate(script.shots):
        path = f"$.Shots[{index}]['Shot Perspective Design']"
        if shot.perspective is None:
            before = None
            continue
        language = "en" if shot.perspective.of("en").strip() else "ch"
        camera = read_camera(shot.perspective.of(language))
        chinese = read_camera(shot.perspective.of("ch"))
        for name, read in {language: camera, "ch": chinese}.items():
            if read.unknown:
                message = f"{show(', '.join(read.unknown))} is in no list"
                yield issue("camera", where, f"{path}.{name}", message)
        if not camera.unknown and camera.distance is None:
            yield issue("camera-distance", where, f"{path}.{language}", "names no shot distance")
        if (
            chinese.words != camera.words
            and not chinese.unknown
            and not camera.unknown
            and any(chinese.words)
        ):
            message = f"{show(camera.text('en'))} against {show(chinese.text('en'))}"
            yield issue("camera-language", where, path, message)
        if before is not None:
            if is_repeated(before, camera):
                message = f"{show(camera.text('en'))} twice in a row"
                yield issue("camera-repeated", where, f"{path}.{language}", message)
            if is_jump(before, camera):
                message = f"from {show(before.text('en'))} to {show(camera.text('en'))}"
                yield issue("camera-jump", where, f"{path}.{language}", message)
        before = camera


_HUMANS = {True: "realistic_human", False: "unrealistic_human"}


def check_facts(facts: StoryFacts, script: ShotScript, where: str) -> Iterator[Issue]:
    """Yield where facts use other words than the lists, name nobody of the script, or do not fit its tags."""
    for name, value in (("style_category", facts.style), ("culture", facts.culture)):
        yield from _word(name, value, where, "$.style" if name == "style_category" else "$.culture")
    for key, known in facts.characters.items():
        path = f"$.characters[{show(key)}]"
        if key not in script.characters:
            yield issue("facts-character", where, path, f"{show(key)} is no character of the script")
        yield from _word("gender", known.gender, where, f"{path}.gender")
    if facts.realistic is None:
        return
    other = _HUMANS[not facts.realistic]
    for key, sheet in script.characters.items():
        if sheet.tag == other:
            message = f"expected {_HUMANS[facts.realistic]} for {show(key)}, found {other}"
            yield issue("facts-realistic", where, "$.realistic", message)


def _word(name: str, value: str | None, where: str, path: str) -> Iterator[Issue]:
    words = vocabulary(name).values
    if value is not None and value not in words:
        yield issue("facts-word", where, path, f"expected one of {', '.join(words)}, found {show(value)}")


def check_plot(script: ShotScript, text: str, language: str, where: str) -> Iterator[Issue]:
    """Yield where plot correspondences and story part: they hold its text in order, but for white space."""
    left = "".join(text.split())
    for index, shot in enumerate(script.shots):
        plot = "".join((shot.plot.of(language) if shot.plot is not None else "").split())
        if not left.startswith(plot):
            path = f"$.Shots[{index}]['Plot Correspondence'].{language}"
            message = f"expected the story to go on with {show(left[:40])}, found {show(plot[:40])}"
            yield issue("plot-coverage", where, path, message)
            return
        left = left[len(plot) :]
    if left:
        yield issue(
            "plot-coverage", where, "$.Shots", f"the end of the story is in no shot: {show(left[:40])}"
        )


# -- Counts over a set of shot scripts, as in ViStoryBench, section C; a pure function of its parts

PUBLISHED: Mapping[str, float] = {
    "stories": 80,
    "shots": 1317,
    "shots_per_story": 16.5,
    "characters": 344,
    "references": 509,
    "characters_with_several_references": 89,
}
"""What the paper gives of its set; shown beside a set's own numbers, which need not be the same."""


@dataclass
class ShotCounts:
    """Takes stories one by one; all it keeps are counts."""

    lengths: list[int] = field(default_factory=list)  # shots of each story
    references: list[int] = field(default_factory=list)  # reference images of each character
    tables: dict[str, Counter[str]] = field(default_factory=dict)  # name of a distribution -> value -> count

    def add(self, script: ShotScript, facts: StoryFacts | None, references: Mapping[str, int]) -> None:
        """Count one story.

        ``references``: character key -> number of reference images.
        """
        self.lengths.append(len(script.shots))
        self.references += [references.get(key, 0) for key in script.characters]
        self._count("story_type", script.kind)
        self._count("style_category", facts.style if facts else None)
        self._count("culture", facts.culture if facts else None)
        realistic = facts.realistic if facts else None
        self._count("realism", None if realistic is None else "realistic" if realistic else "unrealistic")
        for key, sheet in script.characters.items():
            known = facts.characters.get(key) if facts else None
            self._count("character_tag", sheet.tag)
            self._count("gender", known.gender if known else None)
        for shot in script.shots:
            self._count("characters_on_stage", str(len(script.cast(shot))))
            camera = read_camera(shot.perspective.of("en") if shot.perspective is not None else "")
            for name, value in zip(LISTS, camera.words, strict=True):
                self._count(name, value)

    def _count(self, name: str, value: str | None) -> None:
        self.tables.setdefault(name, Counter())[value or NO_VALUE] += 1

    def document(self) -> dict[str, Json]:
        """Return totals, each beside the published one, and the distributions with their targets."""
        stories, shots = len(self.lengths), sum(self.lengths)
        own = {
            "stories": stories,
            "shots": shots,
            "shots_per_story": round(shots / stories, 6) if stories else 0.0,
            "characters": len(self.references),
            "references": sum(self.references),
            "characters_with_several_references": sum(count > 1 for count in self.references),
        }
        return {
            "kind": "shots",
            "totals": own,
            "published": dict(PUBLISHED),
            "shots_per_story": _span(self.lengths),
            "references_per_character": _span(self.references),
            **{name: distribution(name, counts) for name, counts in self.tables.items()},
        }


def shot_statistics(
    stories: Iterable[tuple[ShotScript, StoryFacts | None, Mapping[str, int]]],
) -> dict[str, Json]:
    """Return the counts over stories, each with its facts and its numbers of reference images."""
    counts = ShotCounts()
    for script, facts, references in stories:
        counts.add(script, facts, references)
    return counts.document()


def _span(numbers: list[int]) -> dict[str, Json]:
    return {"least": min(numbers, default=0), "most": max(numbers, default=0)}
