"""How even a design is: what a person who plans a study checks before it begins.

Question: is every vote placed, does everybody see as much of each method, do methods meet alike, and does
    each stand as often left as right?
Formula: counts over seats, without repeats and checks. Two methods meet n_jt n_ju times in seat j, which
    shows them n_jt and n_ju times. Methods with unequal votes should meet unequally: ``meeting_share`` is
    divided by r_t r_u / b, what it would be if all b seats had the same part of the r votes of each.
Source: Yates, "Incomplete randomized blocks" (1936); the design is balanced where all meet equally often.
Example: 7 methods in 7 seats of 3: each meets each once, so ``meetings`` is (1, 1) and ``meeting_share`` is
    7/9 for all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from .design import least_seats, wanted_votes
from .order import likeness
from .plan import Plan, Seat, Unit

Span = tuple[int, int]
"""The least and the greatest."""


@dataclass(frozen=True, slots=True)
class Sides:
    """How often a pair of methods stands which way.

    Attributes:
        first: the method that comes first in the alphabet.
        second: the other.
        ahead: how often the first stands left.
        behind: how often it stands right.
    """

    first: str
    second: str
    ahead: int
    behind: int


@dataclass(frozen=True, slots=True)
class Balance:
    """How even a design is; spans are the least and the greatest over seats, or over pairs of methods.

    Attributes:
        seats: how many there are.
        least_seats: how few the plan allows.
        wanted: votes that are wanted.
        placed: votes that lie in seats.
        short: item -> votes that it lacks; items that lack none are left out.
        extra: item -> votes that it has beyond those that are wanted.
        items: items of a seat.
        methods: method -> how often a seat shows it.
        conditions: condition -> how often a seat has it.
        meetings: how often two methods meet within seats; None with fewer than two methods.
        meeting_share: the same, as a share of what equal parts would give.
        sides: how often each pair of methods stands which way.
        left: method -> how often it stands left and how often right.
        alike: neighbours in a seat that share a method or a story.
        groups: groups of seats without a common item: in more than one, people cannot all be compared.
    """

    seats: int
    least_seats: int
    wanted: int
    placed: int
    short: Mapping[str, int]
    extra: Mapping[str, int]
    items: Span
    methods: Mapping[str, Span]
    conditions: Mapping[str, Span]
    meetings: Span | None
    meeting_share: tuple[float, float] | None
    sides: tuple[Sides, ...]
    left: Mapping[str, Span]
    alike: int
    groups: int


def balance(seats: Sequence[Seat], units: Sequence[Unit], plan: Plan) -> Balance:
    """Return how even seats are.

    Args:
        seats: from :func:`.design.design`, or those of them that are filled.
        units: what is judged.
        plan: the settings they were made with.
    """
    known = {unit.item: unit for unit in units}
    held = [[asked for asked in seat.places if not asked.check and not asked.repeat] for seat in seats]
    shown = [[known[asked.item] for asked in places] for places in held]
    wanted = wanted_votes(units, plan)
    placed = Counter(asked.item for places in held for asked in places)
    lacking = {item: votes - placed[item] for item, votes in sorted(wanted.items())}
    methods = [Counter(method for unit in seat for method in unit.treatments) for seat in shown]
    met, shares = _meetings(methods)
    sides = _sides([(known[asked.item], asked.flip) for places in held for asked in places])
    return Balance(
        seats=len(seats),
        least_seats=least_seats(units, [wanted[unit.item] for unit in units], plan),
        wanted=sum(wanted.values()),
        placed=placed.total(),
        short={item: votes for item, votes in lacking.items() if votes > 0},
        extra={item: -votes for item, votes in lacking.items() if votes < 0},
        items=(min(map(len, held), default=0), max(map(len, held), default=0)),
        methods=_spans(methods),
        conditions=_spans([Counter(unit.condition for unit in seat if unit.condition) for seat in shown]),
        meetings=(min(met), max(met)) if met else None,
        meeting_share=(min(shares), max(shares)) if met else None,
        sides=sides,
        left=_left(sides),
        alike=_alike_neighbours(seats, known),
        groups=_groups([{unit.item for unit in seat} for seat in shown]),
    )


def _spans(counts: Sequence[Counter[str]]) -> dict[str, Span]:
    """Return name -> its least and greatest number over seats."""
    every = sorted({name for names in counts for name in names})
    return {
        name: (min(names[name] for names in counts), max(names[name] for names in counts)) for name in every
    }


def _meetings(methods: Sequence[Counter[str]]) -> tuple[list[int], list[float]]:
    """Return, of every two methods, how often they meet, and that as a share of what equal parts give."""
    votes = Counter[str]()
    for names in methods:
        votes.update(names)
    pairs = list(combinations(sorted(votes), 2))
    met = [sum(names[method] * names[other] for names in methods) for method, other in pairs]
    return met, [
        number * len(methods) / (votes[method] * votes[other])
        for number, (method, other) in zip(met, pairs, strict=True)
    ]


def _sides(votes: Sequence[tuple[Unit, bool]]) -> tuple[Sides, ...]:
    ahead: Counter[tuple[str, ...]] = Counter()
    behind: Counter[tuple[str, ...]] = Counter()
    for unit, flip in votes:
        if unit.sides == 2 and len(unit.treatments) == 2:
            pair = tuple(sorted(unit.treatments))
            (behind if flip != (unit.treatments != pair) else ahead)[pair] += 1
    pairs = sorted(ahead.keys() | behind.keys())
    return tuple(Sides(pair[0], pair[1], ahead[pair], behind[pair]) for pair in pairs)


def _left(sides: Sequence[Sides]) -> dict[str, Span]:
    """Return method -> how often it stands left and how often right."""
    left, right = Counter[str](), Counter[str]()
    for pair in sides:
        left.update({pair.first: pair.ahead, pair.second: pair.behind})
        right.update({pair.first: pair.behind, pair.second: pair.ahead})
    return {method: (left[method], right[method]) for method in sorted(left)}


def _alike_neighbours(seats: Sequence[Seat], known: Mapping[str, Unit]) -> int:
    """Return how many neighbours share a method or a story; checks are let out, and part no neighbours."""
    total = 0
    for seat in seats:
        shown = [known[asked.item] for asked in seat.places if not asked.check]
        alike = likeness(shown)
        total += sum(alike(spot, following) > 0 for spot, following in pairwise(range(len(shown))))
    return total


def _groups(held: Sequence[set[str]]) -> int:
    """Return into how many groups seats fall that have no item in common."""
    groups: list[set[str]] = []
    for items in held:
        linked = [group for group in groups if not group.isdisjoint(items)]
        groups = [group for group in groups if group.isdisjoint(items)]
        groups.append(items.union(*linked))
    return len(groups)
