"""The real command, and one built, packed sample benchmark that the command tests share."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

import fabula
from fabula.cli.main import app

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"
CREATED = "2026-01-01T00:00:00Z"
DEMO_OPTIONS = (  # those of the Makefile's demo, whose card is the repository's
    "--version", "0.1.0", "--name", "fabula-sample-fables", "--title", "Fabula sample fables",
    "--creator", "The Fabula developers", "--license", "CC-BY-4.0",
)  # fmt: skip
Fabula = Callable[..., subprocess.CompletedProcess[str]]


def invoke(*words: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="session")
def fabula_command(starter: Any) -> Fabula:
    """Run the command in a process of its own, which starts fast where that makes no difference."""

    def run_fabula(
        *args: object, env: dict[str, str] | None = None, drafts: bool = True
    ) -> subprocess.CompletedProcess[str]:
        whole = {**os.environ, **(env or {})}
        if drafts and args[:2] == ("release", "pack"):  # most of what tests pack was drafted by rules
            args = (*args, "--allow-drafts")
        if starter.fits(whole):
            return starter.run(args, whole, timeout=300)
        command = [sys.executable, "-m", "fabula.cli.main", *map(str, args)]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, encoding="utf-8", env=whole, timeout=300
        )

    return run_fabula


@pytest.fixture(scope="session")
def commands(typed: str) -> Path:
    """A folder of the commands ``fabula`` and ``python``, which start fast."""
    return Path(typed.partition(os.pathsep)[0])


@pytest.fixture(scope="session")
def sample_run(fabula_command: Fabula, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over the 24 sample stories with their given records."""
    out = tmp_path_factory.mktemp("cli") / "run"
    done = fabula_command(
        "build", "katha", SAMPLES / "stories.jsonl", "--records", SAMPLES / "gold.jsonl", "--out", out,
        "--created-at", CREATED, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def sample_release(fabula_command: Fabula, sample_run: Path) -> Path:
    out = sample_run.parent / "release"
    done = fabula_command("release", "pack", sample_run, "--out", out, *DEMO_OPTIONS)
    assert done.returncode == 0, done.stderr + done.stdout
    return out


@pytest.fixture
def write_stories(tmp_path: Path) -> Callable[..., Path]:
    """Write stories as JSONL; each keyword set replaces fields of a sound example story."""

    def write(*changes: dict[str, Any], name: str = "stories.jsonl") -> Path:
        base = json.loads((SAMPLES / "stories.jsonl").read_text("utf-8").splitlines()[0])
        path = tmp_path / name
        lines = [json.dumps({**base, **change}, ensure_ascii=False) for change in changes]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
