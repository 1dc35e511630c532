"""Every number of the tables of the EntityBench paper, recomputed over a set of episodes; pure functions.

Tables 3, 6, 7, 8, 9, 10 and sections A.1 to A.5, by tier. Where what the paper defines and what it
counts differ, both conventions have a row: gaps as difference of numbers and as shots between, memory-only by
headers and by the schedule, first appearances by schedule and by registry, carry-over by type.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...schemas.canonical import Json
from ...schemas.entities import ALL, TIERS, TYPES
from .measures import Measures
from .table_scale import registry_rows, scale_rows, short_rows, tier_rows
from .table_structure import composition_rows, memory_rows, structure_rows
from .table_texts import language_rows, mention_rows, often_in, verb_rows
from .tables import SHORT, Groups, Table, table_of


@dataclass(frozen=True, slots=True)
class EntityStatistics:
    """What is counted over a set of episodes."""

    groups: Groups  # tier -> the measures of its episodes; ``all`` last
    tables: tuple[Table, ...]  # the tables, in the order of the paper

    def as_json(self) -> dict[str, Json]:
        """Return the content of ``statistics.json``: tables, distributions, a line per episode."""
        tier_of = {
            episode.episode_id: tier for tier, some in self.groups.items() if tier != ALL for episode in some
        }
        everything = self.groups[ALL]
        return {
            "kind": "entities",
            "totals": totals(everything),
            "tables": {table.key: table.as_json() for table in self.tables},
            "distributions": {tier: distributions(some) for tier, some in self.groups.items()},
            "episodes": {
                episode.episode_id: _line(episode, tier_of.get(episode.episode_id)) for episode in everything
            },
        }


def entity_statistics(
    measured: Iterable[Measures], tiers: Mapping[str, Sequence[str]] | None = None
) -> EntityStatistics:
    """Return the statistics of a set.

    ``tiers``: tier -> ids of its episodes; ``all`` is made of the episodes that are there.
    """
    by_id = {episode.episode_id: episode for episode in measured}
    given = {tier: ids for tier, ids in (tiers or {}).items() if tier != ALL}
    groups = {tier: [by_id[name] for name in ids if name in by_id] for tier, ids in given.items()}
    groups[ALL] = list(by_id.values())
    return EntityStatistics(groups, tuple(_tables(groups)))


def _tables(groups: Groups) -> Iterator[Table]:
    yield table_of("table_3", "Table 3: statistics across tiers", groups, scale_rows)
    yield table_of("table_6", "Table 6 and A.1: scale and taxonomy", groups, registry_rows)
    short = [episode for tier in TIERS[:2] for episode in groups.get(tier, ())]
    if short:
        yield table_of("section_a1", "A.1: easy and medium episodes", {SHORT: short}, short_rows)
    yield table_of("table_7", "Table 7: composition of shots", groups, composition_rows)
    yield table_of("table_8", "Table 8: memory test signal", groups, memory_rows)
    yield table_of("section_a3", "A.3: long-range structure", groups, structure_rows)
    yield table_of("section_a4", "A.4: linguistic profile", groups, language_rows)
    yield table_of("table_9", "Table 9: action verbs", groups, partial(verb_rows, often_in(groups[ALL])))
    yield table_of("table_10", "Table 10: tier-stratified statistics", groups, tier_rows)
    yield table_of("mentions", "Mentions: how texts name the entities", groups, mention_rows)


def totals(some: Sequence[Measures]) -> dict[str, int]:
    """Return how many episodes, scenes, shots, entities and slots there are."""
    return {
        "episodes": len(some),
        "scenes": sum(episode.scenes for episode in some),
        "shots": sum(episode.shots for episode in some),
        "entities": sum(episode.rows for episode in some),
        "slots": sum(sum(load) for episode in some for load in episode.loads),
    }


def distributions(some: Sequence[Measures]) -> dict[str, Json]:
    """Return value -> count of what the figures of the paper show (Figures 3 to 8), in order of values."""
    tracks = [track for episode in some for track in episode.tracks]
    result: dict[str, Json] = {
        "max_gap_index": _counted(max(track.steps) for track in tracks if track.recurs),
        "chain_length": _counted(length for episode in some for length in episode.chains),
        "appearances": _counted(len(track.shots) for track in tracks),
        "longest_run": _counted(track.longest_run for track in tracks),
    }
    for index, kind in enumerate(TYPES):
        result[f"declared_{kind}"] = _counted(episode.declared[kind] for episode in some)
        result[f"load_{kind}"] = _counted(load[index] for episode in some for load in episode.loads)
    result["introduced"] = introduced(some)
    return result


def introduced(some: Sequence[Measures]) -> list[dict[str, Json]]:
    """Return per number of a shot how many episodes have it, and how many new entities it has on average."""
    longest = max((episode.shots for episode in some), default=0)
    rows = []
    for number in range(1, longest + 1):
        there = [episode.introduced[number - 1] for episode in some if episode.shots >= number]
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
