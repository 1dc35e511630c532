"""Stored files that machines share: the bytes of a local store, whole or not there, no score without them."""

import errno
import os
import platform
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from filelock import FileLock
from fsspec.implementations.memory import MemoryFileSystem

from fabula.engine.execute import STORE as FOLDER
from fabula.engine.lock import HOLDER, Stopper, hold, holder, keep_private, stop_on_signals
from fabula.engine.machines.merging import Merge
from fabula.engine.stage import UNAVAILABLE
from fabula.engine.status import read_report, run_status
from fabula.errors import BelowThreshold, ConfigError, InputError, PlaceUnavailable, RunBusy, TargetError
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.kinds.verbs import merge_runs
from fabula.media.kept_files import bring_files, keep_file, kept_bytes
from fabula.releases.loading import Release
from fabula.schemas.canonical import sha256_bytes
from fabula.schemas.paths import STORE, SharedFiles
from fabula.testing import toy_pipeline
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.killing import differing
from fabula.testing.model_server import ModelServer
from fabula.testing.toy_pipeline import toy

REPORT = ("report.json",)
"""It says what was there already."""
TABLE = {"text": 0.9, "image": 0.5, "text_image": 0.95, "contrast": 0.8}


class Bucket(MemoryFileSystem):
    """A bucket that can be away."""

    protocol = "bucket"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    puts_left: ClassVar[float] = float("inf")

    def cat_file(self, *args: Any, **given: Any) -> Any:
        if Bucket.puts_left <= 0:
            raise ConnectionError("no route to the bucket")
        return super().cat_file(*args, **given)

    def pipe_file(self, *args: Any, **given: Any) -> Any:
        Bucket.puts_left -= 1
        if Bucket.puts_left <= 0:
            raise ConnectionError("no route to the bucket")
        return super().pipe_file(*args, **given)


fsspec.register_implementation("bucket", Bucket, clobber=True)


@pytest.fixture(autouse=True)
def empty_bucket() -> None:
    Bucket.puts_left = float("inf")
    Bucket.store.clear()


