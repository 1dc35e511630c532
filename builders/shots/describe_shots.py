"""Stage: what is seen in each shot, as a still."""

from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, unspaced_count
from ...validators.shots.script_rules import words_of
from ..replies import Problems, language
from ..step import PlannerSettings, Step
from .cast import Sketch, as_planned, by_key, camera_texts


def _rules(sketch: Sketch, settings: PlannerSettings) -> list[None]:
    """Return null for every shot: what a still shows takes a reader."""
    return [None] * len(sketch.plot)


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    return {
        "cameras": [camera_texts(camera)[sketch.base] for camera in sketch.cameras],
        "casts": sketch.casts(),
        "language": language(sketch.story),
        "moments": sketch.stills(),
        "places": [setting or "-" for setting in sketch.settings],
        "shots": list(sketch.plot),
    }


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[str]:
    """Return the static descriptions."""
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


STEP = Step(
    id="shots/describe_shots",
    version=4,
    writes=("statics",),
    reads=("story", "plot", "moments", "cast", "onstage", "settings", "cameras", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=as_planned("statics"),
)
