"""Measure the diff of two releases: nothing changed, some records changed and added, every record changed.

    python benchmarks/diff.py --sizes 1000,5000

The peer parses every line of both releases and compares them whole, without saying what differs in them.
"""

import argparse
import copy
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import fabula

from fabula.kinds.verbs import pack
from fabula.releases.options import PackOptions
from fabula.schemas.canonical import Json
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles

Change = Callable[[list[Json], int], list[Json]]


def bundles_of(count: int) -> list[Json]:
    """Return that many complete records, with their variants."""
    return [copy.deepcopy(bundle) for bundle in sample_bundles(count)]


def unchanged(bundles: list[Json], count: int) -> list[Json]:
    """The same stories under another version."""
    return bundles[:count]


def some(bundles: list[Json], count: int) -> list[Json]:
    """One story in fifty with another accepted answer, and one new one for every fifty."""
    for bundle in bundles[:count:50]:
        bundle["record"]["questions"][1]["accepted_answers"].append("dread")
        rehash(bundle)
    return bundles


def every(bundles: list[Json], count: int) -> list[Json]:
    """Every story, and every variant, with another text."""
    for bundle in bundles:
        bundle["record"]["scenes"][2]["action"] += ", slowly"
        for variant in bundle["variants"]:
            variant["semantic_delta"] += " indeed"
        rehash(bundle)
    return bundles[:count]


def release_of(folder: Path, bundles: list[Json], version: str) -> Path:
    """Pack records as a release."""
    run = write_run(folder / f"run-{version}", bundles)
    return pack(run, folder / version, PackOptions(version, name="bench", allow_drafts=True)).folder


def parse_and_compare(old: Path, new: Path) -> float:
    """Seconds that it takes to parse all records of both and to compare them whole."""
    started = time.perf_counter()
    for name in ("annotations.jsonl", "contrastive_variants.jsonl", "producers.jsonl"):
        sides = []
        for folder in (old, new):
            rows = (json.loads(line) for line in (folder / name).open("rb"))
            sides.append({row.get("variant_id") or row.get("story_id") or row["id"]: row for row in rows})
        sum(sides[0].get(one) != row for one, row in sides[1].items())
    return time.perf_counter() - started


def measure_size(folder: Path, count: int) -> None:
    """Measure every case for one number of stories."""
    old = release_of(folder, bundles_of(count), "0.1.0")
    for number, change in enumerate((unchanged, some, every), 2):
        new = release_of(folder, change(bundles_of(count + count // 50), count), f"0.{number}.0")
        told = fabula("release", "diff", old, new, "--json")
        found = json.loads(told.output)
        changes = sum(len(one["changes"]) for one in found["changed"])
        added = len(found["added"].get("annotations.jsonl", ()))
        page = folder / "diff.html"
        paged = fabula("release", "diff", old, new, "--html", page, "--json")
        counts = f"{count} | {added} | {changes}"
        seconds = f"{told.seconds:.2f} | {told.mebibytes:.0f} | {paged.seconds:.2f}"
        print(f"| {change.__name__} | {counts} | {seconds} | {parse_and_compare(old, new):.2f} |", flush=True)


def main() -> None:
    """Measure each size in turn and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,5000", help="numbers of stories, separated by commas")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="fabula-bench-"))
    print("| case | stories | added | changes | diff s | peak MiB | with a page s | parse and compare s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    try:
        for size in sizes:
            measure_size(folder / str(size), size)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
