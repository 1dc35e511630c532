"""A shell in which a page of the documentation is followed: what the page types, and what that prints.

In a block ``console``, lines that begin with ``$`` are typed, and the lines below answer; ``...`` in an
answer stands for anything. A block with a title is a file.
"""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

PORTS = tuple(map(str, range(8123, 8130)))
"""Ports that pages name; here others take their place."""
HOME = "~/fables"
"""Where pages say that they work."""
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}
END = "end of what was printed"
BLOCK = re.compile(r"^ *```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
VARYING = (
    (re.compile(r"\b\d+(\.\d+)? (s|seconds|min)\b"), r"... \2"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "..."),
)
"""What differs from run to run, and how it is shown."""
STARTED = re.compile(r"--port (\d+).* &(?: |$)", re.MULTILINE)
"""A server that a page leaves running; people type on only when it has said that it listens."""
PATIENCE = 60.0
"""Seconds for such a server to begin."""


class Shell:
    """A shell in an empty folder, with ports of its own in place of those that pages name.

    Args:
        folder: the empty folder.
        commands: a folder of commands that the shell looks into first.
        variables: what the environment says besides.
    """

    def __init__(self, folder: Path, commands: Path, variables: Mapping[str, str]) -> None:
        self._ports = dict(zip(PORTS, map(str, free_ports()), strict=False))
        self._folder = folder.resolve()
        self.status = 0
        """Exit code of what was typed last."""
        path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, **TERMINAL, "PATH": path, **variables}
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
        self._process.stdin.write(f'{command}\nprintf "\\n{END} %d\\n" $?\n')
        self._process.stdin.flush()
        lines: list[str] = []
        self.status = 1  # as of a shell that ends
        for line in self._process.stdout:
            if line.startswith(END):
                self.status = int(line.removeprefix(END))
                break
            lines.append(line)
        for port in STARTED.findall(command):
            _wait_for(int(port))
        if "fabula init" in command:  # it writes the stand-in's price, with its usual port
            for settings in self._folder.rglob("fabula.toml"):
                settings.write_text(self.with_own_ports(settings.read_text("utf-8")), "utf-8")
        text = "".join(lines).removesuffix("\n").rstrip("\n")
        for port, own in self._ports.items():
            text = text.replace(own, port)
        text = text.replace(str(self._folder), HOME)
        for pattern, shown in VARYING:
            text = pattern.sub(shown, text)
        return "\n".join(line.rstrip() for line in text.splitlines())

    def close(self) -> None:
        """Kill it, and what it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def free_ports() -> Iterator[int]:
    """Yield ports that nobody has now; a system that is asked for any takes another, from 32768 on."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1000):
        with suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            yield port


def _wait_for(port: int) -> None:
    """Return when something listens at a port of this machine, or when it took too long."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


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
