"""Every number of the tables of the EntityBench paper, recomputed over a set of episodes; pure functions.

Tables 3, 6, 7, 8, 9, 10 and sections A.1 to A.5, by tier. Where what the paper defines and what it
counts differ, both conventions have a row: gaps as difference of numbers and as shots between, memory-only by
headers and by the schedule, first appearances by schedule and by registry, carry-over by type.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...schemas.canonical import Json
from ...schemas.entities import ALL, TYPES
from .measures import Measures
from .table_scale import registry_table, scale_table, short_table, tier_table
from .table_structure import composition_table, memory_table, structure_table
from .table_texts import language_table, mention_table, verb_table
from .tables import Groups, Table

TABLES: tuple[Callable[[Groups], Table], ...] = (
    scale_table,
    registry_table,
    short_table,
    composition_table,
    memory_table,
    structure_table,
    language_table,
    verb_table,
    tier_table,
    mention_table,
)


@dataclass(frozen=True, slots=True)
class EntityStatistics:
    """What is counted over a set of episodes.

    Attributes:
        groups: tier -> the measures of its episodes; ``all`` last.
        tables: the tables, in the order of the paper.
    """

    groups: Groups
    tables: tuple[Table, ...]

    def as_json(self) -> dict[str, Json]:
        """Return the content of ``statistics.json``: tables, distributions, a line per episode."""
        tier_of = {one.episode_id: tier for tier, some in self.groups.items() if tier != ALL for one in some}
        everything = self.groups[ALL]
        return {
            "kind": "entities",
            "totals": totals(everything),
            "tables": {table.key: table.as_json() for table in self.tables},
            "distributions": {tier: distributions(some) for tier, some in self.groups.items()},
            "episodes": {one.episode_id: _line(one, tier_of.get(one.episode_id)) for one in everything},
        }


def entity_statistics(
    measured: Iterable[Measures], tiers: Mapping[str, Sequence[str]] | None = None
) -> EntityStatistics:
    """Return the statistics of a set.

    Args:
        measured: the measures of its episodes.
        tiers: tier -> ids of its episodes; ``all`` is made of the episodes that are there.
    """
    by_id = {one.episode_id: one for one in measured}
    given = {tier: ids for tier, ids in (tiers or {}).items() if tier != ALL}
    groups = {tier: [by_id[one] for one in ids if one in by_id] for tier, ids in given.items()}
    groups[ALL] = list(by_id.values())
    tables = (make(groups) for make in TABLES)
    return EntityStatistics(groups, tuple(table for table in tables if table.rows))


def totals(some: Sequence[Measures]) -> dict[str, int]:
    """Return how many episodes, scenes, shots, entities and slots there are."""
    return {
        "episodes": len(some),
        "scenes": sum(one.scenes for one in some),
        "shots": sum(one.shots for one in some),
        "entities": sum(one.rows for one in some),
        "slots": sum(sum(load) for one in some for load in one.loads),
    }


def distributions(some: Sequence[Measures]) -> dict[str, Json]:
    """Return value -> count of what the figures of the paper show (Figures 3 to 8), in order of values."""
    tracks = [track for one in some for track in one.tracks]
    result: dict[str, Json] = {
        "max_gap_index": _counted(max(track.steps) for track in tracks if track.recurs),
        "chain_length": _counted(length for one in some for length in one.chains),
        "appearances": _counted(len(track.shots) for track in tracks),
        "longest_run": _counted(track.longest_run for track in tracks),
    }
    for index, kind in enumerate(TYPES):
        result[f"declared_{kind}"] = _counted(one.declared[kind] for one in some)
        result[f"load_{kind}"] = _counted(load[index] for one in some for load in one.loads)
    result["introduced"] = introduced(some)
    return result


def introduced(some: Sequence[Measures]) -> list[dict[str, Json]]:
    """Return per number of a shot how many episodes have it, and how many new entities it has on average."""
    longest = max((one.shots for one in some), default=0)
    rows = []
    for number in range(1, longest + 1):
        there = [one.introduced[number - 1] for one in some if one.shots >= number]
        rows.append({"shot": number, "episodes": len(there), "mean": round(sum(there) / len(there), 6)})
    return rows


def _counted(values: Iterable[int]) -> dict[str, int]:
    counts = Counter(values)
    return {str(value): counts[value] for value in sorted(counts)}


def _line(measure: Measures, tier: str | None) -> dict[str, Json]:
    return {
        "tier": tier,
        "scenes": measure.scenes,
        "shots": measure.shots,
        **{f"declared_{kind}": measure.declared[kind] for kind in TYPES},
        **{f"slots_{kind}": measure.slots(kind) for kind in TYPES},
        "recurring": sum(track.recurs for track in measure.tracks),
        "max_gap_index": max((step for track in measure.tracks for step in track.steps), default=0),
    }
