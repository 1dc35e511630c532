"""Statistics of episodes against values worked out by hand, and of episodes that hold nothing."""

from typing import Any

import pytest

from fabula.schemas.entities import EntityEpisode
from fabula.testing.written_episodes import SECOND, written_episode
from fabula.validators.entities.measures import (
    Measures,
    Share,
    Spread,
    fixed,
    measure,
    median,
    share,
    spread,
    value_text,
)
from fabula.validators.entities.statistics import EntityStatistics, entity_statistics
from fabula.validators.entities.view import holds, named, view_of

TIERS = {"easy": ["ep_a"], "hard": ["ep_b", "ep_z"], "all": ["ep_a", "ep_b"]}


def measured(document: dict[str, Any]) -> Measures:
    return measure(view_of(document["story_name"], EntityEpisode.model_validate(document)))


@pytest.fixture(scope="module")
def statistics() -> EntityStatistics:
    episodes = [written_episode(), written_episode("ep_b", SECOND)]
    return entity_statistics(map(measured, episodes), TIERS)


def row(statistics: EntityStatistics, table: str, key: str) -> dict[str, Any]:
    found = next(one for one in statistics.tables if one.key == table)
    values: dict[str, Any] = next(one for one in found.rows if one.key == key).as_json()["values"]
    return values


def test_gaps_when_counted_by_hand_are_as_index_and_as_shots_between(statistics: EntityStatistics) -> None:
    # Ana is in shots 1 2 4 5, Ben 2 3 5, the kitchen 1 2, the garden 3 4 5, the cup 1 5.
    index, between = (row(statistics, "table_3", f"mean_gap_{key}") for key in ("index", "between"))
    assert index["easy"] == {"mean": 1.555556, "sd": 0.955814, "of": 9}
    assert index["all"] == {"mean": 1.454545, "sd": 0.890724, "of": 11}
    assert between["easy"] == {"mean": 0.555556, "sd": 0.955814, "of": 9}
    assert row(statistics, "table_3", "max_gap_index")["all"] == {"mean": 2.5, "sd": 1.5, "of": 2}
    assert row(statistics, "table_3", "max_gap_between")["all"] == {"mean": 1.5, "sd": 1.5, "of": 2}
    assert row(statistics, "table_10", "mean_max_gap") == {
        "easy": 2.0,
        "hard": 1.0,
        "all": pytest.approx(12 / 7, abs=1e-6),
    }
    assert row(statistics, "section_a3", "max_gap_between") == {"easy": 3, "hard": 0, "all": 3}


def test_slots_and_first_appearances_when_counted_by_hand_agree(statistics: EntityStatistics) -> None:
    assert row(statistics, "table_8", "slots") == {"easy": 15, "hard": 5, "all": 20}
    assert row(statistics, "table_8", "first") == {"easy": 6, "hard": 3, "all": 9}
    assert row(statistics, "table_8", "again")["all"] == {"count": 11, "of": 20, "share": 0.55}
    assert row(statistics, "table_6", "appearances_characters") == {"easy": 7, "hard": 2, "all": 9}
    assert row(statistics, "table_6", "shots_per_character")["all"] == 3.0
    assert row(statistics, "table_10", "recurring")["easy"] == {"count": 5, "of": 6, "share": 0.833333}
    assert row(statistics, "table_8", "described")["all"]["count"] == 9


def test_cuts_chains_and_carry_over_when_counted_by_hand_agree(statistics: EntityStatistics) -> None:
    assert row(statistics, "table_10", "cut_rate")["easy"] == {"count": 2, "of": 5, "share": 0.4}
    assert row(statistics, "table_10", "cut_rate_within")["easy"] == {"count": 1, "of": 4, "share": 0.25}
    assert row(statistics, "section_a3", "chains") == {"easy": 2, "hard": 1, "all": 3}
    assert row(statistics, "section_a3", "carry_over_any")["easy"]["count"] == 1
    assert row(statistics, "section_a3", "carry_over_character")["easy"]["count"] == 1
    assert row(statistics, "section_a3", "carry_over_location")["easy"]["count"] == 0
    assert row(statistics, "section_a3", "carry_over_any")["hard"] is None
    assert row(statistics, "section_a3", "longest_run") == {"easy": 3, "hard": 2, "all": 3}


def test_rest_of_what_is_counted_when_counted_by_hand_agrees(statistics: EntityStatistics) -> None:
    # Chains of 2 and 3 shots, and of 2; at the one cut Ben is on both sides.
    assert row(statistics, "section_a3", "several_chains")["all"] == {"count": 3, "of": 3, "share": 1.0}
    assert row(statistics, "section_a3", "carry_over_none")["easy"] == {"count": 0, "of": 1, "share": 0.0}
    # All is in the registry: 15 slots of 6 names, and 5 of 3.
    assert row(statistics, "table_8", "again_registered")["all"] == {"count": 11, "of": 20, "share": 0.55}
    # 9 slots of 3 characters in the registries, 4 of 3 objects.
    assert row(statistics, "table_6", "character_by_object")["all"] == 2.25
    # No shot after the tenth, no verb 43 times, no shot type, no day.
    for table, key in (
        ("section_a3", "introduced_late"), ("table_9", "share_posture"), ("section_a4", "close_up_share"),
        ("section_a4", "night_by_day"),
    ):  # fmt: skip
        assert row(statistics, table, key) == {"easy": None, "hard": None, "all": None}


