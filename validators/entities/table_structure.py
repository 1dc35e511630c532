"""Structure: Tables 7 and 8 of the EntityBench paper, section A.3, and what headers describe."""

from collections.abc import Callable, Iterator

from ...schemas.entities import TYPES, EntityType
from .counting import PLURALS, Load, Tier, again, mean, median, share, so_many
from .tables import Count

FIRST_SHOTS = 10
_ONCE = "a name in one kind of list, once per episode"
_BY_LABEL = "names under labels of the type that are scheduled: what the paper's typed columns count"
_SIDES = "last shot before the cut against first shot after it"
_LINE = "the prompt has a line <name>: <description>"

_LOADS: tuple[tuple[str, str, Callable[[Load], bool]], ...] = (
    ("characters_0", "shots with no character", lambda load: load[0] == 0),
    ("characters_1", "shots with 1 character", lambda load: load[0] == 1),
    ("characters_2", "shots with 2 characters", lambda load: load[0] == 2),
    ("characters_3", "shots with 3 characters or more", lambda load: load[0] >= 3),
    (
        "two_and_object",
        "shots with 2 characters or more and an object",
        lambda load: load[0] >= 2 and load[2] >= 1,
    ),
    ("all_types", "shots with all three types", lambda load: min(load) >= 1),
    ("no_location", "shots with no location", lambda load: load[1] == 0),
    ("several_locations", "shots with 2 locations or more", lambda load: load[1] >= 2),
    ("no_object", "shots with no object", lambda load: load[2] == 0),
    ("nothing", "shots that schedule nothing", lambda load: not any(load)),
)


def composition_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 7: what shots schedule."""
    for index, kind in enumerate(TYPES):
        name = PLURALS[kind]
        yield Count(f"{name}_per_shot", f"{name} per shot", mean([load[index] for load in tier.loads]))
    yield Count("entities_per_shot", "entities per shot", mean(list(map(sum, tier.loads))))
    for key, label, holds in _LOADS:
        yield Count(key, label, tier.of_shots(map(holds, tier.loads)))


def memory_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 8: first appearances and re-appearances of each type, and what headers describe."""
    for kind, name in PLURALS.items():
        slots, first = tier.slots_of(kind), len(tier.tracks_of(kind))
        yield Count(f"slots_{name}", f"slots of {name}", slots)
        yield Count(f"first_{name}", f"first appearances of {name}", first, _ONCE)
        yield Count(f"again_{name}", f"re-appearances of {name}", again(first, slots), _ONCE)
        first = sum(episode.in_registry[kind] for episode in tier.episodes)
        yield Count(f"first_registered_{name}", f"first appearances of {name}, by label", first, _BY_LABEL)
        later = again(first, slots)
        yield Count(f"again_registered_{name}", f"re-appearances of {name}, by label", later, _BY_LABEL)
    yield Count("slots", "slots in all", tier.slots)
    yield Count("first", "first appearances in all", len(tier.tracks), _ONCE)
    yield Count("again", "re-appearances in all", again(len(tier.tracks), tier.slots), _ONCE)
    yield Count("first_registered", "first appearances in all, by label", tier.in_registry, _BY_LABEL)
    later = again(tier.in_registry, tier.slots)
    yield Count("again_registered", "re-appearances in all, by label", later, _BY_LABEL)
    for kind, name in PLURALS.items():
        described = so_many(track.described for track in tier.tracks_of(kind))
        yield Count(f"described_{name}", f"first appearances of {name} described", described, _LINE)
    described = so_many(track.described for track in tier.tracks)
    yield Count("described", "first appearances described", described, _LINE)
    decorated, convention = "likewise, decorated names included", "<name> (Object 7): too"
    either = so_many(track.described or track.decorated for track in tier.tracks)
    yield Count("described_decorated", decorated, either, convention)
    unregistered = so_many(not track.registered for track in tier.tracks)
    yield Count("unregistered", "scheduled entities not in the registry", unregistered, _ONCE)


