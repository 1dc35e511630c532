"""Runs that hold a hidden test, and what is packed from them, are for their owner's eyes only."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.hooks import Event
from fabula.kinds.verbs import continue_run, correct, load, pack, verify, withdraw
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def exposed(folder: Path) -> list[str]:
    """Return what somebody else than the owner could use."""
    paths = (folder, *folder.rglob("*"))
    return sorted(path.name for path in paths if path.stat().st_mode & 0o077)


class _Watching:
    """Notes what others could read while a run is at work."""

    def __init__(self, run: Path) -> None:
        self._run, self.seen, self.exposed = run, set[str](), set[str]()

    def emit(self, event: Event) -> None:
        if event.kind == "stage-done":
            paths = list(self._run.glob("journal.sqlite*"))
            self.seen.update(path.name for path in paths)
            self.exposed.update(path.name for path in paths if path.stat().st_mode & 0o077)
            self.exposed.update({"the folder"} if self._run.stat().st_mode & 0o077 else ())

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def made(katha, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("private")
    before = os.umask(0)
    rows = (katha.samples / "stories.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "first.jsonl").write_text("\n".join(rows[:2]) + "\n", "utf-8")
    (tmp_path / "more.jsonl").write_text(rows[2] + "\n", "utf-8")
    watching = _Watching(tmp_path / "run")
    build_katha(tmp_path / "first.jsonl", tmp_path / "run", BuildOptions(workers=0), reporter=watching)
    assert watching.seen == {"journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm"}
    assert watching.exposed == set()
    os.umask(before)
    return tmp_path


@pytest.fixture
def built(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "here")) / "run"


def _first(run: Path) -> str:
    return str(json.loads((run / "records.jsonl").read_bytes().splitlines()[0])["id"])


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": lambda run: correct(run, _first(run), "$.title", "A Net", who="ana", why="plainer"),
    "withdraw": lambda run: withdraw(run, _first(run), who="ana", why="rights"),
    "retry": lambda run: continue_run(run, workers=0),
    "extend": lambda run: extend_katha(run, run.parent / "more.jsonl", ExtendOptions(workers=0)),
}


def test_katha_run_when_it_is_built_is_its_owners(built: Path) -> None:
    assert exposed(built) == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("older", [False, True], ids=["now", "of an older version"])
def test_katha_run_when_it_is_changed_stays_its_owners(built: Path, change: str, older: bool) -> None:
    for path in (built, *built.rglob("*")) if older else ():
        path.chmod(0o777 if path.is_dir() else 0o666)
    CHANGES[change](built)
    assert exposed(built) == []


@pytest.mark.slow
def test_pack_when_there_is_a_hidden_test_closes_its_folder_and_no_other(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", sample_bundles(24))
    assert exposed(run)
    packed = pack(run, tmp_path / "out" / "fables", PackOptions("0.1.0", allow_drafts=True))
    assert packed.hidden is not None
    assert exposed(run) == []
    assert exposed(packed.hidden) == []
    assert (packed.hidden.with_name("fables-hidden.salt").stat().st_mode & 0o777) == 0o600
    assert {path.stat().st_mode & 0o004 for path in packed.folder.rglob("*")} == {0o004}
    assert verify(packed.folder, hidden=packed.hidden).errors == ()
    copy = Path(shutil.copytree(packed.folder, tmp_path / "copy"))
    assert len(load(copy).records) == packed.counts["stories"]
