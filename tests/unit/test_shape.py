"""The shape of the code: import direction, sizes, packaging lists, cheap start-up, exported names."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import fabula
from fabula.testing.stage_code import Code

pytestmark = pytest.mark.slow

ROOT = Path(fabula.__file__).parent
ORDER = (
    "errors", "schemas", "pages", "media", "models", "prompts", "engine", "validators", "releases",
    "builders", "evaluation", "people", "studies", "kinds", "leaderboard", "viewing", "api", "cli", "testing",
)  # fmt: skip
LONGEST_FILE, LONGEST_FUNCTION, MOST_PARAMETERS = 600, 60, 6
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


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def code_lines(tree: ast.AST, lines: list[str]) -> int:
    """Lines of a node without its docstrings and without blank lines."""
    doc: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                doc.update(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    first = getattr(tree, "lineno", 1)
    last = getattr(tree, "end_lineno", None) or len(lines)
    return sum(bool(lines[n - 1].strip()) and n not in doc for n in range(first, last + 1))


def parts_named(path: Path, tree: ast.AST) -> Iterator[str]:
    """Modules whose parts a file of ``kinds`` names, as ``part("room.module:NAME")``."""
    for node in ast.walk(tree) if path.parent == ROOT / "kinds" else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "part":
            (place,) = node.args
            assert isinstance(place, ast.Constant), "a part is named by a string, so that it can be checked"
            yield str(place.value).partition(":")[0]


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    """Top-level areas of the package that a module imports."""
    here, tree = path.relative_to(ROOT).parent.parts, tree_of(path)
    areas = [module.partition(".")[0] for module in parts_named(path, tree)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level + 1]
            target = (*base, *(node.module or "").split(".")) if node.module else base
            target = tuple(part for part in target if part)
            areas += [target[0]] if target else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fabula":
            raise AssertionError(f"{path}: imports inside the package are relative")
    return tuple(areas)


def test_imports_when_modules_are_in_folders_follow_the_total_order() -> None:
    against = [
        f"{path.relative_to(ROOT)} imports {imported}"
        for path in sources()
        for area in [path.relative_to(ROOT).parts[0].removesuffix(".py")]
        if area not in ("__init__", "testing")
        for imported in imports_of(path)
        if imported in ORDER and imported != area and ORDER.index(imported) >= ORDER.index(area)
    ]
    assert against == []


def needed_by(module: str, code: Code) -> Iterator[str]:
    """Modules that one imports, in functions and for types, too; of a name handed on, the one that has it."""
    tree = tree_of(code.paths[module])
    yield from (f"{code.package}.{part}" for part in parts_named(code.paths[module], tree))
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


def test_sizes_when_measured_stay_within_limits() -> None:
    too_long = []
    for path in sources():
        lines, tree = path.read_text("utf-8").splitlines(), tree_of(path)
        count = code_lines(tree, lines)
        if count > LONGEST_FILE:
            too_long.append(f"{path.relative_to(ROOT)}: {count} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = code_lines(node, lines)
                if body > LONGEST_FUNCTION and "cli" not in path.parts:
                    too_long.append(f"{path.relative_to(ROOT)}:{node.name}: {body} lines")
                arguments = node.args
                names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
                names = [name for name in names if name not in ("self", "cls")]
                if len(names) > MOST_PARAMETERS and node.name != "__init__" and "cli" not in path.parts:
                    too_long.append(f"{path.relative_to(ROOT)}:{node.name}: {len(names)} parameters")
    assert [entry for entry in too_long if entry.rsplit(":", 1)[0] not in SIZE_EXCEPTIONS] == []
    assert len(SIZE_EXCEPTIONS) == 0


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
        for name in raw_readings(tree_of(path))
    }
    assert found == set(RAW_READING), "use fabula.schemas.plain_files, or releases.parquet for tables"


MOST_LINES, MOST_FILES, MOST_IN_A_ROOM = 158_115, 445, 40
"""Of the package without ``testing``: raised only with what a new feature brings."""
MOST_LINES_OF_TESTING = 13_710
"""Of ``testing``; it may only become lower."""


def test_package_when_counted_stays_within_its_size() -> None:
    """As counted by ``git ls-files '*.py'`` without tests, benchmarks, examples and ``.ci``."""
    lines = {path: path.read_bytes().count(b"\n") for path in sources()}
    counted = [path for path in lines if path.relative_to(ROOT).parts[0] != "testing"]
    assert sum(lines.values()) - sum(lines[path] for path in counted) <= MOST_LINES_OF_TESTING
    assert sum(lines[path] for path in counted) <= MOST_LINES
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
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    assert sum(name in ("one", "found", "told", "place") for name in bound) <= MOST_EMPTY_NAMES


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
        "audit", "build", "compare", "diff", "evaluate", "experiment", "extend", "fetch", "load", "metric",
        "pack", "publish", "report", "score", "validate", "verify",
    ]  # fmt: skip
    kinds = [
        "Audit", "Build", "Entity", "Episode", "Evaluate", "Event", "Experiment", "Extend", "Fetch", "Image",
        "Pack", "Publish", "Shot", "Suite",
    ]  # fmt: skip
    names = sorted(["__version__", *verbs, *(f"{kind}Options" for kind in kinds)])
    assert sorted(fabula.__all__) == names
    for name in fabula.__all__:
        assert getattr(fabula, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fabula.nothing


def test_version_when_read_from_code_and_metadata_is_one() -> None:
    from importlib.metadata import version

    assert version("fabula") == fabula.__version__


# No file that serves several kinds asks for a kind or protocol by its name, or imports one kind's folder.

ROOMS = (
    "schemas", "media", "models", "prompts", "engine", "validators", "releases", "builders", "evaluation",
    "people", "studies/compass", "cli",
)  # fmt: skip
NAMES = frozenset(("katha", "events", "shots", "images", "entities"))
"""Kinds and judge protocols."""
NAMED = re.compile(rf"[\"']({'|'.join(sorted(NAMES))})[\"']")
KINDS = frozenset(("katha", "events", "shots", "entities"))
EXCEPTIONS = {
    "builders/entities/script_parts.py": "entities and shots are inputs of a prompt",
    "evaluation/recoverability/score.py": "its own protocol, which several kinds have",
    "validators/katha/dataset.py": "words for runs of others that have made nothing, which no kind claims",
}
"""File -> why it may ask for a name; a list that may only become shorter."""

IMPORTS: dict[str, str] = {}
"""File of several kinds -> why it may import one kind's folder; a list that may only become shorter."""


