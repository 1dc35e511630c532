"""What the answers of another tool become in a study: votes, and what comes before and after them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite

from ....errors import UserError
from ....schemas.canonical import Json, digest
from ....validators.katha.votes import SEEN
from ..corrections import wrong_corrections
from ..design import Place
from ..flow import answered
from ..folder import Study
from ..journal import Event
from ..standing import Reviewer, Standing, placed

LARGEST = 256 * 1024 * 1024
"""Bytes of a file that is read."""


@dataclass(frozen=True, slots=True)
class Given:
    """What somebody answered about an item in another tool."""

    where: str  # file and line, for messages
    user: str  # who that is there; empty where the file does not say
    key: str  # the item, with ``#n`` for a repetition
    answers: Mapping[str, Json]  # what an answer is called in a vote -> answer
    seat: int | None = None  # number of the seat; None where the file does not say
    at: str | None = None  # when, RFC 3339, UTC; None where the tool does not say
    seconds: float | None = None  # how long it took; None where the tool does not say
    seen: str | None = None  # hash of the record that was shown there; None where the file does not say


@dataclass
class Reading:
    """What a file of another tool holds."""

    given: list[Given] = field(default_factory=list)  # the answers
    problems: list[UserError] = field(default_factory=list)  # what is wrong in it
    # what was passed over on purpose -> how often, such as drafts
    passed: dict[str, int] = field(default_factory=dict)

    def wrong(self, where: str, what: str, fix: str) -> None:
        """Note a problem."""
        self.problems.append(UserError(where, what=what, fix=fix))

    def pass_over(self, what: str, count: int = 1) -> None:
        """Note what is passed over on purpose."""
        self.passed[what] = self.passed.get(what, 0) + count


def moment_of(value: Json) -> str | None:
    """Return a time as RFC 3339 in UTC, to the millisecond; None where it is no time of a known zone."""
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            return None
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, TypeError, OverflowError):
        return None


def seconds_of(value: Json) -> float | None:
    """Return a time in seconds; None where it is no number from 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e9 and isfinite(value) else None


FIX = "correct it there, and export the answers again"


