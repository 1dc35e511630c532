"""The pool of a Ray cluster: the bytes of the local pool, and dead workers, devices and drivers lose nothing.

Ray takes seconds to start: all tests here share one cluster, which knows two devices, and most its actors.
"""

import atexit
import importlib.util
import os
import random
import shutil
import signal
import sqlite3
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

import fabula
from fabula.builders.entities.building import EntityOptions
from fabula.builders.katha.building import BuildOptions
from fabula.engine.codec import decode, encode
from fabula.engine.execute import STORE as FOLDER
from fabula.engine.execute import Options
from fabula.engine.journal_file import NAME as JOURNAL
from fabula.engine.machines import ray_pool
from fabula.engine.machines.ray_pool import RayPool, open_pools
from fabula.engine.stage import Made, Tools
from fabula.engine.worker import Job, Task
from fabula.errors import ConfigError, MissingRequirement
from fabula.kinds.verbs import build
from fabula.schemas.shared_files import STORE
from fabula.testing.drawn_episode import write_episode
from fabula.testing.endurance import VARIABLE, rounds
from fabula.testing.killing import differing, kill_after
from fabula.testing.toy_pipeline import HERE, WorkSettings, run_toy, toy

pytestmark = pytest.mark.slow

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed: pip install fabula[scale]")
only_in_endurance = pytest.mark.skipif(
    not os.environ.get(VARIABLE), reason="starting Ray again and again takes minutes: by make endurance"
)
CREATED = "2026-01-01T00:00:00Z"
JOB = Job(f"{HERE}:WORK", Tools(WorkSettings(), CREATED))
SHOTS = ("AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1", "BC2", "A3", "D1", "AD2")
SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of this machine that takes two of its cores for devices."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        import ray

        patch.setattr(ray, "init", partial(ray.init, num_gpus=2))
        yield ray_pool.connect()
    ray.shutdown()


@pytest.fixture(scope="module")
def pool(cluster: Any) -> Iterator[RayPool]:
    with RayPool(2, item_timeout=30.0) as pool:  # the first item of an actor has its imports in it
        yield pool


def task(name: str, *words: str) -> Task:
    blob = encode(Made({"words": list(words or ("word",))})).blob
    assert blob is not None
    return Task(name, name, ((blob, ("words",)),))


def outcomes(pool: RayPool, tasks: list[Task], job: Job = JOB) -> dict[str, tuple[str, str | None]]:
    return {
        task.item: (encoded.status, encoded.code)
        for group in pool.run(job, tasks, lambda: False)
        for task, encoded in group
    }


def workers() -> list[psutil.Process]:
    """The processes of actors that belong to this process's cluster."""
    return [child for child in psutil.Process().children(recursive=True) if "ray::Worker" in name_of(child)]


def name_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()[:1])
    except psutil.Error:
        return ""


def test_pool_when_ray_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingRequirement, match=r"fabula\[scale\]"):
        open_pools("ray", 2, 1.0)


