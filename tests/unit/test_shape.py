"""The shape of the code: import direction, sizes, packaging lists, cheap start-up, exported names."""

import ast
import json
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import fabula
from fabula.testing.stage_code import Code

ROOT = Path(fabula.__file__).parent
ORDER = (
    "errors", "schemas", "tables", "pages", "media", "models", "prompts", "engine", "validators", "releases",
    "builders", "evaluation", "people", "audits", "generation", "kinds", "baselines", "experiments",
    "leaderboard", "viewing", "api",
    "cli", "testing",
)  # fmt: skip
LONGEST_FILE, MEDIAN_FILE, LONGEST_FUNCTION, MOST_PARAMETERS = 400, 150, 60, 6
SIZE_EXCEPTIONS: dict[str, str] = {}
CIRCLES: list[list[str]] = []
"""Files that need each other, in a circle; a list that may only become shorter."""
HEAVY = {
    "torch", "cv2", "datasets", "openai", "google.genai", "pyarrow", "numpy", "pandas", "mlcroissant",
    "scipy", "datasketch", "py3langid", "jsonschema_rs", "jinja2", "pebble", "requests",
    "huggingface_hub", "polars", "IPython",
}  # fmt: skip


def packages() -> list[Path]:
    return [ROOT / name for name in ORDER if (ROOT / name).is_dir()]


def sources() -> list[Path]:
    return sorted([*ROOT.glob("*.py"), *(path for folder in packages() for path in folder.rglob("*.py"))])


def code_lines(tree: ast.AST, text: str) -> int:
    """Lines of a node without its docstrings and without blank lines."""
    doc: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                doc.update(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    first = getattr(tree, "lineno", 1)
    last = getattr(tree, "end_lineno", None) or len(text.splitlines())
    lines = text.splitlines()
    return sum(bool(lines[n - 1].strip()) and n not in doc for n in range(first, last + 1))


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    """Top-level areas of the package that a module imports."""
    here, areas = path.relative_to(ROOT).parent.parts, []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level + 1]
            target = (*base, *(node.module or "").split(".")) if node.module else base
            target = tuple(part for part in target if part)
            areas += [target[0]] if target else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fabula":
            raise AssertionError(f"{path}: imports inside the package are relative")
    return tuple(areas)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_when_module_is_in_a_folder_follow_the_total_order(path: Path) -> None:
    area = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if area == "__init__":
        return
    for imported in imports_of(path):
        if imported in ORDER and imported != area and area != "testing":
            assert ORDER.index(imported) < ORDER.index(area), f"{path.name} of {area} imports {imported}"


def test_testing_when_imported_is_imported_by_tests_only() -> None:
    users = [
        path
        for path in sources()
        if "testing" in imports_of(path) and path.relative_to(ROOT).parts[0] != "testing"
    ]
    assert users == []


def needed_by(module: str, code: Code) -> Iterator[str]:
    """Modules that one imports, in functions and for types, too; of a name handed on, the one that has it."""
    tree = ast.parse(code.paths[module].read_text("utf-8"))
    for _, origin in code.imports(tree, module):
        above = origin.rpartition(".")[0]
        if origin in code.paths:
            yield origin
        elif above in code.paths and code.package_of(above) != above:
            yield above
        elif (target := code.at(origin)) is not None:
            yield target.module


def circles(code: Code) -> list[list[str]]:
    place = {module: number for number, module in enumerate(code.paths)}
    pairs = [(place[module], place[other]) for module in place for other in needed_by(module, code)]
    ones, (users, used) = [1] * len(pairs), zip(*pairs, strict=True)
    graph = coo_array((ones, (users, used)), (len(place), len(place)))
    groups: dict[int, list[str]] = {}
    for module, label in zip(place, connected_components(graph, connection="strong")[1], strict=True):
        groups.setdefault(int(label), []).append(module.removeprefix(f"{code.package}."))
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def test_imports_when_followed_through_functions_and_packages_form_no_new_circle() -> None:
    assert circles(Code(ROOT, [room.name for room in packages()])) == CIRCLES


