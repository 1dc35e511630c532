"""Structure: Tables 7 and 8 of the EntityBench paper, section A.3, and what headers describe."""

from collections.abc import Callable
from functools import partial

from ...schemas.entities import TYPES, EntityType
from . import counting
from .counting import PLURALS, Episodes, Load, Share, mean, median, share
from .measures import Track
from .tables import Groups, Table, TableMaker

FIRST_SHOTS = 10
_ONCE = "a name in one kind of list, once per episode"
_BY_LABEL = "names under labels of the type that are scheduled: what the paper's typed columns count"
_SIDES = "last shot before the cut against first shot after it"

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


def composition_table(groups: Groups) -> Table:
    """Return Table 7: what shots schedule."""
    make = TableMaker("table_7", "Table 7: composition of shots", groups)
    for index, kind in enumerate(TYPES):
        make.row(f"{PLURALS[kind]}_per_shot", f"{PLURALS[kind]} per shot", partial(_mean_load, index))
    make.row(
        "entities_per_shot", "entities per shot", lambda some: mean(list(map(sum, counting.loads(some))))
    )
    for key, label, holds in _LOADS:
        make.row(key, label, partial(counting.shots_with, holds))
    return make.table()


def memory_table(groups: Groups) -> Table:
    """Return Table 8: first appearances and re-appearances of each type, and what headers describe."""
    make = TableMaker("table_8", "Table 8: memory test signal", groups)
    for kind, name in PLURALS.items():
        make.row(f"slots_{name}", f"slots of {name}", partial(counting.slots_of, kind))
        make.row(f"first_{name}", f"first appearances of {name}", partial(_first, kind), _ONCE)
        make.row(f"again_{name}", f"re-appearances of {name}", partial(_again, kind), _ONCE)
        by_label = partial(counting.in_registry_of, kind)
        make.row(f"first_registered_{name}", f"first appearances of {name}, by label", by_label, _BY_LABEL)
        later = partial(_again_registered, kind)
        make.row(f"again_registered_{name}", f"re-appearances of {name}, by label", later, _BY_LABEL)
    make.row("slots", "slots in all", counting.slots)
    make.row("first", "first appearances in all", lambda some: len(counting.tracks(some)), _ONCE)
    make.row("again", "re-appearances in all", _again_of_all, _ONCE)
    make.row("first_registered", "first appearances in all, by label", counting.in_registry, _BY_LABEL)
    make.row("again_registered", "re-appearances in all, by label", _again_by_label, _BY_LABEL)
    for kind, name in PLURALS.items():
        make.row(
            f"described_{name}", f"first appearances of {name} described", partial(_described, kind), _LINE
        )
    make.row("described", "first appearances described", partial(counting.tracks_with, _is_described), _LINE)
    decorated = partial(counting.tracks_with, lambda track: track.described or track.decorated)
    make.row("described_decorated", "likewise, decorated names included", decorated, "<name> (Object 7): too")
    unregistered = partial(counting.tracks_with, lambda track: not track.registered)
    make.row("unregistered", "scheduled entities not in the registry", unregistered, _ONCE)
    return make.table()


def structure_table(groups: Groups) -> Table:
    """Return section A.3: recurrence, gaps, cuts and chains, persistence, introductions."""
    make = TableMaker("section_a3", "A.3: long-range structure", groups)
    make.row("scheduled", "scheduled entities", lambda some: len(counting.tracks(some)), _ONCE)
    make.row("two_shots", "in 2 shots or more", partial(counting.tracks_with, lambda track: track.recurs))
    make.row(
        "two_scenes", "in 2 scenes or more", partial(counting.tracks_with, lambda track: track.scenes > 1)
    )
    for less, key, words in ((0, "index", "index"), (1, "between", "shots between")):
        for least in (5, 10, 20):
            label, convention = f"max gap of {least} or more, {words}", "of the recurring entities"
            make.row(f"gap_{least}_{key}", label, partial(counting.wide, least + less), convention)
        make.row(f"max_gap_{key}", f"widest gap, {words}", partial(_widest, less))
    _chain_rows(make)
    _persistence_rows(make)
    return make.table()


