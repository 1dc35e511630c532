"""What only an installed wheel can lack: the gate runs this, and a part of the suite, in its environment."""

import importlib
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import fabula

EXTRAS = ("anthropic", "av", "torch", "transformers", "onnxruntime", "ultralytics", "cv2")


def test_package_when_tried_is_the_installed_one_and_no_extra_is_there() -> None:
    assert Path(fabula.__file__).is_relative_to(sys.prefix)
    assert [name for name in EXTRAS if find_spec(name)] == []


def test_modules_when_imported_without_extras_are_all_there() -> None:
    names = [module.name for module in pkgutil.walk_packages(fabula.__path__, "fabula.")]
    assert len(names) > 550
    for name in names:
        if not name.endswith("__main__"):
            importlib.import_module(name)


def test_command_when_called_by_its_name_answers() -> None:
    command = Path(sys.executable).with_name("fabula")
    done = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert "fabula build stories" in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("build", "katha", "stories.jsonl", "--model", "anthropic:m", "--out", "run"), "anthropic"),
        (("build", "entities", "film.mp4", "--model", "openai:m", "--out", "run"), "entities"),
    ],
)
def test_command_when_its_extra_is_missing_says_how_to_get_it(
    command: tuple[str, ...], extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
    (tmp_path / "stories.jsonl").write_bytes(samples.read_bytes())
    (tmp_path / "film.mp4").write_bytes(b"\0" * 64)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
    program = [sys.executable, "-m", "fabula.cli.main", *command]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert f"fabula[{extra}]" in done.stderr
