"""Files for their owner's eyes only, whatever the umask says and whatever was there before."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fabula.engine.lock import keep_private
from fabula.schemas.canonical import write_atomic
from fabula.testing import toy_pipeline


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


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o644), (0o750, 0o640), (0o700, 0o600), (0o711, 0o644)])
@pytest.mark.usefixtures("umask")
def test_write_atomic_when_the_folder_is_closed_to_others_closes_the_file(
    tmp_path: Path, folder: int, file: int
) -> None:
    tmp_path.chmod(folder)
    write_atomic(tmp_path / "x", [b"x"])
    assert (tmp_path / "x").stat().st_mode & 0o777 == file


@pytest.mark.usefixtures("umask")
def test_run_when_its_kind_is_private_is_for_its_owner_only(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_pipeline, "Pipeline", PRIVATE)
    run()
    assert exposed(tmp_path / "run") == {}


def PRIVATE(*parts: object) -> object:  # noqa: N802 - stands for a class
    return replace(REAL(*parts), private=True)  # type: ignore[arg-type]


REAL = toy_pipeline.Pipeline


@pytest.mark.usefixtures("umask")
def test_run_when_its_sources_are_the_owners_only_is_so_too_and_older_files_become_so(
    run: Callable, tmp_path: Path, lines: Path
) -> None:
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
