"""Reporters: JSON lines for scripts, plain lines for logs, a block on a terminal."""

import fcntl
import io
import json
import os
import pty
import random
import re
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.api.calling import choose_reporter
from fabula.api.progress_block import INTERVAL, BlockReporter, Standing
from fabula.engine.calls import answered, model_uses
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.hooks import Event, JsonReporter, PlainReporter, waiting
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.status import NAME as REPORT
from fabula.errors import BelowThreshold, BudgetStop
from fabula.testing.endurance import rounds
from fabula.testing.model_server import (
    Asked,
    Dropped,
    Fault,
    FaultPlan,
    ModelServer,
    RateLimited,
    Refused,
    ServerError,
    Slow,
)
from fabula.testing.toy_models import model_request, reply_to

PROGRAM = """
import fcntl, sys, termios
from pathlib import Path
from fabula.api.calling import choose_reporter
from fabula.errors import FabulaError
from fabula.testing.toy_pipeline import run_toy
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C comes here
try:
    run_toy(Path(sys.argv[1]), Path(sys.argv[2]), reporter=choose_reporter())
except FabulaError as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    raise SystemExit(int(error.exit_code))
"""

PROBLEM = {"item": "a", "status": "failed", "code": "crashed", "reason": "[bold]"}
EVENTS = [
    Event("run", data={"folder": "x", "pipeline": "toy", "stages": ["work"], "workers": 0}),
    Event("stage", stage="work", data={"items": 100}),
    *(Event("progress", stage="work", data={"done": done, "total": 100}) for done in range(1, 101)),
    Event("item", stage="work", data=PROBLEM),
    Event("stage-done", stage="work", data={"made": 99, "rejected": 0, "failed": 1, "ran": 100, "reused": 0}),
    Event("stopping"),
    Event("outputs", data={"written": True}),
    Event("run-done", data={"totals": {"made": 99}}),
]


def written(kind: type[JsonReporter | PlainReporter]) -> list[str]:
    reporter = kind(stream := io.StringIO())
    for event in EVENTS:
        reporter.emit(event)
    reporter.close()
    return stream.getvalue().splitlines()


def test_json_reporter_when_told_writes_one_object_a_line() -> None:
    lines = [json.loads(line) for line in written(JsonReporter)]
    assert len(lines) == len(EVENTS)
    assert lines[0]["event"] == "run"
    assert lines[-5] == {"event": "item", "stage": "work", **PROBLEM}


def test_plain_reporter_when_told_writes_few_lines_without_control_characters() -> None:
    lines = written(PlainReporter)
    assert lines[0] == "work: 10 of 100"
    assert lines[9:] == [
        "  work: a failed (crashed): [bold]",
        "work: 99 made, 1 failed (100 run, 0 reused)",
        "stopping: finishing what is in flight; once more to stop at once",
        "outputs written",
    ]
    assert "\x1b" not in "".join(lines)


def test_plain_reporter_when_answers_are_slow_says_what_is_under_way_once_a_minute() -> None:
    stream, now = io.StringIO(), [0.0]
    reporter = PlainReporter(stream, lambda: now[0])
    reporter.emit(Event("stage", stage="draft", data={"items": 64}))
    for seconds in range(10, 140, 10):
        now[0] = seconds
        waits = {"done": 3, "total": 64, "under_way": 12, "longest": seconds + 24}
        reporter.emit(Event("progress", stage="draft", data=waits))
    assert stream.getvalue().splitlines() == [
        "draft: 3 of 64, 12 under way, longest 84 s",
        "draft: 3 of 64, 12 under way, longest 144 s",
    ]


def test_standing_when_items_run_ahead_shows_the_first_stage_that_is_not_done_and_the_longest_wait() -> None:
    now = [0.0]
    standing = Standing(lambda: now[0])
    standing.note(Event("run", data={"stages": ["draft", "check"]}))
    standing.note(Event("stage", stage="draft", data={"items": 2}))
    waits = {"under_way": 2, "longest": 30}
    standing.note(Event("progress", stage="draft", data={"done": 1, "total": 2, **waits}))
    standing.note(Event("progress", stage="check", data={"done": 0, "total": 2, **waits}))
    assert (standing.stage, standing.count()) == ("draft", "1 of 2")
    now[0] = 5.0
    assert (
        standing.lines()[0] == "stage 1 of 2, 12.0/min, about 0:05 left of this stage, 0:05 since the start"
    )
    assert standing.lines()[1] == "2 under way, longest 35 s", "it goes on between events"
    assert waiting(0, 95.4, "vllm:a/b") == "vllm:a/b is being loaded, 95 s so far"
    standing.note(Event("progress", stage="draft", data={"done": 2, "total": 2}))
    standing.note(Event("progress", stage="check", data={"done": 1, "total": 2}))
    assert (standing.stage, standing.count()) == ("check", "1 of 2")
    assert len(standing.lines()) == 1, "nothing is under way"


