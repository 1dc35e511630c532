"""What a reviewer does next, and who gets which seat. It follows from the study, its standing and the time.

A seat is a share of the work, dealt in advance. Somebody holds it while they work on it; what a drop-out has
not answered goes, with the seat, to the next person for whom it fits.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...schemas.canonical import Json
from ...schemas.judgement import HumanRow
from ...validators.katha.review_tables import SEEN
from .design import Place, fits, remaining
from .folder import Study, in_blocks
from .items import Item, Stands
from .plan import Excluded, answer_of, apply
from .protocol import SIMULATED
from .standing import TRAINING, Reviewer, Standing, Vote, hours_between, placed
from .task import UNCLEAR, Question, place_of

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


# -- Votes as lines of what people said: opaque ids become what they stand for, sides are turned back
#
# Each kind of line is made by one function, named in the task by ``row``. Active time counts while the page
# was visible, its media were loaded, and the pauses were short; raw events of the page are kept with every
# vote, so that another limit can be applied later. Of a vote, the rules of the protocol may leave out lines
# of some kinds.

# -- active time

VISIBLE, HIDDEN, LOADED = "visible", "hidden", "loaded"


def active_seconds(timeline: Sequence[tuple[float, str]], idle: float) -> float | None:
    """Return the active time of a page in seconds; None where it was never loaded and seen.

    Time counts from when everything was loaded, while the page was visible. A pause between two events counts
    as at most ``idle`` seconds: what comes after it is taken for absence.

    ``timeline``: milliseconds since the page was opened, and what happened; sorted here. ``idle``: longest
    pause that counts in full, in seconds.

    Example: loaded at 1 s, active at 3 s and at 63 s, sent at 64 s, idle 30 s: 2 + 30 + 1 = 33 s.
    """
    seen, loaded, before, total, began = True, False, 0.0, 0.0, False
    for moment, what in sorted(timeline, key=lambda event: event[0]):
        if seen and loaded:
            total += min((moment - before) / 1000, idle)
        before = moment
        if what == LOADED:
            loaded = began = True
        elif what in (VISIBLE, HIDDEN):
            seen = what == VISIBLE
    return total if began else None


# -- votes

CONFIDENCE = "confidence"
"""A question of this name says how sure somebody is of the answer beside it."""
REASON = "reason"
"""Questions whose names begin so, such as ``reason_cause``, say why a part of a draft is not sound."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A vote that counts: the last of somebody on an item."""

    person: Reviewer  # who gave it
    item: str  # opaque id
    repeat: int  # which repetition of a control this is; 0 for the item itself
    vote: Vote  # the vote
    changes: int  # how often it was changed before
    seconds: float | None  # active time
    check: bool  # whether it is about a check item
    # whether it took less than the least time of the protocol: it stays on file and does not count
    hasty: bool = False


def counted_votes(
    study: Study, standing: Standing, *, timed: bool = True, hasty: bool = False
) -> Iterator[Counted]:
    """Yield the votes that count, by reviewer and item; those of the training are left out.

    Votes of somebody whose answers were dropped, and those below the least time, stay on file and do not
    count.

    ``hasty``: yield those below the least time, too.
    """
    for _, person in sorted(standing.reviewers.items()):
        if person.dropped or person.role != "reviewer":
            continue
        for key, votes in sorted(person.votes.items()):
            given = [vote for vote in votes if vote.seat is not None]
            if given:
                item, _, repeat = key.partition("#")
                seconds = seconds_of(given[-1], study.protocol.idle_seconds) if timed else None
                check = bool(study.stands[item].expected)
                fast = is_hasty(study, item, given[-1])
                if hasty or not fast:
                    yield Counted(
                        person, item, int(repeat or 0), given[-1], len(given) - 1, seconds, check, fast
                    )


def is_hasty(study: Study, item: str, vote: Vote) -> bool:
    """Whether a vote took less than the least time; pauses count in full.

    A page that never said that it was seen took none; what another tool does not time is no haste.
    """
    floor, seconds = study.protocol.floor, seconds_of(vote, math.inf)
    if floor is None or (seconds is None and "imported" in vote.event.body):
        return False
    return (seconds or 0.0) < floor.seconds(study.items[item].words, len(vote.answers))


