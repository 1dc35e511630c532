"""Every command of a tutorial, and of howto/own.md, is run, in order, and prints what the page shows.

In a block ``console``, lines that begin with ``$`` are typed into a shell, and the lines below answer.
``...`` in an answer stands for anything. A block with a title is a file. ``UPDATE_GOLDEN=1`` writes the
answers anew.
"""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fabula

DOCS = Path(fabula.__file__).parent / "docs"
PAGES = (*sorted((DOCS / "tutorials").glob("*.md")), DOCS / "howto" / "own.md")
PORTS = ("8123", "8124")
"""Ports that pages name; in tests others take their place."""
HOME = "~/fables"
"""Where pages say that they work."""
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}
END = "end of what was printed"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = (
    (re.compile(r"\b\d+(\.\d+)? (s|seconds|min)\b"), r"... \2"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "..."),
)
"""What differs from run to run, and how it is shown."""

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(not DOCS.is_dir(), reason="the suite runs against a wheel, which has no docs"),
]


class Shell:
    """A shell in an empty folder, with ports of its own in place of those that pages name.

    Args:
        folder: the empty folder.
        commands: a folder of commands that the shell looks into first.
    """

    def __init__(self, folder: Path, commands: Path) -> None:
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in PORTS]
        self._ports = dict(zip(PORTS, (str(each.getsockname()[1]) for each in sockets), strict=True))
        for each in sockets:
            each.close()
        self._folder = folder.resolve()
        path = f"{commands}:{os.environ['PATH']}"
        environment = {**os.environ, **TERMINAL, "PATH": path, "OPENAI_API_KEY": "none"}
        environment.pop("HF_HUB_OFFLINE", None)
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=folder, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def with_own_ports(self, text: str) -> str:
        """Return a text of a page with the shell's ports in place of the page's."""
        for port, own in self._ports.items():
            text = text.replace(port, own)
        return text

    def type(self, command: str) -> str:
        """Return what a command prints."""
        command = self.with_own_ports(command)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{command}\necho; echo {END}\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line == f"{END}\n":
                break
            lines.append(line)
        text = "".join(lines).removesuffix("\n").rstrip("\n")
        for port, own in self._ports.items():
            text = text.replace(own, port)
        text = text.replace(str(self._folder), HOME)
        for pattern, shown in VARYING:
            text = pattern.sub(shown, text)
        return "\n".join(line.rstrip() for line in text.splitlines())

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def typed(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with its answer."""
    commands: list[tuple[str, str]] = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, answer = re.sub(r"\\\n", "\\\\\0", part).partition("\n")
        commands.append((command.replace("\0", "\n"), answer.replace("\0", "\n").rstrip("\n")))
    return commands


def fits(shown: str, answer: str) -> bool:
    """Whether an answer is what a page shows; there ``...`` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, answer, flags=re.DOTALL) is not None


@pytest.fixture(scope="module")
def commands(warm: Any, started_with: dict[str, str]) -> Iterator[Path]:
    """A folder of the commands ``fabula`` and ``python``, which start fast."""
    with warm.starter({**started_with, **TERMINAL}) as starter:
        typed = warm.Typed(starter)
        yield typed.folder
        typed.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_when_followed_prints_what_it_shows(page: Path, tmp_path: Path, commands: Path) -> None:
    text = page.read_text("utf-8")
    shell = Shell(tmp_path, commands)
    try:
        for language, title, block in BLOCK.findall(text):
            if title:
                (tmp_path / title).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / title).write_text(shell.with_own_ports(block), encoding="utf-8")
            if language != "console":
                continue
            told = block
            for command, shown in typed(block):
                answer = shell.type(command)
                if os.environ.get("UPDATE_GOLDEN") and not fits(shown or "", answer):
                    old = f"$ {command}\n" + (f"{shown}\n" if shown else "")
                    told = told.replace(old, f"$ {command}\n" + (f"{answer}\n" if answer else ""), 1)
                else:
                    assert fits(shown, answer), f"$ {command}\n{answer}"
            text = text.replace(block, told, 1)
    finally:
        shell.close()
    if os.environ.get("UPDATE_GOLDEN"):
        page.write_text(text, encoding="utf-8")
