"""The worker pool: crashes and hangs name the item, neighbours succeed, results never depend on workers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from fabula.engine import pool as pool_module
from fabula.engine.pool import Job, Task, WorkerPool
from fabula.engine.stage import Tools
from fabula.errors import MissingRequirement
from fabula.testing.toy_pipeline import HERE, WorkSettings
from fabula.tests.unit.engine.conftest import outcomes, task

JOB = Job(f"{HERE}:WORK", Tools(WorkSettings(), "2026-01-01T00:00:00Z"))


@pytest.fixture(scope="module")
def shared() -> Iterator[WorkerPool]:
    with WorkerPool(2, item_timeout=300.0) as pool:  # a worker that was just started reads the stage first
        yield pool


@pytest.mark.slow
def test_run_when_workers_crash_names_the_items_and_spares_the_neighbours(shared: WorkerPool) -> None:
    tasks = [task(f"m{number}") for number in range(60)]
    tasks[5:5] = [task("killed", "crash")]
    tasks[40:40] = [task("aborted", "abort"), task("left", "exit")]
    found = outcomes(shared, tasks, JOB)
    assert found.pop("killed") == ("failed", "crashed")
    assert found.pop("aborted") == ("failed", "crashed")
    assert found.pop("left") == ("failed", "exception")
    assert found == {f"m{number}": ("made", None) for number in range(60)}


@pytest.mark.waits
def test_run_when_item_hangs_names_it_and_spares_the_neighbours(shared: WorkerPool) -> None:
    tasks = [task(f"m{number}") for number in range(20)]
    tasks[3:3] = [task("stuck", "hang")]
    found = outcomes(shared, tasks, Job(JOB.path, JOB.tools, patience=0.02))  # 6 s
    assert found.pop("stuck") == ("failed", "timeout")
    assert found == {f"m{number}": ("made", None) for number in range(20)}


def test_run_when_stopping_draws_no_more_and_finishes_what_is_in_flight(shared: WorkerPool) -> None:
    drawn: list[str] = []
    done: list[str] = []

    def tasks() -> Iterator[Task]:
        for number in range(1000):
            drawn.append(f"m{number}")
            yield task(f"m{number}", "sleep:0.02")

    for group in shared.run(JOB, tasks(), lambda: bool(done)):
        done.extend(task.item for task, _ in group)
    assert sorted(done) == sorted(drawn)
    assert len(drawn) < 100


def test_run_when_there_are_many_items_draws_only_as_fast_as_they_are_done(shared: WorkerPool) -> None:
    ahead = 0
    drawn = 0
    done = 0

    def tasks() -> Iterator[Task]:
        nonlocal drawn
        for number in range(5000):
            drawn += 1
            yield task(f"m{number}")

    for group in shared.run(JOB, tasks(), lambda: False):
        ahead = max(ahead, drawn - done)
        done += len(group)
    assert done == 5000
    assert ahead <= pool_module.CHUNK_ITEMS * pool_module.CHUNKS_PER_WORKER * 2


@pytest.mark.slow
def test_run_when_all_workers_are_killed_from_outside_still_finishes(shared: WorkerPool) -> None:
    found: dict[str, str] = {}
    tasks = (task(f"m{number}", "sleep:0.01") for number in range(100))
    killed = False
    for group in shared.run(JOB, tasks, lambda: False):
        found.update((task.item, encoded.status) for task, encoded in group)
        if len(found) > 20 and not killed:
            killed = True
            for child in psutil.Process().children():
                with suppress(psutil.NoSuchProcess):  # one that an earlier test lost may just go
                    if "spawn_main" in " ".join(child.cmdline()):
                        child.kill()
    assert set(found) == {f"m{number}" for number in range(100)}
    assert list(found.values()).count("made") >= 98


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_run_when_requirement_is_missing_stops_the_run(workers: int) -> None:
    with WorkerPool(workers, 5.0) as pool, pytest.raises(MissingRequirement, match="pip install"):
        outcomes(pool, [task("a")], Job(f"{HERE}:NEEDY", JOB.tools))


def test_run_when_inline_gives_the_same_outcomes(shared: WorkerPool) -> None:
    tasks = [task("a"), task("b", "reject"), task("c", "fail"), task("d", "raise"), task("e", "x", "y")]

    def collect(pool: WorkerPool) -> dict[str, tuple[object, ...]]:
        return {
            one.item: (kept.status, kept.code, kept.reason, kept.outputs, kept.blob)
            for group in pool.run(JOB, tasks, lambda: False)
            for one, kept in group
        }

    assert collect(shared) == collect(WorkerPool(0, 1.0))


SCRIPT = """
import sys
from pathlib import Path
from fabula.engine.execute import Options
from fabula.testing.toy_pipeline import run_toy
print("started")
run_toy(Path(sys.argv[1]), Path(sys.argv[2]), Options(workers=2))
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "1"])
def test_execute_when_workers_order_and_hash_seed_differ_writes_the_same_bytes(tmp_path, lines, run, seed):
    lines.write_text("".join(f"i{number:03} {'word' * (number % 7 + 1)}\n" for number in range(200)))
    run()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Kolkata", "LC_ALL": "C"}
    command = [sys.executable, str(script), str(tmp_path / "other"), str(lines)]
    subprocess.run(command, capture_output=True, check=True, env=environment)
    for name in ("lines.jsonl", "report.json", "run.json"):
        assert (tmp_path / "other" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.parametrize(("patience", "status"), [(1.0, "failed"), (40.0, "made")])
def test_pool_when_a_stage_has_patience_gives_an_item_more_time(patience: float, status: str) -> None:
    job = Job(JOB.path, JOB.tools, patience)
    with WorkerPool(1, item_timeout=0.5) as pool:
        ((_, encoded),) = [
            result for group in pool.run(job, [task("a", "sleep:1.5")], lambda: False) for result in group
        ]
    assert encoded.status == status
