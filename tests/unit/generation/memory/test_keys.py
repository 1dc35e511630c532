"""Grounds: the order in which they are tried."""

import pytest

from fabula.generation.memory.keys import grounds_for, rgb_of


@pytest.mark.parametrize(
    ("description", "retries", "grounds"),
    [
        ("Woman in a red coat.", 2, ("green", "magenta", "blue")),
        ("Woman in a red coat.", 3, ("green", "magenta", "blue", "orange")),
        ("Woman in a red coat.", 0, ("green",)),
        ("Man in a green coat.", 2, ("orange", "magenta", "blue")),
        ("Man in a navy suit.", 2, ("green", "magenta", "orange")),
        # With orange among the four there is nothing to take in green's place: it comes last.
        ("Man in a green coat.", 3, ("magenta", "blue", "orange", "green")),
        # Orange takes green's place, and nothing is left for blue, which comes last.
        ("Blue and green tartan.", 2, ("orange", "magenta", "blue")),
        ("Green, pink, navy and orange motley.", 2, ("green", "magenta", "blue")),
        ("Plain.", 5, ("green", "magenta", "blue", "orange", "green", "magenta")),
    ],
)
def test_grounds_when_colours_are_worn_avoid_them(
    description: str, retries: int, grounds: tuple[str, ...]
) -> None:
    assert grounds_for(description, retries) == grounds


def test_rgb_when_given_a_colour_is_its_three_parts() -> None:
    assert rgb_of("#00b140") == (0, 177, 64)
    with pytest.raises(ValueError, match="hex"):
        rgb_of("green")
