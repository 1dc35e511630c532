"""``fabula report`` as people call it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.simulated_evaluations import Simulated, write_simulated
from fabula.testing.simulated_judgements import Truth

Fabula = Callable[..., Any]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return write_simulated(tmp_path_factory.mktemp("simulated"), 24, (("alpha", Truth()), ("beta", Truth())))


def test_report_when_asked_for_writes_its_files_and_prints_the_main_numbers(
    fabula_command: Fabula, simulated: Simulated
) -> None:
    done = fabula_command("report", simulated.run, "--release", simulated.release, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["headline"]) == {"alpha", "beta"}
    files = {name: Path(path) for name, path in told["files"].items()}
    assert files["page"] == simulated.run / "evaluation_report.html"
    assert all(path.is_file() for path in files.values())
    before = files["page"].read_bytes()
    again = fabula_command("report", simulated.run, "--release", simulated.release)
    assert again.returncode == 0 and "STG" in again.stdout and "Simulation" in again.stdout
    assert files["page"].read_bytes() == before


def test_report_when_something_is_wrong_says_what_and_writes_nothing(
    fabula_command: Fabula, simulated: Simulated, tmp_path: Path
) -> None:
    for options, told in (
        ((simulated.run,), "--release"),
        ((tmp_path, "--release", simulated.release), "evaluation.json"),
        ((simulated.run, "--release", simulated.release, "--outputs", tmp_path / "no"), "no"),
        ((simulated.run, "--release", simulated.release, "--out", tmp_path / "page.pdf"), ".html"),
        ((simulated.run, "--release", simulated.release, "--gap", "index"), "only for an evaluation of"),
    ):
        done = fabula_command("report", *options)
        assert done.returncode in (1, 2), done.stderr
        assert told in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
