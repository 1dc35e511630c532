"""What a reviewer does next, and who gets which seat. It follows from the study, its standing and the time.

A seat is a share of the work, dealt in advance. Somebody holds it while they work on it; what a drop-out has
not answered goes, with the seat, to the next person for whom it fits.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from .design import Place, fits, remaining
from .folder import Study, in_blocks
from .standing import TRAINING, Reviewer, Standing, hours_between, placed

StepKind = Literal["consent", "item", "overview", "break", "done"]


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next."""

    kind: StepKind  # agree; answer an item; look over a block and close it; rest; through
    block: str = ""  # the block that it is in
    place: Place | None = None  # the item
    number: int = 0  # how many items of the reviewer's work lie before it, and how many there are in all
    total: int = 0  # see ``number``
    wait: float = 0.0  # seconds that a break still lasts
    why: str = ""  # why the reviewer is through, of :data:`.standing.ENDS`


def work_of(study: Study, standing: Standing, person: Reviewer) -> dict[str, tuple[Place, ...]]:
    """Return block -> what a reviewer is asked: the training, then what nobody else answered of the seat."""
    blocks = dict(study.blocks(None))
    if person.seat is not None:
        others = items_of(answered(standing, person.seat, but=person.id))
        asked = remaining(study.seats[person.seat], others) if others else study.seats[person.seat].places
        blocks |= in_blocks(asked)
    return blocks


def seat_of(person: Reviewer, block: str) -> int | None:
    """Return the seat that a block of a reviewer's work belongs to; None for the training."""
    return None if block == TRAINING else person.seat


def is_answered(person: Reviewer, place: Place, block: str) -> bool:
    """Return whether a reviewer has voted on an item in a block, or reported that its media do not load."""
    key = placed(place.item, place.repeat)
    return key in person.broken or any(
        vote.seat == seat_of(person, block) for vote in person.votes.get(key, ())
    )


def next_step(study: Study, standing: Standing, person: Reviewer, now: str) -> Step:
    """Return what a reviewer does next.

    A reviewer without a seat, whose training is behind them, is ``done`` with the reason ``no_seat``.
    """
    if person.ended is not None:
        return Step("done", why=person.ended)
    if person.agreed is None:
        return Step("consent")
    blocks = work_of(study, standing, person)
    total = sum(map(len, blocks.values()))
    before, rested = 0, ""
    for block, places in blocks.items():
        seat = seat_of(person, block)
        if person.has_closed(seat, block):
            before += len(places)
            rested = person.closed[seat, block]
            continue
        if rested and block != TRAINING and (wait := _still_resting(study, person, block, rested, now)):
            return Step("break", block, number=before, total=total, wait=wait)
        for number, place in enumerate(places):
            if not is_answered(person, place, block):
                return Step("item", block, place, before + number, total)
        return Step("overview", block, number=before + len(places), total=total)
    return Step("done", number=before, total=total, why="finished" if person.seat is not None else "no_seat")


def _still_resting(study: Study, person: Reviewer, block: str, since: str, now: str) -> float:
    begun = any(vote.seat == person.seat and vote.event.body.get("block") == block
                for votes in person.votes.values() for vote in votes)  # fmt: skip
    left = study.protocol.break_seconds - hours_between(since, now) * 3600
    return 0.0 if begun else max(0.0, left)


def find_place(study: Study, standing: Standing, person: Reviewer, key: str) -> tuple[str, Place] | None:
    """Return block and place of an item in a reviewer's open work: an answered one, or the next; else None.

    Nobody sees an item before its turn, or changes an answer after its block was closed.
    """
    for block, places in work_of(study, standing, person).items():
        if person.has_closed(seat_of(person, block), block):
            continue
        for place in places:
            if placed(place.item, place.repeat) == key:
                return block, place
            if not is_answered(person, place, block):
                return None
        return None
    return None


def answered(standing: Standing, seat: int, but: str = "") -> set[str]:
    """Return what was answered of a seat, by all whose answers count; ``but`` leaves somebody out."""
    dropped = {person.id for person in standing.reviewers.values() if person.dropped}
    return {key for key, people in standing.by_seat.get(seat, {}).items() if set(people) - dropped - {but}}


def open_places(study: Study, standing: Standing, seat: int) -> tuple[Place, ...]:
    """Return what is still to be answered of a seat, by whoever holds it."""
    return remaining(study.seats[seat], items_of(answered(standing, seat)))


def items_of(keys: Collection[str]) -> frozenset[str]:
    """Return the items among keys of votes; those of repetitions are left out."""
    return frozenset(key for key in keys if "#" not in key)


def free_seat(study: Study, standing: Standing, person: Reviewer) -> int | None:
    """Return the seat that a reviewer should take, one that a drop-out began first; None: none fits."""
    if study.protocol.closed:
        return None
    seen = tuple(study.units[key.partition("#")[0]] for key, votes in person.votes.items()
                 if any(vote.seat is not None for vote in votes))  # fmt: skip
    free = [number for number in study.seats if number not in standing.holders]
    begun = {number: bool(answered(standing, number)) for number in free}
    for number in sorted(free, key=lambda number: (not begun[number], number)):
        todo = open_places(study, standing, number)
        checks = {place.item for place in todo if place.check}
        if todo and fits([study.units[place.item] for place in todo], seen, study.protocol.dealt, checks):
            return number
    return None


def dealt_votes(study: Study) -> dict[str, int]:
    """Return item -> how many votes the design gives it; repetitions and check items are left out."""
    return dict(
        sorted(
            Counter(
                place.item
                for seat in study.seats.values()
                for place in seat.places
                if not place.repeat and not place.check
            ).items()
        )
    )


def expired(study: Study, standing: Standing, now: str) -> Iterator[Reviewer]:
    """Yield those who hold a seat with open work and gave no sign of life for longer than a lease lasts."""
    for seat, holder in list(standing.holders.items()):
        person = standing.reviewers[holder]
        late = hours_between(person.last, now) > study.protocol.lease_hours
        if late and person.ended is None and open_places(study, standing, seat):
            yield person
