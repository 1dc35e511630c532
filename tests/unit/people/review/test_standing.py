"""Events are only added, each once, and are on disk before anybody is told."""

import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from starlette.testclient import TestClient

from fabula.errors import FabulaError, RunError
from fabula.people.review.design import Plan
from fabula.people.review.flow import active_seconds, human_rows
from fabula.people.review.folder import Study, drop, open_study, revoke
from fabula.people.review.serve.routes import application
from fabula.people.review.standing import NAME, Event, Standing, VoteJournal, hours_between, read_events
from fabula.people.review.status import status
from fabula.testing.endurance import rounds
from fabula.testing.review_studies import toy_answers, toy_study
from fabula.tests.unit.people.review.test_server import Person, Scene


def event(number: int, **body: object) -> Event:
    return Event(
        f"r/{number:08d}", "2026-01-01T00:00:00Z", "hash", "r", "voted", "i1", {"answers": {}, **body}
    )


def test_event_when_sent_twice_is_there_once_as_it_first_came(tmp_path: Path) -> None:
    with VoteJournal(tmp_path) as journal:
        journal.add_now(event(1, seat=1), event(1, seat=2), event(2, seat=1))
        assert [each.body["seat"] for each in journal.events()] == [1, 1]
        assert [each.id for each in journal.new_events()] == ["r/00000001", "r/00000002"]
        assert journal.new_events() == []


def test_event_when_told_to_be_written_is_read_by_another_connection(tmp_path: Path) -> None:
    seen: list[int] = []
    done = threading.Event()

    def told(error: FabulaError | None) -> None:
        assert error is None
        seen.append(len(read_events(tmp_path)))
        done.set()

    with VoteJournal(tmp_path) as journal:
        journal.add(event(1), done=told)
        assert done.wait(120)
    assert seen == [1]


@pytest.mark.parametrize("sql", ["UPDATE events SET item = 'i2'", "DELETE FROM events"])
def test_event_when_somebody_tries_to_change_it_stays(tmp_path: Path, sql: str) -> None:
    with VoteJournal(tmp_path) as journal:
        journal.add_now(event(1))
    connection = sqlite3.connect(tmp_path / NAME)
    with pytest.raises(sqlite3.IntegrityError, match="events are never"):
        connection.execute(sql)
    connection.close()
    assert len(read_events(tmp_path)) == 1


def test_draft_when_replaced_is_the_last_and_goes_with_the_vote(tmp_path: Path) -> None:
    with VoteJournal(tmp_path) as journal:
        for answer in (1, 2):
            journal.draft("r", "i1", "t", {"answers": {"a": answer}}, lambda error: None)
        journal.add_now()
        assert journal.draft_of("r", "i1") == {"answers": {"a": 2}}
        assert journal.draft_of("other", "i1") is None


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\x00" + b"\x01" * 200])
def test_votes_when_damaged_say_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(RunError):
        read_events(tmp_path)


@pytest.mark.parametrize(
    ("timeline", "seconds"),
    [
        ([(1000, "loaded"), (3000, "active"), (63_000, "active"), (64_000, "sent")], 33.0),  # 2 + 30 + 1
        ([(0, "loaded"), (5000, "hidden"), (65_000, "visible"), (70_000, "sent")], 10.0),  # not seen
        ([(0, "loaded"), (10_000, "sent")], 10.0),
        ([(10_000, "sent"), (0, "loaded")], 10.0),  # as it may come over the wire
        ([(0, "visible"), (10_000, "sent")], None),  # nothing was ever loaded
        ([], None),
    ],
)  # fmt: skip
def test_active_time_when_a_page_was_looked_at_counts_what_was_seen(timeline, seconds):
    assert active_seconds(timeline, 30.0) == seconds
    assert hours_between("2026-01-01T00:00:00Z", "2026-01-01T02:30:00+01:00") == 1.5


# -- whatever people do with a study, and whenever its server dies: no vote is lost, and counts agree

LEASE = 48
"""Hours after which the seat of somebody who is silent goes to the next who comes."""
WHO = st.integers(0, 5)


@dataclass
class Said:
    """What the model knows of a person."""

    person: Person
    seat: int | None = None
    last: float = 0.0  # hours, when they last did something
    votes: dict[str, int] = field(default_factory=dict)  # item -> the answer that counts
    seats: dict[str, int] = field(default_factory=dict)  # item -> the seat in which it was answered
    broken: set[str] = field(default_factory=set)  # items that did not load and were not answered since
    changes: int = 0  # how often an answer was given anew
    closed: set[int] = field(default_factory=set)
    ended: bool = False
    dropped: bool = False
    revoked: bool = False


