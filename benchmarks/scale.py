"""Pools and shards on this machine: a build by one and two workers, local and in Ray; how fast shards merge.

    python benchmarks/scale.py [--stories 200] [--items 100000] [--shards 8] [--no-ray]

The build is of made-up stories by rules, so that it is bound by the processor. Ray is started before the
clock, its actors within it. Merged are shards of a toy run whose results are small: rows are what counts.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.execute import Options
from fabula.engine.machines.merging import Merge, merge_shards
from fabula.engine.machines.shards import Shard
from fabula.engine.running import RunKind
from fabula.testing.made_stories import write_stories
from fabula.testing.toy_pipeline import run_toy, toy

CREATED = "2026-01-01T00:00:00Z"


@contextmanager
def timed(told: Callable[[float], str]) -> Iterator[None]:
    """Print a row of a table with the seconds that the block took."""
    began = time.perf_counter()
    yield
    print(told(time.perf_counter() - began), flush=True)


def build(folder: Path, stories: int, pools: tuple[str, ...]) -> None:
    """Print how long a build takes."""
    source = write_stories(folder / "stories.jsonl", stories)
    print("| pool | workers | s | stories/s |\n|---|---:|---:|---:|")
    for pool in pools:
        if pool == "ray":
            from fabula.engine.machines.ray_pool import connect

            connect()
        for workers in (1, 2):
            options = BuildOptions(created_at=CREATED, workers=workers, pool=pool)
            with timed(
                lambda s, row=(pool, workers): f"| {row[0]} | {row[1]} | {s:.1f} | {stories / s:.1f} |"
            ):
                build_katha(source, folder / f"{pool}{workers}", options)


def merge(folder: Path, items: int, of: int) -> None:
    """Print how long shards and their merge take."""
    source = folder / "lines.txt"
    source.write_text("".join(f"i{number:07} word{number % 97} cat\n" for number in range(items)))
    parts = [folder / f"part{number}" for number in range(1, of + 1)]
    print("\n| what | s | items/s | journal, MB |\n|---|---:|---:|---:|")

    def row(what: str, run: Path, seconds: float, count: int) -> str:
        size = (run / "journal.sqlite").stat().st_size / 1e6
        return f"| {what} | {seconds:.1f} | {count / seconds:.0f} | {size:.1f} |"

    whole = folder / "whole"
    with timed(lambda s: row("one run", whole, s, items)):
        run_toy(whole, source, Options(workers=0))
    with timed(lambda s: row(f"{of} shards, one after the other", parts[0], s, items)):
        for number, part in enumerate(parts, 1):
            run_toy(part, source, Options(workers=0, shard=Shard(number=number, of=of)))
    kind, out = RunKind(toy(), lambda _request, _reporter: None), folder / "merged"
    with timed(lambda s: row("merge, with the stages after it", out, s, items)):
        merge_shards(parts, out, kind, Merge(workers=0), kind.make)
    assert (out / "lines.jsonl").read_bytes() == (whole / "lines.jsonl").read_bytes()


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--stories", type=int, default=200)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--no-ray", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fabula-scale-") as name:
        build(Path(name), given.stories, ("local",) if given.no_ray else ("local", "ray"))
        merge(Path(name), given.items, given.shards)


if __name__ == "__main__":
    main()
