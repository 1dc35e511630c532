"""Things parted into two halves that are even in many groups at once: the step that evens two seats or sides.

Formula: every thing lies in a chain of ever larger groups on the left (such as item, story) and in another on
    the right (such as method, all). On each side, things are paired within their smallest group, those that
    remain within the next, and so on. Both pairings together make chains and rings of even length; taken
    alternately, they give every group on either side as many of one half as of the other, within one.
Source: De Werra, "Equitable colorations of graphs" (1971), whose proof alternates along such chains; repeated
    for every two of k classes, it makes all k of them even, and no number of classes is too small for it.
Example: three votes on items a, a, b of methods m, n, n: the left pairs the two of a, the right the two of n.
    The chain is a-m, a-n, b-n: the halves {a-m, b-n} and {a-n} have each item and each method evenly.
"""

from collections.abc import Hashable, Sequence

Groups = Sequence[Hashable]
"""The groups of one thing on one side, the smallest first."""


def alternating(left: Sequence[Groups], right: Sequence[Groups]) -> list[list[int]]:
    """Return the things in chains; each chain may begin with either half, and the groups stay even.

    Args:
        left: of each thing, its groups on the left; all have equally many.
        right: its groups on the right.
    """
    first, second = _partners(left), _partners(right)
    ends = [thing for thing in range(len(left)) if thing not in first or thing not in second]
    chains, seen = [], [False] * len(left)
    for start in (*ends, *range(len(left))):
        chain, here, sides = [], start, [second, first] if start in second else [first, second]
        while not seen[here]:
            seen[here] = True
            chain.append(here)
            here = sides[0].get(here, here)
            sides.reverse()
        if chain:
            chains.append(chain)
    return chains


def _partners(groups: Sequence[Groups]) -> dict[int, int]:
    partners: dict[int, int] = {}
    single = list(range(len(groups)))
    for level in range(len(groups[0]) if groups else 0):
        together: dict[Hashable, list[int]] = {}
        for thing in single:
            together.setdefault(groups[thing][level], []).append(thing)
        single = []
        for members in together.values():
            for thing, other in zip(members[::2], members[1::2], strict=False):
                partners[thing], partners[other] = other, thing
            if len(members) % 2:
                single.append(members[-1])
    return partners
