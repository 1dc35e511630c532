"""Measure the official episodes: import, validation, statistics, page, export, release.

    python benchmarks/entities.py EntityBench/data
    python benchmarks/entities.py EntityBench/data --instructions

The goal is 5 s in all for import, validation and all statistics of the 140 episodes. ``--instructions``
counts the instructions of the same work (needs valgrind), which a busy machine does not change.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import fabula, measure

IN_PROCESS = """
import sys
from pathlib import Path
from fabula.releases.entities.tree import statistics_of_set
from fabula.releases.entities.tree import read_entity_set

entity_set, report = read_entity_set(Path(sys.argv[1]))
statistics_of_set(entity_set).as_json()
print(len(entity_set.episodes), sum(report.counts.values()))
"""


def main() -> None:
    """Run each step once and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a folder with scripts/ and splits/")
    parser.add_argument("--instructions", action="store_true", help="count instructions with callgrind")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fabula-bench-"))
    try:
        print("| step | seconds | peak MiB | note |")
        print("|---|---:|---:|---|")
        measured(folder, given.data)
        if given.instructions:
            print(f"| instructions | | | {instructions(given.data, folder):,} |", flush=True)
    finally:
        shutil.rmtree(folder)


def measured(folder: Path, data: Path) -> None:
    """Print a row for each command."""
    run, release, page = folder / "run", folder / "release", folder / "page.html"
    pack = ("--version", "0.1.0", "--license", "CC-BY-SA-4.0", "--language", "en", "--out", release)
    steps = (
        ("import", ("import", "entitybench", data, "--out", run), "reads, checks, copies"),
        ("stats", ("stats", run, "--json"), "all tables; process start included"),
        ("stats with a page", ("stats", run, "--html", page), ""),
        ("export", ("export", "entitybench", run, "--out", folder / "out"), "byte for byte"),
        ("requests", ("export", "entities", run, "--header", "all", "--out", folder / "ask"), ""),
        ("pack", ("release", "pack", run, *pack), ""),
        ("verify, quick", ("release", "verify", release, "--quick"), ""),
        ("verify", ("release", "verify", release), "reads every row with two loaders"),
    )
    one = measure(sys.executable, "-c", IN_PROCESS, data)
    row("read, check, count, in one process", one.seconds, one.mebibytes, one.output.strip())
    for name, command, note in steps:
        taken = fabula(*command)
        told = f"{page.stat().st_size / 1e6:.1f} MB" if "page" in name else note
        row(name, taken.seconds, taken.mebibytes, told)


def row(name: str, seconds: float, mebibytes: float, note: str) -> None:
    """Print one row."""
    print(f"| {name} | {seconds:.2f} | {mebibytes:.0f} | {note} |", flush=True)


def instructions(data: Path, folder: Path) -> int:
    """Return how many instructions reading, checking and counting take, process start included."""
    out = folder / "callgrind.out"
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
    command = [*valgrind, sys.executable, "-c", IN_PROCESS, str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise SystemExit(done.stderr)
    return int(found[1])


if __name__ == "__main__":
    main()
