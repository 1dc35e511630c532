"""Map stages in actors of a Ray cluster, on one machine or on many; the journal stays with this process.

Work goes only to actors that have answered: one that dies while it starts costs no item a try. A chunk that
is lost with its actor, or with a node, is run again item by item. An item that is lost alone has failed after
:data:`..pool.LOST_TRIES` tries; where the actor had not finished anything of the stage yet, its imports and
models among that, a loss counts a quarter. Ray's own retries are off: they would hide the count.

Ray is imported here alone, and only by who asks for it.

Which pool map stages run in: processes of this machine, or actors of a Ray cluster.
"""

import atexit
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import version
from ...errors import ConfigError, MissingRequirement
from ...schemas.paths import STORE, VECTORS
from ..journal import Encoded, encode
from ..pool import IDLE, LOST_TRIES, Flight, Job, Pool, Result, Task, WorkerPool, default_workers, run_inline
from ..stage import Failed

ADDRESS = "RAY_ADDRESS"
"""The variable, Ray's own, that names a cluster which is there already."""
SCRATCH = "fabula-ray-"
"""What the folder of a cluster that is started here is called, before the number of its process."""
CLUSTERS = 3
"""How often a cluster of this machine is tried to be started."""
STARTS = 20
"""Actors that may die in a row while they start."""
UNPROVEN = 0.25
"""What the loss of an item counts on an actor that has finished nothing of the stage."""
OBJECTS = 100_000_000
"""Bytes of memory for what travels, of a cluster that is started here."""


class Worker:
    """What an actor is: one process that runs a stage on a few items at a time, and keeps its models."""

    def ready(self) -> str:
        """Import what all stages need; return the version of Fabula on this node."""
        from .. import pool  # noqa: F401

        return version.__version__

    def run(self, job: Job, tasks: Sequence[Task]) -> tuple[list[Encoded], float]:
        """Run a stage on some items; as :func:`..pool.run_chunk`."""
        from ..pool import run_chunk

        return run_chunk(job, tasks)


def connect() -> Any:  # noqa: ANN401 - the module, which has no types
    """Return Ray, connected: to the cluster that ``RAY_ADDRESS`` names, else to one started on this machine.

    The cluster that is started ends with this process. It collects no statistics and has no dashboard, but
    its ports are open on all interfaces, as Ray has no switch for that.
    """
    own = not os.environ.get(ADDRESS)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if own:
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # else a token is written into the home folder
    try:
        import ray
    except ImportError as error:
        raise MissingRequirement(
            "--pool ray", what="Ray is not installed", fix='pip install "fabula[scale]"'
        ) from error
    if not ray.is_initialized():
        with _signals_kept():
            _start(ray, own=own)
    return ray


def _start(ray: Any, *, own: bool) -> None:  # noqa: ANN401 - the module, which has no types
    quiet = {"log_to_driver": False, "configure_logging": False}
    if not own:
        try:
            ray.init(address=os.environ[ADDRESS], **quiet)
        except ConnectionError as error:
            raise ConfigError(
                ADDRESS, what=f"no cluster answers at {os.environ[ADDRESS]}",
                fix="start it with `ray start --head`, or unset the variable to start one on this machine",
            ) from error  # fmt: skip
        return
    short = Path("/tmp")  # sockets lie below it, whose paths may have 107 bytes
    place = short if short.is_dir() else Path(tempfile.gettempdir())
    _tidy(place)
    for left in reversed(range(CLUSTERS)):
        scratch = tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-", dir=place)
        atexit.register(_end, ray, scratch)
        try:
            ray.init(
                address="local", include_dashboard=False, object_store_memory=OBJECTS, _temp_dir=scratch,
                num_cpus=1, **quiet,
            )  # fmt: skip
        except Exception as error:  # Ray gives a busy machine 30 s, and raises nothing narrower
            _end(ray, scratch)
            if not left:
                raise MissingRequirement(
                    "--pool ray", what=f"no cluster starts on this machine: {error}",
                    fix="try again when the machine is less busy, or use --pool local",
                ) from error  # fmt: skip
        else:
            return


