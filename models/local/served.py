"""Adapter for open models behind a server that is started when it is first needed, and ended with the run.

All processes of a host that use a model in the same way share one server: whoever comes first starts a
:mod:`.keeper`, which hands address and key over a socket in a folder that only its user can enter.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Any, TypeVar

from ...errors import ConfigError, ModelUnavailable
from ..chat import CallFault, ChatRequest, Reply
from ..edge import Adapter
from ..keys import Redactor
from ..openai_models import OpenAIChat, openai_client
from ..options import ModelOptions
from ..spec import ModelSpec
from . import keeper
from .servers import Launch, launch_of, told_of_end

AWAITED = 20.0
"""Seconds for a keeper to answer, and for one that is on its way out to be gone."""
LONGEST_FOLDER = 80
"""Bytes of the path in which sockets still have a name that every system takes."""
LOOK = 0.05
"""Seconds between two looks at a server that is being loaded."""

T = TypeVar("T")


def servers_folder() -> Path:
    """Return the folder of this user's servers; nobody else can enter it."""
    folder = Path(tempfile.gettempdir()) / f"fabula-servers-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077 or folder.is_symlink():
        raise ConfigError(
            str(folder), what="this folder is not yours alone, so that a key in it would not be secret",
            fix="remove it, or set TMPDIR to a folder of your own",
        )  # fmt: skip
    if len(os.fsencode(folder)) > LONGEST_FOLDER:
        raise ConfigError(
            str(folder), what=f"a socket's path has about {LONGEST_FOLDER + 24} bytes at most",
            fix="set TMPDIR to a shorter path",
        )  # fmt: skip
    return folder


@dataclass(slots=True)
class Lease:
    """The use of one server, until it is closed or its process ends."""

    folder: Path
    door: socket.socket = field(repr=False)
    state: dict[str, Any] = field(default_factory=dict)
    _heard: bytes = field(default=b"", repr=False)

    @classmethod
    def take(cls, launch: Launch) -> "Lease":
        """Return the use of the server of a launch; starts it where nobody has."""
        from filelock import FileLock

        folder = servers_folder() / launch.digest[:16]
        folder.mkdir(mode=0o700, exist_ok=True)
        with FileLock(folder / "start.lock", timeout=2 * AWAITED):
            lease = cls._enter(folder)
            if lease is not None:
                return lease
            with _start_keeper(launch, folder):
                lease = cls._enter(folder)
            return lease or cls(folder, socket.socket(socket.AF_UNIX), {"state": "ended", "status": None})

    @classmethod
    def _enter(cls, folder: Path) -> "Lease | None":
        """Return a lease of the server that is there; None where there is none, or it is on its way out."""
        door = socket.socket(socket.AF_UNIX)
        try:
            door.settimeout(AWAITED)
            door.connect(str(folder / keeper.DOOR))
            lease = cls(folder, door)
            if lease._hear():
                return lease
        except OSError:
            pass
        door.close()
        return None

    def _hear(self) -> bool:
        """Take the next states in; False where the keeper has gone."""
        heard = self.door.recv(65536)
        *lines, self._heard = (self._heard + heard).split(b"\n")
        while heard and not lines:
            heard = self.door.recv(65536)
            *lines, self._heard = (self._heard + heard).split(b"\n")
        if lines:
            self.state = json.loads(lines[-1])
        return bool(heard)

    def look(self) -> str:
        """Return ``loading``, ``ready`` or ``ended``; does not wait."""
        self.door.setblocking(False)
        try:
            while self.state.get("state") != "ended":
                if not self._hear():
                    self.state = {**self.state, "state": "ended", "log": self.last_lines()}
        except BlockingIOError:
            pass
        except OSError:
            self.state = {**self.state, "state": "ended"}
        return str(self.state.get("state"))

    def last_lines(self) -> list[str]:
        """Return the last lines of the server's log."""
        with suppress(OSError):
            text = (self.folder / keeper.LOG).read_text("utf-8", "replace")
            return text.splitlines()[-keeper.LINES :]
        return []

    def close(self) -> None:
        """End the use; returns when the server is gone, if nobody else uses it."""
        with suppress(OSError):
            self.door.shutdown(socket.SHUT_WR)
            self.door.settimeout(keeper.GRACE + AWAITED)
            while self.door.recv(65536):
                pass
        self.door.close()


