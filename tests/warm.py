"""Starts the command without its import time: forks of a process that has imported what most commands need.

A fork is a process of its own, with its own memory, environment, working folder, exit code and output, and is
killed like any other; only the seconds are saved in which Python reads the libraries and takes itself apart.
The command's own main module is executed anew in each, and so is code that a test gives. Its worker
processes are forks too, of a process that knows nothing of the command but what ``multiprocessing`` sends
it. The process that reads a release with the libraries of users is a fork of one that has them. Python is
really started where a variable is set that it reads as it starts.
"""

import atexit
import gc
import json
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
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
    "google.genai", "json_repair", "dotenv", "PIL.Image", "sqlite3", "asyncio", "genai_prices.data", "pandas",
)  # fmt: skip
_ENGLISH = "The old miller ran home through the rain, and nobody in the village asked him where he had been."
READERS = ("datasets", "mlcroissant")
READ_BACK = ".read_back"
READ_AT_START = (
    "PYTHON", "LC_", "LANG", "TZ", "OMP_", "MALLOC_", "LD_", "TERM", "COLUMNS", "NO_COLOR", "FORCE_", "TYPER",
    "_TYPER",
)  # fmt: skip
READ_WHEN_RUN = {"PYTHONIOENCODING", "PYTHONUNBUFFERED", "COLUMNS", "NO_COLOR", "TERM"}
"""What of these is not read before a fork, or is heeded in it."""


class Started:
    """A started command, as ``subprocess.Popen`` has it."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self._waits = threading.Lock()
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
        if self._waits.acquire(blocking=False):  # else another thread waits, and will know
            try:
                with suppress(subprocess.TimeoutExpired):
                    self._take(0)
            finally:
                self._waits.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._waits:
            return self._take(timeout)

    def _take(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(MAIN, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(self._read()))
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since, and was fetched
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Server:
    """A process that starts Python modules as its forks."""

    def __init__(self, asks: socket.socket) -> None:
        self._asks = asks

    def start(
        self,
        args: Sequence[object],
        *,
        stdout: IO[Any] | int = 1,
        stderr: IO[Any] | int = 2,
        stdin: IO[Any] | int | None = None,
        module: str = MAIN,
        code: str | None = None,
        **given: Any,
    ) -> Started:
        """Start a module, or code as ``python -c`` does, with arguments.

        ``env``, ``cwd`` and ``start_new_session`` are as ``subprocess.Popen`` has them.
        """
        wanted = {
            "module": module,
            "code": code,
            "session": given.get("start_new_session", False),
            "args": [str(arg) for arg in args],
            "env": dict(given.get("env") or os.environ),
            "cwd": str(given.get("cwd") or Path.cwd()),
        }
        told, tells = socket.socketpair()
        with tells, Path(os.devnull).open("rb") as nothing:
            streams = (stdin or nothing, stdout, stderr)
            files = [file if isinstance(file, int) else file.fileno() for file in streams]
            socket.send_fds(self._asks, [json.dumps(wanted).encode()], [*files, tells.fileno()])
        return Started(told)

    def run(self, args: Sequence[object], env: Mapping[str, str], timeout: float) -> Any:
        """Run the command to its end and return what ``subprocess.run`` returns."""
        return self._as_text(self.run_module(MAIN, args, env, timeout=timeout))

    def run_code(self, code: str, *args: object, **given: Any) -> Any:
        """Run code to its end, as ``python -c`` does, and return what ``subprocess.run`` returns."""
        return self._as_text(self.run_module("", args, os.environ, code=code, **given))

    def _as_text(self, done: Any) -> Any:
        texts = [output.decode("utf-8").replace("\r\n", "\n") for output in (done.stdout, done.stderr)]
        return subprocess.CompletedProcess(done.args, done.returncode, *texts)

    def run_module(
        self,
        module: str,
        args: Sequence[object],
        env: Mapping[str, str],
        *,
        input: bytes = b"",
        timeout: float = 300,
        code: str | None = None,
    ) -> Any:
        """Run a module, or code, to its end and return what ``subprocess.run`` returns, as bytes."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(input)
            given.seek(0)
            started = self.start(args, stdin=given, stdout=out, stderr=err, env=env, module=module, code=code)
            try:
                code = started.wait(timeout)
            finally:
                started.kill()
                started.wait()
            outputs = []
            for file in (out, err):
                file.seek(0)
                outputs.append(file.read())
        return subprocess.CompletedProcess([module, *map(str, args)], code, *outputs)


