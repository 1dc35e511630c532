"""Values as people read them."""

import pytest

from fabula.validators.entities.counting import fixed


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(239 / 40, 2, "5.98"), (101 / 40, 2, "2.53"), (1 / 3, 2, "0.33"), (0.125, 1, "0.1"),
     (12345.5, 0, "12,346"), (-0.005, 2, "-0.01"), (0.0, 2, "0.00")],
)  # fmt: skip
def test_fixed_when_a_value_lies_between_two_takes_the_one_away_from_zero(
    value: float, places: int, text: str
) -> None:
    assert fixed(value, places) == text
