"""What a camera that turns does to a frame: who stays moves against it, and another third comes into view.

Nobody says how far a camera pans; here one pan is two cells and one third of the panorama.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise

from .layout import ANGLES, CELLS, SIDES, Angle, Keyframe, Pan, Side, places_of

PAN_CELLS = 2
"""By how many cells a pan moves who stays, where there is room."""
AGAINST: Mapping[Pan, Pan] = {"none": "none", "left": "right", "right": "left"}
"""Pan -> where it moves what stays in the frame."""
_LAST = len(CELLS) - 1


def shifted(places: Mapping[str, int], pan: Pan, followed: Collection[str] = ()) -> dict[str, int]:
    """Return where characters are after a pan: two cells against it, as far as the frame reaches.

    Their order stays, nobody shares a cell, and at the edge they draw together. Whom the camera follows stays
    where they are, unless somebody else would stand there.

    Args:
        places: character -> number of the cell.
        pan: where the camera turns.
        followed: whom it follows.

    >>> shifted({"Ana": 3, "Ben": 5}, "right")
    {'Ana': 1, 'Ben': 3}
    """
    if pan == "none":
        return dict(places)
    if pan == "left":  # the mirror image of the other way
        mirrored = shifted({name: _LAST - cell for name, cell in places.items()}, "right", followed)
        return {name: _LAST - cell for name, cell in mirrored.items()}
    moved: dict[str, int] = {}
    for rank, name in enumerate(sorted(places, key=places.__getitem__)):
        cell = places[name]
        moved[name] = cell if name in followed else max(cell - PAN_CELLS, rank)
    cells = list(moved.values())
    return moved if all(left < right for left, right in pairwise(cells)) else shifted(places, pan)


def turned(angle: Angle, pan: Pan) -> Angle:
    """Return which third is in view after a pan; at the end of the panorama it stays."""
    step = {"none": 0, "left": -1, "right": 1}[pan]
    return ANGLES[min(max(ANGLES.index(angle) + step, 0), len(ANGLES) - 1)]


def drawn_together(places: Mapping[str, int], pan: Pan, newcomers: int) -> dict[str, int]:
    """Return where those who stay are so that newcomers fit in on the side to which the camera turned.

    Args:
        places: character -> number of the cell, after the pan.
        pan: where the camera turned; ``none`` changes nothing.
        newcomers: how many cells are wanted at that edge; with those who stay at most seven.
    """
    names = sorted(places, key=places.__getitem__)
    if pan == "right":
        most = _LAST - newcomers - len(names) + 1
        return {name: min(places[name], most + rank) for rank, name in enumerate(names)}
    if pan == "left":
        return {name: max(places[name], newcomers + rank) for rank, name in enumerate(names)}
    return dict(places)


def is_free(places: Mapping[str, int], side: Side) -> bool:
    """Return whether nobody stands on a side of the frame."""
    return not set(SIDES[side]) & set(places.values())


def lone_side(places: Mapping[str, int]) -> Side:
    """Return the side on which all characters are; ``centre`` where they are on neither, or nobody is."""
    for side in ("left", "right"):
        if places and set(places.values()) <= set(SIDES[side]):
            return side
    return "centre"


def roomier_side(places: Mapping[str, int], angle: Angle) -> Side:
    """Return the side with fewer characters; of equals the one to which the panorama goes on, then right."""
    left, right = (len(set(SIDES[side]) & set(places.values())) for side in ("left", "right"))
    if left != right:
        return "left" if left < right else "right"
    return "left" if angle == "right" else "right"


def pan_faults(before: Keyframe, after: Keyframe, retained: Iterable[str]) -> list[str]:
    """Return what a keyframe gets wrong about the camera, against the arrangement that it goes on from.

    Args:
        before: the arrangement before.
        after: the first keyframe of the shot that goes on.
        retained: the characters who are in both.
    """
    old, new = places_of(before), places_of(after)
    moves = {name: new[name] - old[name] for name in retained if name in new}
    faults = []
    way = {"none": 0, "left": 1, "right": -1}[after.pan]
    for name, move in moves.items():
        where = f"{name} was {CELLS[old[name]]} and is {CELLS[new[name]]}"
        if way == 0 and move:
            faults.append(f"{where}, though the camera does not turn")
        elif move * way < 0:
            faults.append(f"{where}: when the camera turns {after.pan}, who stays moves {AGAINST[after.pan]}")
    names = sorted(moves, key=old.__getitem__)
    if [old[name] for name in names] and sorted(names, key=new.__getitem__) != names:
        faults.append(f"{', '.join(names)} stood in this order from left to right; a pan does not change it")
    if before.location is not None and before.location == after.location:
        faults += _angle_faults(before.angle, after)
    return faults


def _angle_faults(angle: Angle, after: Keyframe) -> list[str]:
    step = ANGLES.index(after.angle) - ANGLES.index(angle)
    way = {"none": 0, "left": -1, "right": 1}[after.pan]
    if (way == 0 and step) or step * way < 0:
        said = "does not turn" if way == 0 else f"turns {after.pan}"
        return [f"the view was {angle} and is {after.angle}, though the camera {said}"]
    return []
