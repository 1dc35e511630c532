"""The journal: what is acknowledged is there, in every mode, and trouble has a clear name."""

import platform
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fabula.engine import journal_file
from fabula.engine.check_journal import _varint, check_journal
from fabula.engine.execute import execute
from fabula.engine.journal import NAME, Entry, Journal, decode, encode, lines_of
from fabula.engine.journal_file import SALVAGED, GroupCommit, NotStored, Statement
from fabula.engine.manifest import commit, made_with, note_made_with
from fabula.engine.salvage import salvage
from fabula.engine.stage import Failed, Made
from fabula.errors import FabulaError, RunError, TargetError
from fabula.schemas.canonical import Json
from fabula.testing.endurance import rounds
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.toy_models import model_request
from fabula.version import __version__

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


def test_what_a_stage_was_made_with_when_it_goes_on_otherwise_says_both(tmp_path: Path) -> None:
    def looking(device: str, torch: str) -> object:
        return SimpleNamespace(networks=lambda: {"device": device, "libraries": {"torch": torch}})

    with Journal.open(tmp_path) as journal:
        for settings in (looking("cpu", "2.1"), looking("cpu", "2.1"), looking("cuda", "2.2"), object()):
            note_made_with(journal, "look", settings)
        note_made_with(journal, "plain", object())
        journal.flush()
        assert made_with(journal) == {
            "source": {"fabula": __version__, "commit": commit(), "python": platform.python_version()},
            "networks": {"look": {"device": "cpu, cuda", "libraries": {"torch": "2.1, 2.2"}}},
        }


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
        "meta", "results", "calls", "sent", "batches", "batch_requests", "batch_pictures", "asks",
    }  # fmt: skip
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


def test_open_when_missing_or_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no journal"):
        Journal.open(tmp_path, writable=False)
    assert list(tmp_path.iterdir()) == []
    with Journal.open(tmp_path) as journal:
        journal.note("format", 99)
    with pytest.raises(RunError, match="format 99"):
        Journal.open(tmp_path)


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
    writer.write(done=lambda _: hold.wait(120) and None)
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


def test_write_when_many_threads_write_and_some_of_it_is_bad_keeps_exactly_the_rest(writer):
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


def test_write_when_nobody_waits_and_it_fails_says_so_and_writes_no_more_of_its_sort(writer):
    writer.write(fact("bad", "\ud800"))
    with pytest.raises(NotStored, match="surrogates not allowed"):
        writer.flush()
    with pytest.raises(NotStored):
        writer.write(fact("after"))
    writer.write_now(fact("a reply that was paid for"))
    with pytest.raises(NotStored):
        writer.close()
    assert names(writer.path) == {"a reply that was paid for"}


def test_write_when_the_disk_is_full_goes_on_once_there_is_space(tmp_path, monkeypatch):
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
from fabula.engine.journal import encode
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


def test_put_when_files_may_not_grow_keeps_what_was_acknowledged(tmp_path):
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


# -- Damaged journals: what is checked, what is salvaged, and that nothing else is asked again

PAGE = 4096
ITEMS = 30
Damage = Callable[[bytearray, random.Random], None]


def reply(asked: Asked) -> dict[str, Json]:
    """Answer at very different lengths: rows in one page, and rows of several."""
    question = str(asked.messages[0].parts[0])
    noise = random.Random(question)
    return {"text": f"answer to {question} {noise.randbytes(noise.choice([8, 200, 3000, 9000])).hex()}"}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(reply) as running:
        yield running


def request(folder: Path, server: ModelServer) -> Any:
    source = folder / "lines.txt"
    source.write_text("".join(f"i{number} cat ask:2\n" for number in range(ITEMS)))
    given = {"settings": {"concurrency": 8}, "sets": ["answer.max_tokens=100000"]}
    return model_request(folder / "run", (source, f"{server.openai_url}#toy"), **given)


