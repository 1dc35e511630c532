"""Votes dealt to seats: nobody gets an item twice, seats differ by one vote at most, by arm, too.

Formula: a seeded round-robin. An arm is what is shown: methods and condition. The votes of an arm are dealt
    in rounds of as many as there are seats, in a drawn order of the seats, one vote to a seat. The items of
    a story make up sets of no more votes than there are seats, and a seat has one vote of a set. Where no
    seat is free in both, a seat that is free in the round and one that is free in the set swap the votes of
    a chain that alternates between them; seats that at last differ by more than one vote swap such a chain,
    too. Both always succeed, since rounds and sets are the two sides of a bipartite graph.
Source: König, "Über Graphen und ihre Anwendung" (1916), for the chains; De Werra, "Equitable colorations of
    graphs" (1971), for even numbers.
Departures: how often two methods meet in a seat is left to chance.
"""

import random
from collections import Counter
from collections.abc import Sequence

from .plan import Unit

Arm = tuple[tuple[str, ...], str | None]
Group = tuple[str | Arm, int]
"""A set, by story and number, or a round, by arm and number of its first vote."""


def deal(units: Sequence[Unit], wanted: Sequence[int], seats: int, draw: random.Random) -> list[list[int]]:
    """Return the units of each seat, by number.

    No seat has a unit twice, or a story twice that has no more votes than there are seats.

    ``wanted``: votes of each unit, as many as there are seats at most.
    """
    arms: dict[Arm, list[int]] = {}
    sets: dict[int, Group] = {}
    last: dict[str, tuple[int, int]] = {}
    for unit in draw.sample(range(len(units)), len(units)):
        story = units[unit].story
        number, votes = last.get(story, (0, 0))
        fits = votes + wanted[unit] <= seats
        last[story] = (number, votes + wanted[unit]) if fits else (number + 1, wanted[unit])
        sets[unit] = story, last[story][0]
        arm = tuple(sorted(units[unit].treatments)), units[unit].condition
        arms.setdefault(arm, []).extend([unit] * wanted[unit])
    dealing = _Dealing(seats)
    for arm, listed in arms.items():
        for start in range(0, len(listed), seats):
            order = sorted(draw.sample(range(seats), seats), key=dealing.loads.__getitem__)
            for unit in listed[start : start + seats]:
                dealing.add(unit, sets[unit], (arm, start), order)
    dealing.even()
    return dealing.seats()


class _Dealing:
    """Votes in seats while they are being dealt; a seat has one vote of every group at most."""

    def __init__(self, seats: int) -> None:
        self.loads = [0] * seats
        self._votes: list[tuple[int, Group, Group]] = []
        self._held: dict[Group, dict[int, int]] = {}

    def seats(self) -> list[list[int]]:
        """Return the units of each seat."""
        units: list[list[int]] = [[] for _ in self.loads]
        for group, held in self._held.items():
            for seat, vote in held.items():
                unit, of_set, _ = self._votes[vote]
                if group == of_set:
                    units[seat].append(unit)
        return units

    def add(self, unit: int, of_set: Group, of_round: Group, order: Sequence[int]) -> None:
        """Deal a vote on a unit to the first seat of an order that may have it."""
        vote = len(self._votes)
        self._votes.append((unit, of_set, of_round))
        in_set, in_round = (self._held.setdefault(group, {}) for group in (of_set, of_round))
        seat = next((seat for seat in order if seat not in in_set and seat not in in_round), None)
        if seat is None:
            seat = next(seat for seat in order if seat not in in_set)
            other = next(seat for seat in order if seat not in in_round)
            self._swap(self._chain(of_round, seat, other), seat, other)
        in_set[seat] = in_round[seat] = vote
        self.loads[seat] += 1

    def even(self) -> None:
        """Swap chains of votes until no two seats differ by more than one vote."""
        while max(self.loads) - min(self.loads) > 1:
            most, fewest = self.loads.index(max(self.loads)), self.loads.index(min(self.loads))
            begin = (group for group, held in self._held.items() if most in held and fewest not in held)
            chains = (self._chain(group, most, fewest) for group in begin)
            self._swap(next(chain for chain in chains if len(chain) % 2), most, fewest)

    def _chain(self, group: Group, seat: int, other: int) -> list[int]:
        """Return the votes that hang together in two seats, from a group that the other has no vote of."""
        chain = []
        while (vote := self._held[group].get(seat)) is not None:
            chain.append(vote)
            _, of_set, of_round = self._votes[vote]
            group, seat, other = of_round if group == of_set else of_set, other, seat
        return chain

    def _swap(self, chain: Sequence[int], seat: int, other: int) -> None:
        """Give the votes of a chain, which begins in a seat, from each of two seats to the other."""
        begin = {vote: (seat, other)[step % 2] for step, vote in enumerate(chain)}
        for vote, old in begin.items():
            for group in self._votes[vote][1:]:
                del self._held[group][old]
        for vote, old in begin.items():
            new = other if old == seat else seat
            for group in self._votes[vote][1:]:
                self._held[group][new] = vote
        moved = Counter(begin.values())
        self.loads[seat] += moved[other] - moved[seat]
        self.loads[other] += moved[seat] - moved[other]
