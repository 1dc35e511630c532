"""Tables of statistics: rows of one value per tier, each with its convention and what the paper printed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...schemas.canonical import Json
from .measures import Measures, Tier, Value, value_json

Groups = Mapping[str, Sequence[Measures]]
"""Tier -> the measures of its episodes; the last one holds all of them."""


@dataclass(frozen=True, slots=True)
class Row:
    key: str  # its name in JSON
    label: str  # what it says, for people
    convention: str  # how it is counted, where that needs saying
    values: Mapping[str, Value]  # tier -> value
    # tier -> what the paper prints for its own data; empty where it prints nothing
    published: Mapping[str, str]

    def as_json(self) -> Json:
        return {
            "label": self.label,
            "convention": self.convention,
            "values": {tier: value_json(value) for tier, value in self.values.items()},
            "published": dict(self.published),
        }


@dataclass(frozen=True, slots=True)
class Table:
    """One table; ``key`` is its name in JSON."""

    key: str
    title: str
    rows: tuple[Row, ...]

    def as_json(self) -> Json:
        return {"title": self.title, "rows": {row.key: row.as_json() for row in self.rows}}


class Count(NamedTuple):
    """A row's value over the episodes of one tier; ``convention`` says how it is counted."""

    key: str
    label: str
    value: Value
    convention: str = ""


def table_of(key: str, title: str, groups: Groups, rows: Callable[[Tier], Iterable[Count]]) -> Table:
    """Return a table of the rows that are counted over the episodes of each tier."""
    counted = {name: list(rows(Tier(episodes))) for name, episodes in groups.items()}
    published = PUBLISHED.get(key, {})
    return Table(
        key,
        title,
        tuple(
            Row(
                first.key,
                first.label,
                first.convention,
                dict(zip(counted, [count.value for count in (first, *others)], strict=True)),
                published.get(first.key, {}),
            )
            for first, *others in zip(*counted.values(), strict=True)
        ),
    )


SHORT = "easy and medium"
"""The two tiers of shorter episodes together, of which section A.1 speaks."""
_TIERS = ("easy", "medium", "hard", "all")


def _by_tier(*printed: str) -> dict[str, str]:
    return dict(zip(_TIERS, printed, strict=True))


def _of_all(printed: str) -> dict[str, str]:
    return {"all": printed}


