"""What tables count over the episodes of a tier."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
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


def shots(some: Episodes) -> int:
    """Return how many shots there are."""
    return sum(episode.shots for episode in some)


def loads(some: Episodes) -> list[Load]:
    """Return how many characters, locations and objects each shot schedules."""
    return [load for episode in some for load in episode.loads]


def slots(some: Episodes) -> int:
    """Return how many slots the schedules have."""
    return sum(map(sum, loads(some)))


def slots_of(kind: EntityType, some: Episodes) -> int:
    """Return how many slots are of a type."""
    return sum(episode.slots(kind) for episode in some)


def registered_of(kind: EntityType, some: Episodes) -> int:
    """Return how many slots of a type name an entity of the registry."""
    return sum(episode.registered[kind] for episode in some)


def declared(some: Episodes) -> int:
    """Return how many names the registries have under labels of a type."""
    return sum(sum(episode.declared.values()) for episode in some)


def declared_of(kind: EntityType, some: Episodes) -> int:
    """Return how many names the registries have under labels of this type."""
    return sum(episode.declared[kind] for episode in some)


def in_registry(some: Episodes) -> int:
    """Return how many names under labels of a type are scheduled in some shot."""
    return sum(sum(episode.in_registry.values()) for episode in some)


def in_registry_of(kind: EntityType, some: Episodes) -> int:
    """Return how many names under labels of this type are scheduled in some shot."""
    return sum(episode.in_registry[kind] for episode in some)


def tracks(some: Episodes) -> list[Track]:
    """Return all scheduled entities."""
    return [track for episode in some for track in episode.tracks]


def tracks_of(kind: EntityType, some: Episodes) -> list[Track]:
    """Return all scheduled entities of a type."""
    return [track for episode in some for track in episode.of(kind)]


def steps(some: Episodes) -> list[int]:
    """Return the index differences of all pairs of consecutive appearances."""
    return [step for track in tracks(some) for step in track.steps]


def widest_of_episodes(some: Episodes) -> list[int]:
    """Return the widest index difference of each episode; 0 where nothing recurs."""
    return [max((step for track in episode.tracks for step in track.steps), default=0) for episode in some]


def widest_of_entities(some: Episodes) -> list[int]:
    """Return the widest index difference of each recurring entity."""
    return [max(track.steps) for track in tracks(some) if track.recurs]


def recurring_of(kind: EntityType, some: Episodes) -> Spread | None:
    """Return how many entities of a type recur in an episode."""
    return spread([sum(track.recurs for track in episode.of(kind)) for episode in some])


def chains(some: Episodes) -> list[int]:
    """Return the lengths of all chains."""
    return [length for episode in some for length in episode.chains]


def shots_with(holds: Callable[[Load], bool], some: Episodes) -> Share | None:
    """Return the share of the shots whose load satisfies something."""
    return share(sum(map(holds, loads(some))), shots(some))


def tracks_with(holds: Callable[[Track], bool], some: Episodes) -> Share | None:
    """Return the share of the scheduled entities that satisfy something."""
    some_tracks = tracks(some)
    return share(sum(map(holds, some_tracks)), len(some_tracks))


def chains_with(holds: Callable[[int], bool], some: Episodes) -> Share | None:
    """Return the share of the chains whose length satisfies something."""
    lengths = chains(some)
    return share(sum(map(holds, lengths)), len(lengths))


def wide(least: int, some: Episodes) -> Share | None:
    """Return the share of the recurring entities whose widest index difference is so much or more."""
    widest = widest_of_entities(some)
    return share(sum(step >= least for step in widest), len(widest))


def carried(kinds: Collection[str], some: Episodes) -> Share | None:
    """Return the share of the cuts within episodes with an entity of one of the types on both sides."""
    cuts = [types for episode in some for types in episode.carried]
    return share(sum(not types.isdisjoint(kinds) for types in cuts), len(cuts))


def carried_nothing(some: Episodes) -> Share | None:
    """Return the share of the cuts within episodes with no entity on both sides."""
    cuts = [types for episode in some for types in episode.carried]
    return share(sum(not types for types in cuts), len(cuts))


def again(first: int, of: int) -> Share | None:
    """Return the slots that are no first appearances."""
    return share(of - first, of)


def early(first: int, episode: Measures) -> int:
    """Return how many entities are introduced in the first shots of an episode."""
    return sum(episode.introduced[:first])


def early_mean(first: int, some: Episodes) -> float | None:
    """Return the share that is introduced in the first shots, as the mean over episodes."""
    return mean([early(first, episode) / len(episode.tracks) for episode in some if episode.tracks])


def early_share(first: int, some: Episodes) -> Share | None:
    """Return the share that is introduced in the first shots, over all entities."""
    return share(sum(early(first, episode) for episode in some), len(tracks(some)))


def late_mean(first: int, some: Episodes) -> float | None:
    """Return how many entities a shot after the first ones introduces on average."""
    return mean([new for episode in some for new in episode.introduced[first:]])
