"""The program that changes lines at random, on a package of one function."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "benchmarks" / "mutants.py"
if not PROGRAM.is_file():
    pytest.skip("the suite runs against an installed wheel, which has no benchmarks", allow_module_level=True)
FILES = {
    "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\nmarkers =\n    slow: dear\n",
    "__init__.py": "", "room/__init__.py": "",
    "room/ages.py": "def is_adult(age: int) -> bool:\n    return age >= 18\n",
    "room/doors.py": "KEYS = '.ages:is_adult'\n", "room/alone.py": "",
    "tests/test_ages.py": "from tiny.room.ages import is_adult\n\n\ndef test_ages():\n"
    "    assert is_adult(19)\n    assert not is_adult(9)\n",
    "tests/test_doors.py": "def test_doors():\n    assert 'tiny.room.doors:is_adult'\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def mutants() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("mutants", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "tiny" / ("tests/pytest.ini" if name == "pytest.ini" else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tiny"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = a < b < c", ["x = (a <= b < c)", "x = (a < b <= c)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = a + b", ["x = (a - b)"]),
        ("x = a + 'b' + f'{c < d}'", []),
        ("x = a[i:j]", ["x = a[:j]", "x = a[i:]"]),
        ("def f(x=2): ...", ["def f(x=3): ...", "def f(x=1): ..."]),
        ("f(x=True)", ["pass", "f(x=False)"]),
        ("def f(): return x", ["def f(): return None"]),
        ("def f(): return None", []),
        ("if a: raise E", ["if a: pass", "if (not a): raise E"]),
        ("while a:\n  continue\nx += y", ["while (not a):\n  continue\nx += y", "while a:\n  pass\nx += y",
                                          "while a:\n  continue\npass"]),
        ("é = 'é' if a else b", ["é = 'é' if (not a) else b"]),
        ("@f(1)\ndef f(x: 'a < b' = None) -> Literal[1]: ...", []),
        ("if TYPE_CHECKING: x = 1", []),
    ],
)  # fmt: skip
def test_changes_of_a_line_are_each_of_one_thing(mutants: Any, line: str, wanted: list[str]) -> None:
    source = line.encode()
    changed = [each.applied(source).decode() for each in mutants.mutants_of(Path("x.py"), source)]
    assert sorted(changed) == sorted(wanted)


def test_tests_of_a_module_are_those_that_import_it_nearest_first(mutants: Any, tiny: Path) -> None:
    near = mutants.Nearness(tiny, "tiny")
    tests = {name: [path.name for path in near.tests_of(tiny / "room" / f"{name}.py")]
             for name in ("ages", "doors", "alone")}  # fmt: skip
    assert tests == {"ages": ["test_ages.py", "test_doors.py"], "doors": ["test_doors.py"], "alone": []}


@pytest.mark.slow
def test_mutants_when_tried_are_told_with_the_share_killed_and_change_nothing(
    mutants: Any, tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(mutants, "MOST_FILES", 1)
    mutants.main(["--root", str(tiny), "--package", "tiny", "--count", "2", "--seed", "3", "--workers", "1"])
    # Wilson of 1 of 2: (1 + z^2 / 2 -+ z sqrt(1/2 + z^2 / 4)) / (2 + z^2) with z = 1.96
    assert capsys.readouterr().out == (
        "room/ages.py:2: survived\n    age >= 18  ->  (age > 18)\n"
        "killed 1 of 2: 50% (95 % interval 9% to 91%)\n"
    )
    assert (tiny / "room/ages.py").read_text() == FILES["room/ages.py"]


@pytest.mark.parametrize(
    ("with_change", "without", "outcome"),
    [
        (0, None, "survived"), (1, 0, "killed"), (2, 0, "killed"), (None, 0, "killed"), (1, 1, "undecided"),
        (None, None, "undecided"), (5, None, "no fast test imports it"),
    ],
)  # fmt: skip
def test_verdict_when_tests_fail_without_the_change_too_is_none(
    mutants: Any, tiny: Path, monkeypatch: pytest.MonkeyPatch, with_change: Any, without: Any, outcome: str
) -> None:
    codes = iter([with_change, without])
    monkeypatch.setattr(mutants.Trial, "_run", lambda *_: next(codes))
    mutant = mutants.draw(tiny, "tiny", 1, 0)[0]
    assert mutants.Trial(tiny, 1.0).judge(mutant, [Path("tests/test_ages.py")]) == outcome
    assert (tiny / "room/ages.py").read_text() == FILES["room/ages.py"]


# -- Budgets of tests, tried on small suites whose tests say what they spend

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
def test_dear(spend): spend(0.8)
def test_dear_first(spend): first(0.7, spend)
def test_shared(shared, spend): spend(0.4)
def test_own(own, spend): spend(0.4)
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


@pytest.mark.slow
def test_tests_when_over_their_budget_twice_fail_and_others_stay_as_they_are(tmp_path: Path) -> None:
    clock = Clock(1, 1, 1, 1, 1)
    assert run(tmp_path, clock) == pytest.ExitCode.TESTS_FAILED
    failed = {name: outcome for name, outcome in clock.outcomes.items() if outcome.startswith("failed")}
    assert sorted(failed) == ["dear", "own", "wrong"]
    assert (
        failed["dear"] == f"failed: it used 0.80 processor seconds, twice; a fast test has 0.50 here: {DEAR}"
    )
    assert DEAR in failed["own"] and DEAR not in failed["wrong"]
    assert {clock.outcomes[name] for name in ("cheap", "dear_first", "shared", "slow", "once")} == {"passed"}
    assert clock.outcomes["skipped"] == "skipped"


@pytest.mark.slow
@pytest.mark.parametrize(("slowness", "code"), [((1, 1), 1), ((1, 1.5), 0), ((1.5, 1), 0)])
def test_dear_test_when_the_machine_is_slow_now_or_from_the_beginning_has_more(slowness, code, tmp_path):
    assert run(tmp_path, Clock(*slowness), "def test_dear(spend): spend(0.8)") == code


@pytest.mark.slow
def test_dear_test_when_it_is_over_its_budget_by_less_than_half_is_named_and_passes(tmp_path, capsys) -> None:
    assert run(tmp_path, Clock(1, 1), "def test_dear(spend): spend(0.6)") == pytest.ExitCode.OK
    assert f"::test_dear: it used 0.60 processor seconds, twice; a fast test has 0.50 here: {DEAR}" in (
        capsys.readouterr().out
    )


@pytest.mark.slow
def test_test_when_it_fails_once_is_named_with_why_and_passes(tmp_path: Path, capsys: Any) -> None:
    suite = """
ran = []
def test_race():
    ran.append(1)
    assert len(ran) > 1, "the process had just ended"
"""
    assert run(tmp_path, Clock(1, 1), suite) == pytest.ExitCode.OK
    told = capsys.readouterr().out
    assert "1 passed" in told and "::test_race: it failed, and passed when it was run again" in told
    assert "the process had just ended" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slowness", "code", "told"),
    [((1, 1), 1, "over the budget"), ((1, 2), 0, "701 of 700, times 2.0"), ((2,), 0, "times 2.0")],
)
def test_tier_when_all_processes_together_use_more_than_it_has_fails(slowness, code, told, tmp_path, capsys):
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