def test_choose_reporter_when_stream_is_a_terminal_shows_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_reporter(stream=stream), PlainReporter)
    assert isinstance(choose_reporter(as_json=True, stream=stream), JsonReporter)
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    assert isinstance(choose_reporter(stream=stream), BlockReporter)
    assert isinstance(choose_reporter(as_json=True, stream=stream), JsonReporter)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_reporter(stream=stream), PlainReporter)


def test_standing_when_a_stage_goes_on_tells_pace_time_and_money() -> None:
    now = [0.0]
    standing = Standing(lambda: now[0])
    standing.note(Event("plan", data={"calls": 9, "cost": 4.0, "max_cost": 5.0}))
    standing.note(Event("run", data={"stages": ["read", "work"]}))
    standing.note(Event("stage", stage="work", data={"items": 1}))
    assert standing.count() == "1 item"
    standing.note(Event("stage", stage="work", data={"items": 10000}))
    now[0] = 1.0
    money = {"spent": 1.234, "before": 0.0, "projected": 2.5, "expected": 4.0, "factor": 1.1}
    standing.note(Event("progress", stage="work", data={"done": 100, "total": 10000, **money}))
    assert standing.lines()[0] == "stage 2 of 2, 0:01 since the start", "too early to tell a rate"
    now[0] = 20.0
    standing.note(Event("progress", stage="work", data={"done": 1000, "total": 10000, **money}))
    assert standing.count() == "1,000 of 10,000"
    assert standing.lines() == [  # 1,000 in 20 s, and so 9,000 in 180 s
        "stage 2 of 2, 50.0/s, about 3:00 left of this stage, 0:20 since the start",
        "1.23 USD spent of at most 5.00, about 2.50 after this stage, 4.00 in all",
    ]
    now[0] = 110.0
    standing.note(Event("progress", stage="work", data={"done": 1100, "total": 10000}))
    now[0] = 170.0
    standing.note(Event("progress", stage="work", data={"done": 1200, "total": 10000}))
    assert "1.3/s, about 1:50:00 left" in standing.lines()[0], "1,200 - 1,000 in the 150 s since 0:20"
    assert standing.lines()[1].startswith("1.23 USD"), "what was spent stays"
    standing.note(Event("stopping"))
    assert standing.lines()[0] == "stopping: finishing what is in flight"


class Terminal:
    """A process on a terminal of its own, and what a person would see of it."""

    def __init__(self, command: list[str], *, columns: int, **environment: str) -> None:
        ours, theirs = pty.openpty()
        self.fd, self.written = ours, b""
        self.resize(columns)
        self.child = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**{name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")},
                 "TERM": "xterm-256color", **environment},
        )  # fmt: skip
        os.close(theirs)

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read_until(self, text: bytes | None) -> None:
        """Read until a text was written anew, or all."""
        new = b""
        while text is None or text not in new:
            try:
                part = os.read(self.fd, 65536)
            except OSError:  # all of it is closed
                break
            if not part:
                break
            new += part
        self.written += new

    def end(self) -> int:
        self.read_until(None)
        os.close(self.fd)
        return self.child.wait()

    def screen(self) -> list[str]:
        """The lines as they stand in the end, by the few controls that are used."""
        rows, row = [""], 0
        for text, control in re.findall(
            r"([^\x1b\r\n]+)|(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)", self.written.decode()
        ):
            if text:
                rows[row] += text
            elif control == "\n":
                row += 1
                rows += [""] * (row == len(rows))
            elif control in ("\x1b[1A", "\x1b[2K"):
                row -= control == "\x1b[1A"
                rows[row] = rows[row] if control == "\x1b[1A" else ""
            else:
                assert control == "\r" or control.endswith("m"), (
                    f"a control that is not foreseen: {control!r}"
                )
        return [line for line in rows if line]


