"""Memory stays flat as the number of items grows, and a run with nothing to do reads no contents."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabula.engine.execute import Options
from fabula.engine.journal import Journal
from fabula.testing.toy_pipeline import run_toy

pytestmark = pytest.mark.slow

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