class Starter(Server):
    """The process that has everything imported, and starts commands as its forks.

    Args:
        environment: what Python reads as it starts is taken from here; libraries may have changed ours.

    Attributes:
        reader: the process beside it that reads releases with the libraries of users.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        others = {name: value for name, value in os.environ.items() if not name.startswith(READ_AT_START)}
        read = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
        self._environment = {**others, **read, "PYTHONSAFEPATH": "1"}
        asks, commands = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reads, releases = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(asks)
        self.reader = Server(reads)
        with commands, releases:
            files = [commands.fileno(), releases.fileno(), reads.fileno()]
            command = [sys.executable, "-P", __file__, *map(str, files)]
            self._process = subprocess.Popen(
                command, pass_fds=files, stdin=subprocess.DEVNULL, env=self._environment
            )

    def close(self) -> None:
        self._asks.close()
        self.reader._asks.close()
        self._process.wait()

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork behaves as Python does when started with these variables."""
        names = {name for name in {*environment, *self._environment} if name.startswith(READ_AT_START)}
        return all(environment.get(name) == self._environment.get(name) for name in names - READ_WHEN_RUN)


_TYPED = """#!{python} -SEI
import _socket, marshal, os, sys  # json and socket would take as long as Python itself
module, args, real = {module!r}, sys.argv[1:], {real!r}
if not module and args[:1] == ["-m"] and len(args) > 1 and args[1].startswith("fabula."):
    module, args = args[1], args[2:]
code = b"real"
if module:
    door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    door.connect({door!r})
    wanted = dict(module=module, args=args, env=dict(os.environ), cwd=os.getcwd())
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    door.sendmsg([marshal.dumps(wanted)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    code = door.recv(100)
if code == b"real":
    os.execv(real, [real, *sys.argv[1:]])
sys.exit(int(code or 1))
"""


