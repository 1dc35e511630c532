"""Stage: the place of each shot, without any character.

Rules tell where and when a shot of an English story happens: the words for places and times that its text
has. A place holds until another is named; characters never stand in a setting.
"""

from collections.abc import Sequence

from ...schemas.canonical import Json
from ...schemas.text import primary_language
from ..replies import Problems, language
from ..step import PlannerSettings, Step
from ..text.words import lower_words
from .cast import Sketch, as_planned, named_in, words_for

_AMBIGUOUS = {"spring", "well", "bank", "banks"}
"""Places only behind a determiner; "spring" is a season without one."""
_DETERMINERS = ("a", "an", "the", "his", "her", "their", "its", "this", "that", "my", "our", "your")


def _rules(sketch: Sketch, settings: PlannerSettings) -> list[str | None]:
    """Return time and place in the words of an English text; null for other languages."""
    if primary_language(sketch.story["language"]) != "en":
        return [None] * len(sketch.plot)
    return describe_places(sketch.plot, sketch.cast)


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    return {
        "characters": sketch.called() or ["-"],
        "language": language(sketch.story),
        "moments": sketch.stills(),
        "shots": list(sketch.plot),
        "title": sketch.story["title"],
    }


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[str]:
    """Return the settings."""

    def check(number: int, text: str, problems: Problems) -> None:
        named = named_in(sketch.cast, text)
        if named:
            problems.add(f"shot {number}: the setting names {', '.join(named)}; nobody is in a setting")

    return sketch.texts_of(reply, "setting", check)


def describe_places(plot: Sequence[str], cast: Sequence[Json]) -> list[str | None]:
    """Return the setting of each shot: time and place; null where the text up to it names none."""
    places: list[str] = []
    time: str | None = None
    settings: list[str | None] = []
    for part in plot:
        places = _places(part) or places
        time = _time(part) or time
        words = [word for word in (time, *places) if word and not named_in(cast, word)]
        joined = ", ".join(dict.fromkeys(words))
        settings.append(joined[:1].upper() + joined[1:] or None)
    return settings


def _places(text: str) -> list[str]:
    words = lower_words(text)
    places = []
    for before, word in zip(("", *words), words, strict=False):
        if word in words_for("places") and (word not in _AMBIGUOUS or before in _DETERMINERS):
            places.append(word)
    return list(dict.fromkeys(places))[:2]


def _time(text: str) -> str | None:
    words = lower_words(text)
    for before, word in zip(("", *words), words, strict=False):
        if word in words_for("times") and not (word in _AMBIGUOUS and before in _DETERMINERS):
            return word
    return None


STEP = Step(
    id="shots/describe_settings",
    version=5,
    writes=("settings",),
    reads=("story", "plot", "moments", "cast", "onstage", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=as_planned("settings"),
)
