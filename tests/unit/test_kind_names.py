"""No file that serves several kinds asks for a kind or protocol by its name, or imports one kind's folder."""

import ast
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import pytest

import fabula

ROOT = Path(fabula.__file__).parent
ROOMS = (
    "schemas", "media", "models", "prompts", "engine", "validators", "releases", "builders", "evaluation",
    "people", "baselines", "cli",
)  # fmt: skip
NAMES = frozenset(("katha", "events", "shots", "images", "entities"))
"""Kinds and judge protocols."""
NAMED = re.compile(rf"[\"']({'|'.join(sorted(NAMES))})[\"']")
KINDS = frozenset(("katha", "events", "shots", "entities"))
EXCEPTIONS = {
    "builders/entities/write_overview.py": "entities and shots are inputs of a prompt",
    "evaluation/recoverability/score.py": "its own protocol, which several kinds have",
    "validators/katha/dataset.py": "words for runs of others that have made nothing, which no kind claims",
}
"""File -> why it may ask for a name; a list that may only become shorter."""

IMPORTS: dict[str, str] = {}
"""File of several kinds -> why it may import one kind's folder; a list that may only become shorter."""


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def own_kind(path: Path) -> frozenset[str]:
    """Return the kind that a file belongs to, with the names of its protocols; none of a file for several."""
    own = KINDS & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts[1:]}
    if path.relative_to(ROOT).parts[0] == "cli" or len(own) != 1:
        return frozenset()
    return own | {"images"} if own == {"shots"} else own


@lru_cache(maxsize=8)
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


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
        for path in sources()
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
        for path in sources()
        if path.relative_to(ROOT).parts[0] == room and not own_kind(path) and any(kind_folders(path))
    }
    assert found == {name for name in IMPORTS if name.startswith(f"{room}/")}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("if kind == 'katha': pass", ["katha"]),
        ("if kind in ('events', 'images'): pass", ["events", "images"]),
        ("match kind:\n    case 'shots': pass", ["shots"]),
        ("MINE = 'katha'\nif kind != MINE: pass", ["katha"]),
        ("PARTS = {'katha': 1, 'images': 2}", ["katha", "images"]),
        ("if 'shots' in counts: pass\ncounts = {'shots': 1, 'pairs': 2}\nstart('katha')", []),
    ],
)
def test_names_when_code_asks_for_them_are_found(tmp_path: Path, text: str, names: list[str]) -> None:
    path = tmp_path / "general.py"
    path.write_text(text)
    assert list(asked_for(path)) == names


def test_templates_for_several_kinds_when_read_ask_for_no_name() -> None:
    names = "|".join(sorted(NAMES))
    quoted = re.compile(rf"""[!=]= ?["']({names})["']|["']({names})["']:""")
    templates = [path for room in ("evaluation", "releases") for path in (ROOT / room).rglob("*.j2")]
    general = [path for path in templates if not KINDS & set(path.relative_to(ROOT).parts)]
    assert general
    assert [path.name for path in general if quoted.search(path.read_text("utf-8"))] == []