@pytest.fixture
def on_terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Start the toy pipeline on a terminal: sixty items of 0.05 s, two of which are not made."""
    source = tmp_path / "many.txt"
    words = ["fail" if number in (3, 40) else "sleep:0.05" for number in range(60)]
    source.write_text("".join(f"item{number:02} {word}\n" for number, word in enumerate(words)))
    started: list[Terminal] = []

    def start(columns: int = 80, **environment: str) -> Terminal:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), str(source), "0"]
        started.append(Terminal(command, columns=columns, **environment))
        return started[-1]

    yield start
    for terminal in started:
        if terminal.child.poll() is None:
            terminal.child.kill()
            terminal.child.wait()


@pytest.mark.slow
def test_block_when_the_terminal_changes_its_width_is_cut_to_it_and_leaves_plain_lines(on_terminal) -> None:
    begun, terminal = time.monotonic(), on_terminal()

    def is_narrow() -> bool:
        before = len(terminal.written)
        terminal.read_until(b"stage 2 of 6")
        drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.written[before:].decode()).splitlines()
        return all(len(line) < 24 for line in drawn if "failed" not in line)

    terminal.read_until(b" of 60")
    terminal.resize(24)
    while not is_narrow():  # it was drawn before, and is read now
        pass
    assert is_narrow()
    terminal.resize(200)
    assert terminal.end() == 0
    assert b"\x1b[?25l" not in terminal.written, "the cursor stays, whatever becomes of the process"
    seconds = time.monotonic() - begun
    assert terminal.written.count(b"stage 2 of 6") <= 2 * seconds / INTERVAL + 20, "a few times a second"
    lines = [re.sub(r" since the start.*", "", line) for line in terminal.screen()]
    assert [line for line in lines if line.startswith(("work:", "assemble:", "  work: item"))] == [
        "  work: item03 failed (tired): asked to fail",
        "  work: item40 failed (tired): asked to fail",
        "work: 58 made, 2 failed (60 run, 0 reused)",
        "assemble: 58 made (58 run, 0 reused)",
    ]
    assert lines[-1] == "outputs written"


@pytest.mark.slow
def test_block_when_stopped_by_ctrl_c_goes_and_says_so(on_terminal) -> None:
    terminal = on_terminal()
    terminal.read_until(b" of 60")
    os.write(terminal.fd, b"\x03")
    assert terminal.end() == 130
    assert terminal.screen()[-2:] == [
        "stopping: finishing what is in flight; once more to stop at once",
        "Interrupted: stopped; finished work is kept, the same command continues it",
    ]
    assert on_terminal().end() == 0


# -- The books of calls: what was sent stands there and nothing else, whatever is killed; sums are exact

Asks = Callable[..., RunRequest]
CONCURRENCY = 8
PROGRAM_BOOKS = """
import sys
from pathlib import Path
from fabula.engine.execute import Options, execute
from fabula.testing.toy_models import model_request
folder, lines, model, limit = sys.argv[1:]
options = Options(workers=0, max_cost=float(limit) if limit else None, retry_failed=not limit)
settings = {"concurrency": 8, "attempts": 20}
execute(model_request(Path(folder), (Path(lines), model), options, settings=settings))
"""


def rows(folder: Path) -> tuple[int, int]:
    """Requests that were answered, and those without a reply, in the journal of a run."""
    path = folder / JOURNAL
    if not path.exists():
        return 0, 0
    with closing(sqlite3.connect(path)) as journal:
        if not journal.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sent'").fetchone()[0]:
            return 0, 0
        sql = "SELECT (SELECT coalesce(sum(attempts), 0) FROM calls), (SELECT count(*) FROM sent)"
        answered, unanswered = journal.execute(sql).fetchone()
    return answered, unanswered


def dawdling(choices: random.Random) -> Callable[[Asked], Fault | None]:
    """Every reply takes another time, so that none comes in the order of the requests."""
    return lambda _: Slow(choices.uniform(0.0, 0.03))


# -- what is sent, and what waits


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("limit", ["", "1000"], ids=["retry", "limited"])
def test_books_when_a_run_is_killed_hold_what_was_sent_and_at_most_the_open_slots_more(
    tmp_path: Path, server: ModelServer, starter: Any, limit: str
) -> None:
    lines, folder, choices = tmp_path / "lines.txt", tmp_path / "run", random.Random(5)
    count = 40 * rounds(30)
    lines.write_text("".join(f"i{number} cat\n" for number in range(count)))
    request = model_request(folder, (lines, f"{server.openai_url}#toy"), settings={"concurrency": 8})
    if not limit:  # what is killed is a retry of all
        server.faults = Refused()
        with pytest.raises(BelowThreshold):
            execute(request)
    first = server.count
    server.faults = dawdling(choices)
    kills = 0
    while kills < rounds(30):
        wanted = server.count + choices.randint(1, 40)
        child = starter.start((folder, lines, f"{server.openai_url}#toy", limit), code=PROGRAM_BOOKS)
        while child.poll() is None and server.count < wanted:
            server.wait_for(min(server.count + 1, wanted), timeout=0.2)
        child.kill()
        kills += child.wait() != 0
        answered, unanswered = rows(folder)
        assert answered + unanswered >= server.count, "what was sent stands on the books"
        assert answered + unanswered <= server.count + kills * CONCURRENCY, "what waited does not"
    server.faults = None
    options = Options(workers=0, retry_failed=not limit)
    assert execute(replace(request, options=options)).totals["made"] == count
    (use,) = model_uses(folder / JOURNAL)
    assert use.calls == first + count, "nothing is asked twice that was answered"
    assert server.count <= use.attempts + use.uncertain <= server.count + kills * CONCURRENCY


@pytest.mark.parametrize("limit", [None, 1000.0], ids=["free", "limited"])
@pytest.mark.parametrize("slots", [1, 3])
def test_books_when_calls_wait_for_a_slot_do_not_hold_them(asks, server, limit, slots):
    open_rows: list[int] = []
    path = asks("a cat\n").folder / JOURNAL

    def look(asked: Asked) -> dict[str, Any]:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as journal:
            sql = "SELECT count(*) FROM sent WHERE request NOT IN (SELECT request FROM calls)"
            open_rows.append(journal.execute(sql).fetchone()[0])
        return reply_to(asked)

    server.handler = look
    text = "".join(f"i{number} cat\n" for number in range(30))
    options = Options(workers=0, max_cost=limit)
    execute(asks(text, settings={"concurrency": slots}, options=options))
    assert len(open_rows) == 30
    assert min(open_rows) >= 1, "it is on disk before it is sent"
    # Replies that are about to be written stand there beside those that have a slot.
    assert max(open_rows) <= 2 * slots


def test_books_when_a_call_waits_for_the_end_of_a_pause_do_not_hold_it_twice(asks, server):
    server.faults = lambda asked: RateLimited(retry_after=0.05) if asked.attempt == 1 else None
    (use,) = execute(asks("a cat\nb bee\n", settings={"concurrency": 2, "attempts": 9})).models
    assert (use.calls, use.attempts, use.uncertain) == (2, server.count, 0)


# -- sums


@pytest.mark.slow
@pytest.mark.endurance
def test_report_when_replies_come_in_another_order_has_the_same_bytes(asks, server):
    choices = random.Random(11)
    text = "".join(f"i{n} {' '.join(['cat'] * choices.randint(1, 90))} ask:2\n" for n in range(60))
    prices = {"input": 0.1, "output": 0.7}  # no sum of these is exact in binary
    reports = set()
    for number in range(1 + rounds(20)):
        server.faults = dawdling(choices)
        request = asks(text, folder=f"run{number}", settings={"concurrency": 16, "prices": prices})
        execute(request)
        reports.add((request.folder / REPORT).read_bytes())
    assert len(reports) == 1


def test_budget_when_the_limit_is_met_exactly_lets_the_call_through(asks: Asks, server: ModelServer) -> None:
    text = "".join(f"i{number} cat\n" for number in range(40))
    prices = {"input": 0.1, "output": 0.7}
    (use,) = execute(asks(text, folder="calm", settings={"prices": prices})).models
    request = asks(text, settings={"prices": prices, "concurrency": 1})
    limited = replace(request, options=Options(workers=0, max_cost=use.cost * 20))
    assert execute(limited).models[0].cost == use.cost
    assert server.count == 80


# Many questions at once: each is answered once and paid for once, and the limit of cost holds.

ITEMS = rounds(10_000, share=30)
FAULTS = {RateLimited(retry_after=0.01): 0.01, ServerError(503): 0.01, Dropped(): 0.01}


@pytest.mark.slow
@pytest.mark.endurance
@pytest.mark.waits
def test_run_when_many_questions_are_open_at_once_loses_none_and_keeps_the_limit(tmp_path: Path) -> None:
    source = tmp_path / "lines.txt"
    order = random.Random(42).sample(range(ITEMS), ITEMS)
    source.write_text("".join(f"i{number:05} word{number}\n" for number in order))
    with ModelServer(reply_to, latency=0.005, faults=FaultPlan(seed=42, rates=FAULTS)) as server:
        request = model_request(
            tmp_path / "run",
            (source, f"{server.openai_url}#toy"),
            settings={"concurrency": 128, "attempts": 20},
        )
        stops = 0
        limit = 0.0006
        while True:
            try:
                report = execute(replace(request, options=Options(workers=0, max_cost=limit)))
                break
            except BudgetStop:
                assert sum(use.cost for use in model_uses(request.folder / JOURNAL)) <= limit
                stops, limit = stops + 1, limit * 4
        assert stops > 0
        replies = [exchange for exchange in server.log if not exchange.faults]
    assert report.totals["made"] == ITEMS
    made = [json.loads(line) for line in (request.folder / "lines.jsonl").read_text("utf-8").splitlines()]
    assert len({row["id"] for row in made}) == ITEMS
    assert len(list(answered(request.folder / JOURNAL))) == ITEMS
    assert max(Counter(exchange.asked.key for exchange in replies).values()) == 1, "nothing is paid twice"
