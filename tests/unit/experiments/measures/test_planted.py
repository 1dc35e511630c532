"""SIMULATED judges with stated errors localise planted losses as computed beforehand; guessers get chance."""

from itertools import product

import pytest

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.items import DIMENSIONS
from fabula.experiments.measures.falls import read_plants
from fabula.experiments.measures.planted import planted_measures
from fabula.testing.planted_judgements import write_planted

STORIES = 150
DEFINITIONS = Definitions(resamples=400)
LOSSES = {"swapped": ("temporal_order", "causal"), "emotion_flattened": ("emotional",)}


def outcomes(error: float, hit: bool) -> dict[int, float]:
    """Chance of each fall of a dimension with one question: right before, right after unless it was hit."""
    before, after = 1 - error, error if hit else 1 - error
    return {
        1: before * (1 - after), -1: (1 - before) * after,
        0: before * after + (1 - before) * (1 - after),
    }  # fmt: skip


def expected(hits: int, error: float, *, detected: bool = False) -> float:
    """Localisation by enumerating all 3 ** 6 patterns of falls; the first dimensions were hit."""
    chances = [outcomes(error, place < hits) for place in range(len(DIMENSIONS))]
    total = 0.0
    for pattern in product((-1, 0, 1), repeat=len(DIMENSIONS)):
        weight = 1.0
        for fall, chance in zip(pattern, chances, strict=True):
            weight *= chance[fall]
        top = [place for place, fall in enumerate(pattern) if fall == max(pattern)]
        counts = max(pattern) > 0 or not detected
        total += weight * counts * sum(place < hits for place in top) / len(top)
    return total


def expected_sensitivity(hits: int, error: float) -> float:
    """Chance that the falls of all dimensions add to more than 0."""
    sums = {0: 1.0}
    for place in range(len(DIMENSIONS)):
        step: dict[int, float] = {}
        for so_far, fall in product(sums, (-1, 0, 1)):
            step[so_far + fall] = (
                step.get(so_far + fall, 0) + sums[so_far] * outcomes(error, place < hits)[fall]
            )
        sums = step
    return sum(chance for total, chance in sums.items() if total > 0)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Error rate -> the row of the full protocol, and of the protocol without dimensions."""

    def make(error):
        made = write_planted(tmp_path_factory.mktemp("planted"), STORIES, LOSSES, error)
        folders = {"katha": made.run, "katha-without-dimensions": made.run}
        return planted_measures(folders, read_plants(made.plants), DEFINITIONS, base="base")

    return {error: make(error) for error in (0.0, 0.1, 0.3, 0.5)}


@pytest.mark.parametrize("error", [0.0, 0.1, 0.3, 0.5])
def test_localisation_when_judges_err_is_as_computed_beforehand(rows, error):
    full, _ = rows[error]
    assert (full.stories, full.plants, full.controls, full.left_out) == (STORIES, 2 * STORIES, STORIES, {})
    for loss, dimensions in LOSSES.items():
        score, wanted = full.losses[loss]["localisation"], expected(len(dimensions), error)
        deviation = max((wanted * (1 - wanted) / STORIES) ** 0.5, 1e-9)  # at most, as ties are shares
        assert abs(score.value - wanted) < 4 * deviation, loss
        assert full.losses[loss]["localisation_chance"].value == pytest.approx(len(dimensions) / 6)
        sensed, wanted = full.losses[loss]["sensitivity"], expected_sensitivity(len(dimensions), error)
        assert abs(sensed.value - wanted) < 4 * max((wanted * (1 - wanted) / STORIES) ** 0.5, 1e-9), loss
    found, wanted = (
        full.scores["detected"],
        (expected(2, error, detected=True) + expected(1, error, detected=True)) / 2,
    )
    assert abs(found.value - wanted) < 4 * (0.25 / STORIES) ** 0.5
    alarms, wanted = full.scores["false_alarms"], expected_sensitivity(0, error)
    assert abs(alarms.value - wanted) < 4 * max((wanted * (1 - wanted) / STORIES) ** 0.5, 1e-9)


def test_localisation_when_a_judge_guesses_is_chance_within_its_interval(rows):
    full, _ = rows[0.5]
    score, chance = full.scores["localisation"], full.scores["localisation_chance"].value
    assert chance == pytest.approx((2 / 6 + 1 / 6) / 2)
    assert score.low < chance < score.high
    # and a judge that errs less lies above it
    assert rows[0.3][0].scores["localisation"].low > chance


def test_false_alarms_when_unchanged_outputs_were_judged_once_have_no_value(tmp_path):
    made = write_planted(tmp_path, 3, LOSSES, 0.0)
    (row,) = planted_measures({"katha": made.run}, read_plants(made.plants), DEFINITIONS)
    assert row.scores["false_alarms"].status == "undefined"
    assert "judged twice" in row.scores["false_alarms"].reason
    assert row.left_out == {"there is no unchanged storyboard beside it": 3}
    assert row.scores["localisation"].value == 1.0
    assert (row.scores["localisation"].low, row.scores["localisation"].high) == (None, None)  # three stories
