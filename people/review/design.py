"""Who judges what, in which order and with what on which side: drawn before a study begins, from its seed.

Question: how are votes dealt so that methods can be compared fairly, and what has a person to do?
Formula: every wanted vote lies in one seat, as :mod:`.dealing` says: nobody gets an item twice, and seats
    differ by one vote at most, by one in every arm (methods and condition), too. There are as few seats as
    the settings allow: enough for all votes, for as many votes as an item has, for all conditions of a story
    where they are kept ``apart``, for all items of a story where a person sees it ``once``. The order is
    drawn; checks go one into each equal part of it, repetitions at least ``gap`` places behind the first
    time. Two methods stand either way in turn, from seat to seat, so that each way has as many votes as the
    other, or one more.
Input: units and gold items in any order; the same arguments give the same seats.
Output: seats in a drawn order, so that the first of them are a fair part of all.
Undefined when: a plan cannot be met; the error says which settings stand against each other.
Source: KathaTrace, sections F.1 and H.1 and Table 37: three raters of each item and condition; order and
    sides are drawn. ViStoryBench, supplement G: a balanced part for everyone, ten ratings of each model and
    story. StoryEval 2.3: order drawn over methods. EntityBench B.1: three people judge the same sample.
Departures: these sources say what is drawn, not how. A repetition has its sides changed: who always says
    left is not consistent by that. Where conditions are kept apart and a seat holds several items of a
    story, seats differ by more than one vote, and up to twice as many are tried until none has more than
    ``per_seat``.
Example: 7 stories by 7 methods, 1 vote of each, ``once``: at least 7 seats, since a story has 7 votes; each
    seat has 7 items, one of each story and one of each method: a Latin square.
"""

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ...errors import ConfigError
from .plan import Place, Plan, Seat, Unit

# -- Votes dealt to seats: nobody gets an item twice, seats differ by one vote at most, by arm, too
#
# Formula: a seeded round-robin. An arm is what is shown: methods and condition. The votes of an arm are dealt
#     in rounds of as many as there are seats, in a drawn order of the seats, one vote to a seat. The items of
#     a story make up sets of no more votes than there are seats, and a seat has one vote of a set. Where no
#     seat is free in both, a seat that is free in the round and one that is free in the set swap the votes of
#     a chain that alternates between them; seats that at last differ by more than one vote swap such a chain,
#     too. Both always succeed, since rounds and sets are the two sides of a bipartite graph.
# Source: König, "Über Graphen und ihre Anwendung" (1916), for the chains; De Werra, "Equitable colorations of
#     graphs" (1971), for even numbers.
# Departures: how often two methods meet in a seat is left to chance.

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


# -- Who judges what, in which order and with what on which side

__all__ = ["Place", "Plan", "Seat", "Unit", "design", "fits", "least_seats", "remaining", "wanted_votes"]


def design(units: Sequence[Unit], gold: Sequence[Unit], plan: Plan) -> tuple[Seat, ...]:
    _check(units, gold, plan)
    listed = sorted(units, key=lambda unit: unit.item)
    votes = wanted_votes(listed, plan)
    wanted = [votes[unit.item] for unit in listed]
    dealt = _dealt(listed, wanted, plan)
    random.Random(f"{plan.seed}/numbers").shuffle(dealt)
    shown = [*listed, *sorted(gold, key=lambda unit: unit.item)]
    checks = _checks(dealt, shown, len(listed), plan)
    return _in_order(dealt, checks, shown, plan)


def wanted_votes(units: Sequence[Unit], plan: Plan) -> dict[str, int]:
    """Return item -> the votes that are wanted of it.

    Stories of the overlap are drawn one after the other: one is taken where that brings every treatment and
    condition nearer to its share of what was looked at so far.
    """
    stories: dict[str, list[Unit]] = {}
    for unit in sorted(units, key=lambda unit: unit.item):
        stories.setdefault(unit.story, []).append(unit)
    order = sorted(stories)
    random.Random(f"{plan.seed}/overlap").shuffle(order)
    lacking: Counter[tuple[object, ...]] = Counter()
    taken = set()
    for story in order:
        sizes = Counter((*sorted(unit.treatments), unit.condition) for unit in stories[story])
        for stratum, size in sizes.items():
            lacking[stratum] += plan.overlap * size  # type: ignore[assignment]  # a share
        if sum(size * (size - 2 * lacking[stratum]) for stratum, size in sizes.items()) < 0:
            taken.add(story)
            lacking.subtract(sizes)
    if not taken and plan.overlap > 0:
        taken.update(order[:1])
    return {unit.item: plan.raters if unit.story in taken else plan.least for unit in units}


