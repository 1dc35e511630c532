"""Perspectives by rules: how near by how many are on stage and what they feel, never twice the same."""

from collections.abc import Sequence

from ....schemas.canonical import Json
from ....schemas.vocabulary import vocabulary
from ...katha.rules.chance import pick, share

LARGEST_STEP = 3
"""Neighbouring shots differ by so many distances at most; six lie between wide shot and close up."""

_PREFERRED = {0: ("wide_shot",), 1: ("medium_shot", "medium_close_up", "medium_long_shot")}
_PREFERRED |= {2: ("medium_long_shot", "medium_shot"), 3: ("full_shot", "medium_long_shot")}
_FIRST = "full_shot"
SIDE, BACK, LOW, HIGH = 0.25, 0.08, 0.1, 0.1
"""Shares of shots of people that are seen from the side, from behind, from below, from above."""


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
    possible = [one for one in range(count) if 0 < abs(one - before) <= LARGEST_STEP]
    return min(possible, key=lambda one: (abs(one - rank), one))


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