def _end(ray: Any, scratch: str) -> None:  # noqa: ANN401 - the module, which has no types
    ray.shutdown()
    _kill_left(scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def _kill_left(scratch: str) -> None:
    """Kill what is left of a cluster that did not come up: its processes name its folder."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any(scratch in word for word in process.cmdline()):
                process.kill()


def _tidy(place: Path) -> None:
    """Remove the files of clusters whose process was killed."""
    import psutil

    for folder in place.glob(f"{SCRATCH}*-*"):
        number = folder.name.removeprefix(SCRATCH).partition("-")[0]
        if number.isdigit() and not psutil.pid_exists(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


class _signals_kept:  # noqa: N801 - a context, named as one reads it
    """Put our handler of SIGTERM back, which Ray replaces by one that ends the process at once."""

    def __enter__(self) -> None:
        self._main = threading.current_thread() is threading.main_thread()
        self._before = signal.getsignal(signal.SIGTERM)

    def __exit__(self, *_: object) -> None:
        if self._main:
            signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)


def cluster_workers() -> int:
    """Return how many items may be at work: the cores of a named cluster, else those of this machine."""
    if not os.environ.get(ADDRESS):
        return default_workers()
    return max(1, int(connect().cluster_resources().get("CPU", 1)))


class RayPool:
    """Runs map stages on items in actors; it has the face of :class:`..pool.WorkerPool`.

    ``workers``: actors that work at once; they start with the first item. 0 works in this process.
    ``item_timeout``: seconds that one item may take, times the patience of its stage. ``devices``: whether
    each actor owns a device of the cluster; there are as many as it has GPUs, and one where it has none.
    Models stay loaded as long as the actor lives.
    """

    def __init__(self, workers: int, item_timeout: float, *, devices: bool = False) -> None:
        self.workers, self.item_timeout, self.devices = workers, item_timeout, devices
        self._ray: Any = None
        self._kind: Any = None
        self._team: set[Any] = set()
        self._starting: dict[Any, Any] = {}  # reference to the answer -> actor
        self._failed_starts = 0

    def __enter__(self) -> "RayPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the actors; what they are at is given up."""
        for actor in (*self._team, *self._starting.values()):
            self._ray.kill(actor)
        self._team, self._starting = set(), {}

    def run(self, job: Job, tasks: Iterable[Task], stopping: Callable[[], bool]) -> Iterator[list[Result]]:
        """Yield results in small groups as they come; as :meth:`..pool.WorkerPool.run`."""
        if self.workers == 0:
            yield from run_inline(job, tasks, stopping)
            return
        self._open()
        shift = _Shift(Flight(job, iter(tasks)), self.item_timeout * job.patience)
        while True:
            self._recruit()
            self._send(shift, stopping)
            if not shift.flying and (self._team or stopping()):
                return
            waiting = [*shift.flying, *self._starting]
            done, _ = self._ray.wait(waiting, num_returns=1, timeout=IDLE)
            stopped = stopping()  # tells the user at once that a stop was heard
            yield [result for answer in done for result in self._land(answer, shift, stopped)]
            for actor in shift.overdue():
                self._ray.kill(actor)

    def _open(self) -> None:
        if self._ray is not None:
            return
        self._ray = connect()
        needs: dict[str, Any] = {"num_cpus": 1 if os.environ.get(ADDRESS) else 0}  # here we count ourselves
        gpus = int(self._ray.cluster_resources().get("GPU", 0)) if self.devices else 0
        if gpus:
            self.workers, needs = gpus, {"num_cpus": 0, "num_gpus": 1}
        shared = {name: os.environ[name] for name in (STORE, VECTORS) if os.environ.get(name)}
        if shared:  # nodes have an environment of their own
            needs["runtime_env"] = {"env_vars": shared}
        self._kind = self._ray.remote(max_restarts=0, max_task_retries=0, **needs)(Worker)

    def _recruit(self) -> None:
        spare = 0 if self.devices else 1
        while len(self._team) + len(self._starting) < self.workers + spare:
            actor = self._kind.remote()
            self._starting[actor.ready.remote()] = actor

    def _send(self, shift: "_Shift", stopping: Callable[[], bool]) -> None:
        busy = {errand.actor for errand in shift.flying.values()}
        for actor in sorted(self._team, key=lambda actor: actor not in shift.proven)[: self.workers]:
            if actor in busy or stopping():
                continue
            chunk = shift.flight.next_chunk()
            if not chunk:
                return
            shift.flying[actor.run.remote(shift.flight.job, chunk)] = _Errand(actor, chunk, shift.limit)

    def _land(self, answer: Any, shift: "_Shift", stopped: bool) -> list[Result]:  # noqa: ANN401
        from ray.exceptions import RayError, RayTaskError

        errand = shift.flying.pop(answer, None)
        actor = self._starting.pop(answer) if errand is None else errand.actor
        try:
            value = self._ray.get(answer)
        except RayTaskError as error:
            if errand is None:
                raise _not_started(error.cause or error) from error
            raise (error.cause or error) from error
        except RayError as error:
            self._team.discard(actor)
            if errand is not None:
                return [] if stopped else shift.lose(errand)
            self._failed_starts += 1
            if self._failed_starts >= STARTS:
                raise _not_started(error) from error
            return []
        if errand is None:
            _check_version(value)
            self._team.add(actor)
            self._failed_starts = 0
            return []
        return shift.bring(errand, *value)


@dataclass(frozen=True, slots=True)
class _Errand:
    """A chunk that an actor is at, and how many seconds it may take."""

    actor: Any
    chunk: list[Task]
    limit: float
    began: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class _Shift:
    """One stage in the pool: what is under way, which actors have finished some of it, what was lost."""

    flight: Flight
    limit: float
    flying: dict[Any, _Errand] = field(default_factory=dict)
    proven: set[Any] = field(default_factory=set)
    _lost: Counter[str] = field(default_factory=Counter)
    _late: set[Any] = field(default_factory=set)

    def overdue(self) -> list[Any]:
        """Return the actors that have taken longer than they may, each once."""
        now = time.monotonic()
        late = {errand.actor for errand in self.flying.values() if now - errand.began > errand.limit}
        fresh = late - self._late
        self._late |= fresh
        return list(fresh)

    def bring(self, errand: _Errand, outcomes: Sequence[Encoded], seconds: float) -> list[Result]:
        """Return what a chunk brought."""
        self.proven.add(errand.actor)
        self.flight.pace(seconds / len(errand.chunk))
        return list(zip(errand.chunk, outcomes, strict=True))

    def lose(self, errand: _Errand) -> list[Result]:
        """Return the failure of an item that was lost once too often; else it runs again, by itself."""
        if len(errand.chunk) > 1:
            self.flight.alone.extend(errand.chunk)
            return []
        (task,) = errand.chunk
        if errand.actor in self._late:
            late = "took longer than the time that one item may take"
            return [(task, encode(Failed("timeout", late)))]
        self._lost[task.item] += 1 if errand.actor in self.proven else UNPROVEN  # type: ignore[assignment]
        if self._lost[task.item] >= LOST_TRIES:
            return [(task, encode(Failed("crashed", "the worker died, or its node did")))]
        self.flight.alone.append(task)
        return []


def _check_version(there: str) -> None:
    if there != version.__version__:
        raise MissingRequirement(
            "--pool ray", what=f"a node of the cluster has fabula {there}, and this is {version.__version__}",
            fix="install the same version on every node",
        )  # fmt: skip


def _not_started(error: BaseException) -> MissingRequirement:
    return MissingRequirement(
        "--pool ray", what=f"workers cannot be started on the cluster: {error}",
        fix="install the same version of fabula with the same extras on every node",
    )  # fmt: skip


POOLS = ("local", "ray")


def check_pool(name: str) -> None:
    """Raise ConfigError where there is no such pool."""
    if name not in POOLS:
        raise ConfigError("--pool", expected=" or ".join(POOLS), found=name, fix="use one of these")


def open_pools(name: str, workers: int | None, item_timeout: float) -> tuple[Pool, Pool, int]:
    """Return the pool of map stages, that of stages which take several items at once, and the first's size.

    ``workers``: items that are worked on at once; None for one per core, 0 for none but this process.
    ``item_timeout``: seconds that one item may take in one stage.
    """
    if name == "local":
        count = default_workers() if workers is None else workers
        return WorkerPool(count, item_timeout), WorkerPool(min(count, 1), item_timeout), count
    from .ray_pool import RayPool, cluster_workers, connect

    connect()
    count = cluster_workers() if workers is None else workers
    return RayPool(count, item_timeout), RayPool(min(count, 1), item_timeout, devices=True), count
