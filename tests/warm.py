"""Starts the command without its import time: forks of a process that has imported what most commands need.

A fork is a process of its own, with its own memory, environment, working folder, exit code and output, and is
killed like any other; only the second is saved in which Python reads the libraries. The command's own
main module is executed anew in each. Python is really started where a variable is set that it reads as it
starts, and wherever ``fresh`` is asked for.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

MAIN = "fabula.cli.main"
# Not huggingface_hub and datasets, which read their settings as they are imported, and nothing with threads.
IMPORTED = (
    "numpy", "scipy.optimize", "pydantic", "yaml", "jinja2", "jsonschema_rs", "pyarrow.parquet", "rapidfuzz",
    "datasketch", "sentencex", "pebble", "psutil", "filelock", "httpx2", "openai", "rich.progress",
    "google.genai", "json_repair", "dotenv", "PIL.Image", "sqlite3", "asyncio", "multiprocessing.spawn",
)  # fmt: skip
READ_AT_START = (
    "PYTHON", "LC_", "LANG", "TZ", "OMP_", "MALLOC_", "LD_", "TERM", "COLUMNS", "NO_COLOR", "FORCE_", "TYPER",
    "_TYPER",
)  # fmt: skip


class Started:
    """A started command, as ``subprocess.Popen`` has it."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self.returncode: int | None = None
        self.pid = int(self._read())

    def _read(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            more = self._told.recv(1)
            if not more:
                raise RuntimeError("the process that starts commands has ended")
            line += more
        return line.decode()

    def poll(self) -> int | None:
        """Return the exit code if it has ended, the negative signal where one ended it."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(MAIN, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(self._read()))
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Starter:
    """The process that has everything imported, and starts commands as its forks."""

    def __init__(self) -> None:
        self._environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        self._lock = threading.Lock()
        self._here, there = socket.socketpair()
        with there:
            command = [sys.executable, "-P", __file__, str(there.fileno())]
            self._process = subprocess.Popen(
                command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, env=self._environment
            )

    def close(self) -> None:
        self._here.close()
        self._process.wait()

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork behaves as Python does when started with these variables."""
        names = {name for name in {*environment, *self._environment} if name.startswith(READ_AT_START)}
        return all(environment.get(name) == self._environment.get(name) for name in names)

    def start(
        self, args: Sequence[object], *, stdout: IO[Any] | int, stderr: IO[Any] | int, **given: Any
    ) -> Started:
        """Start the command with arguments; ``env`` and ``cwd`` as ``subprocess.Popen`` has them."""
        wanted = {
            "args": [str(arg) for arg in args],
            "env": dict(given.get("env") or os.environ),
            "cwd": str(given.get("cwd") or Path.cwd()),
        }
        body = json.dumps(wanted).encode()
        told, tells = socket.socketpair()
        with tells, self._lock:
            files = [file if isinstance(file, int) else file.fileno() for file in (stdout, stderr)]
            socket.send_fds(self._here, [len(body).to_bytes(4, "big")], [*files, tells.fileno()])
            self._here.sendall(body)
        return Started(told)

    def run(self, args: Sequence[object], env: Mapping[str, str], timeout: float) -> Any:
        """Run the command to its end and return what ``subprocess.run`` returns."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            started = self.start(args, stdout=out, stderr=err, env=env)
            try:
                code = started.wait(timeout)
            finally:
                started.kill()
                started.wait()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8").replace("\r\n", "\n"))
        return subprocess.CompletedProcess([MAIN, *map(str, args)], code, *texts)


@contextmanager
def starter() -> Iterator[Starter]:
    made = Starter()
    try:
        yield made
    finally:
        made.close()


def _import_all() -> None:
    for name in IMPORTED:
        import_module(name)
    import pkgutil

    import fabula.cli

    for name in sorted(module.name for module in pkgutil.iter_modules(fabula.cli.__path__)):
        if name != "main":
            import_module(f"fabula.cli.{name}")


def _serve(here: socket.socket) -> dict[str, Any] | None:
    """Fork for every request. Return in a fork, with what it is to run; return None at the end."""
    while True:
        size, files, _, _ = socket.recv_fds(here, 4, 3)
        _reap()
        if not size:
            return None
        body = b""
        while len(body) < int.from_bytes(size, "big"):
            body += here.recv(65536)
        if os.fork() == 0:
            here.close()
            _watch(files)
            return json.loads(body)
        for file in files:
            os.close(file)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _watch(files: list[int]) -> None:
    """Fork once more and return there; here wait for that fork, and tell its number and how it ended."""
    out, err, tells = files
    pid = os.fork()
    if pid == 0:
        os.dup2(out, 1)
        os.dup2(err, 2)
        for file in files:
            os.close(file)
        return
    os.close(out)
    os.close(err)
    os.write(tells, b"%d\n" % pid)
    try:
        os.write(tells, b"%d\n" % os.waitpid(pid, 0)[1])
    finally:
        os._exit(0)


def main() -> None:
    """Serve until the other side is closed; in a fork, run the command and end as it ends."""
    with socket.socket(fileno=int(sys.argv[1])) as here:
        _import_all()
        gc.collect()
        gc.freeze()
        wanted = _serve(here)
    if wanted is None:
        return
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    sys.argv = ["", *wanted["args"]]
    runpy.run_module(MAIN, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