class AnyStudy(RuleBasedStateMachine):
    """Two seats of six items in blocks of three, and a plain model of who answered what."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.crashes = 0
        self.people: list[Said] = []
        self.saved: dict[str, dict] = {}  # id of a vote that was acknowledged -> its body
        study = toy_study(Path(self.folder.name) / "study", stories=6, plan=Plan(raters=2, block=3))
        self.here = Scene(study, VoteJournal(study.folder))

    def teardown(self) -> None:
        self.here.journal.close()
        self.folder.cleanup()

    @property
    def study(self) -> Study:
        return self.here.study

    # -- the model

    def answered(self, seat: int, but: Said | None = None) -> set[str]:
        return {
            key for said in self.people if said is not but and not said.dropped
            for key, own in said.seats.items() if own == seat
        }  # fmt: skip

    def open_block(self, said: Said) -> tuple[int, list[str]]:
        """The first block that somebody has not closed, and what they are asked in it."""
        if said.seat is None:
            return -1, []
        others = self.answered(said.seat, but=said)
        asked = [place for place in self.study.seats[said.seat].places if place.item not in others]
        block = next((place.block for place in asked if place.block not in said.closed), -1)
        return block, [place.item for place in asked if place.block == block]

    def may_answer(self, said: Said) -> Iterator[str]:
        """The items of the open block, up to the first that is not answered."""
        for key in () if said.ended else self.open_block(said)[1]:
            yield key
            if key not in said.votes and key not in said.broken:
                return

    def holder(self, seat: int) -> Said | None:
        return next((said for said in self.people if said.seat == seat), None)

    def is_whole(self, seat: int) -> bool:
        return len(self.answered(seat)) == len(self.study.seats[seat].places)

    # -- what happens

    @precondition(lambda self: len(self.people) < 6)
    @rule(steps=st.integers(0, 8), breaks=st.integers(0, 8))
    def join(self, steps: int, breaks: int) -> None:
        """Agree, get a seat if one is free, one that somebody began first, and begin."""
        for late in self.people:
            silent = self.here.clock.hours - late.last > LEASE
            if late.seat is not None and silent and not late.ended and not self.is_whole(late.seat):
                late.seat, late.ended, late.last = None, True, self.here.clock.hours
        free = [seat for seat in self.study.seats if self.holder(seat) is None and not self.is_whole(seat)]
        expected = min(free, key=lambda seat: (not self.answered(seat), seat), default=None)
        (person,) = self.here.people(1)
        assert self.here.server.standing.reviewers[person.id].seat == expected
        self.people.append(Said(person, expected, self.here.clock.hours))
        self.go_on(len(self.people) - 1, steps, breaks, 2)

    @precondition(lambda self: self.people)
    @rule(who=WHO, which=st.integers(0, 5), quality=st.integers(1, 3), is_lost=st.booleans())
    def vote(self, who: int, which: int, quality: int, is_lost: bool) -> None:
        """Answer an item, or change an answer; the server may die before anybody hears of it."""
        said = self.people[who % len(self.people)]
        seat = self.study.seats[said.seat or 1]
        key = seat.places[which].item
        body = {"id": f"{said.person.id}-{len(self.saved):08d}", "place": key, "loaded": True,
                "answers": toy_answers(self.study, key, quality)}  # fmt: skip
        if is_lost:  # the disk is slow: who is told before it has the vote is told too early
            self.here.journal.draft("nobody", "i", "", {}, lambda _: time.sleep(0.01))
        code = said.person.post("vote", body).status_code
        assert code == (403 if said.revoked else 200 if key in self.may_answer(said) else 409)
        if code == 200:
            self.saved[f"{said.person.id}/{body['id']}"] = body
            said.changes += key in said.votes
            said.broken.discard(key)
            said.votes[key], said.seats[key], said.last = quality, seat.number, self.here.clock.hours
            if is_lost:
                self.crash()
                self.send_again(len(self.saved) - 1)

    @precondition(lambda self: self.people)
    @rule(who=WHO)
    def close(self, who: int) -> None:
        """Close the open block: possible once it is answered, and final."""
        said = self.people[who % len(self.people)]
        block, asked = self.open_block(said)
        is_done = block >= 0 and not said.ended and said.votes.keys() | said.broken >= set(asked)
        code = said.person.close(str(block)).status_code
        assert code == (403 if said.revoked else 200 if is_done else 409)
        if code == 200:
            said.closed.add(block)
            assert said.person.close(str(block)).status_code == 200  # again, as after a lost answer
            said.ended, said.last = self.open_block(said)[0] < 0, self.here.clock.hours

    @precondition(lambda self: self.people)
    @rule(who=WHO, steps=st.integers(1, 4), breaks=st.integers(0, 4), quality=st.integers(1, 3))
    def go_on(self, who: int, steps: int, breaks: int, quality: int) -> None:
        """Answer what comes next and close blocks, as most people do; one of the items may not load."""
        said = self.people[who % len(self.people)]
        for step in range(steps if said.seat is not None else 0):
            keys = [place.item for place in self.study.seats[said.seat].places]
            passed = {*said.votes, *(said.broken if quality < 3 else ())}  # else it loads when tried again
            following = [key for key in self.may_answer(said) if key not in passed]
            if following and step == breaks and not said.revoked:
                body = {"id": f"broken-{following[0]}", "place": following[0], "what": "Picture 1"}
                assert said.person.post("broken", body).status_code == 200
                said.broken.add(following[0])
                said.last = self.here.clock.hours
            elif following:
                self.vote(who, keys.index(following[0]), quality, is_lost=False)
            else:
                self.close(who)

    @precondition(lambda self: self.saved)
    @rule(number=st.integers(0, 50))
    def send_again(self, number: int) -> None:
        """What was acknowledged is acknowledged again, whatever is closed by now, and changes nothing."""
        name = list(self.saved)[number % len(self.saved)]
        said = next(said for said in self.people if name.startswith(f"{said.person.id}/"))
        if not said.revoked:
            body = {**self.saved[name], "place": "nothing"}
            assert said.person.post("vote", body).json() == {"saved": True}

    @precondition(lambda self: self.people)
    @rule(who=WHO, how=st.sampled_from(["leave", "drop", "revoke"]))
    def go(self, who: int, how: str) -> None:
        said = self.people[who % len(self.people)]
        now, names = self.here.clock(), [said.person.id]
        if how == "revoke":
            revoke(self.study, self.here.journal, now, names)
            said.seat, said.ended, said.revoked = None, True, True
        elif how == "drop":
            drop(self.study, self.here.journal, now, names, "careless")
            said.seat, said.ended, said.dropped = None, True, True
        elif not said.revoked:
            assert said.person.post("leave", {}).status_code == 200
            said.seat, said.ended = (said.seat if said.ended else None), True
        said.last = self.here.clock.hours

    @rule(hours=st.sampled_from([1, LEASE, LEASE + 1]))
    def wait(self, hours: int) -> None:
        self.here.clock.hours += hours

    @rule()
    def crash(self) -> None:
        """Go on with the files as they lay there, which is what a kill leaves."""
        self.crashes += 1
        left = Path(self.folder.name) / f"study{self.crashes}"
        shutil.copytree(self.study.folder, left)
        self.here.journal.close()
        hours = self.here.clock.hours
        self.here = Scene(open_study(left), VoteJournal(left))
        self.here.clock.hours = hours
        app = application(self.here.server)
        for said in self.people:
            cookies = said.person.client.cookies
            said.person.client = TestClient(app, base_url="http://testserver", cookies=cookies)

    # -- what is always true

    @invariant()
    def every_acknowledged_vote_is_on_file_once(self) -> None:
        events = read_events(self.study.folder)
        found = [(event.id, event.item, event.body["answers"]) for event in events if event.kind == "voted"]
        expected = [(name, body["place"], body["answers"]) for name, body in self.saved.items()]
        assert sorted(found, key=str) == sorted(expected, key=str)

    @invariant()
    def counts_are_those_of_the_model(self) -> None:
        self.here.server.catch_up()
        standing = self.here.server.standing
        events = read_events(self.study.folder)
        assert standing == Standing.of(events) == Standing.of([*events, *events])
        for said in self.people:
            assert standing.reviewers[said.person.id].seat == said.seat
        counted = [said for said in self.people if not said.dropped]
        rows = [row for row in human_rows(self.study, standing) if row.kind == "rating"]
        value = {(said.person.id, self.study.stands[key].about): quality
                 for said in counted for key, quality in said.votes.items()}  # fmt: skip
        assert {(row.rater, row.item): row.value for row in rows} == value and len(rows) == len(value)
        document = status(self.study, standing, self.here.clock())
        broken = [(self.study.stands[key].about, "Picture 1") for said in self.people for key in said.broken]
        assert sorted((each["about"], each["what"]) for each in document["not_loading"]) == sorted(broken)
        given = [sum(key in said.votes for said in counted) for key in self.study.items]
        assert document["changed"] == sum(said.changes for said in counted)
        assert document["votes"] == {"wanted": 12, "given": sum(min(each, 2) for each in given)}


@pytest.mark.parametrize(
    ("examples", "steps"),
    [(2, 20), pytest.param(rounds(300, share=20), 40, marks=[pytest.mark.slow, pytest.mark.endurance])],
)
def test_study_when_anything_happens_in_any_order_keeps_every_vote(examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, derandomize=True, database=None, deadline=None
    )
    run_state_machine_as_test(AnyStudy, settings=chosen)