def least_seats(units: Sequence[Unit], wanted: Sequence[int], plan: Plan) -> int:
    """Return the fewest seats that a plan allows, whatever number it asks for."""
    return max(_bounds(units, wanted, plan).values())


def _bounds(units: Sequence[Unit], wanted: Sequence[int], plan: Plan) -> dict[str, int]:
    """Return the reason, as a clause -> the fewest seats that it allows."""
    bounds = {"an item has as many votes, and nobody sees it twice": max(wanted)}
    if plan.per_seat is not None:
        clause = f"{sum(wanted)} votes are wanted, and a seat has {plan.per_seat} items at most (per_seat)"
        bounds[clause] = -(-sum(wanted) // plan.per_seat)
    if plan.apart:
        clause = "nobody sees two conditions of one story (apart), and those of one need as many together"
        bounds[clause] = max(sum(votes.values()) for votes in _least_by_condition(units, wanted).values())
    if plan.once:
        clause = "nobody sees two items of one story (once), and one has as many votes"
        bounds[clause] = max(_per_story(units, wanted).values())
    return bounds


def _per_story(units: Sequence[Unit], wanted: Sequence[int]) -> Counter[str]:
    """Return story -> votes."""
    total: Counter[str] = Counter()
    for unit, votes in zip(units, wanted, strict=True):
        total[unit.story] += votes
    return total


def _least_by_condition(units: Sequence[Unit], wanted: Sequence[int]) -> dict[str, dict[str | None, int]]:
    """Return story -> condition -> the fewest seats for its votes: the votes of its most wanted item."""
    least: dict[str, dict[str | None, int]] = {}
    for unit, votes in zip(units, wanted, strict=True):
        conditions = least.setdefault(unit.story, {})
        conditions[unit.condition] = max(conditions.get(unit.condition, 0), votes)
    return least


def _check(units: Sequence[Unit], gold: Sequence[Unit], plan: Plan) -> None:
    if not units:
        raise ConfigError("items", what="there is nothing to judge", fix="choose stories that are there")
    names = Counter(unit.item for unit in (*units, *gold))
    twice = sorted(name for name, times in names.items() if times > 1)
    if twice:
        what = f"named more than once, among items or gold items: {', '.join(twice[:5])}"
        raise ConfigError("items", what=what, fix="give each thing that is judged an id of its own")
    odd = next((unit for unit in (*units, *gold) if unit.sides not in (1, 2)), None)
    if odd is not None:
        what = f"item {odd.item} has {odd.sides} sides"
        raise ConfigError("items", what=what, fix="show one thing, or two side by side")
    if plan.checks > len(gold):
        what = f"{plan.checks} checks in each seat, and there are {len(gold)} gold items"
        raise ConfigError("checks", what=what, fix="ask for fewer checks, or add items with known answers")


def _dealt(units: Sequence[Unit], wanted: Sequence[int], plan: Plan) -> list[list[int]]:
    """Return the units of every seat, by number: in the fewest seats, or in as many as the plan has."""
    least = least_seats(units, wanted, plan)
    if plan.seats is not None:
        if plan.seats < least:
            bounds = _bounds(units, wanted, plan)
            what = "; ".join(f"{clause}: {seats}" for clause, seats in bounds.items() if seats > plan.seats)
            raise ConfigError(
                "seats", expected=f"at least {least}", found=f"{plan.seats} ({what})",
                fix="take more people, want fewer votes, or let each do more",
            )  # fmt: skip
        if plan.seats > sum(wanted):
            what = f"{plan.seats} seats are more than the {sum(wanted)} votes that are wanted"
            raise ConfigError("seats", what=what, fix="ask for fewer seats")
    for seats in range(plan.seats or least, (plan.seats or 2 * least) + 1):
        draw = random.Random(f"{plan.seed}/seats/{seats}")
        is_shared = plan.apart and not plan.once and max(_per_story(units, wanted).values()) > seats
        dealt = (_deal_apart if is_shared else deal)(units, wanted, seats, draw)
        if plan.per_seat is None or max(map(len, dealt)) <= plan.per_seat:
            _check_room(min(map(len, dealt)), plan)
            return dealt
    raise ConfigError(
        "seats", what="the votes cannot be dealt: some seat gets more than per_seat items",
        fix="allow more seats, or more items in one",
    )  # fmt: skip


def _deal_apart(
    units: Sequence[Unit], wanted: Sequence[int], seats: int, draw: random.Random
) -> list[list[int]]:
    """Return the units of each seat, by number, where a seat holds several items of a story.

    Seats go to the conditions of a story by their votes. Which seat has which condition is dealt as if that
    were the items; then the votes of each go round its seats, the emptiest first.
    """
    cells: dict[tuple[str, str | None], list[int]] = {}
    for unit, shown in enumerate(units):
        cells.setdefault((shown.story, shown.condition), []).append(unit)
    votes = {cell: sum(wanted[unit] for unit in held) for cell, held in cells.items()}
    shares = {
        (story, name): share
        for story, conditions in _least_by_condition(units, wanted).items()
        for name, share in _shares(conditions, {name: votes[story, name] for name in conditions}, seats)
    }
    tickets = [Unit(f"{story}/{condition}", story, (), condition) for story, condition in shares]
    seats_of: dict[tuple[str, str | None], list[int]] = {cell: [] for cell in shares}
    for seat, held in enumerate(deal(tickets, list(shares.values()), seats, draw)):
        for ticket in held:
            seats_of[tickets[ticket].story, tickets[ticket].condition].append(seat)
    dealt: list[list[int]] = [[] for _ in range(seats)]
    for cell in draw.sample(list(cells), len(cells)):
        own = sorted(draw.sample(seats_of[cell], len(seats_of[cell])), key=lambda seat: len(dealt[seat]))
        listed = [unit for unit in draw.sample(cells[cell], len(cells[cell])) for _ in range(wanted[unit])]
        for number, unit in enumerate(listed):
            dealt[own[number % len(own)]].append(unit)
    return dealt


def _shares(
    least: Mapping[str | None, int], votes: Mapping[str | None, int], seats: int
) -> list[tuple[str | None, int]]:
    """Return how many seats each condition of a story gets, by its votes: no more than it has of these."""
    share = dict(least)
    while sum(share.values()) < seats and (short := [name for name in share if share[name] < votes[name]]):
        share[max(short, key=lambda name: votes[name] / share[name])] += 1
    return list(share.items())


def _check_room(fewest: int, plan: Plan) -> None:
    if plan.repeats > fewest or (plan.repeats and plan.gap > fewest):
        raise ConfigError(
            "repeats",
            what=f"a seat has {fewest} items, too few to ask {plan.repeats} of them again "
            f"at least {plan.gap} places later",
            fix="repeat fewer, lower the gap, or give each seat more items",
        )


def _checks(dealt: Sequence[Sequence[int]], shown: Sequence[Unit], items: int, plan: Plan) -> list[list[int]]:
    """Return the gold items of each seat, by number: all about equally often, none that it may not have."""
    draw = random.Random(f"{plan.seed}/checks")
    used = dict.fromkeys(range(items, len(shown)), 0)
    checks: list[list[int]] = []
    for number, held in enumerate(dealt, 1):
        seen = [shown[unit] for unit in held]
        drawn: list[int] = []
        for gold in sorted(used, key=lambda gold: (used[gold], draw.random())):
            if len(drawn) < plan.checks and _agree([shown[gold]], seen, plan):
                drawn.append(gold)
                seen.append(shown[gold])
                used[gold] += 1
        if len(drawn) < plan.checks:
            rule = "once" if plan.once else "apart"
            raise ConfigError(
                "checks",
                what=f"seat {number} may have {len(drawn)} of {len(used)} gold items only, and needs "
                f"{plan.checks}: the others are of stories that it has already ({rule})",
                fix="take gold items of other stories",
            )
        draw.shuffle(drawn)
        checks.append(drawn)
    return checks


class _Asked(NamedTuple):
    """A unit in an order; whether it is there for the second time, or as a check."""

    unit: int
    repeat: int = 0
    check: bool = False


def _in_order(
    dealt: Sequence[Sequence[int]], checks: Sequence[Sequence[int]], shown: Sequence[Unit], plan: Plan
) -> tuple[Seat, ...]:
    turned = [
        of_items | of_checks
        for of_items, of_checks in zip(
            _flips(dealt, shown, random.Random(f"{plan.seed}/sides")),
            _flips(checks, shown, random.Random(f"{plan.seed}/sides of checks")),
            strict=True,
        )
    ]
    made = []
    for number, (held, gold) in enumerate(zip(dealt, checks, strict=True)):
        draw = random.Random(f"{plan.seed}/order/{number}")
        asked = _with_checks(draw.sample(held, len(held)), gold, draw)
        asked = _with_repeats(asked, plan.repeats, plan.gap, draw)
        made.append(Seat(number + 1, _places(asked, turned[number], shown, plan.block)))
    return tuple(made)


def _flips(
    seats: Sequence[Sequence[int]], shown: Sequence[Unit], draw: random.Random
) -> list[dict[int, bool]]:
    """Return, for each seat, unit -> whether its sides are changed; only units that have two."""
    is_turned: dict[tuple[str, ...], bool] = {}
    flips: list[dict[int, bool]] = []
    for held in seats:
        flips.append({})
        for unit in draw.sample(held, len(held)):
            if shown[unit].sides == 2:
                pair = tuple(sorted(shown[unit].treatments))
                is_turned[pair] = not is_turned.get(pair, draw.random() < 0.5)
                flips[-1][unit] = is_turned[pair] != (shown[unit].treatments != pair)
    return flips


def _with_checks(order: Sequence[int], checks: Sequence[int], draw: random.Random) -> list[_Asked]:
    """Return an order with checks spread over it, one within each equal part."""
    asked: list[_Asked] = []
    for part, check in enumerate(checks):
        low, high = (len(order) * bound // len(checks) for bound in (part, part + 1))
        stretch = [_Asked(unit) for unit in order[low:high]]
        spots = range(1, len(stretch)) if len(stretch) > 1 else range(len(stretch) + 1)
        stretch.insert(draw.choice(spots), _Asked(check, check=True))
        asked += stretch
    return asked or [_Asked(unit) for unit in order]


def _with_repeats(asked: Sequence[_Asked], repeats: int, gap: int, draw: random.Random) -> list[_Asked]:
    """Return an order in which some units come a second time, at least ``gap`` places after the first."""
    asked = list(asked)
    for left in range(repeats, 0, -1):
        shown = {entry.unit for entry in asked if entry.repeat}
        first = {
            spot: entry.unit
            for spot, entry in enumerate(asked)
            if not entry.check and entry.unit not in shown and spot + gap <= len(asked)
        }
        is_scarce = len(first) < left  # then each has to make room for one more, at the end
        spot = min(first) if is_scarce else draw.choice(list(first))
        later = len(asked) if is_scarce else draw.randint(spot + gap, len(asked))
        asked.insert(later, _Asked(first[spot], repeat=1))
    return asked


def _places(
    asked: Sequence[_Asked], turned: Mapping[int, bool], shown: Sequence[Unit], block: int
) -> tuple[Place, ...]:
    blocks = -(-len(asked) // block)
    return tuple(
        Place(
            shown[entry.unit].item,
            block=spot * blocks // len(asked),
            repeat=entry.repeat,
            flip=turned.get(entry.unit, False) != (entry.repeat > 0 and shown[entry.unit].sides == 2),
            check=entry.check,
        )
        for spot, entry in enumerate(asked)
    )


def remaining(seat: Seat, answered: Collection[str]) -> tuple[Place, ...]:
    """Return what somebody is asked who takes over a seat that was begun: all that was not answered.

    An answered item is not repeated either: who takes over never saw it. Checks stay, since they are about
    the person; where nothing else remains, nothing does.
    """
    left = tuple(asked for asked in seat.places if asked.check or asked.item not in answered)
    return left if any(not asked.check for asked in left) else ()


def fits(todo: Sequence[Unit], seen: Sequence[Unit], plan: Plan, again: Collection[str] = ()) -> bool:
    """Whether somebody who judged some units may judge others: none twice, with ``apart`` and ``once``."""
    before = {unit.item for unit in seen}
    if any(unit.item in before and unit.item not in again for unit in todo):
        return False
    return _agree([unit for unit in todo if unit.item not in before], seen, plan)


def _agree(new: Sequence[Unit], seen: Sequence[Unit], plan: Plan) -> bool:
    """Whether new units are of other stories than those seen, or of the same condition, as a plan has it."""
    had: dict[str, set[str | None]] = {}
    for unit in seen:
        had.setdefault(unit.story, set()).add(unit.condition)
    if plan.once and any(unit.story in had for unit in new):
        return False
    return not plan.apart or all(had.get(unit.story, {unit.condition}) == {unit.condition} for unit in new)
