"""What tables count over the episodes of a tier."""

from collections.abc import Callable, Collection, Sequence

from ...schemas.entities import EntityType
from .measures import Measures, Track
from .numbers import Share, Spread, mean, share, spread

Episodes = Sequence[Measures]
Load = tuple[int, int, int]

PLURALS: dict[EntityType, str] = {"character": "characters", "location": "locations", "object": "objects"}


def shots(some: Episodes) -> int:
    """Return how many shots there are."""
    return sum(one.shots for one in some)


def loads(some: Episodes) -> list[Load]:
    """Return how many characters, locations and objects each shot schedules."""
    return [load for one in some for load in one.loads]


def slots(some: Episodes) -> int:
    """Return how many slots the schedules have."""
    return sum(map(sum, loads(some)))


def slots_of(kind: EntityType, some: Episodes) -> int:
    """Return how many slots are of a type."""
    return sum(one.slots(kind) for one in some)


def registered_of(kind: EntityType, some: Episodes) -> int:
    """Return how many slots of a type name an entity of the registry."""
    return sum(one.registered[kind] for one in some)


def declared(some: Episodes) -> int:
    """Return how many names the registries have under labels of a type."""
    return sum(sum(one.declared.values()) for one in some)


def declared_of(kind: EntityType, some: Episodes) -> int:
    """Return how many names the registries have under labels of this type."""
    return sum(one.declared[kind] for one in some)


def in_registry(some: Episodes) -> int:
    """Return how many names under labels of a type are scheduled in some shot."""
    return sum(sum(one.in_registry.values()) for one in some)


def in_registry_of(kind: EntityType, some: Episodes) -> int:
    """Return how many names under labels of this type are scheduled in some shot."""
    return sum(one.in_registry[kind] for one in some)


def tracks(some: Episodes) -> list[Track]:
    """Return all scheduled entities."""
    return [track for one in some for track in one.tracks]


def tracks_of(kind: EntityType, some: Episodes) -> list[Track]:
    """Return all scheduled entities of a type."""
    return [track for one in some for track in one.of(kind)]


def steps(some: Episodes) -> list[int]:
    """Return the index differences of all pairs of consecutive appearances."""
    return [step for track in tracks(some) for step in track.steps]


def widest_of_episodes(some: Episodes) -> list[int]:
    """Return the widest index difference of each episode; 0 where nothing recurs."""
    return [max((step for track in one.tracks for step in track.steps), default=0) for one in some]


def widest_of_entities(some: Episodes) -> list[int]:
    """Return the widest index difference of each recurring entity."""
    return [max(track.steps) for track in tracks(some) if track.recurs]


def recurring_of(kind: EntityType, some: Episodes) -> Spread | None:
    """Return how many entities of a type recur in an episode."""
    return spread([sum(track.recurs for track in one.of(kind)) for one in some])


def chains(some: Episodes) -> list[int]:
    """Return the lengths of all chains."""
    return [length for one in some for length in one.chains]


def shots_with(holds: Callable[[Load], bool], some: Episodes) -> Share | None:
    """Return the share of the shots whose load satisfies something."""
    return share(sum(map(holds, loads(some))), shots(some))


def tracks_with(holds: Callable[[Track], bool], some: Episodes) -> Share | None:
    """Return the share of the scheduled entities that satisfy something."""
    found = tracks(some)
    return share(sum(map(holds, found)), len(found))


def chains_with(holds: Callable[[int], bool], some: Episodes) -> Share | None:
    """Return the share of the chains whose length satisfies something."""
    found = chains(some)
    return share(sum(map(holds, found)), len(found))


def wide(least: int, some: Episodes) -> Share | None:
    """Return the share of the recurring entities whose widest index difference is so much or more."""
    widest = widest_of_entities(some)
    return share(sum(step >= least for step in widest), len(widest))


def carried(kinds: Collection[str], some: Episodes) -> Share | None:
    """Return the share of the cuts within episodes with an entity of one of the types on both sides."""
    cuts = [types for one in some for types in one.carried]
    return share(sum(not types.isdisjoint(kinds) for types in cuts), len(cuts))


def carried_nothing(some: Episodes) -> Share | None:
    """Return the share of the cuts within episodes with no entity on both sides."""
    cuts = [types for one in some for types in one.carried]
    return share(sum(not types for types in cuts), len(cuts))


def again(first: int, of: int) -> Share | None:
    """Return the slots that are no first appearances."""
    return share(of - first, of)


def early(first: int, one: Measures) -> int:
    """Return how many entities are introduced in the first shots of an episode."""
    return sum(one.introduced[:first])


def early_mean(first: int, some: Episodes) -> float | None:
    """Return the share that is introduced in the first shots, as the mean over episodes."""
    return mean([early(first, one) / len(one.tracks) for one in some if one.tracks])


def early_share(first: int, some: Episodes) -> Share | None:
    """Return the share that is introduced in the first shots, over all entities."""
    return share(sum(early(first, one) for one in some), len(tracks(some)))


def late_mean(first: int, some: Episodes) -> float | None:
    """Return how many entities a shot after the first ones introduces on average."""
    return mean([new for one in some for new in one.introduced[first:]])