def test_verbs_and_times_of_day_when_there_are_enough_are_shares() -> None:
    episode = written_episode("ep_b", SECOND)
    action = " ".join(["stand"] * 60 + ["walk"] * 20 + ["sits"] * 42) + " at night, not by day, in close-up."
    for texts in (episode["scenes"][0]["action_descriptions"], episode["scenes"][0]["video_prompts"]):
        texts[:] = [action, action]
    found = entity_statistics([measured(episode)])
    # 120 times stand and 84 times sits, 40 times walk, which is too few.
    assert row(found, "table_9", "share_posture")["all"] == {"count": 204, "of": 204, "share": 1.0}
    assert row(found, "table_9", "share_motion")["all"]["count"] == 0
    assert row(found, "section_a4", "night_by_day")["all"] == 1.0
    assert row(found, "section_a4", "close_up_share")["all"] == {"count": 2, "of": 2, "share": 1.0}


def test_memory_only_when_a_header_comes_late_differs_by_definition() -> None:
    episode = written_episode()
    prompts = episode["scenes"][1]["video_prompts"]
    prompts[1] = f"Ana: again\n\n{prompts[1]}"
    found = entity_statistics([measured(episode)])
    assert row(found, "table_10", "memory_only")["all"] == {"count": 1, "of": 5, "share": 0.2}
    assert row(found, "table_10", "memory_only_schedule")["all"] == {"count": 2, "of": 5, "share": 0.4}


def test_introductions_when_episodes_differ_in_length_count_those_that_are_so_long(
    statistics: EntityStatistics,
) -> None:
    introduced = statistics.as_json()["distributions"]["all"]["introduced"]
    assert introduced[:3] == [
        {"shot": 1, "episodes": 2, "mean": 2.5},
        {"shot": 2, "episodes": 2, "mean": 1.0},
        {"shot": 3, "episodes": 1, "mean": 2.0},
    ]
    assert row(statistics, "section_a3", "introduced_first")["all"] == 2.5


def test_statistics_when_there_is_nothing_have_no_value_instead_of_zero_shares() -> None:
    empty = entity_statistics([])
    assert row(empty, "table_3", "mean_gap_index") == {"all": None}
    assert row(empty, "table_10", "cut_rate") == {"all": None}
    assert row(empty, "table_10", "episodes") == {"all": 0}
    bare = measured({"story_name": "bare", "scenes": [{}]})
    found = entity_statistics([bare]).as_json()
    assert found["totals"] == {"episodes": 1, "scenes": 1, "shots": 0, "entities": 0, "slots": 0}
    assert found["episodes"]["bare"]["max_gap_index"] == 0


def test_statistics_when_episodes_come_in_another_order_are_the_same(statistics: EntityStatistics) -> None:
    episodes = [written_episode("ep_b", SECOND), written_episode()]
    again = entity_statistics(map(measured, episodes), TIERS)
    assert again.as_json()["tables"] == statistics.as_json()["tables"]


def test_mentions_when_names_differ_in_case_or_part_are_told_apart() -> None:
    assert named("Ana opens The Garden gate.", "The Garden") == "exact"
    assert named("Ana opens the garden gate.", "The Garden") == "case"
    assert named("Ana opens her garden gate.", "The Garden") == "part"
    assert named("Ana opens the gate.", "The Garden") is None
    assert not holds("Anabel and Banana", "Ana")
    assert holds("Ana's hat", "Ana")
    assert holds("小明走进花园。", "小明")
    assert not holds("anything", "")


def test_numbers_when_there_are_few_are_worked_out_as_stated() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5
    assert median([]) is None
    assert spread([1, 3]) == Spread(2.0, 1.0, 2)
    assert spread([]) is None
    assert share(1, 0) is None
    assert value_text(Share(1, 3)) == "33.3% (1)"
    assert value_text(Spread(2.0, 1.0, 2)) == "2.00 ± 1.00"
    assert [value_text(one) for one in (None, 1234, 1.5)] == ["–", "1,234", "1.50"]


# Values as people read them.


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(239 / 40, 2, "5.98"), (101 / 40, 2, "2.53"), (1 / 3, 2, "0.33"), (0.125, 1, "0.1"),
     (12345.5, 0, "12,346"), (-0.005, 2, "-0.01"), (0.0, 2, "0.00")],
)  # fmt: skip
def test_fixed_when_a_value_lies_between_two_takes_the_one_away_from_zero(
    value: float, places: int, text: str
) -> None:
    assert fixed(value, places) == text
