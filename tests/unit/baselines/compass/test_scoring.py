"""Equations 24 to 28 by hand."""

import numpy as np
import pytest

from fabula.baselines.compass.scoring import (
    NO_QUESTION,
    NO_SCENES,
    NO_TEXT,
    NO_VECTOR,
    ONE_FRAME,
    Terms,
    Weights,
    copy_penalty,
    inserted,
    ranked,
    recoverability,
    transition_coverage,
    weakest_transition,
)
from fabula.schemas.values import Score

FIVE = [(0, 1), (1, 2), (2, 3), (3, 4)]
WEIGHTS = Weights(recoverability=0.4, coverage=0.4, copies=0.2)


def known(value: float | None) -> Score:
    if value is None:
        return Score(value=None, status="undefined", reason="not known")
    return Score(value=value, status="ok")


def terms(r: float | None, c: float | None, p: float | None) -> Terms:
    return Terms(known(r), known(c), known(p))


def test_recoverability_when_dimensions_have_different_numbers_weighs_them_equally() -> None:
    # causal: 1 of 4 right; moral: 1 of 1. Mean of 1/4 and 1: 0.625, not 2/5.
    assert recoverability({"causal": [True, False, False, False], "moral": [True]}).value == 0.625
    assert recoverability({"causal": []}).reason == NO_QUESTION
    assert recoverability({}).value is None


def likeness() -> np.ndarray:
    # rows: five frames; columns: four transitions
    return np.array(
        [
            [0.5, 0.0, 0.0, 0.9],
            [0.2, 0.3, 0.0, 0.0],
            [0.0, 0.1, 0.2, 0.0],
            [0.0, 0.0, 0.3, 0.4],
            [0.9, 0.9, 0.0, 0.1],
        ]
    )


def test_coverage_when_worked_by_hand_takes_the_better_of_two_frames_strictly_above_delta() -> None:
    # transition 1: max(0.5, 0.2) = 0.5 > 0.3 yes; 2: max(0.3, 0.1) = 0.3 > 0.3 no;
    # 3: max(0.2, 0.3) = 0.3 no; 4: max(0.4, 0.1) = 0.4 yes. 0.9 of frames elsewhere count for nothing.
    score = transition_coverage(likeness(), FIVE, [True] * 4, 0.3)
    assert (score.value, score.numerator, score.denominator) == (0.5, 2, 4)
    assert transition_coverage(likeness(), FIVE, [True] * 4, -1.0).value == 1
    assert transition_coverage(likeness(), FIVE, [True] * 4, 0.9).value == 0


def test_coverage_when_a_bridge_was_inserted_has_three_frames_and_the_same_denominator() -> None:
    # A bridge behind frame 2 shows transition 2: six rows, its cosine 0.8; spans (0,1) (1,2,3) (3,4) (4,5).
    rows = np.insert(likeness(), 2, [0.0, 0.8, 0.0, 0.0], axis=0)
    score = transition_coverage(rows, [(0, 1), (1, 2, 3), (3, 4), (4, 5)], [True] * 4, 0.3)
    assert (score.value, score.denominator) == (0.75, 4)


def test_coverage_when_undefined_says_why() -> None:
    # Of four annotations one is empty: it leaves both sides. 1 yes, 2 no, 3 no: 1 of 3.
    score = transition_coverage(likeness(), FIVE, [True, True, True, False], 0.3)
    assert (score.numerator, score.denominator) == (1, 3)
    assert transition_coverage(likeness(), FIVE, [False] * 4, 0.3).reason == NO_TEXT
    assert transition_coverage(likeness(), [(), *FIVE[1:]], [True] * 4, 0.3).reason == NO_SCENES
    nothing = np.full((5, 4), np.nan)
    assert transition_coverage(nothing, FIVE, [True] * 4, 0.3).reason == NO_VECTOR


