"""Programs of others: what they get to see, how long they may take, and how they end.

A program has a process group of its own, which ends with it: what it started and left behind is killed.
Nobody waits for the end of a pipe that somebody outside of the group still holds.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread, Timer
from typing import IO, Literal, TypeAlias

PATIENCE = 2.0
"""Seconds that are waited for a pipe's end, and for what was killed, after a program has gone."""
TAIL = 64 * 1024
"""Bytes of what a program says that are kept: its last ones."""
LONGEST_OUTPUT = 64 * 1024 * 1024
"""Most bytes of a program's output where all of it is wanted."""

Output: TypeAlias = Literal["none", "kept"]

ALLOWED = frozenset(
    """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM TMPDIR TEMP TMP LD_LIBRARY_PATH DYLD_LIBRARY_PATH
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV DISPLAY PYTHONPATH PYTHONHOME PYTHONUNBUFFERED
    PYTHONHASHSEED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX
    PYTHONSAFEPATH PYTHONNOUSERSITE SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
    SOURCE_DATE_EPOCH HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY NVIDIA_VISIBLE_DEVICES
    NVIDIA_DRIVER_CAPABILITIES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HF_HOME HF_HUB_CACHE
    HF_HUB_OFFLINE HF_DATASETS_CACHE HF_DATASETS_OFFLINE TORCH_HOME TRANSFORMERS_CACHE
    TRANSFORMERS_OFFLINE TRITON_CACHE_DIR XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR
    OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
    CUDA_HOME CUDA_PATH CUDA_LAUNCH_BLOCKING CUDA_CACHE_PATH CUBLAS_WORKSPACE_CONFIG
    PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE
    APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES NUMBER_OF_PROCESSORS
    """.split()  # noqa: SIM905 - a list of them takes sixty lines
)
"""Variables that a program of somebody else gets, with all that begin with ``LC_``; in upper case."""


def allowed_environment(named: Collection[str] = (), more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for a program of somebody else: those of the list, those that are named, and more.

    A value of the list that is an address with a user or a password in it stays out, too.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in named or (_is_allowed(name) and not ("://" in value and "@" in value))
    }
    return {**kept, **(more or {})}


def _is_allowed(name: str) -> bool:
    return name.upper() in ALLOWED or name.startswith("LC_")


class ProgramStopped(Exception):
    """A program was ended before it had finished; the text says why."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: exit status (below 0 a signal's), output, and the end of its complaints."""

    status: int
    output: bytes = field(repr=False)
    complaint: bytes = field(repr=False)

    @property
    def last_line(self) -> str:
        """The last line of what it wrote to standard error; empty where it said nothing."""
        lines = self.complaint.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""


class Program:
    """A program at work; no shell reads its words.

    What it writes is thrown away or kept; the end of its complaints is kept.
    :class:`OSError` or :class:`ValueError`: it cannot be started.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        given: bytes = b"",
        output: Output = "none",
    ) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            list(words),
            stdin=pipe if given else subprocess.DEVNULL,
            stdout=pipe if output == "kept" else subprocess.DEVNULL,
            stderr=pipe,
            env=dict(environment),
            start_new_session=True,
        )
        self._why = ""
        self._output: list[bytes] = []
        self._complaint: deque[bytes] = deque()
        self._threads = [
            Thread(target=work, args=(stream, *more), daemon=True)
            for work, stream, *more in (
                (self._feed, self._process.stdin, given),
                (self._collect, self._process.stdout),
                (self._listen, self._process.stderr),
            )
            if stream is not None
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float | None = None) -> Ended:
        """Return how it ended; when this returns or raises, it and its process group have ended."""
        timer = None if seconds is None else Timer(seconds, self.end, (f"it took more than {seconds:g} s",))
        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            self._wait_for_end()
        finally:
            if timer is not None:
                timer.cancel()
            self.end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)
            for thread in self._threads:
                thread.join(PATIENCE)
        if self._why:
            raise ProgramStopped(self._why)
        return Ended(
            self._process.returncode, b"".join(self._output), b"".join(tuple(self._complaint))[-TAIL:]
        )

    def _wait_for_end(self) -> None:
        if sys.platform == "linux":  # it keeps its number until its group has been ended
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()

    async def finished(self, seconds: float | None = None) -> Ended:
        """Return what :meth:`wait` does, without blocking the event loop; a cancellation ends it."""
        waiter = ThreadPoolExecutor(1)  # of its own, so that no others have to wait for it
        try:
            return await asyncio.get_running_loop().run_in_executor(waiter, self.wait, seconds)
        finally:
            self.end()
            waiter.shutdown(wait=False)

    def end(self, why: str = "") -> None:
        """End it and its process group at once, if they still run."""
        if self._process.returncode is not None:
            return
        self._why = self._why or why
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    @staticmethod
    def _feed(pipe: IO[bytes], given: bytes) -> None:
        with suppress(OSError), pipe:  # it need not read to the end
            pipe.write(given)

    def _collect(self, pipe: IO[bytes]) -> None:
        size = 0
        with pipe:
            while chunk := os.read(pipe.fileno(), TAIL):
                size += len(chunk)
                if size > LONGEST_OUTPUT:
                    self.end(f"it wrote more than {LONGEST_OUTPUT:,} bytes")
                    break
                self._output.append(chunk)

    def _listen(self, pipe: IO[bytes]) -> None:
        size = 0
        with pipe:
            while chunk := os.read(pipe.fileno(), TAIL):
                self._complaint.append(chunk)
                size += len(chunk)
                while size - len(self._complaint[0]) >= TAIL:
                    size -= len(self._complaint.popleft())


def run_program(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    seconds: float | None = None,
    given: bytes = b"",
    output: Output = "none",
) -> Ended:
    """Run a program to its end; see :class:`Program`."""
    return Program(words, environment, given=given, output=output).wait(seconds)
