"""The server of :mod:`viewing`: read-only, for this machine alone."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

from ..errors import ConfigError
from ..pages.serving import WAIT, most_connections
from .site import Site

HOST = "127.0.0.1"
OWN = (HOST, "localhost")
"""Names by which a browser of this machine asks for the pages; another site cannot make it ask by these."""


MOST = 64
"""Connections at once, each with a thread; one more takes the place of the one that waits longest."""


class Server(ThreadingHTTPServer):
    """Answers browsers of this machine; a context manager, as those of the library.

    Args:
        port: 0 takes a free one.
        site: the pages.
        wait: seconds in which a request must have come, and an answer must have been taken.
    """

    daemon_threads = True
    request_queue_size = MOST

    def __init__(self, port: int, site: Site, wait: float = WAIT) -> None:
        self.site, self.wait, self.most = site, wait, most_connections(MOST)
        self._asking: dict[socket.socket, float] = {}
        self._lock, self._open = threading.Lock(), 0
        super().__init__((HOST, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's
        """Answer in a thread, where there is room for one more."""
        with self._lock:
            oldest = next(iter(self._asking), None) if self._open >= self.most else None
            has_room = self._open < self.most or oldest is not None
            if has_room:
                self._open += 1
                self._asking[request] = monotonic()
        if oldest is not None:
            self._close(oldest)
        if has_room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.asked(request)
            with self._lock:
                self._open -= 1

    def asked(self, request: socket.socket) -> None:
        """Note that a request has come whole."""
        with self._lock:
            self._asking.pop(request, None)

    def service_actions(self) -> None:
        """Close connections whose request does not come, whatever else does; the library calls this often."""
        with self._lock:
            late = [request for request, begun in self._asking.items() if monotonic() - begun > self.wait]
        for request in late:
            self._close(request)

    def _close(self, request: socket.socket) -> None:
        self.asked(request)
        with suppress(OSError):  # its thread, which reads from it, ends
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's
        """Print nothing: browsers close connections as they like."""

    @classmethod
    def at(cls, port: int, site: Site) -> "Server":
        """Return a server at a port; 0 takes a free one."""
        try:
            return cls(port, site)
        except OSError as error:
            raise ConfigError(
                "--port",
                what=f"port {port}: {error.strerror or error}",
                fix="name another, or 0 for a free one",
            ) from error


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def setup(self) -> None:
        self.request.settimeout(self.server.wait)
        super().setup()

    def do_GET(self) -> None:
        self.server.asked(self.connection)
        if (self.headers.get("Host") or "").rpartition(":")[0] not in OWN:
            self.send_error(403, "these pages are for this machine alone")
            return
        answer = self.server.site.answer(self.path)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if answer.again:
            self.send_header("Refresh", str(answer.again))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - the library's names
        """Print nothing: pages are looked at, and nobody asked for a log."""


def serve(site: Site, port: int, started: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C."""
    server = Server.at(port, site)
    with server:
        started(f"http://{HOST}:{server.socket.getsockname()[1]}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