def sources_kind_names() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def own_kind(path: Path) -> frozenset[str]:
    """Return the kind that a file belongs to, with the names of its protocols; none of a file for several."""
    own = KINDS & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts[1:]}
    if path.relative_to(ROOT).parts[0] == "cli" or len(own) != 1:
        return frozenset()
    return own | {"images"} if own == {"shots"} else own


@cache
def constants(path: Path) -> dict[str, str]:
    """Return the names that a module binds to the name of a kind."""
    if not NAMED.search(path.read_text("utf-8")):
        return {}
    return {
        target.id: node.value.value
        for node in tree_of(path).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value in NAMES
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def known(path: Path) -> dict[str, str]:
    """Return the names in a module that stand for the name of a kind, bound there or imported."""
    found = dict(constants(path))
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            base = path.parents[node.level - 1].joinpath(*node.module.split(".")).with_suffix(".py")
            if base.is_file():
                there = constants(base)
                found |= {one.asname or one.name: there[one.name] for one in node.names if one.name in there}
    return found


def literals(node: ast.AST, bound: dict[str, str]) -> Iterator[str]:
    """Yield the names of kinds that an expression is, or lists."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    for part in parts:
        if isinstance(part, ast.Constant) and part.value in NAMES:
            yield str(part.value)
        elif isinstance(part, ast.Name) and part.id in bound:
            yield bound[part.id]


def asked_for(path: Path) -> Iterator[str]:
    """Yield each name of a kind that a file compares with, or has a table by."""
    bound = known(path)
    if not bound and not NAMED.search(path.read_text("utf-8")):
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Compare):
            for side, operator in zip((node.left, *node.comparators), (None, *node.ops), strict=True):
                equal = isinstance(node.ops[0], ast.Eq | ast.NotEq)
                listed = isinstance(operator, ast.In | ast.NotIn) and not isinstance(side, ast.Constant)
                if equal or listed:
                    yield from literals(side, bound)
        elif isinstance(node, ast.MatchValue):
            yield from literals(node.value, bound)
        elif isinstance(node, ast.Dict):
            keys = [name for key in node.keys if key is not None for name in literals(key, bound)]
            if len(keys) > 1 and len(keys) == len(node.keys):
                yield from keys


def test_names_of_kinds_when_asked_for_are_those_of_the_file_s_own_kind() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in sources_kind_names()
        if any(name not in own_kind(path) for name in asked_for(path))
    }
    assert found == EXCEPTIONS.keys()


def kind_folders(path: Path) -> Iterator[str]:
    """Yield what a file imports from the folder of one kind; types alone do not count."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.relative_to(ROOT).parts[:-1]
            parts = (*base[: len(base) - node.level + 1], *(node.module or "").split("."))
            if parts[0] not in ("schemas", "prompts") and KINDS & {
                *parts[1:],
                *(one.name for one in node.names),
            }:
                yield ".".join(parts)


@pytest.mark.parametrize("room", ["evaluation", "releases"])
def test_files_for_several_kinds_when_they_import_take_nothing_of_one_kind(room: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in sources_kind_names()
        if path.relative_to(ROOT).parts[0] == room and not own_kind(path) and any(kind_folders(path))
    }
    assert found == {name for name in IMPORTS if name.startswith(f"{room}/")}


def test_templates_for_several_kinds_when_read_ask_for_no_name() -> None:
    names = "|".join(sorted(NAMES))
    quoted = re.compile(rf"""[!=]= ?["']({names})["']|["']({names})["']:""")
    templates = [path for room in ("evaluation", "releases") for path in (ROOT / room).rglob("*.j2")]
    general = [path for path in templates if not KINDS & set(path.relative_to(ROOT).parts)]
    assert general
    assert [path.name for path in general if quoted.search(path.read_text("utf-8"))] == []
