"""Change lines at random and tell which changes no test sees.

python benchmarks/mutants.py --count 120 --seed 7

A change is one of a comparison, constant, condition, slice, sum, return or statement, drawn from all that the
package has. It is made in a copy of the tree, where the nearest tests that import its module run until one
fails. Only where that test passes without the change, the change counts as killed. One that survives is a
line that may be wrong without a test that says so, or one that makes no difference.
"""

import argparse
import ast
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, count, islice
from pathlib import Path
from typing import Any

from fabula.testing.stage_code import Code

ROOT = Path(__file__).resolve().parent.parent
NOT_ROOMS = ("benchmarks", "examples", "docs", "tests")
LEFT_OUT = (".git", ".venv", "build", "dist", "runs", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis")
MOST_FILES = 12
PASSED, NO_TESTS = 0, 5
SWAPS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
    ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file: the bytes from ``start`` to ``end`` become ``new``."""

    path: Path
    line: int
    start: int
    end: int
    old: str
    new: str

    def applied(self, source: bytes) -> bytes:
        """Return the file with the change."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def is_python(self, root: Path) -> bool:
        """Whether the file can still be read with the change."""
        try:
            ast.parse(self.applied((root / self.path).read_bytes()))
        except (SyntaxError, ValueError):
            return False
        return True


def changes_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in place of a node."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            for number, old in enumerate(ops):
                yield ast.Compare(left, [*ops[:number], SWAPS[type(old)](), *ops[number + 1 :]], others)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPS and not _is_text(left, right):
            yield ast.BinOp(left, SWAPS[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(SWAPS[type(op)](), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (ast.Constant(value + step) for step in (1, -1))
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise() | ast.Continue():
            yield ast.Pass()


def _is_text(*nodes: ast.AST) -> bool:
    values = (getattr(node, "value", None) for node in nodes)
    return any(isinstance(part, ast.JoinedStr | str | bytes) for part in (*nodes, *values))


def _sites(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Yield nodes with what may stand in their place, None for nothing; types and decorators stay."""
    for name, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            if name in ("annotation", "returns", "decorator_list") or not isinstance(part, ast.AST):
                continue
            if isinstance(part, ast.JoinedStr) or (
                isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING"
            ):
                continue
            yield from ((part, other) for other in changes_of(part))
            if name == "test" and not isinstance(part, ast.Compare | ast.BoolOp | ast.UnaryOp):
                yield part, ast.UnaryOp(ast.Not(), part)
            if isinstance(node, ast.Slice) and name in ("lower", "upper"):
                yield part, None
            yield from _sites(part)


def mutants_of(path: Path, source: bytes) -> Iterator[Mutant]:
    """Yield all changes of a file with these bytes; a few of them leave no Python behind."""
    begins = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    for node, other in _sites(ast.parse(source)):
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[node.end_lineno - 1] + node.end_col_offset
        new = "" if other is None else ast.unparse(other)
        new = f"({new})" if isinstance(other, ast.expr) and not isinstance(other, ast.Constant) else new
        yield Mutant(path, node.lineno, start, end, source[start:end].decode(), new)


def rooms_of(root: Path) -> list[str]:
    """Return the names of the folders that have code."""
    return sorted(
        path.parent.name for path in root.glob("*/__init__.py") if path.parent.name not in NOT_ROOMS
    )


class Nearness:
    """Which files of tests import a module, nearest first; ``root`` is the package, with ``tests`` in it."""

    def __init__(self, root: Path, package: str) -> None:
        code = Code(root, rooms_of(root), package)
        for path in root.glob("*.py"):
            code.paths[f"{package}.{path.stem}".removesuffix(".__init__")] = path
        self._name = {path: module for module, path in code.paths.items()}
        self._tests = {path: f"tests.{number}" for number, path in enumerate((root / "tests").rglob("*.py"))}
        self._near: dict[str, set[str]] = {}
        code.paths |= {module: path for path, module in self._tests.items()}
        for module, path in code.paths.items():
            for used in _named(code, module, ast.parse(path.read_bytes())):
                self._near.setdefault(used, set()).add(module)
        shared = {path: module for path, module in self._tests.items() if path.name == "conftest.py"}
        for path, module in self._tests.items():
            for fixtures, name in shared.items():
                if path != fixtures and fixtures.parent in path.parents:
                    self._near.setdefault(name, set()).add(module)

    def tests_of(self, path: Path) -> list[Path]:
        """Return the files of tests that import a module, over others where need be, nearest first."""
        distance, todo = {self._name[path]: 0}, [self._name[path]]
        for module in todo:
            for user in self._near.get(module, set()) - distance.keys():
                distance[user] = distance[module] + 1
                todo.append(user)
        tests = [
            test for test, name in self._tests.items() if name in distance and test.name.startswith("test_")
        ]
        words = set(re.findall(r"[a-z0-9]+", "/".join(self._name[path].split(".")[1:])))

        def rank(test: Path) -> tuple[int, int, int, str]:
            alike = len(words.intersection(re.findall(r"[a-z0-9]+", str(test))))
            return distance[self._tests[test]], -alike, test.stat().st_size, str(test)

        return sorted(tests, key=rank)


def _named(code: Code, module: str, tree: ast.Module) -> Iterator[str]:
    """Yield the modules that one names in imports, and in texts such as ``room.module:NAME``."""
    origins = [origin for _, origin in code.imports(tree, module)]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"[\w.:]+", node.value)
        ):
            dotted = node.value.strip(".").replace(":", ".")
            above = ("", f"{code.package}.", f"{code.package_of(module)}.")
            origins += [f"{start}{dotted}" for start in above if "." in dotted]
    for origin in origins:
        parts = origin.split(".")
        names = (".".join(parts[:length]) for length in (len(parts), len(parts) - 1))
        yield from islice((name for name in names if name in code.paths), 1)


@dataclass(frozen=True, slots=True)
class Trial:
    """A copy of the tree in which mutants are tried one after the other, for ``limit`` seconds each."""

    root: Path
    limit: float
    changes: Iterator[int] = field(default_factory=lambda: count(2))
    """Each content of a file looks newer than the one before, which Python may have compiled."""

    def judge(self, mutant: Mutant, tests: Sequence[Path]) -> str:
        """Try one mutant against some files of tests, all as paths within the tree."""
        path = self.root / mutant.path
        source = path.read_bytes()
        self._write(path, mutant.applied(source))
        ended = self._run(tests, "--cache-clear") if tests else NO_TESTS
        self._write(path, source)
        outcome = {PASSED: "survived", NO_TESTS: "no fast test imports it"}.get(ended)
        if outcome is None:  # the one that failed runs again, or all where time was over
            outcome = "killed" if self._run(tests, "--lf") == PASSED else "undecided"
        return outcome

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        when = path.stat().st_mtime + next(self.changes)
        os.utime(path, (when, when))

    def _run(self, tests: Sequence[Path], *options: str) -> int | None:
        """Return the exit code of pytest; None where time was over."""
        above = str(self.root.parent)
        command = [sys.executable, "-m", "pytest", "-c", "tests/pytest.ini", "--rootdir", "tests", "-q", "-x"]
        command += ["-m", "not slow", "-p", "no:budgets", "-o", f"cache_dir={above}/cache"]
        command += [*options, *map(str, tests)]
        environment = os.environ | {"PYTHONPATH": above, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONPYCACHEPREFIX", None)  # what is compiled goes with the copy
        streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(
            command, cwd=self.root, env=environment, start_new_session=True, **streams
        ) as running:
            try:
                return running.wait(self.limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)


def draw(root: Path, package: str, size: int, seed: int) -> list[Mutant]:
    """Return mutants of all rooms, each as likely as any other."""
    rooms = [name for name in rooms_of(root) if name != "testing"]
    paths = sorted([*root.glob("*.py"), *(path for name in rooms for path in (root / name).rglob("*.py"))])
    every = [mutant for path in paths for mutant in mutants_of(path.relative_to(root), path.read_bytes())]
    random.Random(f"{package} {seed}").shuffle(every)
    return list(islice((mutant for mutant in every if mutant.is_python(root)), size))


def summary(outcomes: Mapping[Mutant, str]) -> str:
    """Return the survivors, line by line, and the share killed with Wilson's interval of 95 %."""
    from scipy.stats import binomtest

    lines = []
    for mutant in sorted(outcomes, key=lambda each: (outcomes[each], str(each.path), each.line)):
        if outcomes[mutant] != "killed":
            old, new = (" ".join(text.split()) for text in (mutant.old, mutant.new))
            lines.append(
                f"{mutant.path}:{mutant.line}: {outcomes[mutant]}\n    {old}  ->  {new or 'nothing'}"
            )
    counts = Counter(outcomes.values())
    decided = counts.total() - counts["undecided"]
    if counts["undecided"]:
        lines.append(f"undecided {counts['undecided']}: tests fail without the change, too, or take too long")
    if decided:
        ends = binomtest(counts["killed"], decided).proportion_ci(method="wilson")
        share = f"{counts['killed'] / decided:.0%} (95 % interval {ends.low:.0%} to {ends.high:.0%})"
        lines.append(f"killed {counts['killed']} of {decided}: {share}")
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> None:
    """Draw mutants, try each, and print what survived."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=20, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws others")
    parser.add_argument("--limit", type=float, default=300, help="seconds for the tests of one mutant")
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at the same time")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the package, with tests in it")
    parser.add_argument("--package", default="fabula", help="the name that it is imported by")
    options = parser.parse_args(given)
    nearness, trials = Nearness(options.root, options.package), queue.SimpleQueue[Trial]()

    def judge(mutant: Mutant) -> str:
        tests = [path.relative_to(options.root) for path in nearness.tests_of(options.root / mutant.path)]
        trial = trials.get()
        outcome = trial.judge(mutant, tests[:MOST_FILES])
        trials.put(trial)
        print(f"{mutant.path}:{mutant.line}: {outcome}", file=sys.stderr, flush=True)
        return outcome

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number in range(options.workers):
            copied = Path(folder, str(number), options.package)
            shutil.copytree(options.root, copied, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
            trials.put(Trial(copied, options.limit))
        with ThreadPoolExecutor(options.workers) as pool:
            drawn = draw(options.root, options.package, options.count, options.seed)
            print(summary(dict(zip(drawn, pool.map(judge, drawn), strict=True))))


if __name__ == "__main__":
    main()