_TABLE_3 = {
    "episodes": _by_tier("80", "40", "20", "140"),
    "shots": _by_tier("873", "618", "1,000", "2,491"),
    "cross_shot_characters": _by_tier("5.1 ± 1.4", "6.0 ± 1.8", "8.9 ± 2.1", "5.9 ± 2.1"),
    "cross_shot_locations": _by_tier("2.4 ± 0.8", "2.5 ± 0.7", "4.9 ± 1.7", "2.8 ± 1.3"),
    "cross_shot_objects": _by_tier("3.9 ± 2.1", "6.1 ± 2.5", "13.3 ± 4.5", "5.9 ± 4.2"),
    "mean_gap_index": _by_tier("2.1 ± 1.8", "2.2 ± 2.0", "3.4 ± 4.8", "2.7 ± 3.6"),
    "max_gap_index": _by_tier("8.0 ± 2.0", "9.9 ± 2.2", "33.5 ± 7.8", "12.2 ± 9.4"),
}
_TABLE_6 = {
    "scenes": _of_all("1,136 (1,146 in 3.1)"),
    "scenes_per_episode": _of_all("8.1 ± 5.3"),
    "shots": _of_all("2,491"),
    "shots_per_episode": _of_all("17.8 ± 13.3"),
    "median_scenes": _of_all("6"),
    "most_scenes": {"hard": "38"},
    "median_shots_per_scene": _of_all("2.1"),
    "registry_characters": _of_all("987"),
    "registry_characters_per_episode": _of_all("7.05"),
    "most_characters": _of_all("13"),
    "registry_locations": _of_all("654"),
    "registry_locations_per_episode": _of_all("4.67"),
    "registry_objects": _of_all("2,077"),
    "registry_objects_per_episode": _of_all("14.84"),
    "most_objects": _of_all("52"),
    "registry": _of_all("3,718"),
    "registry_per_episode": _of_all("26.56"),
    "many_objects": _of_all("top 10%"),
    "appearances_characters": _of_all("4,989"),
    "appearances_characters_per_episode": _of_all("35.64"),
    "appearances_locations": _of_all("2,436"),
    "appearances_locations_per_episode": _of_all("17.40"),
    "appearances_objects": _of_all("4,020"),
    "appearances_objects_per_episode": _of_all("28.71"),
    "appearances": _of_all("11,445"),
    "appearances_per_episode": _of_all("81.75"),
    "shots_per_character": _of_all("5.05"),
    "shots_per_location": _of_all("3.72"),
    "shots_per_object": _of_all("1.94"),
    "character_by_object": _of_all("about 2.6"),
}
_SECTION_A1 = {
    "fewest_shots": {SHORT: "10 (8 in 3.1)"},
    "most_shots": {SHORT: "22"},
    "median_shots": {SHORT: "12"},
    "mean_shots": {SHORT: "12.4"},
    "fewest_scenes": {SHORT: "2"},
    "most_scenes": {SHORT: "13"},
}
_TABLE_7 = {
    "characters_per_shot": _of_all("2.00"),
    "objects_per_shot": _of_all("1.61"),
    "locations_per_shot": _of_all("0.98"),
    "entities_per_shot": _of_all("4.59"),
    "characters_0": _of_all("0.6%"),
    "characters_1": _of_all("34.1%"),
    "characters_2": _of_all("40.6%"),
    "characters_3": _of_all("24.7%"),
    "two_and_object": _of_all("54.3%"),
    "all_types": _of_all("79.1%"),
}
_TABLE_8 = {
    "slots_characters": _of_all("4,989"),
    "slots_locations": _of_all("2,436"),
    "slots_objects": _of_all("4,020"),
    "slots": _of_all("11,445"),
    "first_registered_characters": _of_all("984"),
    "first_registered_locations": _of_all("648"),
    "first_registered_objects": _of_all("1,892"),
    "first": _of_all("3,593"),
    "first_registered": _of_all("3,524 (columns added)"),
    "again_registered": _of_all("7,921 (columns added)"),
    "again_registered_characters": _of_all("80.3% (4,005)"),
    "again_registered_locations": _of_all("73.4% (1,788)"),
    "again_registered_objects": _of_all("52.9% (2,128)"),
    "again": _of_all("68.6% (7,852)"),
}
_SECTION_A3 = {
    "scheduled": _of_all("3,593"),
    "two_shots": _of_all("56.4% (2,026)"),
    "two_scenes": _of_all("40.2% (1,445)"),
    "gap_5_index": _of_all("36.1%"),
    "gap_10_index": _of_all("12.4%"),
    "gap_20_index": _of_all("3.5%"),
    "max_gap_index": _of_all("48"),
    "cuts": _of_all("45.6% (1,136)"),
    "cuts_within": _of_all("996"),
    "chains": _of_all("1,136"),
    "mean_chain": _of_all("2.19"),
    "longest_chain": _of_all("36"),
    "single_chains": _of_all("about 62%"),
    "several_chains": _of_all("38%"),
    "carry_over_any": _of_all("55.7% (555)"),
    "carry_over_none": _of_all("44.3%"),
    "median_appearances": _of_all("2"),
    "most_appearances": _of_all("past 25"),
    "median_run": _of_all("1"),
    "single_runs": _of_all("about two thirds"),
    "longest_run": _of_all("9"),
    "introduced_first": _of_all("about 5"),
    "introduced_early": _of_all("about 70%"),
    "introduced_late": _of_all("about 0.5 to 1.0"),
}
_TABLE_9 = {
    verb: _of_all(printed)
    for verb, printed in (
        ("stand", "1,023"), ("look", "711"), ("sit", "539"), ("speak", "530"), ("watch", "369"),
        ("walk", "315"), ("listen", "292"), ("smile", "237"), ("hold", "234"), ("turn", "231"),
        ("talk", "194"), ("lean", "143"), ("gaze", "128"), ("nod", "80"), ("stare", "67"), ("observe", "54"),
        ("glance", "47"), ("show", "44"),
    )
} | {
    "share_posture": _of_all("33%"),
    "share_perception": _of_all("26%"),
    "share_dialogue": _of_all("19%"),
    "share_motion": _of_all("15%"),
}  # fmt: skip
_SECTION_A4 = {
    "tokens": _of_all("93,123"),
    "tokens_types": _of_all("5,230"),
    "tokens_ratio": _of_all("0.056"),
    "tokens_mean": _of_all("37.4"),
    "tokens_median": _of_all("37"),
    "tag_indoor_outdoor": _of_all("24.5%"),
    "tag_time_of_day": _of_all("19.2%"),
    "tag_shot_type": _of_all("52.5%"),
    "tag_style": _of_all("2.2%"),
    "close_up_share": _of_all("61%"),
    "night_by_day": _of_all("2.7"),
}
_TABLE_10 = {
    "episodes": _by_tier("80", "40", "20", "140"),
    "shots": _by_tier("873", "618", "1,000", "2,491"),
    "scheduled": _by_tier("1,694", "1,021", "878", "3,593"),
    "recurring": _by_tier("53.3%", "57.1%", "61.5%", "56.4%"),
    "mean_max_gap": _by_tier("3.24", "3.85", "9.72", "5.14"),
    "median_max_gap": _by_tier("3.0", "3.0", "7.0", "3.0"),
    "global_max_gap": _by_tier("11", "14", "48", "48"),
    "mean_characters": _by_tier("1.99", "2.06", "1.98", "2.00"),
    "most_characters": _by_tier("6", "7", "6", "7"),
    "three_characters": _by_tier("23.5%", "27.0%", "24.4%", "24.7%"),
    "two_and_object": _by_tier("55.4%", "55.3%", "52.7%", "54.3%"),
    "reappearing": _by_tier("about 57.7%", "about 64.5%", "about 80.7%", "68.6%"),
    "cut_rate": _by_tier("54.3%", "39.5%", "41.8%", "45.6%"),
    "registry_shots": _by_tier("69.5%", "62.0%", "37.3%", "54.7%"),
    "memory_only": _by_tier("30.5%", "38.0%", "62.7% (62% in 3.1)", "45.3%"),
}

PUBLISHED: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "table_3": _TABLE_3,
    "table_6": _TABLE_6,
    "table_7": _TABLE_7,
    "table_8": _TABLE_8,
    "table_9": _TABLE_9,
    "table_10": _TABLE_10,
    "section_a1": _SECTION_A1,
    "section_a3": _SECTION_A3,
    "section_a4": _SECTION_A4,
}
"""Table -> row -> tier -> what is printed there."""