@pytest.fixture(scope="module")
def asked(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run that asked 120 questions."""
    folder = tmp_path_factory.mktemp("asked")
    execute(request(folder, server))
    return folder


@pytest.fixture
def run(asked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(asked, tmp_path / "copy")) / "run"


def calls(path: Path) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Request and sample -> row, as far as SQLite itself can read them: one by one, by number."""
    found = {}
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as reader,
    ):
        for number in range(1, 2 * ITEMS + 1):
            with suppress(sqlite3.Error):
                for row in reader.execute("SELECT * FROM calls WHERE rowid = ?", (number,)):
                    found[row[0], row[1]] = row
    return found


def overwritten(fill: Callable[[random.Random], bytes]) -> Damage:
    def damage(data: bytearray, choices: random.Random) -> None:
        for _ in range(choices.randint(1, 4)):
            start = choices.randrange(len(data) // PAGE) * PAGE
            data[start : start + PAGE] = fill(choices)

    return damage


def flipped(data: bytearray, choices: random.Random) -> None:
    for _ in range(choices.randint(1, 40)):
        data[choices.randrange(len(data))] ^= 1 << choices.randrange(8)


def cut(data: bytearray, choices: random.Random) -> None:
    del data[choices.randrange(len(data)) :]


def shuffled(data: bytearray, choices: random.Random) -> None:
    first, second = (choices.randrange(len(data) // PAGE) * PAGE for _ in range(2))
    data[first : first + PAGE], data[second : second + PAGE] = (
        data[second : second + PAGE], data[first : first + PAGE],
    )  # fmt: skip


DAMAGES: tuple[Damage, ...] = (
    overwritten(lambda _: bytes(PAGE)), overwritten(lambda choices: choices.randbytes(PAGE)),
    flipped, cut, shuffled,
)  # fmt: skip


def said_in(calls: dict[Any, Any]) -> dict[Any, list[bytes]]:
    """Requests and replies; a flipped bit in the padding of a compressed one changes its bytes alone."""
    return {key: [zlib.decompress(part) for part in row[4:6]] for key, row in calls.items()}


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("7f", 127), ("8100", 128), ("ff7f", 2**14 - 1), ("ff" * 7 + "7f", 2**56 - 1),
        ("80c0" + "80" * 6 + "00", 2**56), ("ff" * 9, 2**64 - 1),
    ],
)  # fmt: skip
def test_numbers_of_a_journal_are_read_as_the_format_of_sqlite_says(written: str, number: int) -> None:
    assert _varint(bytes.fromhex(f"00{written}00"), 1) == (number, 1 + len(written) // 2)


@pytest.mark.endurance
@pytest.mark.parametrize("number", range(rounds(200)))
def test_salvage_when_the_journal_is_damaged_anywhere_loses_only_what_cannot_be_read(run, server, number):
    path, choices = run / NAME, random.Random(number)
    whole = calls(path)
    assert len(whole) == 2 * ITEMS
    data = bytearray(path.read_bytes())
    DAMAGES[number % len(DAMAGES)](data, choices)
    path.write_bytes(data)
    readable = {key: row for key, row in calls(path).items() if row == whole.get(key)}
    found = check_journal(run)
    assert path.read_bytes() == data, "a check only reads"
    done = salvage(run)
    assert bool(found.findings) == (done.kept_as is not None)
    if done.kept_as is not None:
        assert done.kept_as.read_bytes() == data
    kept = calls(path)
    assert readable.items() <= kept.items()
    assert said_in(kept).items() <= said_in(whole).items(), "no request or reply is made up"
    assert check_journal(run).findings == ()
    before = server.count
    report = execute(request(run.parent, server))
    assert report.totals["made"] == ITEMS
    assert server.count - before <= 2 * ITEMS - len(kept)
    assert execute(request(run.parent, server)).totals["made"] == ITEMS
    assert check_journal(run).findings == ()


# -- what a check says


def change(run: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(run / NAME)) as connection, connection:
        assert connection.execute(sql, values).rowcount


@pytest.mark.parametrize("stage", ["read_lines", "answer"])
def test_run_when_a_bit_of_an_items_name_is_damaged_makes_its_result_again(run, server, stage):
    change(run, "UPDATE results SET item = 'i31' WHERE stage = ? AND item = 'i11'", stage)
    before = server.count
    assert execute(request(run.parent, server)).totals["made"] == ITEMS
    assert server.count == before  # what was asked is known


def test_check_when_nothing_is_damaged_says_so_and_writes_nothing(run: Path) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    report = check_journal(run)
    assert report.findings == ()
    assert report.rows["calls"] == 2 * ITEMS
    assert any("the journal is sound" in line for line in report.lines())
    assert salvage(run).kept_as is None
    names = {path.name for path in run.iterdir()} - {"journal.sqlite-shm", "journal.sqlite-wal"}
    assert names == before.keys()
    assert (run / NAME).read_bytes() == before[NAME]


ROWS: dict[str, tuple[str, str]] = {
    "reply": ("UPDATE calls SET reply = x'00' WHERE rowid = 7", "replies of models with content"),
    "cut reply": ("UPDATE calls SET reply = substr(reply, 1, 20) WHERE rowid = 7", "cannot be read"),
    "request": ("UPDATE calls SET asked = (SELECT asked FROM calls WHERE rowid = 8) WHERE rowid = 7",
                "another request than its key says"),
    "result": ("UPDATE results SET blob = x'00' WHERE seq = 9", "results of stages with content that cannot"),
    "other result": ("UPDATE results SET blob = (SELECT blob FROM results WHERE stage = 'answer' LIMIT 1)"
                     " WHERE seq = (SELECT max(seq) FROM results WHERE stage = 'answer')",
                     "other fields than their digests say"),
    "status": ("UPDATE results SET status = 'mad' WHERE seq = 9", "values of another kind"),
    "fact": ("UPDATE meta SET value = '{' WHERE name LIKE 'settings:%'", "facts about the run"),
    "child": ("DELETE FROM results WHERE stage = 'read_lines' AND part = 'item' AND seq = 9",
              "list of items names results that are not there: 1 (read_lines)"),
    "asked": ("DELETE FROM calls WHERE rowid = 7", "made from replies that are not there"),
}  # fmt: skip


@pytest.mark.parametrize("what", ROWS)
def test_check_when_a_row_is_damaged_says_which_and_salvage_mends_it(run, server, what):
    sql, said = ROWS[what]
    change(run, sql)
    assert said in "\n".join(check_journal(run).lines())
    assert salvage(run).kept_as is not None
    assert check_journal(run).findings == ()
    before = server.count
    assert execute(request(run.parent, server)).totals["made"] == ITEMS
    assert server.count - before <= 1


def test_check_when_the_journal_is_missing_or_of_a_newer_version_refuses(run: Path) -> None:
    change(run, "UPDATE meta SET value = '99' WHERE name = 'format'")
    with pytest.raises(RunError, match="format 99"):
        salvage(run)
    (run / NAME).unlink()
    for work in (check_journal, salvage):
        with pytest.raises(RunError, match=f"no {NAME}"):
            work(run)


def only_readable(monkeypatch: pytest.MonkeyPatch, *modes: str) -> None:
    """Let SQLite fail as it does for a journal on a medium that cannot be written."""
    real = sqlite3.connect

    def opened(database: str | Path, **options: Any) -> sqlite3.Connection:
        if str(database).endswith(tuple(f"{NAME}?{mode}" for mode in modes)):
            raise failing
        return real(database, **options)

    failing = sqlite3.OperationalError("unable to open database file")
    failing.sqlite_errorname = "SQLITE_CANTOPEN"
    monkeypatch.setattr(sqlite3, "connect", opened)


@pytest.mark.parametrize("log", [False, True], ids=["whole", "with a log"])
def test_check_when_the_medium_cannot_be_written_reads_all_that_is_there(run, monkeypatch, log):
    path, kept = run / NAME, run / "kept"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        if log:  # as a process that was killed leaves it
            connection.execute("INSERT INTO meta VALUES ('late', '1')")
            for name in (NAME, f"{NAME}-wal"):
                shutil.copy(run / name, f"{kept}-{name}")
    for file in run.glob("kept-*"):
        file.replace(run / file.name.removeprefix("kept-"))
    before = {file.name: file.read_bytes() for file in run.glob(f"{NAME}*")}
    only_readable(monkeypatch, "mode=rw", "mode=ro")
    report = check_journal(run)
    assert report.findings == ()
    monkeypatch.undo()
    assert {file.name: file.read_bytes() for file in run.glob(f"{NAME}*")} == before
    assert report.rows == check_journal(run).rows


def test_check_when_the_file_cannot_be_opened_says_so_and_finds_no_damage(run, monkeypatch):
    only_readable(monkeypatch, "mode=rw", "mode=ro", "mode=ro&immutable=1")
    with pytest.raises(FabulaError, match=r"cannot be opened.*SQLITE_CANTOPEN") as caught:
        check_journal(run)
    assert "nothing in it was looked at or changed" in str(caught.value)


def test_salvage_when_rows_are_in_the_log_only_takes_them_from_there(run: Path) -> None:
    """As after a kill: the newest rows have not reached the file, of which another part is lost besides."""
    writer = sqlite3.connect(run / NAME, isolation_level=None)
    writer.execute("PRAGMA wal_autocheckpoint=0")
    late = writer.execute("SELECT * FROM calls WHERE rowid = 5").fetchone()
    writer.execute("DELETE FROM calls WHERE rowid = 5")
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.execute(f"INSERT INTO calls VALUES ({','.join('?' * len(late))})", late)
    for suffix in ("", "-wal"):
        shutil.copy(f"{run / NAME}{suffix}", f"{run.parent / 'kept'}{suffix}")
    writer.close()
    for suffix in ("", "-wal"):
        shutil.move(f"{run.parent / 'kept'}{suffix}", f"{run / NAME}{suffix}")
    with (run / NAME).open("r+b") as file:
        file.seek(PAGE)
        file.write(bytes(PAGE))
    done = salvage(run)
    assert done.kept_as is not None
    assert calls(run / NAME)[late[:2]] == late


def test_salvage_when_killed_before_the_end_is_finished_by_the_next_command(run, server, monkeypatch):
    change(run, "UPDATE calls SET reply = x'00' WHERE rowid = 7")

    def die(path: Path) -> None:
        if path.with_name(SALVAGED).exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fabula.engine.salvage.finish_salvage", die)
        with pytest.raises(KeyboardInterrupt):
            salvage(run)
    before = server.count
    assert execute(request(run.parent, server)).totals["made"] == ITEMS
    assert server.count == before
    assert check_journal(run).findings == ()


# -- damaged rows that nobody has salvaged


def test_run_when_a_reply_is_damaged_asks_it_again_and_keeps_both_on_the_books(run, server):
    change(run, "UPDATE calls SET reply = x'00', cost = 0.25 WHERE rowid = 7")
    change(run, "DELETE FROM results WHERE stage = 'answer'")
    before = server.count
    report = execute(request(run.parent, server))
    assert report.totals["made"] == ITEMS
    assert server.count == before + 1
    assert sum(use.uncertain_cost for use in report.models) == 0.25
    assert check_journal(run).findings == ()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_run_when_a_result_is_damaged_stops_with_the_cure_and_fails_no_item(run, server, workers):
    change(run, "UPDATE results SET blob = x'00' WHERE stage = 'answer' AND part = 'item'")
    change(run, "DELETE FROM results WHERE stage = 'count_words'")
    again = request(run.parent, server)
    with pytest.raises(RunError, match="--salvage"):
        execute(replace(again, options=replace(again.options, workers=workers)))
    salvage(run)
    before = server.count
    assert execute(again).totals["made"] == ITEMS
    assert server.count == before
