"""Where everybody stands in a shot, and how the camera moves: a layout, in one or more keyframes.

The frame has seven cells from left to right (EntityBench, E.4, which names the two ends). A cell holds one
character. Objects stand beside who uses them and take no cell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import Field

from ....schemas.entities import EpisodeShot
from ....schemas.values import Own

Cell: TypeAlias = Literal["far-left", "left", "centre-left", "centre", "centre-right", "right", "far-right"]
CELLS: tuple[Cell, ...] = ("far-left", "left", "centre-left", "centre", "centre-right", "right", "far-right")
"""The cells, from left to right as the viewer sees them."""
SPREAD: tuple[tuple[int, ...], ...] = (
    (), (3,), (2, 4), (1, 3, 5), (0, 2, 4, 6), (0, 2, 3, 4, 6), (0, 1, 2, 4, 5, 6), (0, 1, 2, 3, 4, 5, 6),
)  # fmt: skip
"""How many characters -> the cells over which they are spread."""
SEATS = (3, 2, 4, 1, 5, 0, 6)
"""Cells in which somebody who comes to others stands, the first free one."""
Angle: TypeAlias = Literal["left", "front", "right"]
ANGLES: tuple[Angle, ...] = ("left", "front", "right")
"""Which third of the place's panorama is behind: left, the centre, or right (E.4)."""
Pan: TypeAlias = Literal["none", "left", "right"]
"""Where the camera turns."""
By: TypeAlias = Literal["rules", "model"]


class Standing(Own):
    """A character in a keyframe."""

    name: str = Field(min_length=1, description="Name, as the schedule has it.")
    cell: Cell = Field(description="Where, as the viewer sees it.")


class Beside(Own):
    """An object in a keyframe."""

    name: str = Field(min_length=1, description="Name, as the schedule has it.")
    user: str | None = Field(default=None, description="Character beside whom it stands; null for nobody.")


class Keyframe(Own):
    """One arrangement of a shot."""

    characters: tuple[Standing, ...] = Field(default=(), description="Who is there, from left to right.")
    objects: tuple[Beside, ...] = Field(default=(), description="What is there.")
    location: str | None = Field(default=None, description="Name of the place behind; null for none.")
    angle: Angle = Field(default="front", description="Which third of its panorama.")
    pan: Pan = Field(default="none", description="How the camera turned on the way here.")
    shows: str = Field(default="", description="What it shows, in a few words.")


class ShotLayout(Own):
    """The arrangements of one shot, with how it follows from the shot before."""

    shot: str = Field(description="Key of the shot, <scene>:<shot>.")
    continues: bool = Field(description="Whether it goes on from the shot before in its scene.")
    retained: tuple[str, ...] = Field(default=(), description="Characters who stay from the shot before.")
    entering: tuple[str, ...] = Field(default=(), description="Characters who were not in its last keyframe.")
    leaving: tuple[str, ...] = Field(default=(), description="Characters of it who are here no more.")
    keyframes: tuple[Keyframe, ...] = Field(min_length=1, description="The arrangements, in order.")
    by: By = Field(default="rules", description="Who planned it.")
    reason: str | None = Field(default=None, description="Why rules stood in for the model.")
    reasoning: str | None = Field(default=None, description="What the model says of the camera's move.")

    @property
    def state(self) -> Keyframe:
        """The arrangement in which it ends, from which the next shot goes on."""
        return self.keyframes[-1]


@dataclass(frozen=True)
class ShotCast:
    """What a layout is made for."""

    shot: str  # key of the shot
    action: str  # what happens in it
    characters: tuple[str, ...] = ()  # the scheduled characters, each once
    locations: tuple[str, ...] = ()  # the scheduled places, each once
    objects: tuple[str, ...] = ()  # the scheduled objects that stand alone, each once
    # the arrangement that it goes on from; None where it begins anew
    before: Keyframe | None = field(default=None)

    @property
    def names_before(self) -> tuple[str, ...]:
        """The characters of the arrangement before, from left to right."""
        return () if self.before is None else names_of(self.before)

    @property
    def retained(self) -> tuple[str, ...]:
        """Those of them who are scheduled here, too, from left to right."""
        return tuple(name for name in self.names_before if name in self.characters)

    @property
    def entering(self) -> tuple[str, ...]:
        """The scheduled characters who were not there, where it goes on; none where it begins anew."""
        return () if self.before is None else self._not_in(self.names_before)

    @property
    def leaving(self) -> tuple[str, ...]:
        """The characters before who are not scheduled here."""
        return tuple(name for name in self.names_before if name not in self.characters)

    def _not_in(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in self.characters if name not in names)


