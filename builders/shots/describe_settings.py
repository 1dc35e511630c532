"""Stage: the place of each shot, without any character.

Rules tell where and when a shot of an English story happens: the words for places and times that its text
has. A place holds until another is named. Things that a shot names stand in its setting, characters never do.
"""

from collections.abc import Sequence

from ...schemas.canonical import Json
from ..replies import Problems, language
from ..step import PlannerSettings, Step
from ..text.segments import Analysis
from ..text.words import lower_words
from .cast import Sketch, as_planned, named_in
from .words import words_for

_AMBIGUOUS = {"spring", "well", "bank", "banks"}
"""Places only behind a determiner; "spring" is a season without one."""
_DETERMINERS = ("a", "an", "the", "his", "her", "their", "its", "this", "that", "my", "our", "your")
MOST_THINGS = 4


def _rules(sketch: Sketch, settings: PlannerSettings) -> list[str | None]:
    """Return time, place and things in the words of an English text; null for other languages."""
    if not sketch.analysis["english"]:
        return [None] * len(sketch.plot)
    return describe_places(sketch.analysis, sketch.story["normalized_text"], sketch.plot, sketch.cast)


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    return {
        "characters": sketch.called() or ["-"],
        "language": language(sketch.story),
        "shots": list(sketch.plot),
        "title": sketch.story["title"],
    }


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[str]:
    """Return the settings.

    Raises:
        BadReply: one is missing or says nothing, names a character, or is in the wrong script.
    """

    def check(number: int, text: str, problems: Problems) -> None:
        named = named_in(sketch.cast, text)
        if named:
            problems.add(f"shot {number}: the setting names {', '.join(named)}; nobody is in a setting")

    return sketch.texts_of(reply, "setting", check)


def describe_places(analysis: Json, text: str, plot: Sequence[str], cast: Sequence[Json]) -> list[str | None]:
    """Return the setting of each shot: time, place, things; null where the text up to it names none."""
    places: list[str] = []
    time: str | None = None
    first = next(filter(None, (_places(part) for part in plot)), [])
    settings: list[str | None] = []
    for part, things in zip(plot, things_of(Analysis.from_json(analysis), text, plot), strict=True):
        places = _places(part) or places or first
        time = _time(part) or time
        words = [word for word in (time, *places, *things) if word and not named_in(cast, word)]
        joined = ", ".join(dict.fromkeys(words))
        settings.append(joined[:1].upper() + joined[1:] or None)
    return settings


def things_of(analysis: Analysis, text: str, plot: Sequence[str]) -> list[list[str]]:
    """Return the things that each shot names."""
    ends, end = [], 0
    for part in plot:
        end = text.index(part, end) + len(part)
        ends.append(end)
    things: list[list[str]] = [[] for _ in plot]
    for entity in analysis.entities:
        if entity.character:
            continue
        shots = {sum(end <= analysis.segments[at].start for end in ends) for at in entity.at}
        for shot in shots:
            if len(things[shot]) < MOST_THINGS:
                things[shot].append(entity.name)
    return things


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
    version=2,
    writes=("settings",),
    reads=("story", "analysis", "plot", "cast", "onstage", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=as_planned("settings"),
)
