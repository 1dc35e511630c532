"""Killing and stopping a run at any moment: nothing is lost or left behind, the result is the same."""

import atexit
import fcntl
import importlib.util
import json
import os
import pty
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import termios
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

import fabula
from fabula.builders.entities.building import EntityOptions
from fabula.builders.katha.building import BuildOptions
from fabula.engine.execute import STORE as FOLDER
from fabula.engine.execute import Options
from fabula.engine.journal import Journal, decode
from fabula.engine.journal_file import NAME as JOURNAL
from fabula.engine.machines import ray_pool
from fabula.engine.machines.ray_pool import RayPool, open_pools
from fabula.engine.pool import Job
from fabula.engine.stage import Tools
from fabula.errors import ConfigError, ExitCode, MissingRequirement
from fabula.kinds.verbs import build
from fabula.schemas.paths import STORE
from fabula.testing.drawn_episode import write_episode
from fabula.testing.endurance import VARIABLE, rounds
from fabula.testing.killing import differing, kill_after
from fabula.testing.toy_pipeline import HERE, WorkSettings, run_toy, toy
from fabula.tests.unit.engine.conftest import outcomes, task

pytestmark = pytest.mark.slow

KILLS = max(5, rounds(20))
FILES = ("lines.jsonl", "run.json")
Process = Callable[..., subprocess.Popen[str]]


def wait_gone(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return those that are still there after a while."""
    _, alive = psutil.wait_procs(processes, timeout=120)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def content(folder: Path) -> list[object]:
    report = json.loads((folder / "report.json").read_text())
    for stage in report["stages"]:
        del stage["ran"], stage["reused"]
    return [report, *((folder / name).read_bytes() for name in FILES)]


@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(42, 42 + rounds(10)))
def test_run_when_killed_at_random_points_ends_as_if_undisturbed(
    process: Process, run: Callable, descendants: Callable, lines: Path, tmp_path: Path, seed: int
) -> None:
    words = ("cat", "sleep:0.002 dog", "reject", "eel", "fish")
    lines.write_text("".join(f"i{number:03} {words[number % 5]}\n" for number in range(120)))
    run(folder=tmp_path / "undisturbed")
    expected = content(tmp_path / "undisturbed")
    choices = random.Random(seed)
    kills = runs = 0
    left: list[psutil.Process] = []
    folder = tmp_path / "run0"
    while kills < KILLS:
        child = process(folder, lines, 2)
        events = choices.randint(0, 30)
        for number, _ in enumerate(child.stderr):
            if number >= events:
                break
        time.sleep(choices.random() * (0.3 if events == 0 else 0.02))
        left.extend(descendants(child.pid) if child.poll() is None else [])
        child.send_signal(signal.SIGKILL)
        if child.wait() == -signal.SIGKILL:
            kills += 1
        if child.returncode == 0:
            assert content(folder) == expected
            runs += 1
            folder = tmp_path / f"run{runs}"
    run(folder=folder)
    assert content(folder) == expected
    assert len(left) > KILLS / 4  # else the kills came before there were workers
    assert wait_gone(left) == []
    names = {path.name for path in folder.iterdir()}
    assert names == {"journal.sqlite", "lines.jsonl", "report.json", "run.json", "run.lock"}


@pytest.mark.waits
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_run_when_told_to_stop_drains_and_can_be_continued(
    process: Process, run: Callable, descendants: Callable, lines: Path, tmp_path: Path, number: int
) -> None:
    lines.write_text("".join(f"i{number:03} sleep:0.06 w\n" for number in range(100)))
    child = process(tmp_path / "run", lines, 2)
    told: list[dict[str, object]] = []
    workers: list[psutil.Process] = []
    for line in child.stderr:
        if not line.startswith("{"):
            continue
        told.append(json.loads(line))
        if told[-1]["event"] == "progress" and not workers:
            workers = descendants(child.pid)
            # As a terminal does it: the whole process group gets the signal, workers included.
            for one in [psutil.Process(child.pid), *(workers if number != signal.SIGTERM else [])]:
                with suppress(psutil.NoSuchProcess):  # told first, the run may have ended a worker since
                    one.send_signal(number)
    assert child.wait() == ExitCode.INTERRUPTED
    assert workers
    assert wait_gone(workers) == []
    done = [event["done"] for event in told if event["event"] == "progress" and event["stage"] == "work"][-1]
    assert isinstance(done, int)
    assert 0 < done < 100
    assert "stopping" in [event["event"] for event in told]
    report = run()
    work = report.stages[1]
    assert (work.reused, work.ran, work.failed) == (done, 100 - done, 0)


@pytest.mark.waits
def test_run_when_started_with_hangups_ignored_hears_none(process, descendants, lines, tmp_path):
    lines.write_text("".join(f"i{number:03} sleep:0.02 w\n" for number in range(50)))

    def as_nohup_does() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    child = process(tmp_path / "run", lines, 2, preexec_fn=as_nohup_does)
    for line in child.stderr:
        if '"progress"' in line:
            for one in [psutil.Process(child.pid), *descendants(child.pid)]:
                with suppress(psutil.NoSuchProcess):  # a worker may have ended since
                    one.send_signal(signal.SIGHUP)
    assert child.wait() == 0


@pytest.mark.waits
@pytest.mark.parametrize("reporter", ["JsonReporter", "choose_reporter"])
def test_run_when_its_terminal_is_closed_drains_and_can_be_continued(process, run, lines, tmp_path, reporter):
    lines.write_text("".join(f"i{number:03} sleep:0.1 w\n" for number in range(100)))
    ours, theirs = pty.openpty()

    def take_the_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    child = process(
        tmp_path / "run", lines, 2, reporter=reporter, preexec_fn=take_the_terminal,
        stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while not re.search(rb"work[^\r\n]*?[1-9]\d* of 100|done\":[1-9]\d*,.*\"work\"", seen):
        seen += os.read(ours, 1024)
    os.close(ours)
    assert child.wait() == ExitCode.INTERRUPTED
    work = run(2).stages[1]
    assert work.reused + work.ran == 100
    assert work.failed == 0
    assert work.reused


@pytest.mark.waits
def test_run_when_killed_while_a_worker_hangs_leaves_no_worker(process, descendants, lines, tmp_path):
    lines.write_text("".join(f"i{number} {'hang' if number > 3 else 'w'}\n" for number in range(8)))
    child = process(tmp_path / "run", lines, 2)
    for line in child.stderr:
        if '"progress"' in line:
            break
    workers = descendants(child.pid)
    child.kill()
    child.wait()
    assert workers
    assert wait_gone(workers) == []


# -- Memory stays flat as the number of items grows, and a run with nothing to do reads no contents

PROGRAM = """
import resource, sys
from pathlib import Path
from fabula.engine.execute import Options
from fabula.testing.toy_pipeline import run_toy
for _ in range(2):
    run_toy(Path(sys.argv[1]), Path(sys.argv[2]), Options(workers=2), sets=["work.suffix=" + "x" * 20_000])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(tmp_path: Path, items: int) -> int:
    """Return the peak memory, in kilobytes, of the process that has items of 20 kB each made by workers."""
    source = tmp_path / f"{items}.txt"
    source.write_text("".join(f"i{number} word\n" for number in range(items)))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / f"run{items}"), str(source)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_execute_when_items_are_many_times_as_many_needs_hardly_more_memory(tmp_path: Path) -> None:
    few, many = peak(tmp_path, 300), peak(tmp_path, 3300)
    assert many - few < 30_000, (few, many)  # 3,000 more items are 60 MB


