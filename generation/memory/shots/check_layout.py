"""Whether a layout is valid: the rules that every layout keeps, whoever planned it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .layout import ANGLES, CELLS, Angle, Keyframe, Pan, ShotCast, ShotLayout, places_of

MOST_KEYFRAMES = 8
"""Most keyframes of a shot."""
AGAINST: Mapping[Pan, Pan] = {"none": "none", "left": "right", "right": "left"}
"""Pan -> where it moves what stays in the frame."""


def layout_faults(layout: ShotLayout, cast: ShotCast) -> list[str]:
    """Return what is wrong with a layout, each as a sentence that a model can act on; none where it is valid.

    1. There are one to eight keyframes, and nobody and nothing in them that is not scheduled.
    2. Every character, place and object that stands alone is in at least one of them, once in each.
    3. No two characters share a cell; an object stands beside a character of its keyframe, or beside nobody.
    4. Where a shot goes on from another, its first keyframe has all who stay. If the camera does not turn,
       they are where they were, and so is the view; if it turns, nobody moves with it, their order stays, and
       the view moves with it.
    """
    faults = []
    if len(layout.keyframes) > MOST_KEYFRAMES:
        faults.append(f"there are {len(layout.keyframes)} keyframes; at most {MOST_KEYFRAMES}")
    for number, keyframe in enumerate(layout.keyframes, 1):
        faults += [f"keyframe {number}: {fault}" for fault in _keyframe_faults(keyframe, cast)]
    faults += _missing(layout.keyframes, cast)
    if faults:
        return faults  # the rest is about characters who are there
    return list(_continuation_faults(layout.keyframes[0], cast))


def _keyframe_faults(keyframe: Keyframe, cast: ShotCast) -> Iterator[str]:
    names = [standing.name for standing in keyframe.characters]
    things = [beside.name for beside in keyframe.objects]
    yield from _strangers("character", names, cast.characters)
    yield from _strangers("object", things, cast.objects)
    if keyframe.location is not None or cast.locations:
        yield from _strangers("place", [keyframe.location or "none"], cast.locations)
    for cell, count in Counter(standing.cell for standing in keyframe.characters).items():
        if count > 1:
            sharing = [standing.name for standing in keyframe.characters if standing.cell == cell]
            yield f"{' and '.join(sharing)} are both {cell}"
    for beside in keyframe.objects:
        if beside.user is not None and beside.user not in names:
            yield f"{beside.name} stands beside {beside.user}, who is not there"


def _strangers(noun: str, names: Sequence[str], scheduled: Iterable[str]) -> Iterator[str]:
    known = tuple(scheduled)
    for name, count in Counter(names).items():
        if name not in known:
            listed = "; ".join(known) or "none"
            yield f"{name} is no {noun} of this shot; there is: {listed}"
        elif count > 1:
            yield f"{name} is there {count} times"


def _missing(keyframes: Sequence[Keyframe], cast: ShotCast) -> Iterator[str]:
    shown = {standing.name for keyframe in keyframes for standing in keyframe.characters}
    things = {beside.name for keyframe in keyframes for beside in keyframe.objects}
    places = {keyframe.location for keyframe in keyframes}
    for name in (
        *(name for name in cast.characters if name not in shown),
        *(name for name in cast.locations if name not in places),
        *(name for name in cast.objects if name not in things),
    ):
        yield f"{name} is in no keyframe"


def _continuation_faults(first: Keyframe, cast: ShotCast) -> Iterator[str]:
    if cast.before is None:
        return
    there = places_of(first)
    for name in cast.retained:
        if name not in there:
            yield f"keyframe 1: {name} was there when the shot before ended, and is missing"
    yield from (f"keyframe 1: {fault}" for fault in pan_faults(cast.before, first, cast.retained))


def pan_faults(before: Keyframe, after: Keyframe, retained: Iterable[str]) -> list[str]:
    """Return what a keyframe gets wrong about the camera, against the arrangement that it goes on from."""
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