def _start_keeper(launch: Launch, folder: Path) -> IO[bytes]:
    """Start the process that keeps a server, and return its first lease; its socket is there then."""
    path = folder / keeper.DOOR
    path.unlink(missing_ok=True)
    plan = {
        "words": launch.words, "environment": dict(launch.environment),
        "files": dict(launch.files), "health": launch.health,
    }  # fmt: skip
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen(64)
        kept = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(door.fileno()), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
            pass_fds=(door.fileno(),), start_new_session=True,
        )  # fmt: skip
    assert kept.stdin is not None
    with suppress(OSError):  # it has ended at once
        kept.stdin.write(json.dumps(plan).encode() + b"\n")
        kept.stdin.flush()
    kept.wait()
    return kept.stdin


class ServedChat(OpenAIChat):
    """An open model behind a server of this machine; see :meth:`ready`."""

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        self._spec, self._options, self._redactor = spec, options, redactor
        self._lease: Lease | None = None
        self._starting, self._is_closed = asyncio.Lock(), False
        Adapter.__init__(self, spec, options, redactor)  # address and key are known when the server has begun
        weights = spec.weights
        self._name = spec.name if weights is None else weights.public
        self._is_openai, self._limit, self._client = False, "max_tokens", None

    async def ready(self) -> None:
        """Return when the server answers; starts it where nobody has.

        Raises ModelUnavailable: it cannot be started, or has ended.
        """
        async with self._starting:
            if self._lease is None:
                self._lease = await _in_thread(self._take)
                self._redactor.add(str(self._lease.state.get("key", "")))
            await self._await_server(self._lease)
            if self._client is None:
                self._client = self._open(self._lease)

    def _take(self) -> Lease:
        lease = Lease.take(launch_of(self._spec, self._options))
        if self._is_closed:  # nobody waits for it any more
            lease.close()
        return lease

    async def _await_server(self, lease: Lease) -> None:
        end = time.monotonic() + self._options.call_timeout
        while (state := lease.look()) == "loading":
            if time.monotonic() > end:
                raise self._error(
                    f"it was not ready within {self._options.call_timeout:g} s (call_timeout)",
                    "raise call_timeout if it only loads or fetches slowly",
                )
            await asyncio.sleep(LOOK)
        if state == "ended":
            raise self._ended(lease)

    def _open(self, lease: Lease) -> Any:  # noqa: ANN401 - the SDK's client
        key, port = str(lease.state["key"]), lease.state["port"]
        options = self._options.model_copy(update={"base_url": f"http://127.0.0.1:{port}/v1"})
        return openai_client(self._spec, options, self._redactor, key=key)

    async def complete(self, request: ChatRequest) -> Reply:
        """Ask once; nobody charges for it."""
        if self._client is None:
            await self.ready()
        try:
            return await super().complete(request)
        except CallFault as fault:
            fault.maybe_paid = False
            raise

    def _ended(self, lease: Lease) -> ModelUnavailable:
        status = lease.state.get("status")
        why = told_of_end(lease.state.get("log", ()), status)
        if why.startswith("memory"):
            return self._error(
                why, "take a smaller or a quantized model, or lower context, images and concurrency"
            )
        return self._error(why, "see what its last lines say; args gives it more arguments")

    def _error(self, why: str, fix: str) -> ModelUnavailable:
        lease = self._lease
        lines = [] if lease is None else lease.state.get("log") or lease.last_lines()
        said = "".join(f"\n    {self._redactor.redact(line)[:300]}" for line in lines[-keeper.LINES :])
        log = "" if lease is None else f"; all of it is in {lease.folder / keeper.LOG}"
        return ModelUnavailable(
            f"model {self._spec}",
            what=f"its server cannot be used: {why}. Its last lines{log}:{said or ' none'}",
            fix=f'{fix} (under [models."{self._spec}"] in fabula.toml); then give the same command again:'
            " it continues where it stopped",
        )  # fmt: skip

    async def close(self) -> None:
        """Close connections, and end the server if nobody else uses it."""
        self._is_closed = True
        if self._client is not None:
            await self._client.close()
        if self._lease is not None:
            await _in_thread(self._lease.close)


async def _in_thread(work: Callable[[], T]) -> T:
    """Return what slow work gives, done in a thread that keeps no process from ending."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        await asyncio.sleep(LOOK)
    if failed:
        raise failed[0]
    return done[0]
