"""Measure `fabula view` on many records: processor time to the first page, of the index, of a search.

    python benchmarks/view.py --records 25000

The records are those of a run, repeated with other ids: `--run` names it, `make demo` makes one.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from fabula.viewing.shelf import open_shelf
from fabula.viewing.site import Site


def write_many(run: Path, count: int, folder: Path) -> None:
    """Write so many records of a run, each with an id of its own."""
    lines = (run / "records.jsonl").read_text("utf-8").splitlines()
    with (folder / "records.jsonl").open("w", encoding="utf-8") as out:
        for number, line in enumerate(islice(cycle(lines), count)):
            row = json.loads(line)
            row["id"] = row["payload"]["record"]["story_id"] = f"kb25k_{number:05d}"
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=25_000)
    options.add_argument("--run", type=Path, default=Path("runs/demo"))
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_many(given.run, given.records, folder)
        size = (folder / "records.jsonl").stat().st_size / 1e6
        rows = [("records", f"{given.records:,}, {size:,.0f} MB")]
        with open_shelf(folder) as shelf:
            begun = time.process_time()
            page = Site(shelf).answer("/")
            rows.append(
                ("first page", f"{time.process_time() - begun:.2f} s, {len(page.body) / 1000:.0f} kB")
            )
            shelf.rows["records"].wait()
            rows.append(("whole index", f"{time.process_time() - begun:.1f} s"))
            begun = time.process_time()
            found = Site(shelf).answer("/rows/records?q=dove")
            rows.append(
                ("page of a search", f"{time.process_time() - begun:.2f} s, {len(found.body) / 1000:.0f} kB")
            )
        rows.append(("peak memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"))
    sys.stdout.write("".join(f"| {what} | {value} |\n" for what, value in rows))


if __name__ == "__main__":
    main()
