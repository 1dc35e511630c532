"""Run a command and measure it: seconds on the clock and of the processor, and the peak of all its memory."""

import resource
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import psutil

SAMPLE_EVERY = 0.02
"""Seconds between two looks at the memory; shorter peaks can be missed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a command took.

    Attributes:
        seconds: wall-clock time.
        processor: processor seconds, of the process and of the children that it waited for.
        mebibytes: peak resident memory of the process and its children together, in MiB.
        output: its standard output.
    """

    seconds: float
    processor: float
    mebibytes: float
    output: str


def measure(*command: object) -> Measured:
    """Run a command to its end and measure it. Its exit code must be 0."""
    started, used = time.perf_counter(), _used()
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True) as process:
        peak = [0]
        watcher = threading.Thread(target=_watch, args=(process.pid, peak), daemon=True)
        watcher.start()
        output, _ = process.communicate()
        seconds = time.perf_counter() - started
        watcher.join()
    if process.returncode:
        raise SystemExit(f"{command} exited with {process.returncode}\n{output}")
    return Measured(seconds, _used() - used, peak[0] / 1024**2, output)


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def fabula(*args: object) -> Measured:
    """Measure the real command line."""
    return measure(sys.executable, "-m", "fabula.cli.main", *args)


def _watch(pid: int, peak: list[int]) -> None:
    try:
        parent = psutil.Process(pid)
        while True:
            total = 0
            for process in (parent, *parent.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            peak[0] = max(peak[0], total)
            time.sleep(SAMPLE_EVERY)
    except psutil.NoSuchProcess:
        return