class Typed:
    """Commands ``fabula`` and ``python`` for a shell, which start their modules warm where that is the same.

    Args:
        starter: starts them.

    Attributes:
        folder: what the shell's ``PATH`` is to name first; where Python is, as temporary folders may hold no
            programs.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._started: list[Started] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._folders = [tempfile.TemporaryDirectory(dir=base) for base in (None, sys.prefix)]
        place, self.folder = (Path(folder.name) for folder in self._folders)
        self._door.bind(str(place / "door"))
        self._door.listen()
        python = Path(sys.executable)
        for name, module, real in (("fabula", MAIN, python.with_name("fabula")), ("python", "", python)):
            text = _TYPED.format(python=python, module=module, real=str(real), door=str(place / "door"))
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                asked = self._door.accept()[0]
                self._threads.append(threading.Thread(target=self._answer, args=(asked,)))
                self._threads[-1].start()

    def _answer(self, asked: socket.socket) -> None:
        with asked:
            body, files, _, _ = socket.recv_fds(asked, 1 << 20, 3)
            if not body:  # what was typed was killed at once
                return
            wanted, started = marshal.loads(body), None
            if self._starter.fits(wanted["env"]):
                stdin, stdout, stderr = files
                started = self._starter.start(
                    wanted.pop("args"), stdin=stdin, stdout=stdout, stderr=stderr, **wanted
                )
                self._started.append(started)
            for file in files:
                os.close(file)
            code: int | str = "real"
            if started:
                if asked in select.select([asked, started._told], [], [])[0]:  # what was typed was killed
                    started.kill()
                code = started.wait()
            with suppress(OSError):  # whoever typed it is gone
                asked.send(f"{code if isinstance(code, str) or code >= 0 else 128 - code}".encode())

    def close(self) -> None:
        """End what was typed and still runs."""
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._threads[0].join()
        for thread in self._threads[1:]:
            while thread.is_alive():
                for started in self._started:
                    started.kill()
                thread.join(0.1)
        for folder in self._folders:
            folder.cleanup()


def reads_release(command: object) -> bool:
    """Whether a command reads a release with the libraries of its users."""
    return isinstance(command, list) and command[1:3] == ["-P", "-m"] and command[3].endswith(READ_BACK)


def read_in(reader: Server, command: Any, environment: Any, given: Any) -> Any:
    """Have a command read a release in forks of a process; None where it does something else."""
    if not reads_release(command):
        return None
    from fabula.models.programs import Ended

    done = reader.run_module(command[3], command[4:], environment, input=given["given"])
    return Ended(done.returncode, done.stdout, done.stderr)


@contextmanager
def starter(environment: Mapping[str, str]) -> Iterator[Starter]:
    made = Starter(environment)
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
    import_module("fabula.schemas.plugins").plugins("")


def _read_tables() -> None:
    """Read what a command that drafts or checks a story reads first: the forms of languages."""
    import_module("fabula.builders.katha.checks.rules").detected(_ENGLISH)


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


def _serve(asked: socket.socket) -> None:
    """Fork for every request, run there what it wants, and end with the side that asks."""
    forks = _Forks()
    while True:
        ready, _, _ = select.select([asked, forks.ended], [], [])
        forks.tell()
        if asked not in ready:
            continue
        body, files, _, _ = socket.recv_fds(asked, 1 << 20, 4)
        if not body:
            os._exit(0)
        wanted = json.loads(body)
        if wanted["module"].endswith(READ_BACK) and READERS[0] not in sys.modules:
            _import_readers(wanted["env"])
        pid = os.fork()
        if pid == 0:
            asked.close()
            forks.forget()
            for number, file in enumerate(files[:3]):
                os.dup2(file, number)
            for file in files:
                os.close(file)
            _execute(wanted)
        forks.add(pid, files[3])
        for file in files[:3]:
            os.close(file)


def _import_readers(environment: dict[str, str]) -> None:
    os.environ.update(environment)  # they read their settings as they are imported
    for name in READERS:
        import_module(name)
    gc.collect()
    gc.freeze()


def _execute(wanted: dict[str, Any]) -> None:
    """Be the process that runs a module, and end as it ends."""
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])
    if wanted["session"]:
        os.setsid()
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    buffering = 1 if wanted["env"].get("PYTHONUNBUFFERED") else -1
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=buffering)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    sys.argv = ["-c" if wanted["code"] else "", *wanted["args"]]
    try:
        if wanted["code"]:
            sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(wanted["code"], "<string>", "exec"), vars(sys.modules["__main__"]))
        else:
            runpy.run_module(wanted["module"], run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        _end(stop.code)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - as Python does
        sys.excepthook(*sys.exc_info())
        _end(1)
    _end(0)


class _Worker(popen_forkserver.Popen):
    """A worker process of a command, forked in the nursery, with the output of the command."""

    def __init__(self, process: Any) -> None:
        self._fds = [1, 2]
        popen_fork.Popen.__init__(self, process)


def _open_nursery() -> None:
    """Start the process that forks the workers of all commands, and have commands start theirs there."""
    sys.warnoptions.append("ignore::UserWarning")  # of what a killed command could not clean up
    resource_tracker.ensure_running()
    sys.warnoptions.pop()
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


def _read_in(reads: socket.socket) -> None:
    """Have commands read releases in the process that has the libraries of users."""
    from fabula.models import programs

    reader, real = Server(reads), programs.run_program

    def run(command: Any, environment: Any, **given: Any) -> Any:
        return read_in(reader, command, environment, given) or real(command, environment, **given)

    programs.run_program = run


def main() -> None:
    """Serve until the other side is closed."""
    ssl.create_default_context = cache(ssl.create_default_context)  # no command here asks by HTTPS
    commands, releases, reads = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    _import_all()
    _read_tables()
    gc.collect()
    gc.freeze()
    if os.fork() == 0:
        commands.close()
        reads.close()
        _serve(releases)
    releases.close()
    _open_nursery()
    _read_in(reads)
    _serve(commands)


if __name__ == "__main__":
    main()