@pytest.fixture
def out(judged: "Judged", tmp_path: Path) -> Path:
    """A folder for runs as far from their sources as the local run is: ``run.json`` says where those are."""
    folder = judged.local.parents[1] / tmp_path.name
    folder.mkdir()
    return folder


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Sets the variable to a place of a kind, and returns its address."""

    def set_to(kind: str) -> str:
        address = {
            "folder": str(tmp_path / "shared"), "file": f"file://{tmp_path}/shared",
            "memory": f"memory://{tmp_path.name}", "bucket": "bucket://files", "": "",
        }[kind]  # fmt: skip
        monkeypatch.setenv(STORE, address)
        return address

    return set_to


@dataclass(frozen=True)
class Judged:
    """A release, storyboards, and a server that judges them."""

    release: Release
    boards: Path
    local: Path  # the run that shares nothing
    server: ModelServer

    def evaluate(self, out: Path, **options: Any) -> None:
        judge = f"{self.server.openai_url}#one"
        given = {"judges": (judge,), "questions_only": True, "created_at": "2026-01-01T00:00:00Z"}
        evaluate_katha(self.release.path, [self.boards], out, EvaluateOptions(workers=0, **given, **options))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    folder = tmp_path_factory.mktemp("judged")
    release = drawn_release(folder / "release", 3)
    boards = draw_outputs(folder / "boards", release.records, side=16)
    with ModelServer(JudgeModel(release.records, TABLE)) as server:
        judged = Judged(release, boards, folder / "runs" / "local" / "run", server)
        judged.evaluate(judged.local)
        yield judged


def name_of(data: bytes) -> str:
    return f"{sha256_bytes(data)}.png"


@pytest.mark.parametrize("place", ["folder", "file", "memory"])
def test_run_when_files_are_shared_has_the_bytes_of_a_local_one_and_finds_them_when_it_moves_without_them(
    judged: Judged, at: Callable[[str], str], out: Path, place: str
) -> None:
    at(place)
    judged.evaluate(out / "run")
    assert differing(out / "run", judged.local, REPORT) == [] and any((out / "run" / FOLDER).iterdir())
    asked = judged.server.count
    shutil.rmtree(out / "run" / FOLDER)
    judged.evaluate(out / "run")
    assert differing(out / "run", judged.local, REPORT) == []
    assert judged.server.count == asked
    at("")
    (out / "run").rename(out / "moved")
    assert differing(out / "moved", judged.local, REPORT) == [], "a finished run is whole by itself"


def test_shards_when_their_files_are_shared_merge_without_them(judged, at, out):
    at("memory")
    parts = [out / f"part{number}" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        judged.evaluate(part, shard=f"{number}/2")
        shutil.rmtree(part / FOLDER)
    merge_runs(parts, out / "merged", Merge(workers=0))
    assert differing(out / "merged", judged.local, REPORT) == []


def test_file_when_it_is_half_written_there_is_written_again_and_never_read(at, tmp_path):
    shared = Path(at("folder"))
    data = os.urandom(5000)
    name = name_of(data)
    keep_file(data, name, tmp_path / "one")
    (there,) = (path for path in shared.rglob("*") if path.is_file())
    there.write_bytes(data[:100])
    with pytest.raises(InputError, match="No such file"):
        kept_bytes(tmp_path / "two", name, fix="make it again")
    keep_file(data, name, tmp_path / "three")
    assert kept_bytes(tmp_path / "two", name, fix="") == data
    there.write_bytes(data[:-1] + b"?")
    bring_files([name], tmp_path / "four")
    assert not (tmp_path / "four").exists()
    there.with_name(f".{name}.x.part").write_bytes(data[:7])
    assert SharedFiles(str(shared), STORE).read([name_of(b"")]) == {}


def test_file_when_many_write_it_at_once_is_never_seen_in_part(at, tmp_path):
    shared = SharedFiles(at("folder"), STORE)
    data = os.urandom(4_000_000)
    name = name_of(data)
    over, seen = threading.Event(), []

    def look() -> None:
        while not (over.is_set() and seen):
            seen.extend(content == data for content in shared.read([name]).values())

    watcher = threading.Thread(target=look)
    watcher.start()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: keep_file(data, name, tmp_path / f"run{number}"), range(8)))
        list(pool.map(lambda _: shared.write({name: data}), range(8)))
    over.set()
    watcher.join()
    assert all(seen)
    assert [path.name for path in (tmp_path / "shared").rglob("*") if path.is_file()] == [name]


def test_run_when_the_place_cannot_be_used_says_so_before_anything_is_asked(judged, tmp_path, monkeypatch):
    before = judged.server.count
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(STORE, str(tmp_path / "file" / "store"))
    with pytest.raises(PlaceUnavailable, match=STORE):
        judged.evaluate(tmp_path / "run")
    monkeypatch.setenv(STORE, "nosuch://bucket")
    with pytest.raises(ConfigError, match="nosuch"):
        judged.evaluate(tmp_path / "run")
    assert judged.server.count == before


def test_run_when_the_place_goes_away_on_the_way_fails_items_and_tries_them_again(judged, at, out):
    before = judged.server.count
    at("bucket")
    Bucket.puts_left = 8
    with pytest.raises(BelowThreshold):
        judged.evaluate(out / "run")
    assert {item.code for item in read_report(out / "run").items} == {UNAVAILABLE}
    Bucket.puts_left = float("inf")
    judged.evaluate(out / "run")
    assert differing(out / "run", judged.local, REPORT) == []
    asked = [entry.asked.key for entry in judged.server.log[before:]]
    assert len(asked) == len(set(asked)), "nothing was asked twice"


def test_run_when_only_its_owner_may_read_it_is_not_shared(judged, at, tmp_path):
    at("folder")
    judged.boards.chmod(0o700)
    try:
        with pytest.raises(ConfigError, match="owner"):
            judged.evaluate(tmp_path / "run")
    finally:
        judged.boards.chmod(0o755)
    assert not (tmp_path / "shared").exists()


# -- One writer per run folder, and the second is told who the first is


def test_hold_when_held_says_who_holds_it(tmp_path: Path) -> None:
    with hold(tmp_path):
        note = holder(tmp_path)
        assert note is not None
        assert (note["pid"], note["host"]) == (os.getpid(), platform.node())
        who = f"process {os.getpid()} on {platform.node()}"
        with pytest.raises(RunBusy, match=f"{who} has been working on this run since 2"):  # noqa: SIM117
            with hold(tmp_path):
                raise AssertionError("held twice")
    assert holder(tmp_path) is None
    with hold(tmp_path):
        pass


def test_hold_when_holder_was_killed_takes_over(tmp_path: Path) -> None:
    with hold(tmp_path):
        left = (tmp_path / HOLDER).read_bytes()
    (tmp_path / HOLDER).write_bytes(left.replace(str(os.getpid()).encode(), b"99999999"))
    assert holder(tmp_path) is None
    with hold(tmp_path):
        assert holder(tmp_path) is not None


@pytest.mark.waits
def test_execute_when_another_process_works_is_told_and_status_still_answers(process, run, lines, tmp_path):
    lines.write_text("".join(f"i{number} sleep:0.05\n" for number in range(400)))
    child = process(tmp_path / "run", lines, 1)
    for line in child.stderr:
        if '"progress"' in line:
            break
    with pytest.raises(RunBusy, match=f"process {child.pid} on"):
        run()
    status = run_status(tmp_path / "run", toy(), explain=True)
    assert status.holder is not None
    assert status.holder["pid"] == child.pid
    work = status.stages[1]
    assert 0 < work.made < 400
    assert work.made + work.pending == 400
    assert work.reasons == {"new": work.pending}
    assert f"process {child.pid}" in status.lines()[-1]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_hold_when_the_folder_cannot_be_written_lets_those_through_who_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def acquire(_: FileLock) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(FileLock, "acquire", acquire)
    with hold(tmp_path, to_read=True):
        pass
    with pytest.raises(TargetError, match=os.strerror(number)), hold(tmp_path):
        pass


# Stopping on request, without processes.


def test_stopper_when_a_signal_comes_tells_only_when_asked_and_only_once() -> None:
    told: list[str] = []
    stopper = Stopper(lambda: told.append("stopping"))
    with stop_on_signals(stopper):
        assert not stopper()
        os.kill(os.getpid(), signal.SIGINT)
        assert told == [], "a handler must not write: it may have interrupted a write"
        assert stopper()
        assert stopper()
    assert told == ["stopping"]


def test_stopper_when_a_second_signal_comes_stops_at_once() -> None:
    stopper = Stopper()
    with stop_on_signals(stopper), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)


def test_stopper_when_hangups_were_ignored_before_hears_none_and_leaves_them_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stopper = Stopper()
        with stop_on_signals(stopper):
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stopper()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


# Files for their owner's eyes only, whatever the umask says and whatever was there before.


def rights(folder: Path) -> dict[str, int]:
    """Path -> its rights, of a folder and all that is in it."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777
        for path in (folder, *folder.rglob("*"))
    }


def exposed(folder: Path) -> dict[str, int]:
    return {path: mode for path, mode in rights(folder).items() if mode not in (0o600, 0o700)}


@pytest.fixture(params=[0o000, 0o022, 0o027])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_run_when_its_kind_is_private_is_for_its_owner_only(run, tmp_path, monkeypatch):
    monkeypatch.setattr(toy_pipeline, "Pipeline", PRIVATE)
    run()
    assert exposed(tmp_path / "run") == {}


def PRIVATE(*parts: object) -> object:  # noqa: N802 - stands for a class
    return replace(REAL(*parts), private=True)  # type: ignore[arg-type]


REAL = toy_pipeline.Pipeline


@pytest.mark.usefixtures("umask")
def test_run_when_its_sources_are_the_owners_only_is_so_too_and_older_files_become_so(run, tmp_path, lines):
    run()
    assert exposed(tmp_path / "run")
    lines.chmod(0o600)
    run()
    assert exposed(tmp_path / "run") == {}


def test_keep_private_when_a_link_leads_elsewhere_leaves_that_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "elsewhere").chmod(0o644)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    keep_private(folder)
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o644
