"""Stages: what is drafted of a script and its shots, field by field; each is one Step."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pydantic import Field

from ...schemas.canonical import Json
from ...schemas.text import is_unspaced, normalize_answer, normalize_text, primary_language, unspaced_count
from ...validators.shots.script_rules import SHOTS, Camera, is_jump, is_repeated, words_of
from ..step import Drafted, PlannerSettings, Problems, Step, Unfit, language, needed
from ..text.boundaries import divide, read_division
from ..text.segments import Analysis, lower_words, segment_texts, word_count
from .cast import (
    MOST_ONSTAGE,
    WRITE_CHARACTERS,
    CastSettings,
    Sketch,
    as_planned,
    base_language,
    by_key,
    camera_texts,
    named_first,
    named_in,
    words_for,
)
from .load_stories import LABELS

# -- The part of the story that each shot tells, and the moment of it that the still shows
# The parts together are the whole story, in order. Rules settle no moment.

UNSPACED = 1.8
"""Characters that stand for one word in a script without spaces."""


class DivisionSettings(PlannerSettings):
    shots: int | None = Field(
        default=None, ge=4, le=30, description="Shots of every story. Null: by its length, 4 to 30."
    )
    words_per_shot: int = Field(default=22, ge=1, description="Words of a story that make one shot.")


def shots_wanted(sketch: Sketch, settings: DivisionSettings) -> int:
    """Return how many shots a story gets: as asked for, else by its length, at most one for each clause."""
    if base_language(sketch.story) is None:
        raise Unfit("language", f"found {sketch.story['language']}; translate the story first")
    if asked := sketch.facts().get("shots") or settings.shots:
        return int(asked)
    text: str = sketch.story["normalized_text"]
    length = word_count(text) / (UNSPACED if is_unspaced(text) else 1)
    fewest, most = SHOTS
    return max(fewest, min(most, round(length / settings.words_per_shot), len(sketch.analysis["segments"])))


def _rules_division(sketch: Sketch, settings: DivisionSettings) -> Json:
    text = sketch.story["normalized_text"]
    spans = divide(text, Analysis.from_json(sketch.analysis), shots_wanted(sketch, settings))
    if spans is None:
        return None
    return {"plot": [text[start:end] for start, end in spans], "moments": [None] * len(spans)}


def _show_division(sketch: Sketch, settings: DivisionSettings) -> Json:
    segments, count = segment_texts(sketch.story, sketch.analysis), shots_wanted(sketch, settings)
    if len(segments) < count:
        return None
    return {
        "count": count,
        "language": language(sketch.story),
        "segments": segments,
        "title": sketch.story["title"],
    }


def _read_division(reply: Json, sketch: Sketch, settings: DivisionSettings) -> Json:
    """Return the texts of the shots, which hold all of the story but white space, and their moments.

    A shot of a whole script, which one prompt wrote, has no moment: its description says what is seen.
    """
    count, shots, problems = shots_wanted(sketch, settings), reply["shots"], Problems()
    plot = read_division(shots, count, "shot", sketch.story, sketch.analysis)
    moments = [
        needed(entry, "moment", f"shot {number}", problems) if "moment" in entry else None
        for number, entry in enumerate(shots, start=1)
    ]
    problems.settle()
    return {"plot": plot, "moments": moments}


def _settle_division(drafted: Json, sketch: Sketch, settings: DivisionSettings) -> Json:
    if drafted is None:
        segments, count = len(sketch.analysis["segments"]), shots_wanted(sketch, settings)
        raise Unfit("too_short", f"{segments} sentences and clauses for {count} shots")
    return drafted


PLAN_SHOTS = Step(
    id="shots/plan_shots",
    version=4,
    writes=("plot", "moments"),
    reads=("story", "analysis", "given", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules_division,
    show=_show_division,
    read=_read_division,
    given=as_planned("plot", "moments"),
    settle=_settle_division,
    settings=DivisionSettings,
    reject_codes={
        "too_short": "The story has fewer sentences and clauses than shots.",
        "language": "The format holds English and Chinese; the story is in another language.",
    },
    keep={
        "too_short": "--shots N with a smaller N",
        "language": "no option keeps it: translate the story first",
    },
)


# -- Which characters of the cast are on stage in each shot, 0 to 3


def _rules_onstage(sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return who is named in each shot."""
    return [named_first(sketch.cast, part)[:MOST_ONSTAGE] for part in sketch.plot]


