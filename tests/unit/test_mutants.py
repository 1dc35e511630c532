"""The program that changes lines at random, on a package of one function."""

import importlib.util
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
