"""The documentation keeps up with the code, and speaks only of the project."""

import ast
import json
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pydantic import ValidationError

import fabula
from fabula.cli.main import app
from fabula.engine.config import MODELS
from fabula.engine.pipeline import load_pipeline
from fabula.kinds.registry import kinds, run_kinds
from fabula.models.options import options_for
from fabula.models.spec import parse_spec

ROOT = Path(fabula.__file__).parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(
    not DOCS.is_dir(), reason="the suite runs against an installed wheel, which has no docs"
)


def test_links_when_followed_exist() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_tests_when_named_in_docs_exist() -> None:
    named = {
        match
        for page in DOCS.rglob("*.md")
        for match in re.findall(r"tests/[\w/.]+\w", page.read_text("utf-8"))
    }
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


# Blocks of the documentation that are no commands: names in Python exist, settings are what is read.
#
# Tutorials are run in ``cli/test_tutorials.py``.

PAGES = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")


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


# Every line of the documentation that begins with ``fabula`` is a command that exists, with its options:
# the real parser reads it, nothing is run. Tutorials are run, too: tests/cli/test_tutorials.py.

BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OPERATORS = set("();<>|&")
LEFT_OUT = {"...", "…"}
"""What pages write where more stands: such a command is not held to what it needs."""
UsageError: Any = typer.BadParameter.__base__  # wherever the installed Typer has it


def written_lines(text: str) -> Iterator[str]:
    """Yield the lines of a page that are typed into a shell, continued lines joined."""
    for language, block in BLOCK.findall(text):
        if language in ("python", "json", "toml", "yaml"):
            continue
        prompt = r"\$ " if language == "console" else r"(?:\$ )?"
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if re.match(rf"\s*{prompt}", line):
                yield re.sub(rf"^\s*{prompt}", "", line)


def commands_in(line: str) -> Iterator[list[str]]:
    """Yield the words after ``fabula`` of each command of a line."""
    if "fabula " not in line:
        return
    plain = re.sub(r"\s#\s.*$", "", line)
    lexer = shlex.shlex(re.sub(r"\[(-[^\]]*)\]", r"\1", plain), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in (*lexer, ";"):
        if not set(word) <= OPERATORS:
            words.append(word)
            continue
        while words and re.fullmatch(r"\w+=.*|time|nohup", words[0]):
            words.pop(0)
        if words and words[0] == "fabula":
            yield words[1:]
        words = ["into"] if set(word) <= {"<", ">"} else []


@cache
def program() -> Any:
    return typer.main.get_command(app)


def parse(words: list[str]) -> None:
    """Parse a command as the program does, without running it.

    Raises:
        UsageError: it does not exist, or not so.
    """
    node, given = program(), [word for word in words if word != "--install-completion"]  # it would
    while hasattr(node, "commands") and given and not given[0].startswith("-"):
        if node.get_command(None, given[0]) is None:
            raise UsageError(f"there is no command {given[0]}")
        node = node.get_command(None, given.pop(0))
    if hasattr(node, "commands") and not given:
        return
    try:
        node.make_context("fabula", given)
    except (typer.Exit, SystemExit):
        return  # --help, --version
    except typer.BadParameter as error:
        if type(error).__name__ != "MissingParameter" or not LEFT_OUT & set(words):
            raise


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_when_a_page_shows_them_exist_with_their_options(page: Path) -> None:
    wrong = []
    for line in written_lines(page.read_text("utf-8")):
        for words in commands_in(line):
            try:
                parse(words)
            except Exception as error:  # noqa: BLE001 - whatever the parser says, all lines are told at once
                wrong.append(f"fabula {' '.join(words)}: {getattr(error, 'message', '') or error!r}")
    assert not wrong, "\n".join(wrong)


def leaves(node: Any) -> Iterator[Any]:
    """Yield every command below a node."""
    for below in getattr(node, "commands", {}).values():
        yield from leaves(below) if hasattr(below, "commands") else (below,)


def test_commands_when_help_shows_them_exist_with_their_options() -> None:
    wrong = []
    for node in leaves(program()):
        for line in (node.epilog or "").splitlines():
            for words in commands_in(line.strip()):
                try:
                    parse(words)
                except UsageError as error:
                    wrong.append(f"{line.strip()}: {error!r}")
    assert not wrong, "\n".join(wrong)
