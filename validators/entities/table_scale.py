"""Scale and tiers: Tables 3, 6 and 10 of the EntityBench paper, and sections A.1 and A.5."""

from collections.abc import Callable, Iterator

from ...schemas.entities import TYPES, EntityType
from .counting import PLURALS, Tier, again, mean, median, ratio, share, so_many, spread
from .tables import Count

MANY_OBJECTS = 25
_INDEX = "difference of the shots' numbers, 1 for neighbouring shots"
_BETWEEN = "shots between, 0 for neighbouring shots, as the paper defines it"
_POOLED = "over all pairs of consecutive appearances of the tier"
_WIDEST = "mean over the episodes of their widest"
_OWN = "over the recurring entities of the tier"
_HEADER = "by whether the prompt has a header"
_SD = "population standard deviation"
_LABELS = "different names under labels of the type; labels Gen_ are of none"
_SIZES: tuple[tuple[str, Callable[[list[int]], float | None]], ...] = (
    ("fewest", min), ("most", max), ("median", median), ("mean", mean),
)  # fmt: skip


def scale_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 3: what recurs, and after how long, by tier."""
    yield Count("episodes", "episodes", len(tier.episodes))
    yield Count("shots", "shots", tier.shots)
    for kind, name in PLURALS.items():
        recurring = spread([sum(track.recurs for track in episode.of(kind)) for episode in tier.episodes])
        convention = f"names scheduled in 2 shots or more; {_SD}"
        yield Count(f"cross_shot_{name}", f"cross-shot {name} per episode", recurring, convention)
    widest = [
        max((step for track in episode.tracks for step in track.steps), default=0)
        for episode in tier.episodes
    ]
    for key, words, less, how in (("index", "index", 0, _INDEX), ("between", "shots between", 1, _BETWEEN)):
        gaps = spread([step - less for step in tier.steps])
        yield Count(f"mean_gap_{key}", f"mean gap, {words}", gaps, f"{how}; {_POOLED}; {_SD}")
        most = spread([max(0, step - less) for step in widest])
        yield Count(f"max_gap_{key}", f"max gap per episode, {words}", most, f"{how}; {_WIDEST}; {_SD}")


def registry_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 6 and section A.1: scenes, shots, registry, appearances."""
    episodes = tier.episodes
    for key in ("scenes", "shots"):
        sizes = _sizes(tier, key)
        yield Count(key, key, sum(sizes))
        yield Count(f"{key}_per_episode", f"{key} per episode", spread(sizes), _SD)
        for name, count in _SIZES[:3]:
            yield Count(f"{name}_{key}", f"{name} {key} of an episode", count(sizes) if sizes else None)
    per_scene = median(episode.shots / episode.scenes for episode in episodes if episode.scenes)
    yield Count("median_shots_per_scene", "median shots per scene", per_scene, "median over the episodes")
    for kind, name in PLURALS.items():
        declared = [episode.declared[kind] for episode in episodes]
        yield Count(f"registry_{name}", f"{name} in registries", sum(declared), _LABELS)
        yield Count(f"registry_{name}_per_episode", f"{name} per registry", mean(declared), _LABELS)
        yield Count(f"most_{name}", f"most {name} of a registry", max(declared, default=None), _LABELS)
    yield Count("registry", "entities in registries", tier.declared, _LABELS)
    per_registry = ratio(tier.declared, len(episodes))
    yield Count("registry_per_episode", "entities per registry", per_registry, _LABELS)
    rows = sum(episode.rows for episode in episodes)
    yield Count("registry_rows", "rows of registries", rows, "whatever the label")
    objects = [episode.declared["object"] for episode in episodes]
    many = so_many(count > MANY_OBJECTS for count in objects)
    yield Count("many_objects", f"registries with more than {MANY_OBJECTS} objects", many, _LABELS)
    p90 = _percentile(objects, 0.9)
    yield Count("objects_p90", "objects of a registry, 90th percentile", p90, "linear interpolation")
    for kind, name in PLURALS.items():
        yield from _appearance_rows(tier, kind, name)
    per_character, per_object = _shots_per(tier, "character"), _shots_per(tier, "object")
    by_object = None if per_character is None else ratio(per_character, per_object or 0)
    yield Count("character_by_object", "shots per character, by shots per object", by_object)
    yield Count("appearances", "appearances in all", tier.slots)
    yield Count("appearances_per_episode", "appearances per episode", ratio(tier.slots, len(episodes)))


