"""The wheel, built from a clean export of the tracked files, holds what is needed and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import fabula

ROOT = Path(fabula.__file__).parent

pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="needs a checkout to export"
)


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    export = tmp_path_factory.mktemp("wheel") / "a-folder-with-dashes"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (export / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, export / name)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        export / "dist",
        export,
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "Warning" not in built.stdout + built.stderr, "make demo shows what build tools warn of"
    (wheel,) = (export / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_wheel_when_built_holds_every_module_and_data_file(wheel_names: set[str]) -> None:
    wanted = {
        f"fabula/{path.relative_to(ROOT)}"
        for room in sorted(ROOT.glob("*/__init__.py"))
        for path in room.parent.rglob("*")
        if path.is_file() and path.suffix in (".py", ".json", ".j2", ".txt", ".jsonl", ".md", ".css", ".js")
    }  # fmt: skip
    assert wanted - wheel_names == set()
    assert {"fabula/py.typed", "fabula/errors.py", "fabula/__init__.py"} <= wheel_names
    assert any(name.endswith("licenses/LICENSE") for name in wheel_names)


def test_wheel_when_built_holds_nothing_else(wheel_names: set[str]) -> None:
    strays = ("fabula/tests/", "fabula/benchmarks/", "fabula/docs/", "fabula/examples/", "tests/", "fabula/.")
    assert [name for name in sorted(wheel_names) if name.startswith(strays)] == []