def structure_rows(tier: Tier) -> Iterator[Count]:
    """Yield section A.3: recurrence, gaps, cuts and chains, persistence, introductions."""
    yield Count("scheduled", "scheduled entities", len(tier.tracks), _ONCE)
    yield Count("two_shots", "in 2 shots or more", so_many(track.recurs for track in tier.tracks))
    yield Count("two_scenes", "in 2 scenes or more", so_many(track.scenes > 1 for track in tier.tracks))
    for less, key, words in ((0, "index", "index"), (1, "between", "shots between")):
        for least in (5, 10, 20):
            wide = so_many(step >= least + less for step in tier.widest)
            label, convention = f"max gap of {least} or more, {words}", "of the recurring entities"
            yield Count(f"gap_{least}_{key}", label, wide, convention)
        most = max((step - less for step in tier.widest), default=None)
        yield Count(f"max_gap_{key}", f"widest gap, {words}", most)
    yield from _chain_rows(tier)
    yield from _persistence_rows(tier)


def _chain_rows(tier: Tier) -> Iterator[Count]:
    cuts = tier.of_shots(cut for episode in tier.episodes for cut in episode.cuts)
    yield Count("cuts", "cuts, first shots included", cuts)
    sides = [kinds for episode in tier.episodes for kinds in episode.carried]
    yield Count("cuts_within", "cuts within episodes", len(sides))
    runs = "runs of shots without a cut between"
    yield Count("chains", "continuation chains", len(tier.chains), runs)
    yield Count("mean_chain", "mean length of a chain", mean(tier.chains))
    yield Count("longest_chain", "longest chain", max(tier.chains, default=None))
    yield Count("single_chains", "chains of 1 shot", so_many(length == 1 for length in tier.chains))
    yield Count("long_chains", "chains of 5 shots or more", so_many(length >= 5 for length in tier.chains))
    yield Count("several_chains", "chains of 2 shots or more", so_many(length > 1 for length in tier.chains))
    yield Count("carry_over_any", "cuts that carry over something", so_many(map(bool, sides)), _SIDES)
    nothing = so_many(not kinds for kinds in sides)
    yield Count("carry_over_none", "cuts that carry over nothing", nothing, _SIDES)
    either = so_many(not kinds.isdisjoint(("character", "object")) for kinds in sides)
    yield Count("carry_over_either", "cuts that carry over a character or object", either, _SIDES)
    for kind in TYPES:
        carried = so_many(kind in kinds for kinds in sides)
        yield Count(f"carry_over_{kind}", f"cuts that carry over {_a(kind)}", carried, _SIDES)


def _persistence_rows(tier: Tier) -> Iterator[Count]:
    appearances = [len(track.shots) for track in tier.tracks]
    runs = [track.longest_run for track in tier.tracks]
    yield Count("median_appearances", "median shots of an entity", median(appearances))
    yield Count("most_appearances", "most shots of an entity", max(appearances, default=None))
    yield Count("median_run", "median longest run of an entity", median(runs))
    yield Count("single_runs", "entities whose longest run is 1 shot", so_many(run == 1 for run in runs))
    yield Count("longest_run", "longest run", max(runs, default=None))
    for kind in TYPES:
        longest = max((track.longest_run for track in tier.tracks_of(kind)), default=None)
        yield Count(f"longest_run_{kind}", f"longest run of {_a(kind)}", longest)
    first = mean([episode.introduced[0] for episode in tier.episodes if episode.shots])
    yield Count("introduced_first", "new entities in the first shot", first, "mean over the episodes")
    early = [(sum(episode.introduced[:FIRST_SHOTS]), len(episode.tracks)) for episode in tier.episodes]
    label = f"introduced in the first {FIRST_SHOTS} shots"
    shares = mean([count / of for count, of in early if of])
    yield Count("introduced_early_mean", label, shares, "mean over the episodes")
    pooled = share(sum(count for count, _ in early), len(tier.tracks))
    yield Count("introduced_early", label, pooled, "over all entities of the tier")
    late = mean([new for episode in tier.episodes for new in episode.introduced[FIRST_SHOTS:]])
    label, convention = (
        f"new entities of a shot after the first {FIRST_SHOTS}",
        "over all such shots of the tier",
    )
    yield Count("introduced_late", label, late, convention)


def _a(kind: EntityType) -> str:
    return f"an {kind}" if kind == "object" else f"a {kind}"
