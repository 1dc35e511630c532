"""A finished run becomes one file and comes back byte for byte; a compacted journal gives the same run."""

import hashlib
import json
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fabula.engine.finished import archive_run as archiving
from fabula.engine.finished.archive_run import archive_run, restore_run
from fabula.engine.finished.compact_run import compact_run
from fabula.engine.journal import Journal
from fabula.engine.lock import hold
from fabula.engine.report import RunReport
from fabula.engine.status import run_status
from fabula.errors import InputError, RunBusy, RunError, TargetError
from fabula.testing.endurance import rounds
from fabula.testing.toy_pipeline import toy

Run = Callable[..., RunReport]


def files_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
        and path.name not in ("run.lock", "run.holder.json", "journal.sqlite-wal", "journal.sqlite-shm")
    }


@pytest.fixture
def finished(tmp_path: Path, run: Run) -> Path:
    """A finished run with a stored file in a folder of its own."""
    run()
    folder = tmp_path / "run"
    (folder / "store").mkdir()
    (folder / "store" / "a.jpg").write_bytes(os.urandom(3000))
    return folder


def test_archive_when_restored_gives_every_file_byte_for_byte(
    finished: Path, tmp_path: Path, run: Run
) -> None:
    archived = archive_run(finished, remove=True)
    assert archived.removed and not finished.exists() and archived.archive == tmp_path / "run.tar.zst"
    packed = pa.input_stream(str(archived.archive), compression="zstd")
    with packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        names = tar.getnames()
    assert names[0] == "archive.json" and "run/store/a.jpg" in names and "run/run.lock" not in names
    restored = restore_run(archived.archive)
    assert restored.folder == finished and restored.size == archived.size
    assert "lost" in archived.as_json() and any("times and owners" in line for line in archived.lines())
    before = files_of(finished)
    report = run()  # there is nothing to do, and so nothing is written
    assert sum(stage.ran for stage in report.stages) == 0
    assert {name: sha for name, sha in files_of(finished).items() if name.endswith("l")} == {
        name: sha for name, sha in before.items() if name.endswith("l")
    }


def test_archive_when_files_are_compared_has_the_bytes_of_the_run(finished: Path, tmp_path: Path) -> None:
    archive = archive_run(finished).archive
    assert files_of(restore_run(archive, tmp_path / "again").folder) == files_of(finished)
    assert (tmp_path / "again").stat().st_mode == finished.stat().st_mode


def test_archive_when_run_is_private_is_private_too(finished: Path) -> None:
    finished.chmod(0o700)
    assert archive_run(finished).archive.stat().st_mode & 0o777 == 0o600


def test_archive_when_somebody_works_on_the_run_refuses(finished: Path, tmp_path: Path) -> None:
    with hold(finished), pytest.raises(RunBusy):
        archive_run(finished)
    with hold(finished), pytest.raises(RunBusy):
        compact_run(finished, toy())
    assert not list(tmp_path.glob("*.zst"))


def test_archive_when_run_is_not_finished_refuses(tmp_path: Path, run: Run) -> None:
    run(limit=2)
    for change in (lambda: archive_run(tmp_path / "run"), lambda: compact_run(tmp_path / "run", toy())):
        with pytest.raises(RunError, match="not finished"):
            change()


@pytest.mark.parametrize("name", ["run.zip", "run/inside.tar.zst", "there.tar.zst"])
def test_archive_when_target_cannot_be_says_so(finished: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "there.tar.zst").write_bytes(b"mine")
    with pytest.raises(TargetError):
        archive_run(finished, tmp_path / name)
    assert (tmp_path / "there.tar.zst").read_bytes() == b"mine"


def test_archive_when_folder_holds_a_link_refuses_it(finished: Path) -> None:
    (finished / "store" / "link").symlink_to(finished)
    with pytest.raises(RunError, match="link"):
        archive_run(finished)


