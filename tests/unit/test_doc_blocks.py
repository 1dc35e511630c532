"""Blocks of the documentation that are no commands: names in Python exist, settings are what is read.

Commands are read in ``test_doc_commands.py``; tutorials are run in ``cli/test_tutorials.py``.
"""

import ast
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

import fabula
from fabula.engine.config import MODELS
from fabula.engine.pipeline import load_pipeline
from fabula.kinds.registry import kinds, run_kinds
from fabula.models.options import options_for
from fabula.models.spec import parse_spec

ROOT = Path(fabula.__file__).parent
PAGES = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="the suite runs against a wheel, without docs"
)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield page and text of the blocks of a language."""
    for page in PAGES if (ROOT / "docs").is_dir() else ():
        text = page.read_text("utf-8")
        for block in re.findall(rf"^ *```{language}\b[^\n]*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
            yield page.name, textwrap.dedent(block)


def missing(block: str) -> Iterator[str]:
    """Yield the names of Fabula that code uses and that do not exist."""
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "fabula":
            module = import_module(str(node.module))
            for name in (alias.name for alias in node.names):
                below = hasattr(module, "__path__") and util.find_spec(f"{node.module}.{name}")
                if not hasattr(module, name) and not below:
                    yield f"{node.module}.{name}"
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "fabula"
            and not hasattr(fabula, node.attr)
        ):
            yield f"fabula.{node.attr}"


@cache
def settings() -> dict[str, list[Any]]:
    """Stage -> the types of its settings, of all pipelines that have one of this name."""
    found: dict[str, list[Any]] = {}
    for run in (run for kind in kinds() for run in run_kinds(kind)):
        for stage in load_pipeline(run.pipeline).stages:
            found.setdefault(stage.name, []).append(stage.spec.settings)
    return found


def refused(block: str) -> Iterator[str]:
    """Yield what is wrong with the settings of stages and models in a block."""
    for name, table in tomllib.loads(block).items():
        if name == MODELS:
            for spec in table:
                options_for(parse_spec(spec), table)
        elif name in settings():
            problems = []
            for type_ in settings()[name]:
                try:
                    type_.model_validate(table)
                except ValidationError as error:
                    problems.append(str(error))
            if len(problems) == len(settings()[name]):
                yield f"[{name}] {problems[0]}"


@pytest.mark.parametrize(("page", "block"), [*blocks("python")])
def test_python_when_a_page_shows_it_uses_names_that_exist(page: str, block: str) -> None:
    assert [*missing(block)] == [], page


@pytest.mark.parametrize(("page", "block"), [*blocks("toml")])
def test_settings_when_a_page_shows_them_are_those_of_their_stage_or_model(page: str, block: str) -> None:
    assert [*refused(block)] == [], page


@pytest.mark.parametrize(("page", "block"), [*blocks("json"), *blocks("jsonl")])
def test_json_when_a_page_shows_it_is_json(page: str, block: str) -> None:
    try:
        json.loads(block)
    except ValueError:
        assert [json.loads(line) for line in block.splitlines()], page


@pytest.mark.parametrize(("page", "block"), [*blocks("yaml")])
def test_yaml_when_a_page_shows_it_is_yaml(page: str, block: str) -> None:
    assert yaml.safe_load(block), page


@pytest.mark.parametrize(
    "block",
    [
        "from fabula.models.options import opions_for",
        "import fabula\nfabula.buidl()",
        "from fabula import nothing",
    ],
)
def test_python_when_a_name_is_wrong_is_refused(block: str) -> None:
    assert [*missing(block)]


def test_settings_when_a_field_is_wrong_are_refused() -> None:
    assert [*refused("[draft_scenes]\nscenez = 3\n")]
