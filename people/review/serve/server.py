"""A study while it is served: what requests change, what a reviewer may see. One process serves a study."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from ....engine.group_commit import on_disk
from ....schemas.canonical import Json
from ..adjudication import ADJUDICATOR, has_reviewed
from ..corrections import wrong_corrections
from ..design import Place
from ..flow import Step, expired, find_place, free_seat, is_answered, next_step, seat_of, work_of
from ..folder import Study
from ..journal import DROP_DRAFT, Event, VoteJournal
from ..standing import TRAINING, Reviewer, Standing
from .pages import Pages

MOST_TIMELINE = 5_000
"""Raw events of one page that are kept."""
Clock = Callable[[], str]
"""Gives the time, RFC 3339, UTC."""


class Refused(Exception):
    """A request that changes nothing: the status of the answer, and what is wrong."""

    def __init__(self, status: int, why: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status, self.why, self.fields = status, why, dict(fields or {})


@dataclass
class Server:
    """A study while it is served."""

    study: Study  # the study
    journal: VoteJournal  # its events
    clock: Clock  # the time
    secure: bool = False  # whether people reach it over TLS, so that cookies are sent over nothing else
    standing: Standing = field(default_factory=Standing)  # where it stands; it follows from the events
    pages: Pages = field(init=False)  # makes the pages
    _seating: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    def __post_init__(self) -> None:
        self.pages = Pages(self.study)
        self.catch_up()

    def catch_up(self) -> None:
        """Take in what came into the file since, from this process or another, such as an invitation."""
        for event in self.journal.new_events():
            self.standing.apply(event)

    # -- what changes

    async def put(self, event: Event, *more: Any) -> None:  # noqa: ANN401 - statements
        """Put an event on disk, then take it in; returns when both are done."""
        await on_disk(lambda done: self.journal.add(event, *more, done=done))
        self.catch_up()

    def event(self, person: str, kind: str, item: str | None = None, sent: str = "", **body: Json) -> Event:
        """Return a new event; ``sent`` is the id that the page gave it."""
        own = f"{person}/{sent or token_hex(12)}"
        return Event(own, self.clock(), self.study.protocol.sha256, person, kind, item, body)

    async def agree(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Note what somebody agreed to; a second time changes nothing."""
        if person.agreed is not None:
            return
        known = self.study.protocol.expertise
        expertise = body.get("expertise")
        if known and expertise not in known:
            raise Refused(422, "expertise")
        chosen = expertise if known else None
        await self.put(self.event(person.id, "agreed", publish=body.get("publish") is True, expertise=chosen))
        await self.seat(person)

    async def seat(self, person: Reviewer) -> None:
        """Give somebody a seat who is ready for one and has none, if one fits."""
        async with self._seating:
            step = self.step(person)
            if (step.kind, step.why) != ("done", "no_seat") or person.role != "reviewer":
                return
            for late in list(expired(self.study, self.standing, self.clock())):
                await self.put(self.event(late.id, "left", why="timed_out"))
                await self.put(self.event(late.id, "ended", why="timed_out"))
            await self._take_seat(person)

    async def _take_seat(self, person: Reviewer) -> None:
        number = free_seat(self.study, self.standing, person)
        if number is not None:
            await self.put(self.event(person.id, "seated", seat=number))

    async def vote(self, person: Reviewer, body: Mapping[str, Json]) -> dict[str, Json]:
        """Take a vote; one that was sent before counts once."""
        sent, key = sent_id(body), str(body.get("place"))
        if self.standing.knows(f"{person.id}/{sent}"):
            return self.told(person, key)
        there = find_place(self.study, self.standing, person, key)
        if there is None or person.ended is not None:
            raise Refused(409, "closed")
        block, place = there
        answers, item = body.get("answers"), self.study.items[place.item]
        if not isinstance(answers, dict):
            raise Refused(422, "answers")
        task = self.study.task
        if wrong := task.problems(answers, item.part_ids) or wrong_corrections(task, item, answers):
            raise Refused(422, "answers", wrong)
        if item.media and body.get("loaded") is not True:
            raise Refused(422, "media")
        event = self.event(
            person.id, "voted", key, sent, answers=answers, flip=place.flip, seat=seat_of(person, block),
            block=block, timeline=_timeline(body.get("timeline")), language=str(body.get("language"))[:16],
            **self.study.seen(place.item),
        )  # fmt: skip
        await self.put(event, (DROP_DRAFT, (person.id, key)))
        return self.told(person, key)

    def told(self, person: Reviewer, key: str) -> dict[str, Json]:
        """Return what a reviewer is told of a vote: in training, whether it is right and why."""
        votes = person.votes.get(key)
        if not votes or votes[-1].seat is not None or key not in self.study.training:
            return {"saved": True}
        stands = self.study.stands[key]
        right = {place: votes[-1].answers.get(place) in allowed for place, allowed in stands.expected.items()}
        return {"saved": True, "right": right, "explained": dict(stands.explained)}

    async def report(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Note that something of an item did not load."""
        key = str(body.get("place"))
        if find_place(self.study, self.standing, person, key) is None or person.ended is not None:
            raise Refused(409, "closed")
        await self.put(self.event(person.id, "broken", key, sent_id(body), what=str(body.get("what"))[:200]))

    async def draft(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Keep what somebody has begun; a page that is opened afterwards has it."""
        key, answers = str(body.get("place")), body.get("answers")
        if find_place(self.study, self.standing, person, key) is None or not isinstance(answers, dict):
            raise Refused(409, "closed")
        begun, now = {"answers": answers}, self.clock()
        await on_disk(lambda done: self.journal.draft(person.id, key, now, begun, done))

    async def close(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Close a block that is answered; its answers are final."""
        block, work = str(body.get("block")), work_of(self.study, self.standing, person)
        seat = seat_of(person, block)
        if person.has_closed(seat, block):
            return
        step = self.step(person)
        if step.kind != "overview" or step.block != block or block not in work:
            raise Refused(409, "unfinished")
        await self.put(self.event(person.id, "closed", None, sent_id(body), block=block, seat=seat))
        if block == TRAINING:
            await self._judge_training(person)
        step = self.step(person)
        if step.kind == "done" and step.why == "finished":
            await self.put(self.event(person.id, "ended", why="finished"))
        await self.seat(person)

    async def _judge_training(self, person: Reviewer) -> None:
        share = training_share(self.study, person)
        await self.put(self.event(person.id, "trained", share=share))
        if share < self.study.protocol.training_pass:
            await self.put(self.event(person.id, "ended", why="screened_out"))

    async def more(self, person: Reviewer) -> None:
        """Give another seat to somebody who has finished one."""
        if person.ended != "finished":
            raise Refused(409, "closed")
        async with self._seating:
            await self._take_seat(person)

    async def leave(self, person: Reviewer) -> None:
        """Let somebody go for good; what they have not answered goes to others."""
        if person.ended is None:
            await self.put(self.event(person.id, "left", why="returned"))
            await self.put(self.event(person.id, "ended", why="returned"))

    # -- what is asked

    def may_see(self, person: Reviewer, name: str) -> str | None:
        """Return the kept file of a picture or video that a reviewer may see now; None where there is none.

        That is what belongs to an answered item of an open block, or to the next one; for an adjudicator, to
        any item that they have not reviewed.
        """
        item = self.study.owner_of_media.get(name)
        if item is not None and person.role == ADJUDICATOR:
            return None if has_reviewed(person, item) else self.study.stands[item].files[name]
        if item is None or person.ended is not None or person.agreed is None:
            return None
        for block, places in work_of(self.study, self.standing, person).items():
            if person.has_closed(seat_of(person, block), block):
                continue
            for place in places:
                if place.item == item:
                    return self.study.stands[item].files[name]
                if not is_answered(person, place, block):
                    return None
            return None
        return None

    def step(self, person: Reviewer) -> Step:
        """Return what a reviewer does next."""
        return next_step(self.study, self.standing, person, self.clock())

    def step_at(self, person: Reviewer, block: str, place: Place) -> Step:
        """Return an item of a reviewer's open block as a step."""
        work = [(name, each) for name, places in work_of(self.study, self.standing, person).items()
                for each in places]  # fmt: skip
        return Step("item", block, place, work.index((block, place)), len(work))

    def has_more(self, person: Reviewer) -> bool:
        """Return whether somebody who has finished may take another seat."""
        return person.ended == "finished" and free_seat(self.study, self.standing, person) is not None


def training_share(study: Study, person: Reviewer) -> float:
    """Return the share of expected training answers that somebody gave, in [0, 1]; 1 if none is expected."""
    right = total = 0
    for item in study.training:
        votes = [vote for vote in person.votes.get(item, ()) if vote.seat is None]
        for place, allowed in study.stands[item].expected.items():
            total += 1
            right += bool(votes) and votes[0].answers.get(place) in allowed
    return right / total if total else 1.0


def sent_id(body: Mapping[str, Json]) -> str:
    """Return the id that the page gave a request."""
    sent = body.get("id")
    if not isinstance(sent, str) or not 8 <= len(sent) <= 64 or not sent.isascii() or not sent.isprintable():
        raise Refused(422, "id")
    return sent


def _timeline(given: Json) -> list[Json]:
    """Return the raw events of a page as far as they have the right form; the first are kept."""
    if not isinstance(given, list):
        return []
    kept = [
        [float(entry[0]), str(entry[1])[:40]]
        for entry in given[:MOST_TIMELINE]
        if isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], int | float)
        and 0 <= entry[0] < 1e9
    ]
    return list(kept)
