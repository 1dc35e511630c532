"""Whether a layout is valid: the rules that every layout keeps, whoever planned it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .camera import pan_faults
from .layout import CELLS, SIDES, Keyframe, ShotCast, ShotLayout, Side, places_of
from .staging import Staging

MOST_KEYFRAMES = 8
"""Most keyframes of a shot."""


def layout_faults(layout: ShotLayout, cast: ShotCast, staging: Staging) -> list[str]:
    """Return what is wrong with a layout, each as a sentence that a model can act on; none where it is valid.

    1. There are one to eight keyframes, and nobody and nothing in them that is not scheduled.
    2. Every character, place and object that stands alone is in at least one of them, once in each.
    3. No two characters share a cell; an object stands beside a character of its keyframe, or beside nobody.
    4. Where a shot goes on from another, its first keyframe has all who stay. If the camera does not turn,
       they are where they were, and so is the view; if it turns, nobody moves with it, their order stays, and
       the view moves with it.
    5. Who comes in from a side that the text names is on that side at first; three fit.

    Args:
        layout: of the shot.
        cast: what it was made for.
        staging: what the action says.
    """
    faults = []
    if len(layout.keyframes) > MOST_KEYFRAMES:
        faults.append(f"there are {len(layout.keyframes)} keyframes; at most {MOST_KEYFRAMES}")
    for number, keyframe in enumerate(layout.keyframes, 1):
        faults += [f"keyframe {number}: {fault}" for fault in _keyframe_faults(keyframe, cast)]
    faults += _missing(layout.keyframes, cast)
    if faults:
        return faults  # the rest is about characters who are there
    return [*_continuation_faults(layout.keyframes[0], cast), *_entry_faults(layout, cast, staging)]


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


def _entry_faults(layout: ShotLayout, cast: ShotCast, staging: Staging) -> Iterator[str]:
    sides: dict[str, Side] = {
        name: side
        for name in cast.characters
        if name not in cast.retained and (side := staging.side_of_entry(name)) is not None
    }
    crowded = {side for side, count in Counter(sides.values()).items() if count > len(SIDES[side])}
    for name, side in sides.items():
        cell = next(cells[name] for keyframe in layout.keyframes if name in (cells := places_of(keyframe)))
        if cell not in SIDES[side] and side not in crowded:
            yield f"{name} comes from the {side} and is first {CELLS[cell]}"
