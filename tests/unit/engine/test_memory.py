"""Memory stays flat as the number of items grows, and a run with nothing to do reads no contents."""

import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.engine import pool
from fabula.engine.execute import Options
from fabula.engine.journal import Head, Journal
from fabula.engine.pipeline import SOURCES, Stage
from fabula.engine.report import RunReport
from fabula.engine.runner import Runner
from fabula.engine.walk import Items
from fabula.engine.worker import Parts
from fabula.testing.toy_pipeline import run_toy

PROGRAM = """
import resource, sys
from pathlib import Path
from fabula.engine.execute import Options
from fabula.testing.toy_pipeline import run_toy
for _ in range(2):
    run_toy(Path(sys.argv[1]), Path(sys.argv[2]), Options(workers=int(sys.argv[3])))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(tmp_path: Path, items: int) -> int:
    """Return the peak memory, in kilobytes, of the process that has items of 20 kB each made by workers."""
    source = tmp_path / f"{items}.txt"
    with source.open("w") as out:
        for number in range(items):
            out.write(f"i{number} " + " ".join(f"{number * 7919 + k:x}" for k in range(2600)) + "\n")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / f"run{items}"), str(source), "2"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_execute_when_items_are_ten_times_as_many_needs_hardly_more_memory(tmp_path: Path) -> None:
    few, many = peak(tmp_path, 100), peak(tmp_path, 1000)
    # 900 more items are 18 MB of source text (which the toy reads at once), 45 MB as parsed words.
    assert many - few < 80_000, (few, many)


class Flow:
    """How far the tasks that are drawn run ahead of the results that are settled, in items and bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most_items = self.most_bytes = 0
        self._flying: dict[str, int] = {}
        parts, settle = Items.parts, Runner.settle

        def drawn(items: Items, *given: Any) -> Iterator[tuple[str, Parts]]:
            for item, found in parts(items, *given):
                if item != SOURCES:
                    self._flying[item] = sum(len(blob) for blob, _ in found)
                self.most_items = max(self.most_items, len(self._flying))
                self.most_bytes = max(self.most_bytes, sum(self._flying.values()))
                yield item, found

        def settled(runner: Runner, stage: Stage, head: Head, *, ran: bool) -> None:
            self._flying.pop(head.item, None)
            settle(runner, stage, head, ran=ran)

        monkeypatch.setattr(Items, "parts", drawn)
        monkeypatch.setattr(Runner, "settle", settled)


CHUNKS = 2 * pool.CHUNKS_PER_WORKER  # of two workers


def test_execute_when_workers_are_slower_than_the_source_draws_only_what_they_can_hold(
    run: Callable[..., RunReport], lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines.write_text("".join(f"i{number} word\n" for number in range(1500)))
    flow = Flow(monkeypatch)
    assert run(2, stages=("read_lines", "work")).totals["pending"] == 1500
    assert CHUNKS < flow.most_items <= CHUNKS * pool.CHUNK_ITEMS < 1500


def test_execute_when_items_are_large_draws_fewer(
    run: Callable[..., RunReport], lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = " ".join(f"{number * 7919:x}" for number in range(1500))
    lines.write_text("".join(f"i{number} {words}\n" for number in range(200)))
    monkeypatch.setattr(pool, "CHUNK_BYTES", 10_000)
    flow = Flow(monkeypatch)
    assert run(2, stages=("read_lines", "work")).totals["pending"] == 200
    one = len(zlib.compress(words.encode()))
    assert 0 < flow.most_bytes <= CHUNKS * (pool.CHUNK_BYTES + 2 * one)
    assert flow.most_items < 100


def test_execute_when_nothing_is_to_be_done_reads_only_lists(
    tmp_path: Path, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_toy(tmp_path / "run", lines, Options(workers=0))
    read: list[int] = []
    lists: set[int] = set()
    real, pieces = Journal.blobs, Journal.blob_pieces

    def blobs(self: Journal, seqs: object) -> dict[int, bytes]:
        found = real(self, seqs)  # type: ignore[arg-type]
        read.extend(found)
        return found

    def blob_pieces(self: Journal, seq: int) -> Iterator[bytes]:
        lists.add(seq)
        return pieces(self, seq)

    monkeypatch.setattr(Journal, "blobs", blobs)
    monkeypatch.setattr(Journal, "blob_pieces", blob_pieces)
    run_toy(tmp_path / "run", lines, Options(workers=0))
    assert read == []
    assert len(lists) == 3  # what the expand and the two gathers brought forth
