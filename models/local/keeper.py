"""The process that keeps one server: it starts it, watches it, and ends it with the last run that uses it.

Run by its path, with the standard library alone: it must start at once and survive whoever started it. It is
given a bound socket, and one line of JSON on its standard input. Every connection to the socket is a lease:
it is told each change as one line of JSON, and the kernel closes it when its process ends, however that ends.
With the last lease the server and all that it started are ended. Standard input counts as a lease, too.
"""

import ctypes
import fcntl
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

DOOR, LOG, SERVER, KEPT = "door", "log", "server", "kept"
"""Files of a server: its socket, what it says, its process, and the lock of the process that keeps it."""
TICK = 0.1
"""Seconds between two looks at the server."""
GRACE = 10.0
"""Seconds that a server has to end by itself."""
LINES, TAIL = 20, 16 * 1024
"""Lines of its log that are told, and the bytes in which they are looked for."""
LINUX = os.uname().sysname == "Linux"
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl


class Keeper:
    """Keeps one server.

    ``plan``: ``words`` and ``environment`` of the server, ``files`` to be written before, and the ``health``
    path that answers 200 when it is ready. ``{port}``, ``{key}`` and ``{folder}`` are filled in. ``door``:
    where leases come in. ``folder``: for its files and its log.
    """

    def __init__(self, plan: dict, door: socket.socket, folder: Path) -> None:  # type: ignore[type-arg]
        self._plan, self._door, self._folder = plan, door, folder
        self._leases: list[socket.socket] = []
        self._first: int | None = sys.stdin.fileno()  # the pipe from who started this process
        self._last: socket.socket | None = None
        self.needed = True
        self._state: dict[str, object] = {}
        self._server = self._start()
        self._tell("loading")

    def _start(self) -> "subprocess.Popen[bytes]":
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._key = secrets.token_hex(24)
        for name, text in self._plan["files"].items():
            path = self._folder / name
            path.touch(0o600)
            path.write_text(self._filled(text))
        log = os.open(self._folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            server = subprocess.Popen(
                [self._filled(word) for word in self._plan["words"]],
                env={name: self._filled(value) for name, value in self._plan["environment"].items()},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
            )  # fmt: skip
        finally:
            os.close(log)
        (self._folder / SERVER).write_text(f"{server.pid} {_begun(server.pid)}")
        return server

    def _filled(self, text: str) -> str:
        for name, value in (("port", self._port), ("key", self._key), ("folder", self._folder)):
            text = text.replace(f"{{{name}}}", str(value))
        return text

    def run(self) -> None:
        """Keep the server until nobody needs it, or it has ended."""
        while self.needed and (self._first is not None or self._leases):
            self._hear()
            status = self._server.poll()
            if status is not None:
                self._tell("ended", status=status)
                break
            if self._state["state"] == "loading" and self._is_healthy():
                self._tell("ready")
        (self._folder / DOOR).unlink(missing_ok=True)  # who comes now starts another one
        self._end()

    def _hear(self) -> None:
        waiting: list[socket.socket | int] = [self._door, *self._leases]
        if self._first is not None:
            waiting.append(self._first)
        for heard in select.select(waiting, [], [], TICK)[0]:
            if heard is self._door:
                lease, _ = self._door.accept()
                self._leases.append(lease)
                self._send(lease)
            elif isinstance(heard, int):
                if not os.read(heard, 4096):
                    self._first = None
            elif not self._is_held(heard):
                self._leases.remove(heard)
                if self._leases or self._first is not None:
                    heard.close()
                else:
                    self._last = heard  # closed by our end, so that who waits knows that the server is gone

    @staticmethod
    def _is_held(lease: socket.socket) -> bool:
        try:
            return bool(lease.recv(4096))
        except OSError:
            return False

    def _tell(self, state: str, status: int | None = None) -> None:
        self._state = {
            "state": state, "port": self._port, "key": self._key, "pid": self._server.pid, "status": status,
            "log": self._last_lines(),
        }  # fmt: skip
        for lease in self._leases:
            self._send(lease)

    def _send(self, lease: socket.socket) -> None:
        with suppress(OSError):  # it is gone; its end is heard next
            lease.sendall(json.dumps(self._state).encode() + b"\n")

    def _last_lines(self) -> list[str]:
        with (self._folder / LOG).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
            return log.read().decode("utf-8", "replace").splitlines()[-LINES:]

    def _is_healthy(self) -> bool:
        address = f"http://127.0.0.1:{self._port}{self._plan['health']}"
        plain = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with plain.open(address, timeout=1) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError, ValueError):
            return False

    def _end(self) -> None:
        """End the server and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGTERM)
        end = time.monotonic() + GRACE
        while self._server.poll() is None and time.monotonic() < end:
            time.sleep(TICK / 2)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()
        _end_orphans()
        (self._folder / SERVER).unlink(missing_ok=True)


def _begun(pid: int) -> str:
    """Return when a process began, in whatever form; empty where there is no such process."""
    try:
        if LINUX:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False)
    except (OSError, IndexError):
        return ""
    return listed.stdout.decode("ascii", "replace").strip()


def end_left_server(folder: Path) -> None:
    """End a server whose keeper was killed; another process that has got its number is left alone."""
    try:
        number, _, begun = (folder / SERVER).read_text().partition(" ")
        if _begun(int(number)) in ("", begun):
            os.killpg(int(number), signal.SIGKILL)
    except (OSError, ValueError):
        return


def _die_with_parent() -> None:
    """Have the kernel end the server where this process is killed itself; only Linux can."""
    if LINUX:
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _end_orphans() -> None:
    """End what left the server's session: as the subreaper, this process has inherited it. Linux only."""
    if not LINUX:
        return
    for _ in range(100):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        if not children:
            return
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(int(child), 0)


def main() -> None:
    """Keep the server that standard input names; the socket's number and the folder are the arguments."""
    if os.fork():  # nobody has to hear the end of the process that stays
        os._exit(0)
    if LINUX:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    door, folder = socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2])
    plan = json.loads(sys.stdin.readline())
    with (folder / KEPT).open("w") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)  # held to the end: one server after the other, never two in memory
        end_left_server(folder)
        _keep(plan, door, folder)


def _keep(plan: dict, door: socket.socket, folder: Path) -> None:  # type: ignore[type-arg]
    try:
        keeper = Keeper(plan, door, folder)
    except OSError as error:
        (folder / LOG).write_text(f"{error}\n")
        return

    def stop(*_: object) -> None:
        keeper.needed = False

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    keeper.run()


if __name__ == "__main__":
    main()