def test_copy_penalty_when_worked_by_hand_counts_neighbours_strictly_above_gamma() -> None:
    # 0.99 > 0.95 and 0.96 > 0.95; 0.95 is not: 2 of 4.
    assert copy_penalty(np.array([0.99, 0.95, 0.2, 0.96]), 0.95).value == 0.5
    # Six frames have five neighbours: 2 of 5.
    assert copy_penalty(np.array([0.99, 0.95, 0.2, 0.96, 0.1]), 0.95).value == 0.4
    assert copy_penalty(np.ones(4), 0.999).value == 1
    assert copy_penalty(np.array([]), 0.95).reason == ONE_FRAME
    # A pair without a vector is left out: 1 of 3.
    assert copy_penalty(np.array([0.99, np.nan, 0.2, 0.1]), 0.95).value == pytest.approx(1 / 3)
    assert copy_penalty(np.array([np.nan]), 0.95).reason == NO_VECTOR


def test_score_when_worked_by_hand_is_the_weighted_sum() -> None:
    # 0.4 x 0.5 + 0.4 x 0.75 - 0.2 x 0.25 = 0.2 + 0.3 - 0.05 = 0.45
    # 0.4 x 0.75 + 0.4 x 0.5 - 0.2 x 0 = 0.3 + 0.2 = 0.5
    ranking = ranked([terms(0.5, 0.75, 0.25), terms(0.75, 0.5, 0.0)], WEIGHTS)
    assert ranking.scores == (0.45, 0.5)
    assert (ranking.best, ranking.terms) == (1, ("recoverability", "coverage", "copies"))


@pytest.mark.parametrize(
    ("names", "best"),
    [
        (("recoverability",), 1),
        (("coverage",), 0),
        (("copies",), 2),
        (("recoverability", "coverage"), 1),  # 0.4 x (0.5 + 0.75), (0.9 + 0.5), (0.1 + 0.2)
        (("coverage", "copies"), 0),  # 0.3 - 0.02 = 0.28; 0.2 - 0.1 = 0.1; 0.08
    ],
)
def test_score_when_terms_are_left_out_selects_by_the_others(names: tuple[str, ...], best: int) -> None:
    candidates = [terms(0.5, 0.75, 0.1), terms(0.9, 0.5, 0.5), terms(0.1, 0.2, 0.0)]
    assert ranked(candidates, WEIGHTS.only(names)).best == best  # type: ignore[arg-type]


def test_score_when_equal_takes_the_first_seed_whatever_the_order_of_additions() -> None:
    # 0.1 + 0.2 is not 0.3 in binary: nine digits decide.
    weights = Weights(recoverability=0.1, coverage=0.2, copies=0.7)
    assert ranked([terms(1.0, 1.0, 0.0), terms(0.0, 1.5, 0.0)], weights).best == 0
    assert ranked([terms(0.0, 1.5, 0.0), terms(1.0, 1.0, 0.0)], weights).best == 0


def test_copied_storyboard_when_as_recoverable_loses_by_the_copy_penalty() -> None:
    # Five times the same frame: all four neighbours are copies. 0.4 + 0.4 - 0.2 = 0.6 against 0.8.
    assert ranked([terms(1.0, 1.0, 1.0), terms(1.0, 1.0, 0.0)], WEIGHTS).best == 1
    assert ranked([terms(1.0, 1.0, 1.0), terms(1.0, 1.0, 0.0)], WEIGHTS.only(("coverage",))).best == 0


def test_weakest_transition_when_worked_by_hand_is_the_lowest_that_has_a_question() -> None:
    assert weakest_transition([known(0.5), known(0.25), known(0.25), known(1.0)]) == 1
    assert weakest_transition([known(0.5), known(None), known(0.75), known(None)]) == 0
    assert weakest_transition([known(None)] * 4) is None


def test_bridge_when_inserted_stands_behind_the_first_frame_of_its_transition() -> None:
    # Eq. 28 with t* = 2: x1, x2, x2.5, x3, x4, x5
    assert inserted("12345", 2, "b") == ("1", "2", "b", "3", "4", "5")
    for after in (0, 5):
        with pytest.raises(ValueError, match="behind frame 1 to 4"):
            inserted("12345", after, "b")
