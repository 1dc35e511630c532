"""Pools and shards on this machine: one and two workers, local and in Ray; how fast shards merge.

    python benchmarks/scale.py [--films 12] [--frames 300] [--items 5000] [--shards 8] [--no-ray]

Workers find the shots of films by histograms, which is bound by the processor. Start-up is told apart: it
ends when the first films are done. Each pool's work is timed twice, and the quicker pass counts; processor
time is that of all its processes in that pass, and says something on a busy machine, too. Merged are shards
of a toy run whose results are small: rows are what counts.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from fabula.builders.entities.videos import DetectShotsSettings
from fabula.engine.execute import Options
from fabula.engine.journal import encode
from fabula.engine.machines.merging import Merge, merge_shards
from fabula.engine.machines.ray_pool import open_pools
from fabula.engine.manifest import EPOCH
from fabula.engine.pipeline import Shard
from fabula.engine.pool import Job, Pool, Task
from fabula.engine.running import RunKind
from fabula.engine.stage import Made, Tools
from fabula.schemas.canonical import sha256_file
from fabula.testing.drawn_episode import FRAMES, write_episode
from fabula.testing.toy_pipeline import run_toy, toy

CREATED = "2026-01-01T00:00:00Z"


@contextmanager
def timed(told: Callable[[float], str]) -> Iterator[None]:
    """Print a row of a table with the seconds that the block took."""
    began = time.perf_counter()
    yield
    print(told(time.perf_counter() - began), flush=True)


def find_shots(folder: Path, films: int, frames: int, pools: tuple[str, ...]) -> None:
    """Print how long pools take to start, and to find the shots of films; check that all find the same."""
    path, _ = write_episode(folder, [f"{number + 1}" for number in range(frames // FRAMES)])
    fields = {"found": {"video_id": "film", "file": str(path), "sha256": sha256_file(path)}}
    blob = encode(Made(fields)).blob
    assert blob is not None
    tasks = [Task(f"film{number}", f"film{number}", ((blob, ("found",)),)) for number in range(films)]
    job = Job(
        "fabula.builders.entities.videos:detect_shots",
        Tools(DetectShotsSettings(method="histogram"), CREATED),
        100.0,
    )
    print("| pool | workers | start, s | work, s | times one worker | processor, s |")
    print("|---|---:|---:|---:|---:|---:|")
    known, alone = set(), 0.0
    for name in pools:
        for workers in (1, 2):
            began = time.perf_counter()
            with open_pools(name, workers, 60.0)[0] as pool:
                run(pool, job, tasks[: 2 * workers])
                start = time.perf_counter() - began
                work = []
                for _ in range(2):
                    began, used = time.perf_counter(), processor_time()
                    known |= set(run(pool, job, tasks))
                    work.append((time.perf_counter() - began, processor_time() - used))
            seconds, used = min(work)
            alone = seconds if workers == 1 else alone
            row = f"{start:.1f} | {seconds:.1f} | {alone / seconds:.2f} | {used:.1f}"
            print(f"| {name} | {workers} | {row} |", flush=True)
    assert len(known) == 1, "the same film gave other shots"


def processor_time() -> float:
    """Return the seconds of a core that this process and those which it started have used."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return sum(used.user + used.system for used in times)


def run(pool: Pool, job: Job, tasks: list[Task]) -> list[str]:
    """Return what a pool made of films, as digests."""
    results = [encoded for group in pool.run(job, tasks, lambda: False) for _, encoded in group]
    assert len(results) == len(tasks) and all(encoded.status == "made" for encoded in results)
    return [str(sorted((encoded.outputs or {}).items())) for encoded in results]


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
    parser.add_argument("--films", type=int, default=12)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--no-ray", action="store_true")
    given = parser.parse_args()
    os.environ.setdefault(EPOCH, "1767225600")  # shards need the same creation time
    with tempfile.TemporaryDirectory(prefix="fabula-scale-") as name:
        pools = ("local",) if given.no_ray else ("local", "ray")
        find_shots(Path(name), given.films, given.frames, pools)
        merge(Path(name), given.items, given.shards)


if __name__ == "__main__":
    main()
