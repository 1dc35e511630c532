"""A layout by rules: valid for every shot, whatever is scheduled in it (EntityBench, C.2 and E.4).

A shot that begins anew spreads its characters over the frame, in the order in which the text names them, on
the sides that it names. One that goes on keeps who stays: where the camera turns they shift against it, and
who comes stands on the side from which the text has them come, else where there is more room; the camera
turns only where that side is not free, and to those who stay where all of them are on one side. What changes
while the shot lasts makes a further keyframe: somebody comes, goes or crosses the frame, the camera pans
after a cut, there are more bodies than cells, or a second place.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .camera import drawn_together, is_free, lone_side, roomier_side, shifted, turned
from .layout import (
    CELLS,
    CENTRE,
    SIDES,
    Angle,
    Beside,
    Keyframe,
    Pan,
    ShotCast,
    ShotLayout,
    Side,
    places_of,
    standing_at,
)
from .staging import Staging, find_name, read_staging, user_of

SPREAD: tuple[tuple[int, ...], ...] = (
    (), (3,), (2, 4), (1, 3, 5), (0, 2, 4, 6), (0, 2, 3, 4, 6), (0, 1, 2, 4, 5, 6), (0, 1, 2, 3, 4, 5, 6),
)  # fmt: skip
"""How many characters -> the cells over which they are spread."""
_SEATS: Mapping[Side, tuple[int, ...]] = {
    "left": (1, 0, 2, 3, 4, 5, 6), "right": (5, 6, 4, 3, 2, 1, 0), "centre": (3, 2, 4, 1, 5, 0, 6),
}  # fmt: skip
"""Side -> the cells in which a newcomer on it stands, the best first."""
_TOWARDS: Mapping[Side, Pan] = {"left": "left", "right": "right", "centre": "none"}


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Characters in a keyframe, before objects and the place.

    Attributes:
        places: character -> number of the cell.
        pan: how the camera turned on the way here.
        shows: what changed, in a few words.
    """

    places: Mapping[str, int]
    pan: Pan = "none"
    shows: str = ""


def plan_layout(cast: ShotCast) -> ShotLayout:
    """Return the layout of a shot by rules."""
    staging = read_staging(cast.action, cast.characters)
    arrangements = _afresh(staging) if cast.before is None else _going_on(cast, cast.before, staging)
    _let_go(arrangements, staging)
    _let_cross(arrangements, staging)
    return ShotLayout(
        shot=cast.shot, continues=cast.before is not None, retained=cast.retained, entering=cast.entering,
        leaving=cast.leaving, keyframes=_furnished(cast, arrangements),
    )  # fmt: skip


def spread(names: Sequence[str], sides: Mapping[str, Side]) -> dict[str, int]:
    """Return up to seven characters spread over the frame, each on its side where it has one.

    Args:
        names: in the order in which they stand from left to right, as far as no side says otherwise.
        sides: character -> side.
    """
    rank: Mapping[Side | None, int] = {"left": 0, "centre": 1, None: 1, "right": 2}
    ordered = sorted(names, key=lambda name: rank[sides.get(name)])
    places = dict(zip(ordered, SPREAD[len(names)], strict=True))
    for name in ordered:
        side = sides.get(name)
        if side is None or places[name] in SIDES[side]:
            continue
        holders = {cell: other for other, cell in places.items()}
        movable = [
            cell
            for cell in _SEATS[side][: len(SIDES[side])]
            if cell not in holders or sides.get(holders[cell]) != side
        ]
        if movable:
            cell = min(movable, key=lambda cell: (cell in holders, _SEATS[side].index(cell)))
            if cell in holders:
                places[holders[cell]] = places[name]
            places[name] = cell
    return places


def _afresh(staging: Staging) -> list[Arrangement]:
    comers = [move.name for move in staging.coming if move.way == "in"]
    present = [name for name in staging.order if name not in comers] or list(staging.order)
    first, later = present[: len(CELLS)], [name for name in staging.order if name not in present]
    arrangements = [Arrangement(spread(first, _sides(staging, first)))]
    later = [*present[len(CELLS) :], *later]
    if staging.pan != "none" and not later:
        moved = shifted(arrangements[0].places, staging.pan, staging.followed)
        arrangements.append(Arrangement(moved, staging.pan, f"the camera pans {staging.pan}"))
    _let_in(arrangements, later, staging, "front")
    return arrangements


def _going_on(cast: ShotCast, before: Keyframe, staging: Staging) -> list[Arrangement]:
    old = {name: cell for name, cell in places_of(before).items() if name in cast.characters}
    comers = {move.name for move in staging.coming if move.way == "in"}
    entering = [name for name in staging.order if name not in old]
    direct = [name for name in entering if name not in comers]
    if not old and not direct:
        direct = entering
    if not old:
        first = Arrangement(spread(direct[: len(CELLS)], _sides(staging, direct)), staging.pan)
    else:
        seated = _seated(old, direct, staging, before.angle, staging.pan)
        first = seated or Arrangement(old)
    arrangements = [first]
    later = [name for name in entering if name not in first.places]
    _let_in(arrangements, later, staging, turned(before.angle, first.pan))
    return arrangements


def _sides(staging: Staging, names: Collection[str]) -> dict[str, Side]:
    """Return where characters stand at first: where they come from, where their way begins, or as told."""
    sides = {}
    for name in names:
        crossing = staging.crossing.get(name)
        side = staging.side_of_entry(name) or (crossing[0] if crossing else staging.sides.get(name))
        if side is not None:
            sides[name] = side
    return sides


