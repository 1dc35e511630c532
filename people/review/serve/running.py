"""Serving a study: one process holds it; it stops when asked, after what is under way is on disk.

uvicorn alone would wait without end for the first byte of a request; connections are looked at here.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ....engine.lock import hold
from ....errors import ConfigError, RunError
from ....pages.serving import WAIT, few_lines, most_connections
from ..folder import Study
from ..journal import VoteJournal
from .access import no_extra
from .routes import application
from .server import Server

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Base
else:
    _Base = object

EVERY = 2.0
"""Seconds between two looks at what connections do."""


class House:
    """The connections of a server. Where there is no room, the one that has been idle longest goes.

    Args:
        most: how many there may be.
        wait: seconds after which one that keeps the server waiting is closed.
    """

    def __init__(self, most: int, wait: float = WAIT) -> None:
        self.most, self.wait = most, wait
        self._open: dict[Bounded, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, connection: "Bounded") -> None:
        """Take in a new connection."""
        if len(self._open) >= self.most:
            idle = next((each for each in self._open if not each.is_busy), connection)
            self.leave(idle)
            idle.transport.abort()
            if idle is connection:
                return
        self._open[connection] = None
        if self._timer is None:
            self._look_later()

    def leave(self, connection: "Bounded") -> None:
        """Forget a connection that was closed."""
        self._open.pop(connection, None)

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(min(EVERY, self.wait / 4), self._look)

    def _look(self) -> None:
        now, self._timer = asyncio.get_running_loop().time(), None
        for connection in list(self._open):
            if connection.waited(now) > self.wait:
                self.leave(connection)
                connection.transport.abort()
        if self._open:
            self._look_later()


class Bounded(_Base):
    """A connection of a house; the class before uvicorn's protocol."""

    house: ClassVar[House]
    _state: object = None
    _since = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def waited(self, now: float) -> float:
        """Return for how many seconds the client has sent no request, and taken nothing of an answer."""
        unsent = self.transport.get_write_buffer_size()
        state = (self.cycle, self.is_busy, unsent)
        if state != self._state or (self.is_busy and not unsent):
            self._state, self._since = state, now
        return now - self._since

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self.house.enter(self)

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self.house.leave(self)
        super().connection_lost(error)


def bounded_protocol(most: int, wait: float = WAIT) -> type[Any]:
    """Return the protocol of a server with so many connections at most."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    return type("BoundedProtocol", (Bounded, H11Protocol), {"house": House(most, wait)})


LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORT = 8765
MOST = 2000
"""Connections at once, where there are descriptors for them."""
LARGEST_HEAD = 64 * 1024
"""Bytes that the address and the headers of a request have at most."""


@dataclass(frozen=True)
class Address:
    """Where a study is served."""

    host: str = LOOPBACK[0]  # interface; the usual one is reached from this machine only
    port: int = PORT  # port; 0 takes a free one
    certificate: Path | None = None  # TLS certificate, PEM
    key: Path | None = None  # its key, PEM
    proxy: bool = False  # whether a proxy on this machine speaks TLS in front of it

    @property
    def secure(self) -> bool:
        """Whether people reach it over TLS."""
        return self.certificate is not None or self.proxy

    def check(self) -> None:
        """Refuse what would send votes over a network that anybody can read."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("--tls-cert", what="certificate and key go together", fix="give --tls-key, too")
        if self.host not in LOOPBACK and not self.secure:
            raise ConfigError(
                "--host", what=f"{self.host} can be reached from elsewhere; without TLS anybody on the way "
                "can read links and votes",
                fix="give --tls-cert and --tls-key, or put a proxy with TLS in front and say --behind-proxy",
            )  # fmt: skip
        if self.certificate is not None and self.key is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(
                    "--tls-cert", what=f"certificate or key cannot be used: {error}", fix="give PEM files"
                ) from error


def clock() -> str:
    """Return the time, RFC 3339, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def serve(
    study: Study, address: Address, *, started: Callable[[str], None], now: Callable[[], str] = clock
) -> None:
    """Serve a study until the process is asked to stop."""
    from .adjudicate import adjudication_routes

    try:
        import uvicorn
    except ImportError as error:
        raise no_extra() from error
    address.check()
    with hold(study.folder), VoteJournal(study.folder) as journal, few_lines("uvicorn.error", "asyncio"):
        server = Server(study, journal, now, secure=address.secure)
        running = uvicorn.Server(configured(application(server, adjudication_routes), address))
        _listen(running, address, started)


def configured(app: Any, address: Address, wait: float = WAIT) -> Any:  # noqa: ANN401 - uvicorn's
    """Return the settings of a server.

    ``wait``: seconds after which a connection that keeps the server waiting is closed.
    """
    import uvicorn

    most = most_connections(MOST)
    return uvicorn.Config(
        app, host=address.host, port=address.port, log_level="warning", access_log=False, server_header=False,
        date_header=False, ssl_certfile=None if address.certificate is None else str(address.certificate),
        ssl_keyfile=None if address.key is None else str(address.key), lifespan="off", ws="none",
        proxy_headers=address.proxy, forwarded_allow_ips="127.0.0.1", timeout_graceful_shutdown=10,
        http=bounded_protocol(most, wait), h11_max_incomplete_event_size=LARGEST_HEAD,
        backlog=max(8, min(128, most // 2)),  # asyncio takes so many at once, before any can be closed
    )  # fmt: skip


def _listen(running: Any, address: Address, started: Callable[[str], None]) -> None:  # noqa: ANN401 - uvicorn's
    import socket

    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address.host, address.port))
            listener.listen(2048)
        except OSError as error:
            raise ConfigError(
                "--port", what=f"{address.host}:{address.port} cannot be used: {error.strerror or error}",
                fix="choose another port, or stop what uses it",
            ) from error  # fmt: skip
        port = listener.getsockname()[1]
        host = f"[{address.host}]" if ":" in address.host else address.host
        started(f"{'https' if address.certificate else 'http'}://{host}:{port}")
        running.run(sockets=[listener])
    if not running.started:
        raise RunError("review serve", what="the server did not start", fix="see the messages above")
