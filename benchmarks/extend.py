"""Measure adding stories to a run: what is worked on, and how long it takes beside building all anew.

python benchmarks/extend.py --stories 5000 --new 100
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from measure import Measured, fabula

from fabula.schemas.canonical import sha256_bytes
from fabula.testing.made_stories import write_stories

GATHERED = ("load_stories", "find_duplicates", "assign_splits")
"""Stages that see all stories: they read the sources, or decide with all in view."""


def records(run: Path) -> dict[str, str]:
    """Return id -> hash of each record of a run."""
    with (run / "records.jsonl").open("rb") as lines:
        return {json.loads(line)["id"]: sha256_bytes(line) for line in lines}


def row(what: str, measured: Measured, note: str) -> None:
    """Print one row of the table."""
    print(f"| {what} | {measured.seconds:.2f} | {measured.mebibytes:.0f} | {note} |", flush=True)


def measure(folder: Path, count: int, new: int) -> None:
    """Build a run, extend it, build the whole anew, and compare."""
    lines = write_stories(folder / "all.jsonl", count + new).read_bytes().splitlines(keepends=True)
    first, more = folder / "first.jsonl", folder / "more.jsonl"
    first.write_bytes(b"".join(lines[:count]))
    more.write_bytes(b"".join(lines[count:]))
    run, whole = folder / "run", folder / "whole"
    row(f"build {count}", fabula("build", "katha", first, "--out", run, "--json"), "")
    before = records(run)
    extended = fabula("extend", run, more, "--json")
    stages = json.loads(extended.output)["run"]["stages"]
    done = {stage["ran"] for stage in stages if stage["name"] not in GATHERED}
    after = records(run)
    kept = sum(after.get(story) == sha256 for story, sha256 in before.items())
    note = f"{min(done)} to {max(done)} stories per stage; {kept} of {count} records as they were"
    row(f"extend by {new}", extended, note)
    again = fabula("extend", run, more, "--json")
    row(f"extend by the same {new}", again, "nothing to do")
    anew = fabula("build", "katha", first, more, "--out", whole, "--json")
    row(
        f"build {count + new} anew", anew, f"{anew.seconds / extended.seconds:.1f} times as long as extending"
    )


def main() -> None:
    """Measure one size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=5000, help="stories of the run")
    parser.add_argument("--new", type=int, default=100, help="stories to add")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fabula-bench-"))
    print("| step | seconds | peak MiB | note |\n|---|---|---|---|")
    try:
        measure(folder, given.stories, given.new)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
