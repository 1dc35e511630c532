"""Scores of storyboards as values: their formulas by hand, ranges, and what the named values are of."""

import numpy as np
import pytest

from fabula.evaluation.events import votes
from fabula.evaluation.recoverability import columns, recoverability
from fabula.evaluation.recoverability.items import DIMENSIONS
from fabula.evaluation.recoverability.recoverability import Rate, values_of

FAMILIES = {
    "recoverability": recoverability.METRICS,
    "ambiguity": (columns.AMBIGUITY,),
    "moral target": columns.MORAL,
    "pairs": columns.PAIRS,
}


@pytest.mark.parametrize("rates", FAMILIES.values(), ids=FAMILIES)
def test_rates_when_declared_say_all_that_is_read_from_them(rates: tuple[Rate, ...]) -> None:
    assert len({rate.name for rate in rates}) == len({rate.label for rate in rates}) == len(rates)
    for rate in rates:
        assert rate.version == 1 and rate.needs and rate.why and rate.range[1] == 1
        assert (rate.range[0] == -1) == (
            "gap" in rate.name
        )  # differences can be below 0, and so can their intervals


def test_moral_target_when_worked_by_hand_has_rates_and_gap() -> None:
    # of 12 stories 6 are found from text and 3 from images; of 10 with both, 8
    values = values_of(columns.MORAL, np.array([6.0, 3.0, 12.0, 8.0, 10.0]))
    assert values.tolist() == [0.5, 0.25, 0.25, 0.8]


def test_pairs_when_worked_by_hand_have_accuracy_confusion_and_gap() -> None:
    # of 4 pairs the source is chosen for 3, the variant for none; of 5 labels 4 from text, 1 from images
    # of 4 variants that were drawn 1 is chosen; of the 2 pairs with both outputs, none has both right
    values = values_of(columns.PAIRS, np.array([3.0, 0.0, 4.0, 4.0, 1.0, 5.0, 1.0, 4.0, 0.0, 2.0]))
    assert values == pytest.approx([0.75, 0.25, 0.0, 0.8, 0.2, 0.6, 0.25, 0.0])
    # where no variant was drawn, the others are what they were
    values = values_of(columns.PAIRS, np.array([3.0, 0.0, 4.0, 4.0, 1.0, 5.0, 0.0, 0.0, 0.0, 0.0]))
    assert values == pytest.approx([0.75, 0.25, 0.0, 0.8, 0.2, 0.6, np.nan, np.nan], nan_ok=True)


def test_rates_when_nothing_is_counted_have_no_value() -> None:
    assert np.isnan(values_of(columns.MORAL, np.zeros(5))).all()
    assert np.isnan(values_of(columns.PAIRS, np.zeros((3, 10)))).all()


def test_named_values_are_of_each_dimension_and_of_all() -> None:
    named = recoverability.named()
    assert len(named) == 3 * len(DIMENSIONS) + len(recoverability.METRICS)
    assert list(named)[-6:] == [rate.name for rate in recoverability.METRICS]
    assert all(named[f"gap.{name}"] is recoverability.GAP for name in DIMENSIONS)


def test_completion_when_declared_is_better_high_and_silence_low() -> None:
    assert (votes.METRIC.better, votes.NONRESPONSE.better) == ("high", "low")
