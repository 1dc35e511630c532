"""Rules about one shot script, whatever it was read from."""

from collections import Counter
from collections.abc import Iterator

from ...schemas.shots import Shot, ShotScript, StoryFacts, TwoTexts
from ...schemas.text import unspaced_count
from ...schemas.values import Issue
from ...schemas.vocabulary import vocabulary
from ..codes import show
from ..view import find_redacted
from .camera import Camera, is_jump, is_repeated, read_camera
from .cast_rules import check_cast, check_languages, folded, issue

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
    for field in ("name_en", "name_ch"):
        first: dict[str, str] = {}
        for key, sheet in script.characters.items():
            name = getattr(sheet, field)
            if not name or not name.strip():
                continue
            owner = first.setdefault(folded(name), key)
            if owner != key:
                message = f"{show(name)} is the name of {show(owner)}, too"
                yield issue("repeated-name", where, f"$.Characters[{show(key)}].{field}", message)


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
