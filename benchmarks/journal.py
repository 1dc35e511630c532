"""Measure the journal: results committed per second beside simple peers, and a no-op over 50,000 results.

    python benchmarks/journal.py

The peers write the same bytes: SQLite with a commit per row (WAL, synchronous=FULL), and JSON lines with an
fsync per line. All three have a row on disk before it counts.
"""

import json
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

from fabula.engine.config import resolve_config
from fabula.engine.execute import Options, RunRequest, Source, execute
from fabula.engine.journal import Entry, Journal, encode
from fabula.engine.pipeline import Pipeline
from fabula.engine.stage import Made
from fabula.testing.toy_pipeline import toy

ROWS = 20_000
FSYNCED_ROWS = 2_000
VALUE = {"text": "The fox ran to the well because she was thirsty. " * 20}
ITEMS = 8_334  # six results each


def journal_rows(folder: Path) -> float:
    """Rows per second through the journal, all of them on disk at the end."""
    encoded = encode(Made(VALUE))
    with Journal.open(folder) as journal:
        started = time.perf_counter()
        for number in range(ROWS):
            journal.put(
                Entry(
                    key=f"{number:064d}",
                    stage="bench",
                    item=f"item_{number}",
                    part="item",
                    version=1,
                    settings="0" * 64,
                    libraries="0" * 64,
                    inputs={"text": "0" * 64},
                    encoded=encoded,
                )
            )
        journal.flush()
        return ROWS / (time.perf_counter() - started)


def sqlite_rows(folder: Path) -> float:
    """Rows per second with a commit after each."""
    blob = encode(Made(VALUE)).blob
    connection = sqlite3.connect(folder / "peer.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (key TEXT PRIMARY KEY, blob BLOB)")
    started = time.perf_counter()
    for number in range(FSYNCED_ROWS):
        connection.execute("INSERT INTO rows VALUES (?, ?)", (f"{number:064d}", blob))
    return FSYNCED_ROWS / (time.perf_counter() - started)


def jsonl_rows(folder: Path) -> float:
    """Lines per second with an fsync after each."""
    with (folder / "peer.jsonl").open("w", encoding="utf-8") as out:
        started = time.perf_counter()
        for number in range(FSYNCED_ROWS):
            out.write(json.dumps({"key": f"{number:064d}", "value": VALUE}) + "\n")
            out.flush()
            os.fsync(out.fileno())
    return FSYNCED_ROWS / (time.perf_counter() - started)


def no_op(folder: Path, pipeline: Pipeline) -> tuple[float, float, int]:
    """Seconds of a first run and of one with nothing to do, and the number of results looked at."""
    lines = folder / "items.txt"
    lines.write_text("".join(f"item_{number:05d} {number % 977} word\n" for number in range(ITEMS)))
    request = RunRequest(
        folder / "run",
        pipeline,
        resolve_config(pipeline),
        (Source("lines", lines),),
        "2026-01-01T00:00:00Z",
        Options(workers=2),
    )
    started = time.perf_counter()
    execute(request)
    first = time.perf_counter() - started
    started = time.perf_counter()
    report = execute(request)
    again = time.perf_counter() - started
    return first, again, sum(stage.reused for stage in report.stages)


def main() -> None:
    """Print both tables."""
    folder = Path(tempfile.mkdtemp(prefix="fabula-bench-"))
    try:
        print("| writer | rows/s, each durable |\n|---|---|")
        print(f"| Fabula's journal | {journal_rows(folder):.0f} |", flush=True)
        print(f"| SQLite, a commit per row | {sqlite_rows(folder):.0f} |", flush=True)
        print(f"| JSON lines, an fsync per line | {jsonl_rows(folder):.0f} |", flush=True)
        first, again, reused = no_op(folder, toy())
        print(f"\n{reused} results: first run {first:.2f} s, run with nothing to do {again:.2f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
