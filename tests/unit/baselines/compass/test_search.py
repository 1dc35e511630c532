"""The search of tuning on made-up likenesses, the budget, and arms."""

from pathlib import Path

import numpy as np
import pytest

from fabula.baselines.compass.arms import ARMS, BASE, FULL, arms_named
from fabula.baselines.compass.boards import Board, Frame
from fabula.baselines.compass.budget import budget, tuning_budget
from fabula.baselines.compass.measuring import Measured
from fabula.baselines.compass.questions import split_questions
from fabula.baselines.compass.scoring import Weights
from fabula.baselines.compass.tuning import Grid, grid_of, search
from fabula.errors import ConfigError, InputError
from fabula.schemas.values import Score
from fabula.testing.compass_stories import compass_release


def known(value: float | None) -> Score:
    if value is None:
        return Score(value=None, status="undefined", reason="not known")
    return Score(value=value, status="ok")


def candidate(seed: int, r: float, like: float, near: float) -> Measured:
    """Two frames, one transition."""
    board = Board("s", seed, (Frame(Path("1"), "a", 1), Frame(Path("2"), "b", 2)))
    return Measured(board, known(r), np.array([[like], [0.0]]), np.array([near]), ((0, 1),), (True,))


GRID = Grid(
    (
        Weights(recoverability=0.8, coverage=0.1, copies=0.1),
        Weights(recoverability=0.1, coverage=0.8, copies=0.1),
        Weights(recoverability=0.1, coverage=0.1, copies=0.8),
    ),
    (0.3,), (0.9, 0.999),
)  # fmt: skip


@pytest.mark.parametrize(
    ("aims", "place"), [((0.9, 0.1, 0.2), 0), ((0.1, 0.9, 0.2), 1), ((0.1, 0.2, 0.9), 2)]
)
def test_search_when_one_term_picks_what_is_best_chooses_its_weights(
    aims: tuple[float, ...], place: int
) -> None:
    # The first is the most recoverable, the second alone is covered, the third alone has no copies:
    # by the weights 0.8 / 0.1 / 0.1 the scores are 0.8 - 0.1, 0.1 - 0.1, 0; and so on.
    story = [candidate(42, 1.0, 0.0, 1.0), candidate(123, 0.0, 0.9, 1.0), candidate(2026, 0.0, 0.0, 0.5)]
    found = search([story], [[known(aim) for aim in aims]], GRID)
    assert found.chosen == (place,)
    assert found.setting.weights == GRID.weights[place]
    assert (found.objective, found.tried) == (0.9, 3 * 1 * 2)


def test_search_when_settings_are_equal_takes_equal_weights_and_the_highest_gamma() -> None:
    weights = (*GRID.weights, Weights(recoverability=0.4, coverage=0.3, copies=0.3))
    story = [candidate(42, 1.0, 0.9, 0.1)]
    found = search([story], [[known(0.5)]], Grid(weights, (0.1, 0.2, 0.3), (0.9, 0.999)))
    assert found.setting.weights == weights[3]
    assert (found.setting.gamma, found.setting.delta) == (0.999, 0.2)
    assert found.setting.repair_threshold == 0


def test_search_when_stories_have_different_numbers_of_candidates_and_unknown_aims_leaves_those_out() -> None:
    two = [candidate(42, 0.0, 0.0, 1.0), candidate(123, 1.0, 0.9, 0.1)]
    one = [candidate(42, 0.0, 0.0, 1.0)]
    found = search([two, one, two], [[known(0.0), known(1.0)], [known(0.5)], [known(None), known(1.0)]], GRID)
    # (1.0 + 0.5) / 2: the third story has a candidate whose aim nobody knows.
    assert (found.objective, found.chosen) == (0.75, (1, 0, 1))
    with pytest.raises(InputError, match="there is no objective"):
        search([one], [[known(None)]], GRID)


def test_grid_when_made_takes_thresholds_from_the_candidates_and_weights_above_zero() -> None:
    stories = [[candidate(42, 0.0, number / 10, number / 10)] for number in range(11)]
    grid = grid_of(stories)
    # Quantiles that are values themselves: of 0.0 to 1.0 in tenths.
    assert grid.deltas == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert grid.gammas == (0.7, 0.9, 0.999)  # 0.75 and 0.99 fall between: the lower one; 0.9, 0.95 -> 0.9
    assert len(grid.weights) == 36  # so many ways to write 10 as a sum of three numbers from 1
    assert all(w.recoverability + w.coverage + w.copies == pytest.approx(1) for w in grid.weights)
    assert min(w.copies for w in grid.weights) == 0.1


def test_arms_when_listed_say_whether_they_rerank_and_bridge() -> None:
    names = [arm.name for arm in ARMS]
    assert len(names) == len(set(names)) == 14
    assert {arm.name for arm in ARMS if arm.tests} == {"bridge-only", "full"}
    # Table 63: six sets of terms without a bridge, and the whole score with one and without.
    rows = {arm.name: (arm.terms, arm.tests) for arm in ARMS if 63 in arm.tables}
    assert len({terms for terms, _ in rows.values()}) == 7
    assert rows["rerank-only"] == (rows[FULL][0], False)
    # Table 74: what is inserted without a test makes six pictures of every storyboard.
    always = {arm.name for arm in ARMS if arm.insertion is not None and not arm.tests}
    assert always == {"random-extra", "non-semantic-extra", "caption-bridge"}
    assert [arm.name for arm in arms_named(("full", "base"))] == [BASE, FULL]
    assert arms_named() == ARMS
    with pytest.raises(ConfigError, match="random-extra"):
        arms_named(("nobody",))


def test_budget_when_counted_by_hand_is_the_most_that_there_can_be(tmp_path: Path) -> None:
    release = compass_release(tmp_path, 0, 2)
    halves = split_questions(release.records)
    # 2 stories, 16 questions each, 8 of them select, all of those are about a transition; 3 seeds, 2 judges.
    asked = budget(release.records, halves, ARMS, 3, 2, "own")
    full = asked.arms["full"]
    assert (full.candidates, full.weakest, full.bridges) == (2 * 8 * 3 * 2, 2 * 8 * 2, 2 * 8 * 3 * 2)
    assert full.pictures == 2 * 5 * 3 + 2 * 3
    assert asked.arms["base"].calls == asked.arms["coverage+copies"].calls == 0
    assert asked.arms["base"].reporting == 2 * (2 * 8) * 3 * 2
    bridge = asked.arms["bridge-only"]
    assert (bridge.candidates, bridge.weakest, bridge.bridges) == (2 * 8 * 2, 2 * 8 * 2, 2 * 8 * 3 * 2)
    # Two starts are repaired; candidates are judged once.
    together = asked.together
    assert (together.candidates, together.weakest, together.bridges) == (96, 64, 192)
    assert asked.text == 2 * 8 * 2
    assert budget(release.records, halves, ARMS, 3, 2, "whole").arms["full"].weakest == 0
    tuning = tuning_budget(release.records, halves, 3, 2, "own").arms["tuning"]
    assert tuning.candidates == 2 * 16 * 3 * 2
    assert tuning.bridges == full.bridges + 2 * 8 * 2
    assert any("calls to select and repair" in line for line in asked.lines())
