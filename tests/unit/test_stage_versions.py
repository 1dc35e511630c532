"""A stage whose code changes gets a new version: the syntax trees are pinned.

The pinned hash of a stage covers its module, every computing module that it reaches (without docstrings)
and the data files beside them, so that a change anywhere in what it computes is noticed.
After raising ``version`` in the stage's SPEC: UPDATE_GOLDEN=1 make test PYTEST_ARGS="-k stage_versions"
"""

import ast
import hashlib
import json
import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import fabula
from fabula.builders.registry import BUILDERS, EVALUATIONS
from fabula.engine.pipeline import load_object, load_pipeline

ROOT = Path(fabula.__file__).parent
GOLDEN = Path(__file__).parents[1] / "golden" / "stage_versions.json"
COMPUTING = ("builders", "evaluation", "media", "prompts", "validators", "schemas")


def module_file(parts: tuple[str, ...]) -> Path | None:
    for candidate in (ROOT.joinpath(*parts).with_suffix(".py"), ROOT.joinpath(*parts, "__init__.py")):
        if candidate.is_file():
            return candidate
    return None


@cache
def reached(path: Path) -> set[Path]:
    """Modules of the package that one module imports, directly."""
    here = path.relative_to(ROOT).parent.parts
    found: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = (*here[: len(here) - node.level + 1], *(node.module or "").split("."))
            base = tuple(part for part in base if part)
            for parts in (base, *((*base, alias.name) for alias in node.names)):
                file = module_file(parts) if parts else None
                if file is not None and str(file.relative_to(ROOT)).startswith(COMPUTING):
                    found.add(file)
    return found


def closure(path: Path) -> list[Path]:
    seen, todo = {path}, [path]
    while todo:
        for nearby in reached(todo.pop()) - seen:
            seen.add(nearby)
            todo.append(nearby)
    return sorted(seen)


def data_beside(modules: list[Path]) -> list[Path]:
    """Cue lists, prompts and vocabularies: the data files in the folders of modules."""
    folders = {path.parent for path in modules} | {ROOT / "schemas" / "vocabularies"}
    return sorted(file for folder in folders for file in folder.glob("*") if file.suffix in (".json", ".j2"))


@cache
def hash_of(path: Path) -> str:
    return f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}"


@cache
def without_docstrings(path: Path) -> str:
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                body[0] = ast.Expr(ast.Constant(""))
    return ast.dump(tree)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="syntax trees differ between versions of Python")
def test_stage_versions_when_code_changed_are_raised() -> None:
    found = {}
    stages = {
        f"{kind}/{stage.name}": stage
        for kind, place in BUILDERS + EVALUATIONS
        for stage in load_pipeline(load_object(place)).stages
    }
    for name, stage in stages.items():
        path = Path(str(import_module(stage.path.partition(":")[0]).__file__))
        modules = closure(path)
        text = "\n".join([*map(without_docstrings, modules), *map(hash_of, data_beside(modules))])
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        found[name] = {"version": stage.spec.version, "sha256": sha256}
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    pinned = json.loads(GOLDEN.read_text())
    unraised = [
        name
        for name, now in found.items()
        if name in pinned
        and now["sha256"] != pinned[name]["sha256"]
        and now["version"] == pinned[name]["version"]
    ]
    assert unraised == [], "raise the version of these stages, then update the pinned hashes"
    assert found == pinned, "run with UPDATE_GOLDEN=1 to pin the new versions"
