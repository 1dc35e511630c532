"""Measure the main job at several sizes: build, build again, validate, pack, verify.

    python benchmarks/release.py --sizes 1000,5000
    python benchmarks/release.py --characters 50000,100000

The peer of the validators is plain ``jsonschema``, doing the schema alone, on the same records. The second
form measures what the rules read off one text without a full stop, by its length.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

from jsonschema import Draft202012Validator
from measure import fabula

from fabula.builders.text.boundaries import analyze
from fabula.schemas.export import json_schema
from fabula.schemas.text import normalize_text
from fabula.testing.made_stories import write_stories


def check_plainly(records: Path) -> None:
    """Hold every record against its schema with plain jsonschema, parsing included."""
    record, variant = (Draft202012Validator(json_schema(name)) for name in ("katha_record", "katha_variant"))
    with records.open("rb") as lines:
        for line in lines:
            payload = json.loads(line)["payload"]
            list(record.iter_errors(payload["record"]))
            for value in payload["variants"]:
                list(variant.iter_errors(value))


def row(what: str, count: int, processor: float, seconds: float, mebibytes: float | None = None) -> None:
    """Print one row of the table."""
    memory = "" if mebibytes is None else f"{mebibytes:.0f}"
    each = 1000 * processor / count
    print(f"| {what} | {count:,} | {processor:.1f} | {each:.1f} | {seconds:.1f} | {memory} |", flush=True)


def measure_size(folder: Path, count: int) -> None:
    """Measure every step for one number of stories."""
    stories = write_stories(folder / f"{count}.jsonl", count)
    run, release = folder / f"run-{count}", folder / f"release-{count}"
    build = ("build", "katha", stories, "--out", run)
    packed = ("--version", "0.1.0", "--license", "CC0-1.0", "--allow-drafts", "--out", release)
    steps: dict[str, tuple[object, ...]] = {
        "build": (*build, "--created-at", "2026-01-01T00:00:00Z"),
        "build, nothing to do": build,
        "validate, all rules": ("validate", run),
        "pack": ("release", "pack", run, *packed),
        "verify": ("release", "verify", release),
    }
    for name, arguments in steps.items():
        took = fabula(*arguments, "--json")
        row(name, count, took.processor, took.seconds, took.mebibytes)
        if name.startswith("validate"):
            used, started = time.process_time(), time.perf_counter()
            check_plainly(run / "records.jsonl")
            passed = time.perf_counter() - started
            row("plain `jsonschema`, schema only", count, time.process_time() - used, passed)


SENTENCES = {
    "no full stop": "the fox ran and the hen saw him because he was hungry ",
    "commas": "a, ",
    "capital letters": "A ",
    "Chinese": "狐狸跑到河边然后看见了鸟",
}


def measure_text(characters: int) -> None:
    """Print the seconds that reading one text takes, for several kinds of endless sentences."""
    for name, unit in SENTENCES.items():
        text = normalize_text((unit * (characters // len(unit) + 1))[:characters])
        started = time.perf_counter()
        analyze({"normalized_text": text, "language": "en"})
        print(f"| {name} | {characters:,} | {time.perf_counter() - started:.2f} |", flush=True)


def main() -> None:
    """Measure each size in turn and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,5000", help="numbers of stories, separated by commas")
    parser.add_argument("--characters", help="lengths of one text, separated by commas; nothing else then")
    given = parser.parse_args()
    if given.characters:
        print("| text | characters | seconds |\n|---|---:|---:|")
        for characters in given.characters.split(","):
            measure_text(int(characters))
        return
    sizes = [int(size) for size in given.sizes.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="fabula-bench-"))
    print("| step | stories | processor s | ms a story | seconds | peak MiB |")
    print("|---|---:|---:|---:|---:|---:|")
    try:
        for size in sizes:
            measure_size(folder, size)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
