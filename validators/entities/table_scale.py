"""Scale and tiers: Tables 3, 6 and 10 of the EntityBench paper, and sections A.1 and A.5."""

from collections.abc import Callable
from functools import partial

from ...schemas.entities import TIERS, TYPES, EntityType
from . import counting
from .counting import PLURALS, Episodes, Share, Spread, Value, mean, median, ratio, share, spread
from .tables import SHORT, Groups, Table, TableMaker

MANY_OBJECTS = 25
_INDEX = "difference of the shots' numbers, 1 for neighbouring shots"
_BETWEEN = "shots between, 0 for neighbouring shots, as the paper defines it"
_POOLED = "over all pairs of consecutive appearances of the tier"
_WIDEST = "mean over the episodes of their widest"
_OWN = "over the recurring entities of the tier"
_HEADER = "by whether the prompt has a header"
_SD = "population standard deviation"
_LABELS = "different names under labels of the type; labels Gen_ are of none"


def scale_table(groups: Groups) -> Table:
    """Return Table 3: what recurs, and after how long, by tier."""
    make = TableMaker("table_3", "Table 3: statistics across tiers", groups)
    make.row("episodes", "episodes", len)
    make.row("shots", "shots", counting.shots)
    for kind, name in PLURALS.items():
        convention = f"names scheduled in 2 shots or more; {_SD}"
        recurring = partial(counting.recurring_of, kind)
        make.row(f"cross_shot_{name}", f"cross-shot {name} per episode", recurring, convention)
    for key, words, less, how in (("index", "index", 0, _INDEX), ("between", "shots between", 1, _BETWEEN)):
        make.row(f"mean_gap_{key}", f"mean gap, {words}", partial(_gaps, less), f"{how}; {_POOLED}; {_SD}")
        convention = f"{how}; {_WIDEST}; {_SD}"
        make.row(f"max_gap_{key}", f"max gap per episode, {words}", partial(_widest, less), convention)
    return make.table()


def registry_table(groups: Groups) -> Table:
    """Return Table 6 and section A.1: scenes, shots, registry, appearances."""
    make = TableMaker("table_6", "Table 6 and A.1: scale and taxonomy", groups)
    for key in ("scenes", "shots"):
        make.row(key, key, partial(_sum_of, key))
        make.row(f"{key}_per_episode", f"{key} per episode", partial(_spread_of, key), _SD)
        make.row(f"fewest_{key}", f"fewest {key} of an episode", partial(_of_sizes, key, min))
        make.row(f"most_{key}", f"most {key} of an episode", partial(_of_sizes, key, max))
        make.row(f"median_{key}", f"median {key} of an episode", partial(_of_sizes, key, median))
    make.row("median_shots_per_scene", "median shots per scene", _shots_per_scene, "median over the episodes")
    for kind, name in PLURALS.items():
        make.row(f"registry_{name}", f"{name} in registries", partial(counting.declared_of, kind), _LABELS)
        make.row(
            f"registry_{name}_per_episode", f"{name} per registry", partial(_mean_declared, kind), _LABELS
        )
        make.row(f"most_{name}", f"most {name} of a registry", partial(_most_declared, kind), _LABELS)
    make.row("registry", "entities in registries", counting.declared, _LABELS)
    make.row("registry_per_episode", "entities per registry", _declared_per_episode, _LABELS)
    make.row("registry_rows", "rows of registries", partial(_sum_of, "rows"), "whatever the label")
    make.row("many_objects", f"registries with more than {MANY_OBJECTS} objects", _many_objects, _LABELS)
    make.row("objects_p90", "objects of a registry, 90th percentile", _objects_p90, "linear interpolation")
    for kind, name in PLURALS.items():
        _appearance_rows(make, kind, name)
    make.row("character_by_object", "shots per character, by shots per object", _character_by_object)
    make.row("appearances", "appearances in all", counting.slots)
    make.row("appearances_per_episode", "appearances per episode", _slots_per_episode)
    return make.table()


def short_table(groups: Groups) -> Table:
    """Return what section A.1 says of easy and medium episodes together; no rows without these tiers."""
    together = {SHORT: [episode for tier in TIERS[:2] for episode in groups.get(tier, ())]}
    make = TableMaker("section_a1", "A.1: easy and medium episodes", together)
    if together[SHORT]:
        for key in ("shots", "scenes"):
            for name, count in (("fewest", min), ("most", max), ("median", median), ("mean", mean)):
                make.row(f"{name}_{key}", f"{name} {key} of an episode", partial(_of_sizes, key, count))
    return make.table()


