"""Events are only added, each once, and are on disk before anybody is told."""

import sqlite3
import threading
from pathlib import Path

import pytest

from fabula.errors import FabulaError, RunError
from fabula.people.review.journal import NAME, Event, VoteJournal, read_events
from fabula.people.review.standing import Standing
from fabula.people.review.votes import active_seconds


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
        assert done.wait(10)
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


def test_standing_when_events_come_twice_or_piecewise_is_the_same(tmp_path: Path) -> None:
    events = [event(number, seat=1, timeline=[[0, "loaded"], [9, "sent"]]) for number in range(5)]
    assert Standing.of(events) == Standing.of([*events, *events])
    piecewise = Standing.of(events[:2])
    for each in events[1:]:
        piecewise.apply(each)
    assert piecewise == Standing.of(events)


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
def test_active_time_when_a_page_was_looked_at_counts_what_was_seen(
    timeline: list[tuple[float, str]], seconds: float | None
) -> None:
    assert active_seconds(timeline, 30.0) == seconds