def test_archive_when_a_file_changes_before_removal_removes_nothing(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = archiving._read

    def changing(*given: object) -> object:
        (finished / "edits.jsonl").write_text("{}\n")
        return read(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(archiving, "_read", changing)
    with pytest.raises(RunError, match="changed"):
        archive_run(finished, remove=True)
    assert (finished / "run.json").exists()


def test_restore_when_archive_is_damaged_says_so_and_leaves_nothing(finished: Path, tmp_path: Path) -> None:
    archive = archive_run(finished).archive
    data = archive.read_bytes()
    for number in range(rounds(100)):
        place = number * 7919 % len(data)
        broken = data[:place] if number % 2 else data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]
        (tmp_path / "broken.tar.zst").write_bytes(broken)
        try:
            restored = restore_run(tmp_path / "broken.tar.zst", tmp_path / "back")
        except InputError:
            assert not (tmp_path / "back").exists()
        else:  # what was hit says nothing of any file, such as a time
            assert files_of(restored.folder) == files_of(finished)
            shutil.rmtree(tmp_path / "back")
    (tmp_path / "no.tar.zst").write_bytes(b"no archive")
    with pytest.raises(InputError, match="no whole archive"):
        restore_run(tmp_path / "no.tar.zst")


def test_restore_when_a_member_leads_elsewhere_refuses(finished: Path, tmp_path: Path) -> None:
    contents = archiving._contents(finished)
    outside = contents.files[0].model_copy(update={"path": "../evil"})
    (tmp_path / "evil").write_bytes((finished / contents.files[0].path).read_bytes())
    archiving._pack(finished, contents.model_copy(update={"files": (outside,)}), tmp_path / "x.tar.zst")
    (tmp_path / "evil").unlink()
    with pytest.raises(InputError, match="does not belong"):
        restore_run(tmp_path / "x.tar.zst", tmp_path / "deep" / "back")
    assert not (tmp_path / "deep" / "evil").exists()


PROGRAM = """
import os, signal, shutil, sys, tarfile
from pathlib import Path
from fabula.engine.finished import archive_run as archiving
left = int(sys.argv[2])
def dying(real):
    def step(*given, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **named)
    return step
tarfile.copyfileobj = dying(tarfile.copyfileobj)
archiving._take = dying(archiving._take)
os.fsync = dying(os.fsync)
os.unlink = dying(os.unlink)
Path.replace = dying(Path.replace)
Path.rename = dying(Path.rename)
archiving.archive_run(Path(sys.argv[1]), remove=True)
"""


@pytest.mark.endurance
def test_archive_when_killed_at_any_step_leaves_the_run_or_a_whole_archive(
    finished: Path, tmp_path: Path, starter: Any
) -> None:
    wanted, archive, step, ended, steps = files_of(finished), tmp_path / "run.tar.zst", 0, -9, rounds(10)
    while ended == -9:
        ended = starter.run_code(PROGRAM, finished, step).returncode
        if not finished.exists():
            restore_run(archive)
        assert files_of(finished) == wanted
        assert not list(tmp_path.glob(".run.removed"))
        archive.unlink(missing_ok=True)
        step += 10 // steps
    assert ended == 0 and step > 20


def test_compact_when_settings_have_changed_drops_what_counts_no_more(tmp_path: Path, run: Run) -> None:
    run()
    run(sets=("work.suffix=?",))
    folder = tmp_path / "run"
    outputs, status = (folder / "lines.jsonl").read_bytes(), run_status(folder, toy()).totals
    with Journal.open(folder, writable=False) as journal:
        assert len(list(journal.heads("work"))) == 8
    compacted = compact_run(folder, toy())
    assert compacted.dropped > 0 and "all kept" in compacted.lost()
    with Journal.open(folder, writable=False) as journal:
        assert len(list(journal.heads("work"))) == 4
    assert run_status(folder, toy()).totals == status
    report = run(sets=("work.suffix=?",))
    assert sum(stage.ran for stage in report.stages) == 0
    assert (folder / "lines.jsonl").read_bytes() == outputs
    assert compact_run(folder, toy()).dropped == 0


def test_compact_when_items_have_gone_keeps_what_was_decided_about_them(
    tmp_path: Path, lines: Path, run: Run
) -> None:
    run()
    before = lines.read_text()
    lines.write_text(before.replace("a ant\n", ""))
    run()
    compact_run(tmp_path / "run", toy())
    lines.write_text(before)
    run()
    written = (tmp_path / "run" / "lines.jsonl").read_text().splitlines()
    numbers = {line["id"]: line["number"] for line in map(json.loads, written)}
    assert numbers == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_compact_when_stage_has_changed_refuses(tmp_path: Path, run: Run) -> None:
    run()
    with pytest.raises(RunError, match="would run again"):
        compact_run(tmp_path / "run", toy("WORK_V2"))
    with sqlite3.connect(tmp_path / "run" / "journal.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM results WHERE stage = 'work'").fetchone()[0] == 4
    connection.close()