def _chain_rows(make: TableMaker) -> None:
    make.row("cuts", "cuts, first shots included", _cuts)
    make.row(
        "cuts_within", "cuts within episodes", lambda some: sum(len(episode.carried) for episode in some)
    )
    runs = "runs of shots without a cut between"
    make.row("chains", "continuation chains", lambda some: len(counting.chains(some)), runs)
    make.row("mean_chain", "mean length of a chain", lambda some: mean(counting.chains(some)))
    make.row("longest_chain", "longest chain", lambda some: max(counting.chains(some), default=None))
    make.row("single_chains", "chains of 1 shot", partial(counting.chains_with, lambda length: length == 1))
    make.row(
        "long_chains", "chains of 5 shots or more", partial(counting.chains_with, lambda length: length >= 5)
    )
    several = partial(counting.chains_with, lambda length: length > 1)
    make.row("several_chains", "chains of 2 shots or more", several)
    make.row("carry_over_any", "cuts that carry over something", partial(counting.carried, TYPES), _SIDES)
    make.row("carry_over_none", "cuts that carry over nothing", counting.carried_nothing, _SIDES)
    either = ("character", "object")
    make.row(
        "carry_over_either",
        "cuts that carry over a character or object",
        partial(counting.carried, either),
        _SIDES,
    )
    for kind in TYPES:
        carried = partial(counting.carried, (kind,))
        make.row(f"carry_over_{kind}", f"cuts that carry over {_a(kind)}", carried, _SIDES)


def _persistence_rows(make: TableMaker) -> None:
    make.row("median_appearances", "median shots of an entity", lambda some: median(_appearances(some)))
    make.row(
        "most_appearances", "most shots of an entity", lambda some: max(_appearances(some), default=None)
    )
    make.row("median_run", "median longest run of an entity", lambda some: median(_runs(some)))
    single = partial(counting.tracks_with, lambda track: track.longest_run == 1)
    make.row("single_runs", "entities whose longest run is 1 shot", single)
    make.row("longest_run", "longest run", lambda some: max(_runs(some), default=None))
    for kind in TYPES:
        make.row(f"longest_run_{kind}", f"longest run of {_a(kind)}", partial(_longest_run, kind))
    make.row(
        "introduced_first", "new entities in the first shot", _introduced_first, "mean over the episodes"
    )
    for key, count, convention in (
        ("introduced_early_mean", counting.early_mean, "mean over the episodes"),
        ("introduced_early", counting.early_share, "over all entities of the tier"),
    ):
        label = f"introduced in the first {FIRST_SHOTS} shots"
        make.row(key, label, partial(count, FIRST_SHOTS), convention)
    make.row(
        "introduced_late",
        f"new entities of a shot after the first {FIRST_SHOTS}",
        partial(counting.late_mean, FIRST_SHOTS),
        "over all such shots of the tier",
    )


_LINE = "the prompt has a line <name>: <description>"


def _a(kind: EntityType) -> str:
    return f"an {kind}" if kind == "object" else f"a {kind}"


def _mean_load(column: int, some: Episodes) -> float | None:
    return mean([load[column] for load in counting.loads(some)])


def _first(kind: EntityType, some: Episodes) -> int:
    return len(counting.tracks_of(kind, some))


def _again(kind: EntityType, some: Episodes) -> Share | None:
    return counting.again(_first(kind, some), counting.slots_of(kind, some))


def _again_registered(kind: EntityType, some: Episodes) -> Share | None:
    return counting.again(counting.in_registry_of(kind, some), counting.slots_of(kind, some))


def _again_of_all(some: Episodes) -> Share | None:
    return counting.again(len(counting.tracks(some)), counting.slots(some))


def _again_by_label(some: Episodes) -> Share | None:
    return counting.again(counting.in_registry(some), counting.slots(some))


def _described(kind: EntityType, some: Episodes) -> Share | None:
    tracks = counting.tracks_of(kind, some)
    return share(sum(track.described for track in tracks), len(tracks))


def _is_described(track: Track) -> bool:
    return track.described


def _widest(less: int, some: Episodes) -> int | None:
    return max((step - less for step in counting.widest_of_entities(some)), default=None)


def _cuts(some: Episodes) -> Share | None:
    return share(sum(sum(episode.cuts) for episode in some), counting.shots(some))


def _appearances(some: Episodes) -> list[int]:
    return [len(track.shots) for track in counting.tracks(some)]


def _runs(some: Episodes) -> list[int]:
    return [track.longest_run for track in counting.tracks(some)]


def _longest_run(kind: EntityType, some: Episodes) -> int | None:
    return max((track.longest_run for track in counting.tracks_of(kind, some)), default=None)


def _introduced_first(some: Episodes) -> float | None:
    return mean([episode.introduced[0] for episode in some if episode.shots])
