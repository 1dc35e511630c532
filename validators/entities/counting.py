"""What tables count over the episodes of a tier."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from ...schemas.canonical import Json
from ...schemas.entities import EntityType
from .measures import Measures, Track

_PLACES = 6


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean with the population standard deviation (ddof 0), over ``of`` values."""

    mean: float
    sd: float
    of: int


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def share(self) -> float:
        """The share, 0 to 1."""
        return self.count / self.of


Value = int | float | Spread | Share | None


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def spread(values: Sequence[float]) -> Spread | None:
    """Return mean and population standard deviation; None of nothing."""
    middle = mean(values)
    if middle is None:
        return None
    squares = math.fsum((value - middle) ** 2 for value in values)
    return Spread(middle, math.sqrt(squares / len(values)), len(values))


def median(values: Iterable[float]) -> float | None:
    """Return the median, the mean of the two middle ones for an even number; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    half = len(ordered) // 2
    return (ordered[half - 1 + len(ordered) % 2] + ordered[half]) / 2


def share(count: int, of: int) -> Share | None:
    """Return a share; None of nothing."""
    return Share(count, of) if of else None


def ratio(above: float, below: float) -> float | None:
    """Return a quotient; None where there is nothing to divide by."""
    return above / below if below else None


def value_json(value: Value) -> Json:
    """Return a value as plain JSON, fractions to six places."""
    if isinstance(value, Spread):
        return {"mean": round(value.mean, _PLACES), "sd": round(value.sd, _PLACES), "of": value.of}
    if isinstance(value, Share):
        return {"count": value.count, "of": value.of, "share": round(value.share, _PLACES)}
    return round(value, _PLACES) if isinstance(value, float) else value


def value_text(value: Value) -> str:
    """Return a value for people: fractions to two places, shares in per cent with their count."""
    if value is None:
        return "–"
    if isinstance(value, Spread):
        return f"{fixed(value.mean)} ± {fixed(value.sd)}"
    if isinstance(value, Share):
        return f"{fixed(100 * value.share, 1)}% ({value.count:,})"
    return f"{value:,}" if isinstance(value, int) else fixed(value)


def fixed(value: float, places: int = 2) -> str:
    """Return a number with so many places, halves away from zero, as people and the paper round them."""
    exact = Decimal(str(round(value, _PLACES + 3)))
    return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"


Episodes = Sequence[Measures]
Load = tuple[int, int, int]

PLURALS: dict[EntityType, str] = {"character": "characters", "location": "locations", "object": "objects"}


def again(first: int, of: int) -> Share | None:
    """Return the slots that are no first appearances."""
    return share(of - first, of)


class Tier:
    """What tables count over the episodes of a tier.

    Attributes:
        episodes: the measures of its episodes.
        shots: how many shots there are.
        loads: how many characters, locations and objects each shot schedules.
        slots: how many slots the schedules have.
        tracks: all scheduled entities.
        steps: the index differences of all pairs of consecutive appearances.
        widest: the widest index difference of each recurring entity.
        declared: how many names the registries have under labels of a type.
        in_registry: how many of these are scheduled in some shot.
        chains: the lengths of all chains.
    """

    def __init__(self, episodes: Episodes) -> None:
        self.episodes = episodes
        self.shots = sum(episode.shots for episode in episodes)
        self.loads: list[Load] = [load for episode in episodes for load in episode.loads]
        self.slots = sum(map(sum, self.loads))
        self.tracks = [track for episode in episodes for track in episode.tracks]
        self.steps = [step for track in self.tracks for step in track.steps]
        self.widest = [max(track.steps) for track in self.tracks if track.recurs]
        self.declared = sum(sum(episode.declared.values()) for episode in episodes)
        self.in_registry = sum(sum(episode.in_registry.values()) for episode in episodes)
        self.chains = [length for episode in episodes for length in episode.chains]

    def slots_of(self, kind: EntityType) -> int:
        """Return how many slots are of a type."""
        return sum(episode.slots(kind) for episode in self.episodes)

    def declared_of(self, kind: EntityType) -> int:
        """Return how many names the registries have under labels of this type."""
        return sum(episode.declared[kind] for episode in self.episodes)

    def tracks_of(self, kind: EntityType) -> list[Track]:
        """Return all scheduled entities of a type."""
        return [track for track in self.tracks if track.kind == kind]

    def of_shots(self, flags: Iterable[bool]) -> Share | None:
        """Return the share of the shots of which something is true."""
        return share(sum(flags), self.shots)


def so_many(flags: Iterable[bool]) -> Share | None:
    """Return the share of the things of which something is true."""
    listed = list(flags)
    return share(sum(listed), len(listed))