def cast_of(shot: EpisodeShot, objects: Sequence[str], before: Keyframe | None) -> ShotCast:
    """Return what the layout of a shot is made for.

    ``before``: the arrangement that it goes on from; None where it begins anew.
    """
    unique = [
        tuple(dict.fromkeys(shot.scheduled.names(kind))) for kind in ("character", "location", "object")
    ]
    standing = tuple(name for name in unique[2] if name in objects)
    return ShotCast(shot.key, shot.action, unique[0], unique[1], standing, before)


def goes_on(shot: EpisodeShot, before: EpisodeShot | None) -> bool:
    """Return whether a shot goes on from the one before it: no cut, and in the same scene."""
    return before is not None and not shot.cut and shot.scene == before.scene


def names_of(keyframe: Keyframe) -> tuple[str, ...]:
    """Return the names of the characters of a keyframe, from left to right."""
    return tuple(sorted(places_of(keyframe), key=places_of(keyframe).__getitem__))


def places_of(keyframe: Keyframe) -> dict[str, int]:
    """Return character -> number of its cell, 0 to 6 from the left."""
    return {standing.name: CELLS.index(standing.cell) for standing in keyframe.characters}


def standing_at(places: Mapping[str, int]) -> tuple[Standing, ...]:
    """Return characters in their cells, from left to right."""
    ordered = sorted(places, key=places.__getitem__)
    return tuple(Standing(name=name, cell=CELLS[places[name]]) for name in ordered)


def plain_layout(cast: ShotCast) -> ShotLayout:
    """Return the layout of a shot that needs nobody to read it: valid for every schedule.

    Who stays from the shot before stands where they stood, the others have the free cells or, where nobody
    stays, are spread over the frame as they are scheduled. Nobody moves and the camera does not turn; more
    bodies than cells, and a second place, make a further keyframe. Objects stand beside nobody.
    """
    keyframes: list[Keyframe] = []
    arrangements, locations = list(_arrangements(cast)), _locations(cast)
    for number in range(max(len(arrangements), len(locations), 1)):
        location = locations[min(number, len(locations) - 1)] if locations else None
        before = keyframes[-1] if keyframes else cast.before
        stays = before is not None and before.location == location
        keyframes.append(
            Keyframe(
                characters=standing_at(arrangements[min(number, len(arrangements) - 1)]),
                objects=tuple(Beside(name=name) for name in cast.objects),
                location=location, angle=before.angle if before is not None and stays else "front",
            )
        )  # fmt: skip
    return ShotLayout(
        shot=cast.shot, continues=cast.before is not None, retained=cast.retained, entering=cast.entering,
        leaving=cast.leaving, keyframes=tuple(keyframes),
    )  # fmt: skip


def _arrangements(cast: ShotCast) -> Iterator[dict[str, int]]:
    """Yield character -> cell for each keyframe, until all have been in one."""
    before = {} if cast.before is None else places_of(cast.before)
    places = {name: before[name] for name in cast.retained}
    comers = [name for name in cast.characters if name not in places]
    free = [cell for cell in SEATS if cell not in places.values()]
    if not places:
        free = list(SPREAD[min(len(comers), len(CELLS))])
    places |= zip(comers, free, strict=False)
    yield places
    for start in range(len(free), len(comers), len(CELLS)):
        group = comers[start : start + len(CELLS)]
        yield dict(zip(group, SPREAD[len(group)], strict=True))


def _locations(cast: ShotCast) -> list[str]:
    """Return the places of a shot as they are scheduled, the one in which it goes on first."""
    here = None if cast.before is None else cast.before.location
    return sorted(cast.locations, key=lambda name: name != here)
