"""What stands left: drawn so that each item and each pair of methods stand as often one way as the other.

Formula: a vote with two sides shows the methods in one of two ways. Votes are parted into two halves
    (:mod:`.halving`) that are even in each item and pair of methods, over all seats, and in each pair within
    a seat. Chains of votes that may be turned without changing that are turned as long as methods then stand
    more evenly left and right, above all over all seats, then within one.
Source: KathaTrace, H.1: left and right are drawn.
Example: a pair of methods with three votes stands twice one way and once the other; with four, twice each.
"""

import random
from collections import Counter
from collections.abc import Sequence

from .halving import alternating
from .plan import Unit

PASSES, OVERALL = 6, 100
"""How often all chains are looked at; how much more evenness over all seats weighs than within one."""


def flips(
    seats: Sequence[Sequence[int]], shown: Sequence[Unit], draw: random.Random
) -> list[dict[int, bool]]:
    """Return, for each seat, unit -> whether its sides are changed; only units that have two.

    Args:
        seats: units of each seat, by number.
        shown: the units.
        draw: what is random in it.
    """
    votes = [(seat, unit) for seat, held in enumerate(seats) for unit in held if shown[unit].sides == 2]
    draw.shuffle(votes)
    pairs = [tuple(sorted(shown[unit].treatments)) for _, unit in votes]
    left = [(unit, pair) for (_, unit), pair in zip(votes, pairs, strict=True)]
    right = [((seat, pair),) for (seat, _), pair in zip(votes, pairs, strict=True)]
    chains = alternating(left, right)
    first = [0] * len(votes)
    for chain in chains:
        start = draw.randrange(2)
        for step, vote in enumerate(chain):
            first[vote] = (start + step) % 2
    _turn_chains(chains, first, [seat for seat, _ in votes], pairs)
    turned: list[dict[int, bool]] = [{} for _ in seats]
    for (seat, unit), pair, way in zip(votes, pairs, first, strict=True):
        turned[seat][unit] = (way == 1) != (shown[unit].treatments != pair)
    return turned


Key = tuple[object, ...]


def _turn_chains(
    chains: Sequence[Sequence[int]], way: list[int], seats: Sequence[int], pairs: Sequence[tuple[str, ...]]
) -> None:
    """Turn chains of votes while methods stand more evenly; ``way`` is 0 where a pair's first stands left."""

    def ahead_in(votes: Sequence[int]) -> Counter[Key]:
        """Method, and method within a seat -> how often it stands left less how often right."""
        ahead: Counter[Key] = Counter()
        for vote in votes:
            sign = 1 - 2 * way[vote]
            for method, step in zip(pairs[vote], (sign, -sign), strict=False):
                ahead[method,] += step
                ahead[method, seats[vote]] += step
        return ahead

    ahead = ahead_in(range(len(way)))
    for _ in range(PASSES):
        improved = False
        for chain in chains:
            its = ahead_in(chain)
            # Turned, a sum s becomes s - 2t: its square grows by 4 t (t - s).
            growth = sum(
                step * (step - ahead[key]) * (OVERALL if len(key) == 1 else 1) for key, step in its.items()
            )
            if growth < 0:
                improved = True
                ahead.subtract({key: 2 * step for key, step in its.items()})
                for vote in chain:
                    way[vote] = 1 - way[vote]
        if not improved:
            break
