"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest

import fabula

EXAMPLES = sorted((Path(fabula.__file__).parent / "examples").glob("*.py"))


@pytest.mark.skipif(not EXAMPLES, reason="the suite runs against an installed wheel, which has no examples")
def test_example_when_run_without_arguments_prints_scenes() -> None:
    for example in EXAMPLES:
        done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "scene 5:" in done.stdout
