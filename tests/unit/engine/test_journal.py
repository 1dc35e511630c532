"""The journal: what is acknowledged is there, in every mode, and trouble has a clear name."""

import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fabula.engine import journal_file
from fabula.engine.codec import decode, encode
from fabula.engine.journal import NAME, Entry, Journal, lines_of
from fabula.engine.journal_file import GroupCommit, NotStored, Statement
from fabula.engine.stage import Failed, Made
from fabula.errors import FabulaError, RunError, TargetError

ENTRY = Entry("k1", "work", "a", "item", 1, "s", "l", {"words": "0" * 64}, encode(Made({"text": "x"})))


def test_put_when_flushed_can_be_read_by_another_connection(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        seq = journal.put(ENTRY)
        journal.flush()
        assert journal.committed == seq
        with Journal.open(tmp_path, writable=False) as other:
            (head,) = other.heads("work")
            (origin,) = other.origins("work")
            assert (head.seq, head.key, head.item, head.status) == (seq, "k1", "a", "made")
            assert decode(other.blobs([seq])[seq]) == {"text": "x"}
            assert origin.inputs == {"words": "0" * 64}
            assert list(other.heads("work", part="table")) == []


def test_put_when_key_is_known_replaces_and_moves_to_the_end(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.put(ENTRY)
        journal.put(replace(ENTRY, key="k2", item="b"))
        journal.put(replace(ENTRY, encoded=encode(Failed("tired", "r", evidence="trace"))))
        journal.flush()
        heads = list(journal.heads("work"))
    assert [(head.key, head.status) for head in heads] == [("k2", "made"), ("k1", "failed")]


def test_heads_when_more_is_written_meanwhile_shows_one_moment(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.put(ENTRY)
        journal.flush()
        with Journal.open(tmp_path, writable=False) as other:
            journal.put(replace(ENTRY, key="k2"))
            journal.flush()
            assert len(list(journal.heads("work"))) == 2
            assert len(list(other.heads("work"))) == len(list(other.origins("work"))) == 1


def test_open_when_closed_before_continues_the_sequence(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        first = journal.put(ENTRY)
    with Journal.open(tmp_path) as journal:
        assert journal.put(replace(ENTRY, key="k2")) == first + 1


def test_note_when_given_is_a_fact_until_replaced(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.note("x", {"a": [1]})
        journal.note("x", {"a": [2]})
        journal.flush()
        assert journal.fact("x") == {"a": [2]}
        assert journal.fact("y") is None


def test_open_when_new_has_its_tables_and_waits_for_no_reader(tmp_path: Path) -> None:
    Journal.open(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / NAME)) as connection, connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
    assert tables == {
        "meta",
        "results",
        "calls",
        "sent",
        "batches",
        "batch_requests",
        "batch_pictures",
        "asks",
    }
    assert mode == "wal"


@pytest.mark.parametrize("was_wal", [False, True])
def test_open_when_wal_cannot_work_uses_delete_mode(tmp_path: Path, was_wal: bool) -> None:
    if was_wal:
        with Journal.open(tmp_path) as journal:
            journal.put(ENTRY)
    (tmp_path / f"{NAME}-shm").mkdir()  # no shared memory to be had, as on a network file system
    with Journal.open(tmp_path) as journal:
        journal.put(replace(ENTRY, key="k2"))
        journal.flush()
        with closing(sqlite3.connect(tmp_path / NAME)) as connection, connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        connection.close()
        assert [head.key for head in journal.heads("work")] == (["k1", "k2"] if was_wal else ["k2"])


def test_open_when_file_is_not_a_database_says_damaged(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(RunError, match="damaged"):
        Journal.open(tmp_path)
    with pytest.raises(RunError, match="damaged"):
        Journal.open(tmp_path, writable=False)


def test_heads_when_a_page_is_overwritten_says_damaged(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        for number in range(200):
            journal.put(replace(ENTRY, key=f"k{number}"))
    data = bytearray((tmp_path / NAME).read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 64] = b"\xff" * 64
    (tmp_path / NAME).write_bytes(bytes(data))
    with pytest.raises(RunError, match="damaged"), Journal.open(tmp_path, writable=False) as journal:
        list(journal.heads("work"))


def test_open_when_format_is_newer_is_refused(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.note("format", 99)
    with pytest.raises(RunError, match="format 99"):
        Journal.open(tmp_path)


def test_open_when_read_only_and_missing_says_no_journal(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no journal"):
        Journal.open(tmp_path, writable=False)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[GroupCommit]:
    journal_file.prepare(tmp_path / NAME)
    made = GroupCommit(tmp_path / NAME)
    yield made
    with suppress(FabulaError):
        made.close()


def names(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM meta WHERE name <> 'format'")}


def fact(name: str, value: object = "x") -> Statement:
    return (journal_file.PUT_META, (name, value))


def in_one_batch(writer: GroupCommit, *calls: Sequence[Statement]) -> list[FabulaError | None]:
    """Return what each of some calls is told that get to the writer together."""
    hold, told = threading.Event(), dict[int, FabulaError | None]()
    writer.write(done=lambda _: hold.wait(10) and None)
    for number, statements in enumerate(calls):
        writer.write(*statements, done=partial(told.__setitem__, number))
    hold.set()
    with suppress(FabulaError):
        writer.flush()
    return [told[number] for number in range(len(calls))]


def test_write_when_a_call_cannot_be_stored_fails_alone(writer: GroupCommit) -> None:
    told = in_one_batch(
        writer,
        [fact("first")],
        [fact("half"), fact("surrogate", "\ud800")],  # of one call: both or none
        [fact("second")],
        [fact("beyond 64 bits", 2**64)],
        [fact("no text", {})],
        [fact("null", None)],
        [("INSERT INTO", ())],
        [("SELECT ?", ())],
        [fact("third")],
    )
    assert [number for number, error in enumerate(told) if error is None] == [0, 2, 8]
    assert all(error is None or isinstance(error, NotStored) for error in told)
    writer.write_now(fact("later"))
    assert names(writer.path) == {"first", "second", "third", "later"}
    writer.check()  # everybody was told


def test_write_when_many_threads_write_and_some_of_it_is_bad_keeps_exactly_the_rest(
    writer: GroupCommit,
) -> None:
    told: dict[str, FabulaError | None] = {}

    def work(thread: int) -> None:
        for number in range(300):
            name = f"{'bad' if number % 17 == 0 else 'good'} {thread}.{number}"
            more = [fact(f"{name}, too", "\ud800")] if number % 17 == 0 else []
            writer.write(fact(name), *more, done=partial(told.__setitem__, name))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()
    good = {name for name in told if name.startswith("good")}
    assert len(told) == 1200 and names(writer.path) == good
    assert {name for name, error in told.items() if error is None} == good


def test_write_when_nobody_waits_and_it_fails_says_so_and_writes_no_more_of_its_sort(
    writer: GroupCommit,
) -> None:
    writer.write(fact("bad", "\ud800"))
    with pytest.raises(NotStored, match="surrogates not allowed"):
        writer.flush()
    with pytest.raises(NotStored):
        writer.write(fact("after"))
    writer.write_now(fact("a reply that was paid for"))
    with pytest.raises(NotStored):
        writer.close()
    assert names(writer.path) == {"a reply that was paid for"}


def test_write_when_the_disk_is_full_goes_on_once_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sqlite3.Connection] = []
    connect = journal_file.connect

    def small(path: Path, *, read_only: bool) -> sqlite3.Connection:
        opened.append(connect(path, read_only=read_only))
        opened[-1].execute("PRAGMA max_page_count = 40")
        return opened[-1]

    journal_file.prepare(tmp_path / NAME)
    monkeypatch.setattr(journal_file, "connect", small)
    writer = GroupCommit(tmp_path / NAME)
    told = in_one_batch(writer, [fact("small")], [fact("large", "x" * 500_000)], [fact("small too")])
    assert all(isinstance(error, TargetError) and "the disk is full" in str(error) for error in told)
    with pytest.raises(TargetError):
        writer.write_now(fact("large", "x" * 500_000))
    opened[0].execute("PRAGMA max_page_count = 4000")
    writer.write_now(fact("large", "x" * 500_000))
    writer.close()
    assert names(tmp_path / NAME) == {"large"}


FILL = """
import os, resource, signal, sys
from pathlib import Path
from fabula.engine.calls import calls_of, model_uses
from fabula.engine.codec import encode
from fabula.engine.journal import Entry, Journal
from fabula.engine.stage import Made
from fabula.errors import TargetError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
acknowledged = 0
try:
    with Journal.open(Path(sys.argv[1])) as journal:
        for number in range(5000):
            encoded = encode(Made({"x": os.urandom(500).hex()}))
            journal.put(Entry(f"k{number}", "work", f"i{number}", "item", 1, "s", "l", {}, encoded))
            if number % 10 == 9:
                journal.flush()
                acknowledged = number + 1
except TargetError as error:
    print(acknowledged, error)
    raise SystemExit(2)
"""


def fill(command: list[str]) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    acknowledged, _, message = done.stdout.partition(" ")
    return int(acknowledged), message


def test_put_when_files_may_not_grow_keeps_what_was_acknowledged(
    tmp_path: Path,
) -> None:
    acknowledged, message = fill([sys.executable, "-c", FILL, str(tmp_path), "limit"])
    assert NAME in message
    assert "finished work is kept" in message
    assert acknowledged > 0
    with Journal.open(tmp_path) as journal:
        assert len(list(journal.heads("work"))) >= acknowledged


def test_lists_when_they_unpack_to_far_more_than_texts_do_are_damaged() -> None:
    bomb = zlib.compress(b'{"items":[["' + b"a" * (20 << 20) + b'","b"]]}')
    with pytest.raises(RunError, match="far more than texts do"):
        list(lines_of([bomb], "items"))
    assert list(lines_of([zlib.compress(b'{"items":[["a","b"]]}')], "items")) == [("a", "b")]