def seconds_of(vote: Vote, idle: float) -> float | None:
    """Return the active time of a vote in seconds; of one given in another tool, what that tool says.

    ``idle``: longest pause that counts in full, in seconds.
    """
    imported = vote.event.body.get("imported")
    if isinstance(imported, dict):
        return imported.get("seconds")
    return active_seconds(vote.timeline, idle)


def human_rows(study: Study, standing: Standing) -> list[HumanRow]:
    """Return all that people said in a study, as lines."""
    rows: list[HumanRow] = []
    for counted in counted_votes(study, standing):
        rows += rows_of(study, counted)
    return rows


def rows_of(study: Study, counted: Counted) -> list[HumanRow]:
    """Return the lines of one vote; of a check item, whether it was passed."""
    stands, item = study.stands[counted.item], study.items[counted.item]
    common = {
        "rater": counted.person.id, "seconds": counted.seconds, "repeat": counted.repeat,
        "group": counted.person.group, "at": counted.vote.event.at, "protocol": counted.vote.event.protocol,
        "simulated": counted.person.id.startswith(SIMULATED), SEEN: counted.vote.event.body.get(SEEN),
    }  # fmt: skip
    answers = counted.vote.answers
    if counted.check:
        passed = all(answers.get(place) in allowed for place, allowed in stands.expected.items())
        return [HumanRow(kind="attention", item=counted.item, value=int(passed), **common)]
    said = _Said(stands, item, answers, counted.vote.flip)
    rows = []
    for question in study.task.card.questions:
        if question.row is None:
            continue
        for columns in MAKERS[question.row](said, question):
            sure = answers.get(place_of(CONFIDENCE, str(columns.pop("_part", ""))))
            confidence = {"confidence": sure} if sure in ("low", "medium", "high") else {}
            rows.append(HumanRow(kind=question.row, **columns, **confidence, **common))
    return rows


@dataclass(frozen=True, slots=True)
class _Said:
    """What somebody said about an item."""

    stands: Stands
    item: Item
    answers: Mapping[str, Json]
    flip: bool

    def given(self, question: Question) -> Iterator[tuple[str, Json]]:
        """Yield each part (empty for the whole) with the answer, where there is one."""
        for part in ("",) if question.each is None else self.item.part_ids.get(question.each, ()):
            place = place_of(question.name, part)
            if place in self.answers:
                yield part, self.answers[place]

    @property
    def reason(self) -> Json:
        """Why something is not sound; None where that was not asked."""
        return next((answer for place, answer in self.answers.items() if place.startswith(REASON)), None)

    def own(self, part: str) -> str | None:
        """Return a part's own id; None for the whole item."""
        return self.stands.parts[part] if part else None

    def shown(self) -> dict[str, Any]:
        """Return the columns that say what was shown."""
        method = None if self.stands.condition == "text" else next(iter(self.stands.methods), None)
        return {"method": method, "seed": self.stands.seed, "condition": self.stands.condition}

    def generated(self) -> dict[str, Any]:
        """Return the columns of what was rated: its item, method and seed."""
        return {"item": self.stands.about, "method": next(iter(self.stands.methods), None),
                "seed": self.stands.seed}  # fmt: skip


Columns = dict[str, Any]


def _answers(said: _Said, question: Question) -> Iterator[Columns]:
    for part, answer in said.given(question):
        yield {"item": said.own(part) or said.stands.about, "answer": answer, "_part": part, **said.shown()}


def _labels(said: _Said, question: Question) -> Iterator[Columns]:
    for _, answer in said.given(question):
        labels = (UNCLEAR,) if answer == UNCLEAR else tuple(answer)
        yield {"item": said.stands.about, "labels": labels, **said.shown()}


def _ratings(said: _Said, question: Question) -> Iterator[Columns]:
    for part, answer in said.given(question):
        if answer != UNCLEAR:
            criterion = question.criterion or said.own(part) or question.name
            yield {**said.generated(), "criterion": criterion, "value": answer}