def tier_table(groups: Groups) -> Table:
    """Return Table 10: what else differs between the tiers."""
    make = TableMaker("table_10", "Table 10: tier-stratified statistics", groups)
    make.row("episodes", "episodes", len)
    make.row("shots", "shots", counting.shots)
    make.row("scheduled", "scheduled entities", _scheduled, "a name in one kind of list, once per episode")
    make.row("recurring", "recurring-entity rate", _recurring, "in 2 shots or more")
    own = counting.widest_of_entities
    make.row("mean_max_gap", "mean per-entity max gap", lambda some: mean(own(some)), f"{_INDEX}; {_OWN}")
    make.row(
        "median_max_gap", "median per-entity max gap", lambda some: median(own(some)), f"{_INDEX}; {_OWN}"
    )
    make.row("global_max_gap", "global max gap", lambda some: max(own(some), default=None), _INDEX)
    make.row("mean_characters", "mean characters per shot", lambda some: mean(_casts(some)))
    make.row("most_characters", "most characters of a shot", lambda some: max(_casts(some), default=None))
    three = partial(counting.shots_with, lambda load: load[0] >= 3)
    make.row("three_characters", "shots with 3 characters or more", three)
    both = partial(counting.shots_with, lambda load: load[0] >= 2 and load[2] >= 1)
    make.row("two_and_object", "shots with 2 characters or more and an object", both)
    make.row("reappearing", "re-appearance rate of slots", _reappearing, "slots less scheduled entities")
    make.row("cut_rate", "cut rate", _cuts, "the first shot of an episode counts as a cut")
    make.row("cut_rate_within", "cut rate within episodes", _cuts_within, "first shots left out")
    make.row("registry_shots", "registry-shot rate", partial(_by_header, True), _HEADER)
    make.row("memory_only", "memory-only rate", partial(_by_header, False), _HEADER)
    known = "by whether all that is scheduled, at least one, was scheduled before, as the paper defines it"
    make.row("memory_only_schedule", "memory-only rate, by the schedule", _only_known, known)
    return make.table()


def _appearance_rows(make: TableMaker, kind: EntityType, name: str) -> None:
    make.row(f"appearances_{name}", f"appearances of {name}", partial(counting.slots_of, kind), "slots")
    make.row(
        f"appearances_{name}_per_episode",
        f"appearances of {name} per episode",
        lambda some: ratio(counting.slots_of(kind, some), len(some)),
    )
    make.row(
        f"registered_{name}",
        f"appearances of {name}, in the registry",
        partial(counting.registered_of, kind),
        "slots whose name is in the registry",
    )
    make.row(
        f"shots_per_{kind}",
        f"shots per {kind}",
        partial(_shots_per, kind),
        "appearances by entities of the registry, never scheduled ones included",
    )


def _shots_per(kind: EntityType, some: Episodes) -> float | None:
    return ratio(counting.slots_of(kind, some), counting.declared_of(kind, some))


def _character_by_object(some: Episodes) -> float | None:
    characters, objects = _shots_per("character", some), _shots_per("object", some)
    return ratio(characters, objects) if characters is not None and objects is not None else None


def _gaps(less: int, some: Episodes) -> Spread | None:
    return spread([step - less for step in counting.steps(some)])


def _widest(less: int, some: Episodes) -> Spread | None:
    return spread([max(0, step - less) for step in counting.widest_of_episodes(some)])


def _sizes(key: str, some: Episodes) -> list[int]:
    return [int(getattr(episode, key)) for episode in some]


def _sum_of(key: str, some: Episodes) -> int:
    return sum(_sizes(key, some))


def _spread_of(key: str, some: Episodes) -> Spread | None:
    return spread(_sizes(key, some))


def _of_sizes(key: str, count: Callable[[list[int]], float | None], some: Episodes) -> Value:
    return count(_sizes(key, some)) if some else None


def _shots_per_scene(some: Episodes) -> float | None:
    return median(episode.shots / episode.scenes for episode in some if episode.scenes)


def _mean_declared(kind: EntityType, some: Episodes) -> float | None:
    return mean([episode.declared[kind] for episode in some])


def _most_declared(kind: EntityType, some: Episodes) -> int | None:
    return max((episode.declared[kind] for episode in some), default=None)


def _declared_per_episode(some: Episodes) -> float | None:
    return ratio(counting.declared(some), len(some))


def _slots_per_episode(some: Episodes) -> float | None:
    return ratio(counting.slots(some), len(some))


def _many_objects(some: Episodes) -> Share | None:
    return share(sum(episode.declared["object"] > MANY_OBJECTS for episode in some), len(some))


def _objects_p90(some: Episodes) -> float | None:
    ordered = sorted(episode.declared["object"] for episode in some)
    if not ordered:
        return None
    rank = 0.9 * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


def _scheduled(some: Episodes) -> int:
    return len(counting.tracks(some))


def _recurring(some: Episodes) -> Share | None:
    return counting.tracks_with(lambda track: track.recurs, some)


def _casts(some: Episodes) -> list[int]:
    return [load[TYPES.index("character")] for load in counting.loads(some)]


def _reappearing(some: Episodes) -> Share | None:
    return counting.again(_scheduled(some), counting.slots(some))


def _cuts(some: Episodes) -> Share | None:
    return share(sum(sum(episode.cuts) for episode in some), counting.shots(some))


def _cuts_within(some: Episodes) -> Share | None:
    return share(
        sum(sum(episode.cuts[1:]) for episode in some), sum(max(0, episode.shots - 1) for episode in some)
    )


def _by_header(present: bool, some: Episodes) -> Share | None:
    return share(
        sum(header is present for episode in some for header in episode.headers), counting.shots(some)
    )


def _only_known(some: Episodes) -> Share | None:
    return share(sum(sum(episode.only_known) for episode in some), counting.shots(some))
