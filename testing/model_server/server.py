"""The server itself: an event loop in a thread of its own, on a port of the loopback interface."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from .batches import Fates, Made
from .http import Connection
from .log import CacheCount, Exchange, Log, PromptCache
from .serving import Faults, Handler, Latency, Service

HOST = "127.0.0.1"
START_SECONDS = 30.0


class ModelServer(Service):
    """A model service on the loopback interface, for chat, vectors, pictures and videos.

    Args:
        handler: answers a question with a text, JSON, an ``Answer`` or a ``Fault``; may be a coroutine
            function. It is called in the server's thread, for one question at a time. Without one, every
            reply is the smallest that satisfies the schema. It, the faults and the latency may be changed
            while the server runs.
        faults: what goes wrong: a fault for every question, a list of faults (or None) for the first
            questions, or a function of the question such as a ``FaultPlan``.
        latency: seconds from the question to the answer, or a function of the question.
        port: 0 takes a free one.
        log_path: a file that everything asked is appended to, one JSON object per line.
        keep_log: whether :attr:`log` holds the exchanges; a benchmark does without.
        video_looks: how often a video is said to be under way before it is there.
        fates: what becomes of batches: a fate for all, a list for the first ones, or a function of the batch.
        caching: whether prompts are kept, and what others share with them is counted as read from a cache.

    Attributes:
        errors: what the handler raised so far.
        rejected: why requests were not understood; they are in no log.
        busiest: most questions that were in flight at once.

    Used as a context manager. An exception in the handler answers the question with status 400, and is raised
    when the context ends.
    """

    def __init__(
        self,
        handler: Handler | None = None,
        *,
        faults: Faults = None,
        latency: Latency = 0.0,
        port: int = 0,
        log_path: Path | None = None,
        keep_log: bool = True,
        video_looks: int = 0,
        fates: Fates = None,
        caching: bool = False,
    ) -> None:
        super().__init__(
            handler, Log(log_path, keep=keep_log), PromptCache() if caching else None, video_looks
        )
        self.faults, self.latency, self.fates = faults, latency, fates
        self.port = port
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._failure: OSError | None = None

    def __enter__(self) -> "ModelServer":
        """Start, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(START_SECONDS)
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, cutting what is in flight; raise what the handler raised, unless the block raised itself."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if error is None and self.errors:
            raise self.errors[0]

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # raised again where the server was started
            asyncio.run(self.serve())

    async def serve(self, started: Callable[[], None] | None = None) -> None:
        """Serve in the running event loop until :meth:`stop`; ``started`` is called once the port is open."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        connections: set[Connection] = set()
        try:
            server = await self._loop.create_server(
                lambda: Connection(self.take, connections), HOST, self.port, backlog=1024
            )
        except OSError as error:
            self._failure = error
            self._ready.set()
            self._log.close()
            raise
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        if started is not None:
            started()
        try:
            await self._stop.wait()
        finally:
            server.close()
            for connection in tuple(connections):
                connection.abort()
            await self.cancel()
            await asyncio.sleep(0)
            self._log.close()

    def stop(self) -> None:
        """Make :meth:`serve` return; may be called from any thread, and more than once."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    @property
    def url(self) -> str:
        """The root, such as ``http://127.0.0.1:8123``; also usable as an HTTP proxy for such URLs."""
        return f"http://{HOST}:{self.port}"

    @property
    def openai_url(self) -> str:
        """Base URL for OpenAI clients."""
        return f"{self.url}/v1"

    @property
    def google_url(self) -> str:
        """Base URL for google-genai, in ``HttpOptions(base_url=..., api_version="v1beta")``."""
        return self.url

    anthropic_url = google_url

    @property
    def log(self) -> tuple[Exchange, ...]:
        """What was asked and answered so far."""
        return self._log.entries()

    @property
    def count(self) -> int:
        """How many questions came so far."""
        return self._log.count

    @property
    def batches(self) -> tuple[Made, ...]:
        """The batches that were made so far."""
        return tuple(self._store.made.values())

    @property
    def files(self) -> dict[str, tuple[str, bytes]]:
        """The files that were sent so far: id -> name and bytes."""
        return dict(self._store.files)

    @property
    def cache(self) -> CacheCount:
        """What the cache of prompts did so far; nothing where none are kept."""
        return CacheCount() if self._cache is None else self._cache.count

    @property
    def fates(self) -> Fates:
        """What becomes of batches made from now on; may be changed while the server runs."""
        return self._store.fates

    @fates.setter
    def fates(self, fates: Fates) -> None:
        self._store.fates = fates

    def wait_for(self, count: int, timeout: float = 30.0) -> bool:
        """Wait until so many questions have come; False if the time runs out first."""
        return self._log.wait_for(count, timeout)
