"""Votes dealt to seats: nobody gets an item twice, every seat as much of each method, methods together alike.

Question: which seat gives which of the wanted votes?
Formula: votes are dealt arm by arm (an arm is what is shown: methods and condition), in rounds over the seats
    whose order is drawn anew, so that seats differ by one vote, and by one in every arm. Seats that then hold
    an item twice, or a story more often than they may, swap votes of the same arm; where no swap helps, two
    seats are halved anew (:mod:`.halving`), which always helps. Then votes of different arms are swapped as
    long as methods meet more alike: the sum over pairs of methods of their squared concurrence, the number of
    their meetings within seats, must not grow. For incomplete blocks of one item per method that is the
    search for a balanced incomplete block design.
Source: Yates, "Incomplete randomized blocks" (1936), for the aim; Eccleston and Hedayat, "On the theory of
    connected designs" (1974), for the sum of squares that is made least, (M,S)-optimality.
Departures: a search promises nothing. It finds the balanced designs of v methods in b seats of k, up to
    v = 21, that the tests list, such as 7, 7, 3; 13, 13, 4 and 16, 20, 4; for v = 25 or 31 and where there is
    none, some two methods meet once more or less than others.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from .halving import alternating
from .meetings import Meetings, arm_of
from .plan import Plan, Unit

ATTEMPTS, FEW_VOTES = 15, 500
"""How often a small design, whose methods have equally many votes, is dealt anew while they do not meet
evenly; how many votes still are small."""
PROPOSALS, STALLED = 20_000, 2_500
"""Swaps that are tried for a dealing, and two more for each vote; after how many without gain it is left."""
TRIES = 30
"""Swaps within an arm that are tried before two seats are halved anew."""

Regions = Mapping[str, Mapping[int, str | None]]
"""Story -> seat -> the one condition of the story that the seat may hold."""


def seated(units: Sequence[Unit], wanted: Sequence[int], plan: Plan, seats: int) -> list[list[int]] | None:
    """Return the units of each seat, by their number; None where a seat cannot but hold too many.

    Args:
        units: sorted by item.
        wanted: votes of each unit.
        plan: settings.
        seats: how many; enough for every item, story and condition on its own.
    """
    alone = plan.once or (plan.apart and max(_per_story(units, wanted).values()) <= seats)
    regions = _regions(units, wanted, plan, seats) if plan.apart and not alone else None
    best: Seating | None = None
    for attempt in range(ATTEMPTS if _may_be_even(units, wanted) else 1):
        draw = random.Random(f"{plan.seed}/seats/{seats}/{attempt}")
        seating = Seating(units, wanted, seats, draw, regions, alone=alone)
        seating.deal()
        if plan.per_seat is not None and max(map(len, seating.seats())) > plan.per_seat:
            continue
        seating.mix()
        if best is None or seating.unevenness() < best.unevenness():
            best = seating
        if best.is_even():
            break
    return None if best is None else best.seats()


def _may_be_even(units: Sequence[Unit], wanted: Sequence[int]) -> bool:
    """Whether methods have equally many votes, and few enough that dealing them again costs little."""
    methods: Counter[str] = Counter()
    for unit, votes in zip(units, wanted, strict=True):
        for method in unit.treatments:
            methods[method] += votes
    return sum(wanted) <= FEW_VOTES and len(set(methods.values())) == 1


def _per_story(units: Sequence[Unit], wanted: Sequence[int]) -> Counter[str]:
    """Return story -> votes."""
    total: Counter[str] = Counter()
    for unit, votes in zip(units, wanted, strict=True):
        total[unit.story] += votes
    return total


def least_by_condition(units: Sequence[Unit], wanted: Sequence[int]) -> dict[str, dict[str | None, int]]:
    """Return story -> condition -> the fewest seats for its votes: the votes of its most wanted item."""
    least: dict[str, dict[str | None, int]] = {}
    for unit, votes in zip(units, wanted, strict=True):
        conditions = least.setdefault(unit.story, {})
        conditions[unit.condition] = max(conditions.get(unit.condition, 0), votes)
    return least


def _regions(units: Sequence[Unit], wanted: Sequence[int], plan: Plan, seats: int) -> Regions:
    """Return which condition of a story each seat may hold, where a seat must hold several items of a story.

    Seats go to the conditions of a story by their votes; which ones is a design of its own, whose items are
    stories under a condition and which has one of them at most per story and seat.
    """
    votes = Counter[tuple[str, str | None]]()
    for unit, number in zip(units, wanted, strict=True):
        votes[unit.story, unit.condition] += number
    tickets: list[Unit] = []
    shares: list[int] = []
    for story, conditions in sorted(least_by_condition(units, wanted).items()):
        share = dict(conditions)
        for _ in range(seats - sum(share.values())):
            short = [name for name in share if share[name] < votes[story, name]]
            if not short:
                break
            share[max(short, key=lambda name: votes[story, name] / share[name])] += 1
        tickets += [Unit(f"{story}/{condition}", story, (), condition) for condition in share]
        shares += share.values()
    dealt = seated(tickets, shares, Plan(seed=plan.seed, once=True), seats) or []
    regions: dict[str, dict[int, str | None]] = {}
    for seat, held in enumerate(dealt):
        for ticket in held:
            regions.setdefault(tickets[ticket].story, {})[seat] = tickets[ticket].condition
    return regions


class Seating:
    """Votes in seats while they are being dealt.

    Args:
        units: sorted by item.
        wanted: votes of each unit.
        seats: how many there are.
        draw: what is random in it.
        regions: which condition of a story a seat may hold, where that was dealt before.
        alone: whether a seat may hold one item of a story only.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        wanted: Sequence[int],
        seats: int,
        draw: random.Random,
        regions: Regions | None = None,
        *,
        alone: bool = False,
    ) -> None:
        self.units, self.wanted, self.draw, self.regions, self.alone = units, wanted, draw, regions, alone
        arms = sorted({arm_of(unit) for unit in units}, key=repr)
        draw.shuffle(arms)
        numbers = {arm: number for number, arm in enumerate(arms)}
        self.arms = [numbers[arm_of(unit)] for unit in units]
        self.most = {
            story: 1 if alone else -(-votes // seats) for story, votes in _per_story(units, wanted).items()
        }
        self.rows: list[list[list[int]]] = [[[] for _ in arms] for _ in range(seats)]
        self.held: list[Counter[int]] = [Counter() for _ in range(seats)]
        self.stories: list[Counter[str]] = [Counter() for _ in range(seats)]
        self.meetings = Meetings(arms, seats)

    def seats(self) -> list[list[int]]:
        """Return the units of each seat."""
        return [[unit for arm in row for unit in arm] for row in self.rows]

    def put(self, seat: int, unit: int, votes: int = 1) -> None:
        """Put a vote on a unit into a seat, or with -1 take it away."""
        arm = self.rows[seat][self.arms[unit]]
        if votes == 1:
            arm.append(unit)
        else:
            arm.remove(unit)
        self.held[seat][unit] += votes
        self.stories[seat][self.units[unit].story] += votes
        self.meetings.counts[seat][self.arms[unit]] += votes

    def takes(self, seat: int, unit: int, instead: int | None = None) -> bool:
        """Whether a seat may get a vote on a unit, in place of another that it holds."""
        if self.held[seat][unit]:
            return False
        story = self.units[unit].story
        if self.regions is not None:
            return self.regions[story].get(seat, ()) == self.units[unit].condition
        gone = instead is not None and self.units[instead].story == story
        return self.stories[seat][story] - gone < self.most[story]

    def swap(self, seat: int, unit: int, other: int, theirs: int) -> bool:
        """Swap votes of two seats, if both may; return whether it was done."""
        if not self.takes(other, unit, theirs) or not self.takes(seat, theirs, unit):
            return False
        for either, old, new in ((seat, unit, theirs), (other, theirs, unit)):
            self.put(either, old, -1)
            self.put(either, new)
        return True

    def deal(self) -> None:
        """Deal all votes as evenly as they may be."""
        if self.regions is None:
            self._deal_arms()
            self._mend()
        else:
            self._deal_by_region(self.regions)

    def _deal_arms(self) -> None:
        """Deal an equal number of votes to each seat, and of each arm."""
        seats, position = len(self.rows), 0
        for arm in range(len(self.rows[0])):
            units = [unit for unit, its in enumerate(self.arms) if its == arm]
            self.draw.shuffle(units)
            votes = [unit for unit in units for _ in range(self.wanted[unit])]
            rounds, rest = divmod(len(votes), seats)
            turns = [list(range(seats)) for _ in range(rounds)]
            turns.append([(position + step) % seats for step in range(rest)])
            position += rest
            for turn in turns:
                self.draw.shuffle(turn)
            for unit, seat in zip(votes, (seat for turn in turns for seat in turn), strict=True):
                self.put(seat, unit)

    def _mend(self) -> None:
        """Move what a seat may not have."""
        unchecked = list(range(len(self.rows)))
        while unchecked:
            seat = unchecked.pop()
            while (wrong := self._wrong(seat)) is not None:
                if not self._swap_within_arm(seat, wrong):
                    unchecked.append(self._halve_anew(seat, wrong))

    def _wrong(self, seat: int) -> int | None:
        """Return a unit that a seat has too often, or whose story it has; None where all is well."""
        for arm in self.rows[seat]:
            for unit in arm:
                story = self.units[unit].story
                if self.held[seat][unit] > 1 or self.stories[seat][story] > self.most[story]:
                    return unit
        return None

    def _swap_within_arm(self, seat: int, unit: int) -> bool:
        for _ in range(TRIES):
            other = self.draw.randrange(len(self.rows))
            theirs = self.rows[other][self.arms[unit]]
            if theirs and self.swap(seat, unit, other, self.draw.choice(theirs)):
                return True
        return False

    def _halve_anew(self, seat: int, unit: int) -> int:
        """Deal the votes of two seats anew: the one that has too much, and one with less; return that."""
        story = self.units[unit].story
        twice = self.held[seat][unit] > 1
        others = [
            other
            for other in range(len(self.rows))
            if (not self.held[other][unit] if twice else self.stories[other][story] < self.most[story])
        ]
        other = self.draw.choice(others)
        votes = [vote for either in (seat, other) for arm in self.rows[either] for vote in arm]
        self.draw.shuffle(votes)
        shown = [(vote, self.units[vote]) for vote in votes]
        left = [(vote, (unit.story, unit.condition), unit.story, "all") for vote, unit in shown]
        right = [(self.arms[vote], arm_of(unit)[0], "all") for vote, unit in shown]
        for either in (seat, other):
            for vote in [vote for arm in self.rows[either] for vote in arm]:
                self.put(either, vote, -1)
        for chain in alternating(left, right):
            pair = [seat, other]
            self.draw.shuffle(pair)
            for step, vote in enumerate(chain):
                self.put(pair[step % 2], votes[vote])
        return other

    def _deal_by_region(self, regions: Regions) -> None:
        """Deal the votes of every story under a condition to its seats, then even the loads."""
        cells: dict[tuple[str, str | None], list[int]] = {}
        for unit, shown in enumerate(self.units):
            cells.setdefault((shown.story, shown.condition), []).append(unit)
        order = sorted(cells, key=repr)
        self.draw.shuffle(order)
        loads = [0] * len(self.rows)
        for story, condition in order:
            units = cells[story, condition]
            self.draw.shuffle(units)
            seats = [seat for seat, its in regions[story].items() if its == condition]
            self.draw.shuffle(seats)
            seats.sort(key=lambda seat: loads[seat])
            votes = [unit for unit in units for _ in range(self.wanted[unit])]
            for step, unit in enumerate(votes):
                self.put(seats[step % len(seats)], unit)
                loads[seats[step % len(seats)]] += 1
        self._even_loads(loads)

    def _even_loads(self, loads: list[int]) -> None:
        most = -(-sum(loads) // len(loads))
        for seat in sorted(range(len(loads)), key=lambda seat: -loads[seat]):
            for unit in [unit for arm in self.rows[seat] for unit in arm]:
                if loads[seat] <= most:
                    break
                others = [
                    other for other in range(len(loads)) if loads[other] < most and self.takes(other, unit)
                ]
                if others:
                    other = min(others, key=lambda other: loads[other])
                    self.put(seat, unit, -1)
                    self.put(other, unit)
                    loads[seat] -= 1
                    loads[other] += 1

    def mix(self) -> None:
        """Swap votes of different arms between seats while methods meet more evenly by it, or as evenly."""
        meetings, seats = self.meetings, len(self.rows)
        meetings.count()
        if seats < 2 or self.is_even():
            return
        votes, gained = sum(self.wanted), 0
        for trial in range(PROPOSALS + 2 * votes):
            if trial - gained > STALLED:
                return
            seat, other = self.draw.randrange(seats), self.draw.randrange(seats)
            mine, theirs = meetings.counts[seat], meetings.counts[other]
            more = [arm for arm, (own, its) in enumerate(zip(mine, theirs, strict=True)) if own > its]
            fewer = [arm for arm, (own, its) in enumerate(zip(mine, theirs, strict=True)) if own < its]
            if not more or not fewer:
                continue
            give, get = self.draw.choice(more), self.draw.choice(fewer)
            change = meetings.change(seat, other, give, get)
            if change.within > 0 or (change.within == 0 and change.between > 0):
                continue
            unit, its = self.draw.choice(self.rows[seat][give]), self.draw.choice(self.rows[other][get])
            if self.swap(seat, unit, other, its):
                meetings.apply(seat, other, change)
                if change.within or change.between:
                    gained = trial
                    if meetings.is_even():
                        return

    def unevenness(self) -> tuple[int, int]:
        """Return how unevenly features are spread over seats, and methods meet: sums of squares."""
        return self.meetings.unevenness()

    def is_even(self) -> bool:
        """Whether no dealing could be more even."""
        return self.meetings.is_flat() or self.meetings.is_even()
