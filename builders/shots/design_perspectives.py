"""Stage: distance, angle and camera type of each shot: neighbours differ, none jumps."""

from collections.abc import Sequence
from itertools import pairwise

from ...schemas.canonical import Json
from ...validators.shots.script_rules import Camera, is_jump, is_repeated
from ..replies import Problems
from ..step import PlannerSettings, Step
from .cast import Sketch, as_planned

UNKNOWN: Json = {"distance": None, "angle": None, "type": None}


def _rules(sketch: Sketch, settings: PlannerSettings) -> list[Json]:
    """Return perspectives of which nothing is known: no text says where its camera stands."""
    return [UNKNOWN] * len(sketch.plot)


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    return {"casts": sketch.casts(), "moments": sketch.stills(), "shots": list(sketch.plot)}


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[Json]:
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


STEP = Step(
    id="shots/design_perspectives",
    version=4,
    writes=("cameras",),
    reads=("story", "plot", "moments", "cast", "onstage", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=as_planned("cameras"),
)
