"""Starts the command without its import time: forks of a process that has imported what most commands need.

A fork is a process of its own, with its own memory, environment, working folder, exit code and output, and is
killed like any other; only the seconds are saved in which Python reads the libraries and takes itself apart.
The command's own main module is executed anew in each. Its worker processes are forks too, of a process that
knows nothing of the command but what ``multiprocessing`` sends it. Python is really started where a variable
is set that it reads as it starts.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import (
    connection,
    forkserver,
    popen_fork,
    popen_forkserver,
    popen_spawn_posix,
    resource_tracker,
    spawn,
)
from pathlib import Path
from typing import IO, Any

MAIN = "fabula.cli.main"
NOT_COMMANDS = ("benchmarks", "examples", "testing", "tests")
# Not huggingface_hub and datasets, which read their settings as they are imported, and nothing with threads.
IMPORTED = (
    "numpy", "scipy.optimize", "pydantic", "yaml", "jinja2", "jsonschema_rs", "pyarrow.parquet", "rapidfuzz",
    "datasketch", "sentencex", "pebble", "psutil", "filelock", "httpx2", "openai", "rich.progress",
    "google.genai", "json_repair", "dotenv", "PIL.Image", "sqlite3", "asyncio", "genai_prices.data",
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
    import fabula

    for package in pkgutil.iter_modules(fabula.__path__, "fabula."):
        if package.ispkg and package.name.removeprefix("fabula.") not in NOT_COMMANDS:
            folders = import_module(package.name).__path__
            for module in pkgutil.walk_packages(folders, f"{package.name}."):
                if module.name != MAIN:
                    import_module(module.name)


class _Forks:
    """The forks of this process that are running, and whom to tell how each ended."""

    def __init__(self) -> None:
        self._told: dict[int, int] = {}
        self.ended, self._ends = os.pipe()
        for end in (self.ended, self._ends):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._ends, warn_on_full_buffer=False)

    def add(self, pid: int, told: int) -> None:
        self._told[pid] = told
        os.write(told, b"%d\n" % pid)

    def tell(self) -> None:
        """Tell of those that have ended."""
        with suppress(BlockingIOError):
            os.read(self.ended, 65536)
        with suppress(ChildProcessError):
            while (state := os.waitpid(-1, os.WNOHANG))[0]:
                told = self._told.pop(state[0], None)
                if told is not None:
                    with suppress(BrokenPipeError):  # nobody waits for it
                        os.write(told, b"%d\n" % state[1])
                    os.close(told)

    def forget(self) -> None:
        """In a fork: be as a process that was just started."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for file in (self.ended, self._ends, *self._told.values()):
            os.close(file)


def _serve(here: socket.socket) -> dict[str, Any] | None:
    """Fork for every request. Return in a fork, with what it is to run; return None at the end."""
    forks = _Forks()
    while True:
        ready, _, _ = select.select([here, forks.ended], [], [])
        forks.tell()
        if here not in ready:
            continue
        size, files, _, _ = socket.recv_fds(here, 4, 3)
        if not size:
            return None
        body = b""
        while len(body) < int.from_bytes(size, "big"):
            body += here.recv(65536)
        pid = os.fork()
        if pid == 0:
            here.close()
            forks.forget()
            for number, file in enumerate(files[:2], start=1):
                os.dup2(file, number)
            for file in files:
                os.close(file)
            return json.loads(body)
        forks.add(pid, files[2])
        for file in files[:2]:
            os.close(file)


class _Worker(popen_forkserver.Popen):
    """A worker process of a command, forked in the nursery, with the output of the command."""

    def __init__(self, process: Any) -> None:
        self._fds = [1, 2]
        popen_fork.Popen.__init__(self, process)


def _open_nursery() -> None:
    """Start the process that forks the workers of all commands, and have commands start theirs there."""
    resource_tracker.ensure_running()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(connection.arbitrary_address("AF_UNIX"))
    listener.listen()
    alive, lives = os.pipe()
    if os.fork() == 0:
        os.close(lives)
        real = spawn.prepare

        def prepare(data: dict[str, Any]) -> None:
            os.environ.clear()
            os.environ.update(data.pop("environment"))
            signal.pthread_sigmask(signal.SIG_SETMASK, data.pop("mask"))
            for number, file in enumerate(forkserver.get_inherited_fds()[:2], start=1):
                os.dup2(file, number)
            real(data)

        spawn.prepare = prepare
        forkserver.main(listener.detach(), alive, [])
    os.close(alive)
    nursery = forkserver._forkserver
    nursery._forkserver_address = listener.getsockname()
    nursery._forkserver_alive_fd = lives
    nursery.ensure_running = resource_tracker.ensure_running
    listener.close()
    preparation = spawn.get_preparation_data

    def prepared(name: str) -> dict[str, Any]:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return {**preparation(name), "environment": dict(os.environ), "mask": mask}

    spawn.get_preparation_data = prepared
    popen_spawn_posix.Popen = _Worker


def _end(code: object) -> None:
    """End as Python does, but without taking everything apart."""
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


def main() -> None:
    """Serve until the other side is closed; in a fork, run the command and end as it ends."""
    with socket.socket(fileno=int(sys.argv[1])) as here:
        _import_all()
        gc.collect()
        gc.freeze()
        _open_nursery()
        wanted = _serve(here)
    if wanted is None:
        os._exit(0)
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    sys.argv = ["", *wanted["args"]]
    try:
        runpy.run_module(MAIN, run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        _end(stop.code)
    _end(0)


if __name__ == "__main__":
    main()