def test_execute_when_nothing_is_to_be_done_reads_only_lists(tmp_path, lines, monkeypatch):
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


# -- The pool of a Ray cluster: the bytes of the local pool; dead workers, devices and drivers lose nothing
#
# Ray takes seconds to start: all tests here share one cluster, which knows two devices, and most its actors.

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed: pip install fabula[scale]")
only_in_endurance = pytest.mark.skipif(
    not os.environ.get(VARIABLE), reason="starting Ray again and again takes minutes: by make endurance"
)


def in_actors(test: Any) -> Any:
    """A test of actors that takes minutes."""
    return needs_ray(pytest.mark.waits(pytest.mark.endurance(only_in_endurance(test))))


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
def test_connect_when_a_cluster_does_not_come_up_tries_again_and_then_says_so(monkeypatch, failures):
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
def test_run_when_items_crash_or_hang_names_them_and_spares_the_neighbours(pool, trouble, code):
    tasks = [task(f"m{number}") for number in range(60)]
    tasks[5:5] = [task("lost", trouble)]
    tasks[40:40] = [task("left", "exit"), task("no", "reject"), task("raised", "raise")]
    found = outcomes(pool, tasks, JOB)
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
    cluster: Any, tmp_path: Path, work: str
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


@in_actors
def test_katha_when_workers_are_killed_again_and_again_writes_the_bytes_of_the_local_pool(cluster, tmp_path):
    made = partial(BuildOptions, records=SAMPLES / "gold.jsonl", created_at=CREATED)
    build("stories", SAMPLES / "stories.jsonl", tmp_path / "local", made(workers=0))
    left = rounds(30)
    while left > 0:
        out = tmp_path / f"ray{left}"
        with killing(out, left) as killed:
            build("stories", SAMPLES / "stories.jsonl", out, made(workers=2, pool="ray"))
        assert differing(out, tmp_path / "local") == []
        left -= len(killed)


@in_actors
def test_entities_when_built_on_two_devices_that_die_write_the_bytes_of_the_local_pool(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


@in_actors
def test_katha_when_the_driver_is_killed_goes_on_from_the_journal(starter: Any, tmp_path: Path) -> None:
    stories, gold = SAMPLES / "stories.jsonl", SAMPLES / "gold.jsonl"
    options = BuildOptions(records=gold, created_at=CREATED, workers=0)
    build("stories", stories, tmp_path / "local", options)
    for seed in range(rounds(10)):
        out = tmp_path / f"ray{seed}"
        command = ("build", "katha", stories, "--records", gold, "--out", out, "--created-at", CREATED)
        start = partial(starter.start, (*command, "--workers", 2, "--pool", "ray", "--json"))
        code, _ = kill_after(start, random.Random(seed).randint(5, 40))
        assert code == -signal.SIGKILL
        build("stories", stories, out, options)
        assert differing(out, tmp_path / "local", ["report.json"]) == []  # it says what was there already
