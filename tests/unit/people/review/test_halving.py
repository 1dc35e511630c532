"""Two halves that are even in many groups at once, counted anew for drawn groups."""

import random
from collections import Counter

import pytest

from fabula.people.review.halving import alternating


def test_halving_when_worked_by_hand_pairs_items_and_methods() -> None:
    # Votes a-m, a-n, b-n: the left pairs the two of a, the right the two of n.
    (chain,) = alternating([("a",), ("a",), ("b",)], [("m",), ("n",), ("n",)])
    assert chain in ([0, 1, 2], [2, 1, 0])


@pytest.mark.parametrize("seed", range(25))
def test_halves_when_groups_are_drawn_are_even_in_all_of_them_however_chains_begin(seed: int) -> None:
    draw = random.Random(seed)
    left = [(draw.randrange(9), draw.randrange(3)) for _ in range(draw.randrange(60))]
    left = [((small, large), large, "all") for small, large in left]  # the smaller lie within the larger
    right = [(draw.randrange(5), "all") for _ in left]
    chains = alternating(left, right)
    assert sorted(thing for chain in chains for thing in chain) == list(range(len(left)))
    ahead: Counter[object] = Counter()
    for chain in chains:
        start = draw.choice((-1, 1))
        for step, thing in enumerate(chain):
            sign = start * (-1) ** step
            for group in (*enumerate(left[thing]), *enumerate(right[thing], 10)):
                ahead[group] += sign
    assert all(abs(number) <= 1 for number in ahead.values())