def _show_onstage(sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the cast and the shots; there is nothing to ask about where there is nobody."""
    return (
        sketch.cast
        and {
            "characters": sketch.called(),
            "language": language(sketch.story),
            "moments": sketch.stills(),
            "shots": list(sketch.plot),
        }
    ) or None


def _read_onstage(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[list[str]]:
    """Return the keys of the characters on stage in each shot."""
    folded = {member["key"].casefold(): member["key"] for member in sketch.cast}
    problems, shots = Problems(), []
    for number, entry in enumerate(sketch.in_order(reply), start=1):
        named = [normalize_text(name) for name in entry["characters"]]
        strange = [name for name in named if name.casefold() not in folded]
        if strange:
            listed = ", ".join(folded.values())
            problems.add(f"shot {number}: {', '.join(strange)} is not in the list; there are {listed}")
        keys = list(dict.fromkeys(folded[name.casefold()] for name in named if name.casefold() in folded))
        if len(keys) > MOST_ONSTAGE:
            problems.add(f"shot {number}: {len(keys)} characters; choose at most {MOST_ONSTAGE}")
        shots.append(keys)
    problems.settle()
    return shots


PLACE_CHARACTERS = Step(
    id="shots/place_characters",
    version=6,
    writes=("onstage",),
    reads=("story", "plot", "moments", "cast", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules_onstage,
    show=_show_onstage,
    read=_read_onstage,
    given=as_planned("onstage"),
    spare=True,
)


# -- The place of each shot, without any character
# Rules tell where and when a shot of an English story happens: the words for places and times that its text
# has. A place holds until another is named; characters never stand in a setting.

_AMBIGUOUS = {"spring", "well", "bank", "banks"}
"""Places only behind a determiner; "spring" is a season without one."""
_DETERMINERS = ("a", "an", "the", "his", "her", "their", "its", "this", "that", "my", "our", "your")


def _rules_settings(sketch: Sketch, settings: PlannerSettings) -> list[str | None]:
    """Return time and place in the words of an English text; null for other languages."""
    if primary_language(sketch.story["language"]) != "en":
        return [None] * len(sketch.plot)
    return describe_places(sketch.plot, sketch.cast)


def _show_settings(sketch: Sketch, settings: PlannerSettings) -> Json:
    return {
        "characters": sketch.called() or ["-"],
        "language": language(sketch.story),
        "moments": sketch.stills(),
        "shots": list(sketch.plot),
        "title": sketch.story["title"],
    }


def _read_settings(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[str]:
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


DESCRIBE_SETTINGS = Step(
    id="shots/describe_settings",
    version=6,
    writes=("settings",),
    reads=("story", "plot", "moments", "cast", "onstage", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules_settings,
    show=_show_settings,
    read=_read_settings,
    given=as_planned("settings"),
    spare=True,
)


# -- Distance, angle and camera type of each shot: neighbours differ, none jumps

UNKNOWN: Json = {"distance": None, "angle": None, "type": None}


def _rules_cameras(sketch: Sketch, settings: PlannerSettings) -> list[Json]:
    """Return perspectives of which nothing is known: no text says where its camera stands."""
    return [UNKNOWN] * len(sketch.plot)


def _show_cameras(sketch: Sketch, settings: PlannerSettings) -> Json:
    return {"casts": sketch.casts(), "moments": sketch.stills(), "shots": list(sketch.plot)}


def _read_cameras(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[Json]:
    """Return the perspectives; an angle of nobody is dropped."""
    entries = sketch.in_order(reply)
    cameras = [
        {"distance": entry["distance"], "angle": entry["angle"] if keys else None, "type": entry["type"]}
        for entry, keys in zip(entries, sketch.onstage, strict=True)
    ]
    problems = Problems()
    words = [Camera(camera["distance"], camera["angle"], camera["type"]) for camera in cameras]
    _check_neighbours(words, problems)
    problems.settle()
    return cameras


def _check_neighbours(cameras: Sequence[Camera], problems: Problems) -> None:
    for number, (before, after) in enumerate(pairwise(cameras), start=2):
        if is_repeated(before, after):
            problems.add(f"shots {number - 1} and {number} have the same distance, angle and type")
        if is_jump(before, after):
            problems.add(f"shot {number} jumps from {before.distance} to {after.distance}; go by steps")


DESIGN_PERSPECTIVES = Step(
    id="shots/design_perspectives",
    version=5,
    writes=("cameras",),
    reads=("story", "plot", "moments", "cast", "onstage", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules_cameras,
    show=_show_cameras,
    read=_read_cameras,
    given=as_planned("cameras"),
    spare=True,
)


# -- What is seen in each shot, as a still


def _rules_stills(sketch: Sketch, settings: PlannerSettings) -> list[None]:
    """Return null for every shot: what a still shows takes a reader."""
    return [None] * len(sketch.plot)


def _show_stills(sketch: Sketch, settings: PlannerSettings) -> Json:
    return {
        "cameras": [camera_texts(camera)[sketch.base] for camera in sketch.cameras],
        "casts": sketch.casts(),
        "language": language(sketch.story),
        "moments": sketch.stills(),
        "places": [setting or "-" for setting in sketch.settings],
        "shots": list(sketch.plot),
    }


def _read_stills(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[str]:
    cast = by_key(sketch.cast)

    def check(number: int, text: str, problems: Problems) -> None:
        missing = [cast[key]["name"] for key in sketch.onstage[number - 1] if not _is_told(cast[key], text)]
        if missing:
            problems.add(f"shot {number}: the description must name {', '.join(missing)}, who is on stage")

    return sketch.texts_of(reply, "description", check)


def _is_told(character: Json, text: str) -> bool:
    """Return whether a text has a word of a character's name, as the rules of ``fabula validate`` ask."""
    if unspaced_count(character["name"]):
        return character["name"] in text
    return bool(words_of(character["name"], character["key"]) & set(normalize_answer(text).split()))


DESCRIBE_SHOTS = Step(
    id="shots/describe_shots",
    version=5,
    writes=("statics",),
    reads=("story", "plot", "moments", "cast", "onstage", "settings", "cameras", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules_stills,
    show=_show_stills,
    read=_read_stills,
    given=as_planned("statics"),
    spare=True,
)


# -- What each shot tells, rewritten as narration and dialogue
# That is the form of the plots of ViStoryBench (supplement, section C). It is off unless ``narration`` is
# set: plots are the story's own words then, so that anybody can check that nothing is lost.


class NarrationSettings(PlannerSettings):
    narration: bool = Field(default=False, description="Rewrite plots as narration and dialogue.")


def _rules_narration(sketch: Sketch, settings: NarrationSettings) -> Json:
    """Return None: rules write nothing anew, and the plots stay the story's words."""
    return None


def _show_narration(sketch: Sketch, settings: NarrationSettings) -> Json:
    if not settings.narration:
        return None
    return {
        "characters": sketch.called() or ["-"],
        "language": language(sketch.story),
        "shots": list(sketch.plot),
    }


def _read_narration(reply: Json, sketch: Sketch, settings: NarrationSettings) -> list[str]:
    """Return the plots."""

    def accept(number: int, text: str, problems: Problems) -> None:
        """Take any plot that says something: what is left out or added no program can tell."""

    return sketch.texts_of(reply, "plot", accept)


def _given_narration(sketch: Sketch, settings: NarrationSettings) -> Json:
    """Return the plots that the one prompt of a whole script wrote, if they are wanted."""
    if not settings.narration or sketch.planned is None or sketch.planned["narration"] is None:
        return None
    return Drafted(sketch.planned["narration"], sketch.planned_by or "")


NARRATE_PLOTS = Step(
    id="shots/narrate_plots",
    version=2,
    writes=("narration",),
    reads=("story", "analysis", "plot", "cast", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules_narration,
    show=_show_narration,
    read=_read_narration,
    given=_given_narration,
    settings=NarrationSettings,
    spare=True,
)


# -- What scores are stratified by: story type, culture, visual style, and whether it is realistic
# What the author gives stands. A style that is drafted is a proposal for the references, which decide. Rules
# tell the culture of a collection.

CULTURES = {"aesop": "euro_american", "kathasaritasagara": "indian", "panchatantra": "indian"}
"""Source collection -> the culture that its stories come from."""


def _rules_labels(sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the culture that a collection is of; type and style are for a reader."""
    return {"story_type": None, "culture": CULTURES.get(sketch.story["source_collection"]), "style": None}


def _show_labels(sketch: Sketch, settings: PlannerSettings) -> Json:
    story = sketch.story
    return {"language": language(story), "story": story["normalized_text"], "title": story["title"]}


def _given_labels(sketch: Sketch, settings: PlannerSettings) -> Json:
    facts = sketch.facts()
    return None if None in (facts.get(name) for name in LABELS) else _settle_labels(facts, sketch, settings)


def _settle_labels(drafted: Json, sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the drafted labels, but for those that the author gives; the cast says what is realistic."""
    facts = sketch.facts()
    given = {name: facts.get(name) for name in LABELS}
    tags = {member["tag"] for member in sketch.cast} - {"non_human"}
    realistic = facts.get("realistic")
    if realistic is None and tags and None not in tags:
        realistic = tags == {"realistic_human"}
    labels = {name: drafted[name] if value is None else value for name, value in given.items()}
    return {**labels, "realistic": realistic}


CLASSIFY_STORY = Step(
    id="shots/classify_story",
    version=4,
    writes=("labels",),
    reads=("story", "given", "cast"),
    sketch=Sketch.of,
    rules=_rules_labels,
    show=_show_labels,
    given=_given_labels,
    settle=_settle_labels,
    spare=True,
)


# -- A whole script from one prompt with five fields for each shot, in place of a stage for each part
# That is how ViStoryBench planned its scripts (supplement, section C.2). It is off unless ``one_prompt`` is
# set. The parts are read as the stages of each part read theirs, and those stages then keep them.

PARTS = (
    PLAN_SHOTS, WRITE_CHARACTERS, PLACE_CHARACTERS, DESCRIBE_SETTINGS,
    DESIGN_PERSPECTIVES, DESCRIBE_SHOTS,
)  # fmt: skip
"""The steps whose fields the prompt asks for, in their order."""


class ScriptSettings(DivisionSettings, CastSettings):
    one_prompt: bool = Field(default=False, description="Ask for all parts of a script with one prompt.")


def _rules_script(sketch: Sketch, settings: ScriptSettings) -> Json:
    """Return what the rules of each part draft: how long a script would be, if a model wrote it."""
    if not settings.one_prompt:
        return None
    parts: dict[str, Json] = {}
    for step in PARTS:
        value = step.rules(sketch, settings)
        if value is None:
            return None
        fields = value if len(step.writes) > 1 else {step.writes[0]: value}
        parts |= fields
        sketch = replace(sketch, **fields)
    return {**parts, "narration": None}


def _show_script(sketch: Sketch, settings: ScriptSettings) -> Json:
    if not settings.one_prompt:
        return None
    division = PLAN_SHOTS.show(sketch, settings)
    if division is None:
        return None
    people = WRITE_CHARACTERS.show(sketch, settings) or {}
    return {**division, **{name: people[name] for name in ("given", "human", "most")}}


def _read_script(reply: Json, sketch: Sketch, settings: ScriptSettings) -> Json:
    """Return the parts of a script, each read as its own stage reads it, and ``narration``."""
    parts: dict[str, Json] = {}
    for step in PARTS:
        value = step.read(reply, sketch, settings)
        fields = value if len(step.writes) > 1 else {step.writes[0]: value}
        parts |= fields
        sketch = replace(sketch, **fields)
    return {**parts, "narration": sketch.texts_of(reply, "plot", _accept)}


def _accept(number: int, text: str, problems: Problems) -> None:
    """Take any plot that says something: what is left out or added no program can tell."""


PLAN_SCRIPT = Step(
    id="shots/plan_script",
    version=4,
    writes=("planned",),
    reads=("story", "analysis", "given"),
    sketch=Sketch.of,
    rules=_rules_script,
    show=_show_script,
    read=_read_script,
    settings=ScriptSettings,
    reject_codes=PLAN_SHOTS.reject_codes,
    keep=PLAN_SHOTS.keep,
)
