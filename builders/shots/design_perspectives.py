"""Stage: distance, angle and camera type of each shot: neighbours differ, none jumps.

Rules choose how near by how many are on stage and what they feel.
"""

from collections.abc import Sequence
from itertools import pairwise

from ...schemas.canonical import Json
from ...schemas.vocabulary import vocabulary
from ...validators.shots.camera import Camera, is_jump, is_repeated
from ..replies import Problems
from ..step import PlannerSettings, Step
from ..text.words import pick, share
from .cast import Sketch, as_planned

LARGEST_STEP = 3
"""Neighbouring shots differ by so many distances at most; six lie between wide shot and close up."""

_PREFERRED = {0: ("wide_shot",), 1: ("medium_shot", "medium_close_up", "medium_long_shot")}
_PREFERRED |= {2: ("medium_long_shot", "medium_shot"), 3: ("full_shot", "medium_long_shot")}
_FIRST = "full_shot"
SIDE, BACK, LOW, HIGH = 0.25, 0.08, 0.1, 0.1
"""Shares of shots of people that are seen from the side, from behind, from below, from above."""


def _rules(sketch: Sketch, settings: PlannerSettings) -> list[Json]:
    view = sketch.view()
    tense = [bool(view.feelings(shot)) for shot in range(view.count)]
    return design(sketch.story["id"], [len(keys) for keys in sketch.onstage], tense)


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    return {"casts": sketch.casts(), "shots": list(sketch.plot)}


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[Json]:
    """Return the perspectives; an angle of nobody is dropped.

    Raises:
        BadReply: a shot is missing, or neighbours are alike or jump.
    """
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


def design(story_id: str, onstage: Sequence[int], tense: Sequence[bool]) -> list[Json]:
    """Return the perspective of each shot.

    Args:
        story_id: what the choices that the text leaves open depend on.
        onstage: how many characters are on stage in each shot.
        tense: whether the shot tells a feeling, which brings the camera nearer.
    """
    cameras: list[Json] = []
    before: int | None = None
    for number, (people, near) in enumerate(zip(onstage, tense, strict=True)):
        rank = _rank(story_id, number, people, near=near)
        rank = _beside(rank, before)
        cameras.append(_camera(story_id, number, rank, alone=people == 0))
        before = rank
    return cameras


def _rank(story_id: str, number: int, people: int, *, near: bool) -> int:
    ranks = {value: entry["rank"] for value, entry in vocabulary("shot_distance").entries.items()}
    if number == 0:
        return int(ranks[_FIRST if people else "wide_shot"])
    wished = int(ranks[pick(_PREFERRED[min(people, 3)], story_id, "distance", str(number))])
    return min(wished + 1, len(ranks) - 1) if near and people else wished


def _beside(rank: int, before: int | None) -> int:
    """Return the rank nearest to the wished one that a shot after ``before`` may have."""
    if before is None:
        return rank
    count = len(vocabulary("shot_distance").values)
    possible = [other for other in range(count) if 0 < abs(other - before) <= LARGEST_STEP]
    return min(possible, key=lambda other: (abs(other - rank), other))


def _camera(story_id: str, number: int, rank: int, *, alone: bool) -> Json:
    distance = vocabulary("shot_distance").values[rank]
    turn, height = (share(story_id, name, str(number)) for name in ("angle", "type"))
    kind = (
        "low_angle_shot" if height < LOW else "high_angle_shot" if height < LOW + HIGH else "eye_level_shot"
    )
    if alone:
        kind = "eye_level_shot" if height >= 0.5 else "high_angle_shot"
        return {"distance": distance, "angle": None, "type": kind}
    angle = "back_view" if turn < BACK else "side_view" if turn < BACK + SIDE else "front_view"
    return {"distance": distance, "angle": angle, "type": kind}


STEP = Step(
    id="shots/design_perspectives",
    version=2,
    writes=("cameras",),
    reads=("story", "analysis", "plot", "cast", "onstage", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=as_planned("cameras"),
)
