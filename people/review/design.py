"""Who judges what, in which order and with what on which side: drawn before a study begins, from its seed.

Question: how are votes dealt so that methods can be compared fairly, and what has a person to do?
Formula: every wanted vote lies in one seat. There are as few seats as the settings allow: enough for all
    votes, for as many votes as an item has, for all conditions of a story where they are kept ``apart``, for
    all items of a story where a person sees it ``once``. How votes are dealt to seats says :mod:`.seating`,
    the order within one :mod:`.order`, sides :mod:`.sides`, and what comes of it :mod:`.balance`.
Input: units and gold items in any order; the same arguments give the same seats.
Output: seats in a drawn order, so that the first of them are a fair part of all.
Undefined when: a plan cannot be met; the error says which settings stand against each other. Conditions kept
    apart in seats that hold several items of a story may need more seats than that: up to twice as many are
    tried, and :class:`.balance.Balance` says how many there are and how few were thought possible.
Source: KathaTrace, sections F.1 and H.1 and Table 37: three raters of each item and condition; order and
    sides are drawn. ViStoryBench, supplement G: a balanced part for everyone, ten ratings of each model and
    story. StoryEval 2.3: order drawn over methods. EntityBench B.1: three people judge the same sample.
Departures: these sources say what is drawn, not how; the balance within seats, and of methods that meet in
    them, is ours. A repetition has its sides changed: who always says left is not consistent by that.
Example: 7 stories by 7 methods, 1 vote of each, ``once``: at least 7 seats, since a story has 7 votes; each
    seat has 7 items, one of each story and one of each method: a Latin square.
"""

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ...errors import ConfigError
from .order import Asked, likeness, ordered, with_checks, with_repeats
from .plan import Place, Plan, Seat, Unit
from .seating import least_by_condition, seated
from .sides import flips

__all__ = ["Place", "Plan", "Seat", "Unit", "design", "fits", "least_seats", "remaining", "wanted_votes"]


def design(units: Sequence[Unit], gold: Sequence[Unit], plan: Plan) -> tuple[Seat, ...]:
    """Return the seats of a study.

    Args:
        units: what is judged; their items are unique.
        gold: items with known answers, of which checks are drawn.
        plan: settings.

    Raises:
        ConfigError: the plan cannot be met with these units.
    """
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
    conditions = least_by_condition(units, wanted)
    if plan.apart:
        clause = "nobody sees two conditions of one story (apart), and those of one need as many together"
        bounds[clause] = max(sum(votes.values()) for votes in conditions.values())
    if plan.once:
        stories: Counter[str] = Counter()
        for unit, votes in zip(units, wanted, strict=True):
            stories[unit.story] += votes
        bounds["nobody sees two items of one story (once), and one has as many votes"] = max(stories.values())
    return bounds


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
        dealt = seated(units, wanted, plan, seats)
        if dealt is not None:
            _check_room(min(map(len, dealt)), plan)
            return dealt
    raise ConfigError(
        "seats", what="the votes cannot be dealt: some seat gets more than per_seat items",
        fix="allow more seats, or more items in one",
    )  # fmt: skip


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


def _in_order(
    dealt: Sequence[Sequence[int]], checks: Sequence[Sequence[int]], shown: Sequence[Unit], plan: Plan
) -> tuple[Seat, ...]:
    alike = likeness(shown)
    turned = [
        of_items | of_checks
        for of_items, of_checks in zip(
            flips(dealt, shown, random.Random(f"{plan.seed}/sides")),
            flips(checks, shown, random.Random(f"{plan.seed}/sides of checks")),
            strict=True,
        )
    ]
    made = []
    for number, (held, gold) in enumerate(zip(dealt, checks, strict=True)):
        draw = random.Random(f"{plan.seed}/order/{number}")
        asked = with_checks(ordered(held, alike, draw), gold, alike, draw)
        asked = with_repeats(asked, plan.repeats, plan.gap, alike, draw)
        made.append(Seat(number + 1, _places(asked, turned[number], shown, plan.block)))
    return tuple(made)


def _places(
    asked: Sequence[Asked], turned: Mapping[int, bool], shown: Sequence[Unit], block: int
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

    Args:
        seat: the seat.
        answered: items of it that were answered.
    """
    left = tuple(asked for asked in seat.places if asked.check or asked.item not in answered)
    return left if any(not asked.check for asked in left) else ()


def fits(todo: Sequence[Unit], seen: Sequence[Unit], plan: Plan, again: Collection[str] = ()) -> bool:
    """Whether somebody who judged some units may judge others: none twice, with ``apart`` and ``once``.

    Args:
        todo: units that are still to be judged.
        seen: units that the person had, in any seat.
        plan: settings.
        again: items that may be seen a second time, such as checks.
    """
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