@dataclass
class Taking:
    """An import while it is checked."""

    study: Study  # the study
    standing: Standing  # where it stands; what is taken is told to it
    people: dict[str, str]  # who somebody is there -> pseudonym
    source: Mapping[str, Json]  # tool, and hash of the file
    now: str  # the time
    reading: Reading  # the answers and problems
    seats: dict[str, int] = field(default_factory=dict)  # reviewer -> seat
    known: int = 0  # how many votes were there already

    def events(self) -> list[Event]:
        """Return what the answers become; what is wrong is noted."""
        events: list[Event] = []
        first: dict[tuple[str, str], str] = {}
        for given in self.reading.given:
            reviewer = self._reviewer(given)
            before = first.setdefault((reviewer or given.user, given.key), given.where)
            if before != given.where:
                self.reading.wrong(given.where, f"this was answered at {before}, too", "keep one of them")
                continue
            seat = None if reviewer is None else self._seat(given, reviewer)
            if reviewer is None or seat is None:
                continue
            dealt = self._dealt(given, reviewer, seat)
            wrong = {} if dealt is None else self._wrong(given, dealt)
            for name, what in wrong.items():
                self.reading.wrong(f"{given.where} {name}", what, FIX)
            if dealt is not None and not wrong:
                events += self._taken(given, reviewer, seat, dealt)
        if not self.reading.given and not self.reading.problems:
            self.reading.wrong(
                str(self.source["tool"]), "there are no answers in the file", "give the filled file"
            )
        return events + [
            event for reviewer, seat in self.seats.items() for event in self._ending(reviewer, seat)
        ]

    def _reviewer(self, given: Given) -> str | None:
        if given.user in self.people:
            return self.people[given.user]
        if not given.user and len(self.people) == 1:
            return next(iter(self.people.values()))
        who = (
            f"{given.user!r} is no reviewer of this study yet"
            if given.user
            else "nobody is named who answered"
        )
        fix = "say who that is with --person, as --person 12=r-5f2c91aa"
        self.reading.wrong(given.where, who, fix)
        return None

    def _seat(self, given: Given, reviewer: str) -> int | None:
        """Return the seat of somebody's answers: the same for all of them, and free or theirs."""
        known = self.standing.reviewers.get(reviewer, Reviewer(reviewer))
        holder = self.standing.holders.get(given.seat or 0, reviewer)
        if given.seat is None or given.seat not in self.study.seats:
            what = "the seat is not named"
        elif self.seats.setdefault(reviewer, given.seat) != given.seat:
            what = f"it is of seat {given.seat}, and {reviewer} has seat {self.seats[reviewer]}"
        elif known.role != "reviewer" or known.revoked or known.dropped:
            what = f"{reviewer} does not review any more, or never did"
        elif holder != reviewer:
            what = f"seat {given.seat} is held by {holder}"
        elif known.seat not in (None, given.seat) and known.ended is None:
            what = f"{reviewer} has begun seat {known.seat} and has not finished it"
        else:
            return given.seat
        self.reading.wrong(given.where, what, "import what was exported for a seat of this person")
        return None

    def _dealt(self, given: Given, reviewer: str, seat: int) -> Place | None:
        dealt = next(
            (each for each in self.study.seats[seat].places if placed(each.item, each.repeat) == given.key),
            None,
        )
        if dealt is None:
            what = f"item {given.key[:40]!r} is not in seat {seat}"
        elif given.key in answered(self.standing, seat, but=reviewer):
            what = f"item {given.key} of seat {seat} was answered by somebody else"
        elif self._is_closed(given, reviewer, seat, dealt):
            what = f"the part of item {given.key} is closed, and its answers are final"
        else:
            return dealt
        self.reading.wrong(given.where, what, "leave it out")
        return None

    def _is_closed(self, given: Given, reviewer: str, seat: int, dealt: Place) -> bool:
        known = self.standing.reviewers.get(reviewer)
        closed = known is not None and known.has_closed(seat, str(dealt.block))
        return closed and not self._is_known(given, reviewer)

    def _is_known(self, given: Given, reviewer: str) -> bool:
        votes = self._votes(given, reviewer)
        return bool(votes) and votes[-1] == dict(given.answers)

    def _votes(self, given: Given, reviewer: str) -> list[dict[str, Json]]:
        known = self.standing.reviewers.get(reviewer)
        votes = [] if known is None else known.votes.get(given.key, [])
        return [dict(vote.answers) for vote in votes if vote.seat is not None]

    def _wrong(self, given: Given, dealt: Place) -> dict[str, str]:
        if given.seen not in (None, self.study.seen(dealt.item).get(SEEN)):
            return {SEEN: "another content was shown there than the study has"}
        task, item = self.study.task, self.study.items[dealt.item]
        return task.problems(given.answers, item.part_ids) or wrong_corrections(task, item, given.answers)

    def _taken(self, given: Given, reviewer: str, seat: int, dealt: Place) -> list[Event]:
        if self._is_known(given, reviewer):
            self.known += 1
            return []
        events = self._beginning(reviewer, seat)
        content = [given.key, seat, dict(given.answers), len(self._votes(given, reviewer))]
        source = {**self.source, "seconds": given.seconds, "at": given.at}
        body = {
            "answers": dict(given.answers), "flip": dealt.flip, "seat": seat, "block": str(dealt.block),
            "timeline": [], "imported": source, **({} if given.seen is None else {SEEN: given.seen}),
        }  # fmt: skip
        events.append(self._event(reviewer, "voted", content, given.key, given.at, **body))
        self._tell(events[-1:])
        return events

    def _beginning(self, reviewer: str, seat: int) -> list[Event]:
        """Return what comes before somebody's first vote in a seat."""
        known = self.standing.reviewers.get(reviewer)
        events = []
        if known is None:
            events.append(self._event(reviewer, "invited", ["invited"], role="reviewer", group=None))
        if known is None or known.seat != seat:
            taken = 0 if known is None else len(known.seats)
            events.append(self._event(reviewer, "seated", ["seated", seat, taken], seat=seat))
        self._tell(events)
        return events

    def _ending(self, reviewer: str, seat: int) -> list[Event]:
        """Return what follows where all of a seat is answered: its parts are closed, and somebody is done."""
        known = self.standing.reviewers.get(reviewer)
        places = self.study.seats[seat].places
        done = answered(self.standing, seat)
        if (
            known is None
            or known.ended is not None
            or {placed(each.item, each.repeat) for each in places} - done
        ):
            return []
        blocks = dict.fromkeys(str(each.block) for each in places)
        content = ["ending", seat, len(known.seats)]
        return [
            *(self._event(reviewer, "closed", [*content, block], block=block, seat=seat) for block in blocks
              if not known.has_closed(seat, block)),
            self._event(reviewer, "ended", content, why="finished"),
        ]  # fmt: skip

    def _event(
        self, reviewer: str, kind: str, content: Sequence[Json], item: str | None = None,
        at: str | None = None, **body: Json,
    ) -> Event:  # fmt: skip
        name = f"{reviewer}/import-{digest([kind, *content])[:24]}"
        return Event(name, at or self.now, self.study.protocol.sha256, reviewer, kind, item, body)

    def _tell(self, events: Sequence[Event]) -> None:
        for event in events:
            self.standing.apply(event)
