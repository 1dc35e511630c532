"""Serving a study: one process holds it; it stops when asked, after what is under way is on disk."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ....engine.lock import hold
from ....errors import ConfigError, RunError
from ....pages.serving import WAIT, few_lines, most_connections
from ..folder import Study
from ..journal import VoteJournal
from .access import no_extra
from .connections import bounded_protocol
from .routes import application
from .server import Server

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORT = 8765
MOST = 2000
"""Connections at once, where there are descriptors for them."""
LARGEST_HEAD = 64 * 1024
"""Bytes that the address and the headers of a request have at most."""


@dataclass(frozen=True)
class Address:
    """Where a study is served.

    Attributes:
        host: interface; the usual one is reached from this machine only.
        port: port; 0 takes a free one.
        certificate: TLS certificate, PEM.
        key: its key, PEM.
        proxy: whether a proxy on this machine speaks TLS in front of it.
    """

    host: str = LOOPBACK[0]
    port: int = PORT
    certificate: Path | None = None
    key: Path | None = None
    proxy: bool = False

    @property
    def secure(self) -> bool:
        """Whether people reach it over TLS."""
        return self.certificate is not None or self.proxy

    def check(self) -> None:
        """Refuse what would send votes over a network that anybody can read.

        Raises:
            ConfigError: another interface than the loopback without TLS, or a certificate without its key.
        """
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
    """Serve a study until the process is asked to stop.

    Args:
        study: the study.
        address: where.
        started: told the address once people can be let in.
        now: gives the time.

    Raises:
        MissingRequirement: the extra `review` is not installed. ConfigError: the address cannot be used.
        RunBusy: another process serves the study. TargetError: its folder cannot be written.
    """
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

    Args:
        app: the application.
        address: where.
        wait: seconds after which a connection that keeps the server waiting is closed.
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
