"""Scores of windows, the choice of the best ones, and tiers."""

import itertools
import random
from collections import Counter

import pytest

from fabula.builders.entities.episodes import WindowSettings, windows_of
from fabula.builders.entities.windows import (
    Choice,
    ShotSlots,
    Weights,
    Window,
    choose_windows,
    load_of,
    problem_of,
    score_of,
    tier_of,
    traits_of,
)


def shot(scene: int, people: str = "", place: str = "", things: str = "", letters: int = 10) -> ShotSlots:
    slots = {("character", one) for one in people} | {("location", one) for one in place}
    return ShotSlots(scene, frozenset(slots | {("object", one) for one in things}), letters)


FOUR = [shot(1, "AB", "x", "k"), shot(1, "A", "x"), shot(2, "B", "y", letters=30), shot(3, "AB", "x", "k")]


def test_traits_when_counted_by_hand_agree() -> None:
    traits = traits_of(FOUR)
    # A is in shots 1 2 4: gaps 1 2; B in 1 3 4: gaps 2 1; x in 1 2 4: gaps 1 2; k in 1 4: gap 3; y once.
    assert traits.as_json() == {
        "num_shots": 4, "num_characters": 2, "num_places": 2, "num_objects": 1,
        "cs_characters": 2, "cs_places": 1, "cs_objects": 1, "max_chars_per_shot": 2,
        "interaction_density": 0.5, "scene_transitions": 2, "mean_action_length": 15.0,
        "mean_recurrence_gap": round(12 / 7, 6), "max_recurrence_gap": 3, "median_recurrence_gap": 2.0,
    }  # fmt: skip


def test_load_when_counted_by_hand_agrees() -> None:
    # Slots: 4 + 2 + 2 + 4 = 12, of which A B x k y come first. After shots 1 to 3, A B x k are held.
    assert load_of(FOUR).as_json() == {"first": 5, "again": 7, "rate": round(7 / 12, 6), "far": 0, "held": 4}


def test_score_when_counted_by_hand_is_the_weighted_mean() -> None:
    # 7 of 12 slots again, 2 of 4 shots with two characters, 2 of 3 neighbours change the scene.
    expected = 0.5 * 7 / 12 + 0.3 * 2 / 4 + 0.2 * 2 / 3
    assert score_of(FOUR, Weights()) == round(expected * 1_000_000)
    assert score_of(FOUR, Weights(recurrence=0, interaction=7, transitions=0)) == 500_000
    assert score_of(FOUR, Weights(recurrence=0, interaction=0, transitions=0)) == 0


def rank(choice: Choice) -> tuple[int, int, Choice]:
    return -sum(one.value for one in choice), len(choice), choice


def allowed(choice: Choice, most: dict[str, int]) -> bool:
    counts = Counter(window.group for window in choice)
    apart = all(a.stop <= b.start for a, b in itertools.pairwise(choice))
    return apart and all(counts[group] <= limit for group, limit in most.items())


def best_of_all(windows: list[Window], most: dict[str, int]) -> Choice:
    """Every choice there is, and of these the best."""
    useful = sorted(one for one in windows if one.value > 0)
    sizes = range(len(useful) + 1)
    choices = (choice for size in sizes for choice in itertools.combinations(useful, size))
    return min((one for one in choices if allowed(one, most)), key=rank)


@pytest.mark.parametrize(
    "most", [{}, {"a": 1}, {"a": 2, "b": 1}, {"a": 0, "b": 2}, {"a": 9, "b": 1, "c": 3}, {"b": 0}]
)
def test_choice_when_all_are_tried_is_the_best(most: dict[str, int]) -> None:
    chance = random.Random(3)
    for _ in range(120):
        windows = [
            Window(chance.randrange(9), chance.randrange(1, 5), chance.randrange(4), chance.choice("ab"))
            for _ in range(9)
        ]
        windows = list(set(windows))
        assert choose_windows(windows, most) == best_of_all(windows, most)


def film(count: int) -> list[ShotSlots]:
    """Three people come and go at two places."""
    return [shot(at // 4, "ABC"[at % 3 :][:2], "xy"[at // 4 % 2]) for at in range(count)]


def planned(count: int, **settings: object) -> list[tuple[str | None, int]]:
    chosen_by = WindowSettings.model_validate(settings)
    windows, _ = windows_of(range(1, count + 1), film(count), chosen_by)
    chosen = choose_windows(windows, chosen_by.limits)
    return [(tier_of(one.length, chosen_by.tiers), one.length) for one in chosen]


def test_episodes_of_a_long_video_when_nothing_is_set_are_of_all_tiers_in_proportion() -> None:
    tiers = Counter(tier for tier, _ in planned(200))
    assert tiers == {"easy": 4, "medium": 2, "hard": 1}
    # Without limits, all that is there is taken, and mostly by long windows.
    everything = planned(200, most={})
    assert everything == planned(200, most=None)
    assert sum(length for _, length in everything) == 200
    assert Counter(tier for tier, _ in everything)["hard"] == 4


def test_episodes_when_a_number_is_set_are_so_many_of_any_tier() -> None:
    assert len(planned(200, most=3)) == 3
    assert {tier for tier, _ in planned(200, most={"hard": 0, "medium": 0})} == {"easy"}


def test_choice_when_equal_is_the_one_with_fewer_then_the_earlier() -> None:
    assert choose_windows([Window(0, 1, 1), Window(1, 1, 1), Window(0, 2, 2)]) == (Window(0, 2, 2),)
    assert choose_windows([Window(1, 2, 5), Window(0, 2, 5)]) == (Window(0, 2, 5),)
    assert choose_windows([]) == ()
    assert choose_windows([Window(0, 3, 0)]) == ()


@pytest.mark.parametrize(
    ("tiers", "said"),
    [
        ({}, "at least one tier"),
        ({"easy": (5, 4)}, "easy: expected two numbers"),
        ({"easy": (1, 4)}, "easy: expected two numbers"),
        ({"easy": (5, 9), "hard": (9, 12)}, "9 shots would be both easy and hard"),
    ],
)
def test_tiers_when_wrong_say_what(tiers: dict[str, tuple[int, int]], said: str) -> None:
    assert said in str(problem_of(tiers))
