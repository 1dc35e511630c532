"""Damaged journals: what is checked, what is salvaged, and that nothing else is asked again."""

import random
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.check_journal import check_journal
from fabula.engine.execute import execute
from fabula.engine.journal_file import NAME, SALVAGED
from fabula.engine.salvage import salvage
from fabula.errors import RunError
from fabula.schemas.canonical import Json
from fabula.testing.endurance import rounds
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.toy_models import model_request

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
    model = f"{server.openai_url}#toy"
    return model_request(
        folder / "run", (source, model), settings={"concurrency": 8}, sets=["answer.max_tokens=100000"]
    )


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


def zeroed(data: bytearray, choices: random.Random) -> None:
    for _ in range(choices.randint(1, 4)):
        start = choices.randrange(len(data) // PAGE) * PAGE
        data[start : start + PAGE] = bytes(PAGE)


def garbled(data: bytearray, choices: random.Random) -> None:
    for _ in range(choices.randint(1, 4)):
        start = choices.randrange(len(data) // PAGE) * PAGE
        data[start : start + PAGE] = choices.randbytes(PAGE)


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


DAMAGES: tuple[Damage, ...] = (zeroed, garbled, flipped, cut, shuffled)


def said_in(calls: dict[Any, Any]) -> dict[Any, list[bytes]]:
    """Requests and replies; a flipped bit in the padding of a compressed one changes its bytes alone."""
    return {key: [zlib.decompress(part) for part in row[4:6]] for key, row in calls.items()}


@pytest.mark.endurance
@pytest.mark.parametrize("number", range(rounds(200)))
def test_salvage_when_the_journal_is_damaged_anywhere_loses_only_what_cannot_be_read(
    run: Path, server: ModelServer, number: int
) -> None:
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
def test_check_when_a_row_is_damaged_says_which_and_salvage_mends_it(
    run: Path, server: ModelServer, what: str
) -> None:
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
def test_check_when_the_medium_cannot_be_written_reads_all_that_is_there(
    run: Path, monkeypatch: pytest.MonkeyPatch, log: bool
) -> None:
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
    change_bytes(run / NAME, PAGE)
    done = salvage(run)
    assert done.kept_as is not None
    assert calls(run / NAME)[late[:2]] == late


def change_bytes(path: Path, start: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(PAGE))


def test_salvage_when_killed_before_the_end_is_finished_by_the_next_command(
    run: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_run_when_a_reply_is_damaged_asks_it_again_and_keeps_both_on_the_books(
    run: Path, server: ModelServer
) -> None:
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
def test_run_when_a_result_is_damaged_stops_with_the_cure_and_fails_no_item(
    run: Path, server: ModelServer, workers: int
) -> None:
    change(run, "UPDATE results SET blob = x'00' WHERE stage = 'answer' AND part = 'item'")
    change(run, "DELETE FROM results WHERE stage = 'count_words'")
    again = request(run.parent, server)
    with pytest.raises(RunError, match="--salvage"):
        execute(replace(again, options=replace(again.options, workers=workers)))
    salvage(run)
    before = server.count
    assert execute(again).totals["made"] == ITEMS
    assert server.count == before
