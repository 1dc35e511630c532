"""Every line of the documentation that begins with ``fabula`` is a command that exists, with its options.

The real parser of the command reads it; nothing is run. Tutorials are run, too: tests/cli/test_tutorials.py.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

import fabula
from fabula.cli.main import app

ROOT = Path(fabula.__file__).parent
PAGES = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OPERATORS = set("();<>|&")
LEFT_OUT = {"...", "…"}
"""What pages write where more stands: such a command is not held to what it needs."""
UsageError: Any = typer.BadParameter.__base__  # wherever the installed Typer has it

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="the suite runs against a wheel, without docs"
)


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
        if given[0] not in node.commands:
            raise UsageError(f"there is no command {given[0]}")
        node = node.commands[given.pop(0)]
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


def test_commands_when_lines_are_written_in_other_ways_are_found() -> None:
    block = "```\nfabula stats a \\\n  --json  # a's numbers\n"
    block += "X=1 fabula stats b | head && fabula view c > d\n```\n"
    block += "```console\n$ fabula stats a#b\nfabula answers\n```\n"
    assert [words for line in written_lines(block) for words in commands_in(line)] == [
        ["stats", "a", "--json"], ["stats", "b"], ["view", "c"], ["stats", "a#b"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line", ["fabula statz a", "fabula stats a --jsn", "fabula stats", "fabula stats a b"]
)
def test_commands_when_wrong_are_refused(line: str) -> None:
    with pytest.raises(UsageError):
        parse(next(commands_in(line)))
