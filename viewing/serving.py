"""The server of :mod:`viewing`: read-only, for this machine alone."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..errors import ConfigError
from .site import Site

HOST = "127.0.0.1"
OWN = (HOST, "localhost")
"""Names by which a browser of this machine asks for the pages; another site cannot make it ask by these."""


class Server(ThreadingHTTPServer):
    """Answers browsers of this machine; a context manager, as those of the library."""

    daemon_threads = True

    def __init__(self, port: int, site: Site) -> None:
        self.site = site
        super().__init__((HOST, port), _Handler)

    @classmethod
    def at(cls, port: int, site: Site) -> "Server":
        """Return a server at a port; 0 takes a free one.

        Raises:
            ConfigError: the port is taken.
        """
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

    def do_GET(self) -> None:
        if (self.headers.get("Host") or "").rpartition(":")[0] not in OWN:
            self.send_error(403, "these pages are for this machine alone")
            return
        answer = self.server.site.answer(self.path)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - the library's names
        """Print nothing: pages are looked at, and nobody asked for a log."""


def serve(site: Site, port: int, started: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C.

    Args:
        site: the pages.
        port: 0 takes a free one.
        started: is told the address once it can be asked.

    Raises:
        ConfigError: the port is taken.
    """
    server = Server.at(port, site)
    with server:
        started(f"http://{HOST}:{server.socket.getsockname()[1]}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