def test_circles_when_files_need_each_other_in_functions_or_through_a_package_are_found(
    tmp_path: Path,
) -> None:
    files = {
        "__init__.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from .low import take\n",
        "low.py": "def take():\n    from .high import give\n",
        "high.py": "from ..room import take\n",
        "apart.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from .user import use\n",
        "user.py": "from . import apart\n",
    }
    (tmp_path / "room").mkdir()
    for name, text in files.items():
        (tmp_path / "room" / name).write_text(text)
    assert circles(Code(tmp_path, ["room"], "pkg")) == [
        ["room.apart", "room.user"],
        ["room.high", "room.low"],
    ]


def test_sizes_when_measured_stay_within_limits() -> None:
    lengths, too_long = [], []
    for path in sources():
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        count = code_lines(tree, text)
        if count > 5:
            lengths.append(count)
        if count > LONGEST_FILE:
            too_long.append(f"{path.relative_to(ROOT)}: {count} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = code_lines(node, text)
                if body > LONGEST_FUNCTION and "cli" not in path.parts:
                    too_long.append(f"{path.relative_to(ROOT)}:{node.name}: {body} lines")
                arguments = node.args
                names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
                names = [name for name in names if name not in ("self", "cls")]
                if len(names) > MOST_PARAMETERS and node.name != "__init__" and "cli" not in path.parts:
                    too_long.append(f"{path.relative_to(ROOT)}:{node.name}: {len(names)} parameters")
    assert [entry for entry in too_long if entry.rsplit(":", 1)[0] not in SIZE_EXCEPTIONS] == []
    assert len(SIZE_EXCEPTIONS) == 0
    assert statistics.median(lengths) <= MEDIAN_FILE


READING_OTHERS = ("validators", "releases", "evaluation", "people")
RAW_READING = {"releases/parquet.py: ParquetFile": "the one opener of tables: regular files, bounded"}


def raw_readings(tree: ast.AST) -> Iterator[str]:
    """Names of calls that open a file as if nobody had put a pipe, a device or gigabytes in its place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            mode = node.args[0] if node.args else ast.Constant("r")
            to_read = isinstance(mode, ast.Constant) and str(mode.value).startswith("r")
            of_package = any(isinstance(part, ast.Name) and part.id == "files" for part in ast.walk(node))
            name = method or getattr(node.func, "id", "")
            if (
                (method in ("read_bytes", "read_text") and not of_package)
                or (name == "open" and (not method or to_read))
                or name in ("ParquetFile", "ParquetDataset")
                or method in PARQUET
            ):
                yield name


PARQUET = ("read_table", "read_schema", "read_metadata", "read_pandas")


def test_files_of_others_when_read_are_opened_in_one_way_only() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in sources()
        if path.relative_to(ROOT).parts[0] in READING_OTHERS
        for name in raw_readings(ast.parse(path.read_text("utf-8")))
    }
    assert found == set(RAW_READING), "use fabula.schemas.plain_files, or releases.parquet for tables"


@pytest.mark.parametrize(
    "code",
    [
        "path.read_bytes()", "(folder / name).read_text('utf-8')", "open(path)", "path.open()",
        "path.open('rb')", "pq.read_table(path)", "pq.ParquetFile(path)", "parquet.ParquetFile(path)",
    ],
)  # fmt: skip
def test_raw_reading_when_written_in_any_way_is_noticed(code: str) -> None:
    assert list(raw_readings(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ["read_text(path)", "path.open('wb')", "files(__package__).read_text()", "Journal.open(folder)"]
)
def test_reading_when_it_is_bounded_or_of_the_package_is_let_through(code: str) -> None:
    assert not list(raw_readings(ast.parse(code)))


MOST_LINES, MOST_FILES, MOST_IN_A_ROOM = 171_600, 975, 40
"""Of the package without ``testing``: raised only with what a new feature brings."""


def test_package_when_counted_stays_within_its_size() -> None:
    """As counted by ``git ls-files '*.py'`` without tests, benchmarks, examples and ``.ci``."""
    counted = [path for path in sources() if path.relative_to(ROOT).parts[0] != "testing"]
    lines = {path: path.read_bytes().count(b"\n") for path in counted}
    assert sum(lines.values()) <= MOST_LINES
    assert sum(not (path.name == "__init__.py" and lines[path] <= 5) for path in counted) <= MOST_FILES
    rooms = [room for room in packages() if room.name not in ("cli", "testing")]
    assert [room.name for room in rooms if len(list(room.glob("*.py"))) > MOST_IN_A_ROOM] == []


MOST_EMPTY_NAMES = 580
"""How often a name is bound that says nothing of what it holds; it may only become lower."""


def test_names_when_bound_say_what_they_hold() -> None:
    bound = [
        node.arg if isinstance(node, ast.arg) else node.id
        for path in sources()
        if path.relative_to(ROOT).parts[0] != "testing"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    assert sum(name in ("one", "found", "told", "place") for name in bound) <= MOST_EMPTY_NAMES


def body_of(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", None)  # a lambda has an expression there
    return body if isinstance(body, list) else []


def is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def test_texts_when_they_describe_something_stand_under_it() -> None:
    stray = [
        f"{path.relative_to(ROOT)}:{text.lineno}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for before, text in pairwise(body_of(node))
        if is_text(text) and not isinstance(before, ast.Assign | ast.AnnAssign)
    ]
    assert stray == []


def test_packages_when_listed_are_those_on_disk() -> None:
    pyproject = ROOT / "pyproject.toml"
    if not pyproject.exists():
        pytest.skip("the suite runs against an installed wheel, which has no pyproject.toml")
    listed = set(tomllib.loads(pyproject.read_text())["tool"]["setuptools"]["packages"])
    folders = {path.parent.relative_to(ROOT).parts for room in packages() for path in room.rglob("*.*")}
    # What is no name in Python, such as history/0.1.0, belongs to the folder around it.
    named = {parts for parts in folders if all(part.isidentifier() for part in parts)}
    assert listed == {
        "fabula",
        *(".".join(("fabula", *parts)) for parts in named if "__pycache__" not in parts),
    }
    stray = [
        path
        for folder in packages()
        for path in folder.rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert stray == []


def loaded_after(code: str) -> set[str]:
    """Names of all modules loaded in a fresh process after running the code."""
    program = f"import sys, json\n{code}\njson.dump(sorted(sys.modules), sys.__stdout__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout[done.stdout.rindex("[") :]))


HELP = """
import io
from fabula.cli.main import main
sys.argv = ["fabula", "--help"]
sys.stdout = io.StringIO()
try:
    main()
except SystemExit as stop:
    assert stop.code == 0
"""


@pytest.mark.parametrize("code", ["import fabula", HELP], ids=["import fabula", "fabula --help"])
def test_start_up_when_nothing_is_asked_loads_nothing_heavy(code: str) -> None:
    loaded = loaded_after(code)
    assert "fabula" in loaded
    assert not HEAVY & loaded


def test_import_when_package_is_imported_loads_none_of_its_modules() -> None:
    assert {name for name in loaded_after("import fabula") if name.startswith("fabula")} == {
        "fabula",
        "fabula.version",
    }


def test_exported_names_when_listed_are_pinned_and_resolve() -> None:
    verbs = [
        "audit", "build", "compare", "diff", "evaluate", "experiment", "extend", "fetch", "load", "pack",
        "publish", "report", "score", "validate", "verify",
    ]  # fmt: skip
    kinds = [
        "Audit", "Build", "Entity", "Episode", "Evaluate", "Event", "Experiment", "Extend", "Fetch", "Image",
        "Pack", "Publish", "Shot", "Suite",
    ]  # fmt: skip
    names = sorted(["__version__", "build_katha", *verbs, *(f"{kind}Options" for kind in kinds)])
    assert sorted(fabula.__all__) == names
    for name in fabula.__all__:
        assert getattr(fabula, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fabula.nothing


def test_version_when_read_from_code_and_metadata_is_one() -> None:
    from importlib.metadata import version

    assert version("fabula") == fabula.__version__