@pytest.mark.parametrize("failures", [ray_pool.CLUSTERS - 1, ray_pool.CLUSTERS])
def test_connect_when_a_cluster_does_not_come_up_tries_again_and_then_says_so(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """Ray raises a bare ``Exception`` where its own processes take longer than 30 s to start."""
    tried: list[Path] = []

    class BusyRay(types.ModuleType):
        def init(self, *, _temp_dir: str, **_: Any) -> None:
            tried.append(Path(_temp_dir))
            if len(tried) <= failures:
                raise Exception("The current node timed out during startup.")

        def is_initialized(self) -> bool:
            return False

        def shutdown(self) -> None:
            pass

    monkeypatch.setitem(sys.modules, "ray", BusyRay("ray"))
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    refused = pytest.raises(MissingRequirement, match="less busy")
    with refused if failures == ray_pool.CLUSTERS else nullcontext():
        ray_pool.connect()
    assert [folder.exists() for folder in tried] == [False, False, failures < ray_pool.CLUSTERS]
    shutil.rmtree(tried[-1], ignore_errors=True)


@needs_ray
@pytest.mark.waits
@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        ("crash", "crashed"),
        pytest.param("hang", "timeout", marks=[pytest.mark.endurance, only_in_endurance]),
    ],
)
def test_run_when_items_crash_or_hang_names_them_and_spares_the_neighbours(
    pool: RayPool, trouble: str, code: str
) -> None:
    tasks = [task(f"m{number}") for number in range(60)]
    tasks[5:5] = [task("lost", trouble)]
    tasks[40:40] = [task("left", "exit"), task("no", "reject"), task("raised", "raise")]
    found = outcomes(pool, tasks)
    assert [found.pop(name) for name in ("lost", "left", "no", "raised")] == [
        ("failed", code), ("failed", "exception"), ("rejected", "unwanted"), ("failed", "exception"),
    ]  # fmt: skip
    assert found == {f"m{number}": ("made", None) for number in range(60)}


@needs_ray
def test_run_when_something_is_missing_or_a_stage_cannot_be_imported_says_so_here(pool: RayPool) -> None:
    with pytest.raises(MissingRequirement, match="pip install it"):
        outcomes(pool, [task("a")], Job(f"{HERE}:NEEDY", JOB.tools))
    with pytest.raises(ConfigError, match="NO_SUCH_STAGE"):
        outcomes(pool, [task("a")], Job(f"{HERE}:NO_SUCH_STAGE", JOB.tools))


@needs_ray
def test_devices_when_there_are_two_get_an_actor_each_that_stays(cluster: Any) -> None:
    job = Job(f"{HERE}:WORK_BATCHED", Tools(WorkSettings(suffix="?"), CREATED))
    with RayPool(1, 30.0, devices=True) as devices:
        tasks = [task(f"m{number}", "sleep:0.05") for number in range(60)]
        kept = [encoded for group in devices.run(job, tasks, lambda: False) for _, encoded in group]
        again = [encoded for group in devices.run(job, tasks, lambda: False) for _, encoded in group]
    assert devices.workers == 2 and cluster.cluster_resources()["GPU"] == 2
    processes = {str(decode(one.blob or b"")["text"]).partition(" by ")[2] for one in kept + again}
    assert len(processes) == 2, "one process for each device, the same in both passes"


@contextmanager
def killing(run: Path, count: int) -> Iterator[list[int]]:
    """Kill a worker of the cluster every now and then, so often in all; give the list of those killed.

    Between two kills the run has come on: what is killed faster than it starts, as a busy machine may have
    it, never ends.
    """
    killed: list[int] = []
    over = threading.Event()
    choices = random.Random(count)

    def kill() -> None:
        last = results_of(run)
        while not over.wait(choices.uniform(0.02, 0.5)) and len(killed) < count:
            there = workers() if results_of(run) > last else []
            if there:
                process = choices.choice(there)
                killed.append(process.pid)
                process.kill()
                last = results_of(run)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        over.set()
        killer.join()


def results_of(run: Path) -> int:
    """Return how many results the journal of a run holds by now."""
    try:
        with closing(sqlite3.connect(f"file:{run / JOURNAL}?mode=ro", uri=True)) as journal:
            return int(journal.execute("SELECT COUNT(*) FROM results").fetchone()[0])
    except sqlite3.Error:
        return 0