def _let_in(arrangements: list[Arrangement], names: Sequence[str], staging: Staging, angle: Angle) -> None:
    """Add keyframes until all who come have been in one, with who is there, or without for want of room."""
    left = list(names)
    while left:
        here = arrangements[-1].places
        explicit = staging.pan if len(arrangements) == 1 and arrangements[0].pan == "none" else "none"
        joined = _seated(here, left, staging, angle, explicit)
        if joined is None and len(here) + len(left) <= len(CELLS):
            everybody = [*sorted(here, key=here.__getitem__), *left]
            joined = Arrangement(spread(everybody, _sides(staging, left)))
        if joined is None:
            group = left[: len(CELLS)]
            joined = Arrangement(spread(group, _sides(staging, group)))
        newcomers = [name for name in left if name in joined.places]
        shows = f"{_listed(newcomers)} come{'s' if len(newcomers) == 1 else ''} in"
        arrangements.append(Arrangement(joined.places, joined.pan, shows))
        left = [name for name in left if name not in joined.places]


def _seated(
    here: Mapping[str, int], newcomers: Sequence[str], staging: Staging, angle: Angle, pan: Pan
) -> Arrangement | None:
    """Return an arrangement with newcomers beside who stays, and how the camera turns; None for no room.

    Args:
        here: who stays, and where.
        newcomers: who comes.
        staging: what the text says of them.
        angle: the view before.
        pan: how the text has the camera turn; ``none`` lets it turn where that makes room.
    """
    if len(here) + len(newcomers) > len(CELLS):
        return None
    named = _sides(staging, newcomers)
    wanted: dict[str, Side] = {}
    imagined = dict(here)
    for name in newcomers:
        side = wanted[name] = named.get(name) or roomier_side(imagined, angle)
        imagined[name] = next((cell for cell in _SEATS[side] if cell not in imagined.values()), CENTRE)
    ways: list[Pan] = [pan]
    if pan == "none" and not wanted:
        ways = [_TOWARDS[lone_side(here)]]
    elif pan == "none":
        counts = Counter(wanted.values())
        towards: Pan = "right" if counts["right"] >= counts["left"] else "left"
        ways = (
            ["none", towards] if all(is_free(here, side) for side in wanted.values()) else [towards, "none"]
        )
    for way in ways:
        crowd = sum(_TOWARDS[side] == way for side in wanted.values())
        stay = drawn_together(shifted(here, way, staging.followed), way, crowd)
        places = _with(stay, wanted, named)
        if places is not None:
            return Arrangement(places, way, f"the camera pans {way}" if way != "none" else "")
    return None


def _with(
    here: Mapping[str, int], wanted: Mapping[str, Side], named: Mapping[str, Side]
) -> dict[str, int] | None:
    """Return newcomers seated on their sides; None where there is no cell on a side that the text names."""
    places = dict(here)
    crowded = {side for side in SIDES if list(named.values()).count(side) > len(SIDES[side])}
    for name in sorted(wanted, key=lambda name: name not in named):
        side = wanted[name]
        free = [cell for cell in _SEATS[side] if cell not in places.values()]
        if name in named and side != "centre" and side not in crowded and free[0] not in SIDES[side]:
            return None
        places[name] = free[0]
    return places


def _let_go(arrangements: list[Arrangement], staging: Staging) -> None:
    """Add a keyframe without those who go, where somebody stays."""
    here = arrangements[-1].places
    goers = [move.name for move in staging.coming if move.way == "out" and move.name in here]
    rest = {name: cell for name, cell in here.items() if name not in goers}
    if goers and rest:
        shows = f"{_listed(goers)} {'is' if len(goers) == 1 else 'are'} gone"
        arrangements.append(Arrangement(rest, shows=shows))


def _let_cross(arrangements: list[Arrangement], staging: Staging) -> None:
    """Add a keyframe in which those who cross the frame are on the other side."""
    places = dict(arrangements[-1].places)
    crossed = []
    for name, (_, end) in staging.crossing.items():
        if name in places and places[name] not in SIDES[end]:
            free = [cell for cell in SIDES[end] if cell not in places.values()]
            if free:
                places[name] = min(free, key=_SEATS[end].index)
                crossed.append(name)
    if crossed:
        arrangements.append(Arrangement(places, shows=f"{_listed(crossed)} crossed the frame"))


def _furnished(cast: ShotCast, arrangements: Sequence[Arrangement]) -> tuple[Keyframe, ...]:
    """Return keyframes: arrangements with their objects, the place behind, and the third of it in view."""
    locations = _locations(cast)
    frames = list(arrangements)
    while len(frames) < len(locations):
        frames.append(Arrangement(frames[-1].places, shows=f"in {locations[len(frames)]}"))
    users = {name: user_of(cast.action, name, cast.characters) for name in cast.objects}
    keyframes: list[Keyframe] = []
    before = cast.before
    for number, frame in enumerate(frames):
        behind = max(0, number - (len(frames) - len(locations)))
        location = locations[behind] if locations else None
        stays = before is not None and before.location == location
        angle = turned(before.angle, frame.pan) if before is not None and stays else "front"
        keyframes.append(
            Keyframe(
                characters=standing_at(frame.places),
                objects=tuple(
                    Beside(name=name, user=user)
                    for name, user in users.items()
                    if user is None or user in frame.places
                ),
                location=location, angle=angle, pan=frame.pan, shows=frame.shows,
            )
        )  # fmt: skip
        before = keyframes[-1]
    return tuple(keyframes)


def _locations(cast: ShotCast) -> list[str]:
    """Return the places of a shot: the one that it goes on in, then as the text names them."""
    here = None if cast.before is None else cast.before.location
    positions = {name: find_name(cast.action, name) for name in cast.locations}

    def rank(name: str) -> tuple[bool, bool, int]:
        position = positions[name]
        return (name != here, position is None, position or 0)

    return sorted(cast.locations, key=rank)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