def _preferences(said: _Said, question: Question) -> Iterator[Columns]:
    """Yield preferences: on the page positive favours the left side, in the line the first method."""
    for _, answer in said.given(question):
        method, baseline = said.stands.methods[:2]
        about = {"item": said.stands.about, "method": method, "baseline": baseline, "seed": said.stands.seed}
        value = {"answer": UNCLEAR} if answer == UNCLEAR else {"value": -answer if said.flip else answer}
        yield {**about, "criterion": question.criterion or question.name, **value}


def _completions(said: _Said, question: Question) -> Iterator[Columns]:
    given = [answer for _, answer in said.given(question)]
    if given and UNCLEAR not in given:
        yield {**said.generated(), "completion": tuple(given)}


def _reviews(said: _Said, question: Question) -> Iterator[Columns]:
    for part, answer in said.given(question):
        about = {"item": said.stands.about, "criterion": question.criterion or question.name,
                 "part": said.own(part)}  # fmt: skip
        yield {**about, "value": answer} if isinstance(answer, int) else {**about, "answer": answer}


def _equivalences(said: _Said, question: Question) -> Iterator[Columns]:
    for _, answer in said.given(question):
        value = None if answer == UNCLEAR else int(answer in ("yes", 1))
        yield {"item": said.stands.about, "answer": said.item.texts.get("answer"), "value": value}


def _audits(said: _Said, question: Question) -> Iterator[Columns]:
    for _, answer in said.given(question):
        if answer != UNCLEAR:
            sound = answer in ("yes", 1)
            why = None if sound else said.reason
            yield {"item": said.stands.about, "criterion": said.stands.stratum or question.name,
                   "value": int(sound), "answer": why}  # fmt: skip


MAKERS: Mapping[str, Callable[[_Said, Question], Iterator[Columns]]] = {
    "answer": _answers, "moral_label": _labels, "rating": _ratings, "preference": _preferences,
    "completion": _completions, "review": _reviews, "equivalence": _equivalences, "audit": _audits,
}  # fmt: skip
"""Kind of line -> what makes its columns from the answers to a question."""


# -- votes that count after the rules

Key = tuple[str, str, int]


@dataclass(frozen=True)
class KeptVotes:
    """Which votes count."""

    excluded: Excluded  # who and what is left out, and why
    # vote (person, item, repetition) -> kinds of its lines that are left out
    dropped: Mapping[Key, frozenset[str]]
    kinds: Mapping[Key, frozenset[str]]  # vote -> all kinds of its lines

    def counts(self, vote: Counted) -> bool:
        key, nothing = _key(vote), frozenset[str]()
        whole = self.kinds.get(key, nothing)
        return vote.person.id not in self.excluded.people and (not whole or whole != self.dropped.get(key))

    def counts_for(self, vote: Counted, question: Question) -> bool:
        return self.counts(vote) and question.row not in self.dropped.get(_key(vote), ())

    def as_json(self) -> dict[str, Any]:
        """Return who and what is left out, as plain JSON."""
        return self.excluded.as_json()


def kept_votes(study: Study, standing: Standing) -> KeptVotes:
    """Return which votes of a study count after the rules of its protocol."""
    origins: dict[int, Counted] = {}
    rows: list[HumanRow] = []
    kinds: dict[Key, frozenset[str]] = {}
    for vote in counted_votes(study, standing):
        own = rows_of(study, vote)
        origins |= {id(row): vote for row in own}
        kinds[_key(vote)] = frozenset(row.kind for row in own)
        rows += own

    def pressed(row: HumanRow) -> Hashable:
        if row.kind != "preference" or row.value is None:
            return answer_of(row)
        return -row.value if origins[id(row)].vote.flip else row.value

    excluded = apply(rows, study.protocol.rules, pressed)
    dropped: dict[Key, frozenset[str]] = {}
    for each in excluded.rows:
        key = _key(origins[id(each.row)])
        dropped[key] = dropped.get(key, frozenset()) | {each.row.kind}
    return KeptVotes(excluded, dropped, kinds)


def _key(vote: Counted) -> Key:
    return vote.person.id, vote.item, vote.repeat