def short_rows(tier: Tier) -> Iterator[Count]:
    """Yield what section A.1 says of easy and medium episodes together."""
    for key in ("shots", "scenes"):
        for name, count in _SIZES:
            yield Count(f"{name}_{key}", f"{name} {key} of an episode", count(_sizes(tier, key)))


def tier_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 10: what else differs between the tiers."""
    yield Count("episodes", "episodes", len(tier.episodes))
    yield Count("shots", "shots", tier.shots)
    scheduled = len(tier.tracks)
    yield Count("scheduled", "scheduled entities", scheduled, "a name in one kind of list, once per episode")
    recurring = so_many(track.recurs for track in tier.tracks)
    yield Count("recurring", "recurring-entity rate", recurring, "in 2 shots or more")
    own = f"{_INDEX}; {_OWN}"
    yield Count("mean_max_gap", "mean per-entity max gap", mean(tier.widest), own)
    yield Count("median_max_gap", "median per-entity max gap", median(tier.widest), own)
    yield Count("global_max_gap", "global max gap", max(tier.widest, default=None), _INDEX)
    casts = [load[TYPES.index("character")] for load in tier.loads]
    yield Count("mean_characters", "mean characters per shot", mean(casts))
    yield Count("most_characters", "most characters of a shot", max(casts, default=None))
    three = tier.of_shots(load[0] >= 3 for load in tier.loads)
    yield Count("three_characters", "shots with 3 characters or more", three)
    both = tier.of_shots(load[0] >= 2 and load[2] >= 1 for load in tier.loads)
    yield Count("two_and_object", "shots with 2 characters or more and an object", both)
    later = again(scheduled, tier.slots)
    yield Count("reappearing", "re-appearance rate of slots", later, "slots less scheduled entities")
    cuts = tier.of_shots(cut for episode in tier.episodes for cut in episode.cuts)
    yield Count("cut_rate", "cut rate", cuts, "the first shot of an episode counts as a cut")
    within = share(
        sum(sum(episode.cuts[1:]) for episode in tier.episodes),
        sum(max(0, episode.shots - 1) for episode in tier.episodes),
    )
    yield Count("cut_rate_within", "cut rate within episodes", within, "first shots left out")
    headers = [header for episode in tier.episodes for header in episode.headers]
    yield Count("registry_shots", "registry-shot rate", tier.of_shots(headers), _HEADER)
    yield Count("memory_only", "memory-only rate", tier.of_shots(not header for header in headers), _HEADER)
    known = "by whether all that is scheduled, at least one, was scheduled before, as the paper defines it"
    only = tier.of_shots(only for episode in tier.episodes for only in episode.only_known)
    yield Count("memory_only_schedule", "memory-only rate, by the schedule", only, known)


def _appearance_rows(tier: Tier, kind: EntityType, name: str) -> Iterator[Count]:
    slots = tier.slots_of(kind)
    yield Count(f"appearances_{name}", f"appearances of {name}", slots, "slots")
    per_episode = ratio(slots, len(tier.episodes))
    yield Count(f"appearances_{name}_per_episode", f"appearances of {name} per episode", per_episode)
    registered = sum(episode.registered[kind] for episode in tier.episodes)
    convention = "slots whose name is in the registry"
    yield Count(f"registered_{name}", f"appearances of {name}, in the registry", registered, convention)
    convention = "appearances by entities of the registry, never scheduled ones included"
    yield Count(f"shots_per_{kind}", f"shots per {kind}", _shots_per(tier, kind), convention)


def _shots_per(tier: Tier, kind: EntityType) -> float | None:
    return ratio(tier.slots_of(kind), tier.declared_of(kind))


def _sizes(tier: Tier, key: str) -> list[int]:
    return [int(getattr(episode, key)) for episode in tier.episodes]


def _percentile(values: list[int], part: float) -> float | None:
    ordered = sorted(values)
    if not ordered:
        return None
    rank = part * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])
