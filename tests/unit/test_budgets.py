"""Budgets of tests, tried on small suites whose tests say what they spend."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
SUITE = """
import pytest
spent = []

def first(seconds, spend):
    spend(0 if seconds in spent else seconds)
    spent.append(seconds)

@pytest.fixture(scope="module")
def shared(spend):
    spend(5)

@pytest.fixture
def own(spend):
    spend(0.4)

def test_cheap(spend): spend(0.4)
def test_dear(spend): spend(0.6)
def test_dear_first(spend): first(0.7, spend)
def test_shared(shared, spend): spend(0.4)
def test_own(own, spend): spend(0.2)
@pytest.mark.slow
def test_slow(spend): spend(9)
def test_wrong(spend): spend(0.6); assert not spent
def test_skipped(spend): spend(0.6); pytest.skip("not here")
def test_once(spend): spend(0.6) if not spent.count("once") else pytest.fail(); spent.append("once")
"""
DEAR = "mark it slow or make it faster"


def budgets() -> Any:
    spec = importlib.util.spec_from_file_location("budgets", TESTS / "budgets.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Clock:
    """A plug-in: the seconds that tests spent, and what became of them.

    Args:
        slowness: of the machine, as it is timed one time after another.
    """

    seconds = 0.0

    def __init__(self, *slowness: float) -> None:
        Clock.seconds, self.outcomes = 0.0, dict[str, str]()
        self._slowness = iter(slowness)

    def work(self) -> float:
        return float(next(self._slowness) * budgets().USUAL)

    @pytest.fixture(scope="session")
    @classmethod
    def spend(cls) -> Any:
        def spend(seconds: float) -> None:
            cls.seconds += seconds

        return spend

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.split("::test_")[-1]
        if report.when == "call":
            self.outcomes[name] = f"{report.outcome}: {report.longrepr}" if report.failed else report.outcome


def run(folder: Path, clock: Clock, suite: str = SUITE) -> int:
    """Run a suite in this process, as a fast tier."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    (folder / f"test_{folder.name}.py").write_text(suite)  # each is a module of its own
    plugin = budgets().Budgets("not slow", True, lambda: clock.seconds, clock.work)
    options = ["-q", "-c", str(folder / "pytest.ini"), "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["--import-mode=importlib", str(folder)]
    return int(pytest.main(options, plugins=[clock, plugin]))


def test_tests_when_over_their_budget_twice_fail_and_others_stay_as_they_are(tmp_path: Path) -> None:
    clock = Clock(1, 1, 1, 1, 1)
    assert run(tmp_path, clock) == pytest.ExitCode.TESTS_FAILED
    failed = {name: outcome for name, outcome in clock.outcomes.items() if outcome.startswith("failed")}
    assert sorted(failed) == ["dear", "own", "wrong"]
    assert (
        failed["dear"] == f"failed: it used 0.60 processor seconds, twice; a fast test has 0.50 here: {DEAR}"
    )
    assert DEAR in failed["own"] and DEAR not in failed["wrong"]
    assert {clock.outcomes[name] for name in ("cheap", "dear_first", "shared", "slow", "once")} == {"passed"}
    assert clock.outcomes["skipped"] == "skipped"


@pytest.mark.parametrize(("slowness", "code"), [((1, 1), 1), ((1, 1.5), 0), ((1.5,), 0)])
def test_dear_test_when_the_machine_is_slow_now_or_from_the_beginning_has_more(
    slowness: tuple[float, ...], code: int, tmp_path: Path
) -> None:
    assert run(tmp_path, Clock(*slowness), "def test_dear(spend): spend(0.6)") == code


@pytest.mark.parametrize(
    ("slowness", "code", "told"),
    [((1, 1), 1, "over the budget"), ((1, 2), 0, "701 of 700, times 2.0"), ((2,), 0, "times 2.0")],
)
def test_tier_when_all_processes_together_use_more_than_it_has_fails(
    slowness: tuple[float, ...], code: int, told: str, tmp_path: Path, capsys: Any
) -> None:
    suite = "import pytest\n@pytest.mark.slow\ndef test_slow(spend): spend(701)"
    assert run(tmp_path, Clock(*slowness), suite) == code
    assert told in capsys.readouterr().out


@pytest.mark.slow
def test_budgets_when_workers_run_the_tests_hold_in_each_and_sum_all(tmp_path: Path) -> None:
    burn = "from time import process_time as now\ndef test_one():\n    end = now() + {}\n"
    for name, seconds in (("dear", 0.2), ("cheap", 0)):
        (tmp_path / f"test_{name}.py").write_text(burn.format(seconds) + "    while now() < end: pass\n")
    (tmp_path / "conftest.py").write_text(f"""
import importlib.util
spec = importlib.util.spec_from_file_location("budgets", {str(TESTS / "budgets.py")!r})
budgets = importlib.util.module_from_spec(spec)
spec.loader.exec_module(budgets)
budgets.FAST = 0.1
def pytest_configure(config):
    made = budgets.Budgets("not slow", not hasattr(config, "workerinput"), work=lambda: budgets.USUAL)
    config.pluginmanager.register(made, "budgets")
""")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--durations=3", "-c", "pytest.ini", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count(DEAR) >= 1 and "call     test_dear.py::test_one" in done.stdout
    told = next(line for line in done.stdout.splitlines() if line.startswith("processor seconds"))
    assert 0.4 < float(told.split()[5]) < 60