@needs_ray
@pytest.mark.waits
@pytest.mark.parametrize(
    "work",
    [pytest.param("WORK", marks=[pytest.mark.endurance, only_in_endurance]), "WORK_BATCHED"],
)
def test_toy_when_run_in_actors_of_which_one_is_killed_writes_the_bytes_of_the_local_pool(
    cluster: Any,
    tmp_path: Path,
    work: str,
) -> None:
    source = tmp_path / "lines.txt"
    words = ("cat", "dog sleep:0.1", "reject", "fail", "sleep:0.1 fish")
    source.write_text("".join(f"i{number:03} {words[number % 5]}\n" for number in range(100)))
    run_toy(tmp_path / "local", source, Options(workers=0), toy(work), sets=["run.threshold=0.1"])
    with killing(tmp_path / "ray", 1) as killed:
        options = Options(workers=1, pool="ray")  # beside two devices
        run_toy(tmp_path / "ray", source, options, toy(work), sets=["run.threshold=0.1"])
    assert len(killed) == 1
    assert differing(tmp_path / "ray", tmp_path / "local") == []


@needs_ray
@pytest.mark.waits
@pytest.mark.endurance
@only_in_endurance
def test_katha_when_workers_are_killed_again_and_again_writes_the_bytes_of_the_local_pool(
    cluster: Any,
    tmp_path: Path,
) -> None:
    made = partial(BuildOptions, records=SAMPLES / "gold.jsonl", created_at=CREATED)
    build("katha", SAMPLES / "stories.jsonl", tmp_path / "local", made(workers=0))
    left = rounds(30)
    while left > 0:
        out = tmp_path / f"ray{left}"
        with killing(out, left) as killed:
            build("katha", SAMPLES / "stories.jsonl", out, made(workers=2, pool="ray"))
        assert differing(out, tmp_path / "local") == []
        left -= len(killed)


@needs_ray
@pytest.mark.waits
@pytest.mark.endurance
@only_in_endurance
def test_entities_when_built_on_two_devices_that_die_write_the_bytes_of_the_local_pool(
    cluster: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("av")
    films = [write_episode(tmp_path / name, SHOTS, name)[0] for name in ("first", "second")]
    detections = [film.with_suffix(".jsonl").read_text() for film in films]
    (tmp_path / "all.jsonl").write_text(detections[0] + "".join(detections[1].splitlines(keepends=True)[1:]))

    def made(out: str, **how: Any) -> None:
        options = EntityOptions(
            detections=tmp_path / "all.jsonl", created_at=CREATED,
            settings=("detect_shots.method=histogram", "filter_shots.copies=false", "run.threshold=0"), **how,
        )  # fmt: skip
        build("entities", films, tmp_path / out, options)

    made("local", workers=0)
    assert len((tmp_path / "local/episodes.jsonl").read_text().splitlines()) == 2
    monkeypatch.setenv(STORE, f"file://{tmp_path}/shared")  # actors are told
    left = rounds(10)
    while left > 0:
        with killing(tmp_path / f"ray{left}", left) as killed:
            made(f"ray{left}", workers=1, pool="ray")
        assert differing(tmp_path / f"ray{left}", tmp_path / "local") == []
        left -= len(killed)
    shared = {path.name for path in (tmp_path / "shared").rglob("*.jpg")}
    assert shared == {path.name for path in (tmp_path / "local" / FOLDER).iterdir()}


@needs_ray
@pytest.mark.waits
@pytest.mark.endurance
@only_in_endurance
def test_katha_when_the_driver_is_killed_goes_on_from_the_journal(starter: Any, tmp_path: Path) -> None:
    stories, gold = SAMPLES / "stories.jsonl", SAMPLES / "gold.jsonl"
    options = BuildOptions(records=gold, created_at=CREATED, workers=0)
    build("katha", stories, tmp_path / "local", options)
    for seed in range(rounds(10)):
        out = tmp_path / f"ray{seed}"
        command = ("build", "katha", stories, "--records", gold, "--out", out, "--created-at", CREATED)
        start = partial(starter.start, (*command, "--workers", 2, "--pool", "ray", "--json"))
        code, _ = kill_after(start, random.Random(seed).randint(5, 40))
        assert code == -signal.SIGKILL
        build("katha", stories, out, options)
        assert differing(out, tmp_path / "local", ["report.json"]) == []  # it says what was there already
