"""The Hub as a context manager: a thread per connection on a free port of the loopback interface."""

import contextlib
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qsl, urlsplit

from ...schemas.canonical import canonical_text, sha256_bytes
from .service import Service
from .store import MAIN, Change, Refusal, Repository, Store
from .wire import (
    Call,
    CutUpload,
    Fault,
    Held,
    HtmlPage,
    LostReply,
    Plan,
    Refused,
    Reply,
    Tampered,
    find_route,
    planned,
    refused,
)

HOST = "127.0.0.1"
TOKEN = "hf_loopback_token_of_user"
_RESET = struct.pack("ii", 1, 0)
_PAGE = b"<!DOCTYPE html>\n<html><body><h1>Please log in to the network</h1></body></html>\n"

WRITES = (
    "create-repo", "lfs-batch", "lfs-upload", "lfs-part", "lfs-complete", "lfs-verify", "commit", "tag",
    "tag-delete",
)  # fmt: skip
"""The routes that change something on the Hub, or prepare it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came of it."""

    number: int  # from 1, over all routes
    route: str  # the name of what was asked, such as ``commit``; ``unknown`` for a place that is not there
    method: str  # of the request
    path: str  # of the request, without query
    status: int  # of the answer; 0 where none was sent
    received: int  # bytes of the request's body
    sent: int  # bytes of the answer's body
    user: str | None  # whose token came with it; None for none
    fault: str | None  # the name of the fault that struck, if any


class Log:
    """The exchanges in order; safe to read from other threads."""

    def __init__(self, path: Path | None = None) -> None:
        self._file: TextIOWrapper | None = None if path is None else path.open("a", encoding="utf-8")
        self._entries: list[Exchange] = []
        self._begun: list[str] = []
        self._changed = threading.Condition()

    def begin(self, route: str) -> tuple[int, int]:
        """Note that a request came; return its number over all, and among those of its route."""
        with self._changed:
            self._begun.append(route)
            self._changed.notify_all()
            return len(self._begun), self._begun.count(route)

    def end(self, exchange: Exchange) -> None:
        """Note what came of a request, before its answer is sent."""
        with self._changed:
            self._entries.append(exchange)
            if self._file is not None:
                self._file.write(canonical_text(asdict(exchange)) + "\n")
                self._file.flush()

    def entries(self) -> tuple[Exchange, ...]:
        """Return the exchanges so far, in the order in which the requests came."""
        with self._changed:
            return tuple(sorted(self._entries, key=lambda entry: entry.number))

    def clear(self) -> None:
        """Forget what was asked so far; counting by route begins anew, numbers go on in the file only."""
        with self._changed:
            self._entries.clear()
            self._begun.clear()

    def wait_for(self, route: str, timeout: float) -> bool:
        """Wait until a request of a route has come; False if the time runs out."""
        with self._changed:
            return self._changed.wait_for(lambda: route in self._begun, timeout)

    def close(self) -> None:
        """Close the file."""
        with self._changed:
            if self._file is not None:
                self._file.close()
                self._file = None


class HubServer:
    """A Hub on the loopback interface, good enough for the real ``huggingface_hub`` and ``datasets``.

    Args:
        tokens: token -> user; by default :data:`TOKEN` belongs to ``user``.
        faults: what goes wrong, by route; see :data:`Plan`.
        port: 0 takes a free one.
        log_path: a file that every request is appended to, one JSON object per line.
        page: most entries of one page of a listing.

    Used as a context manager. Everything is in memory and gone with it.
    """

    def __init__(
        self,
        tokens: Mapping[str, str] | None = None,
        *,
        faults: Plan | None = None,
        port: int = 0,
        log_path: Path | None = None,
        page: int = 1000,
    ) -> None:
        self.tokens = dict(tokens or {TOKEN: "user"})
        self.faults: Plan = faults or {}
        self.store = Store()
        self.service = Service(self.store, page=page)
        self.requests = Log(log_path)
        self._port = port
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.stopped = threading.Event()

    def __enter__(self) -> "HubServer":
        """Start."""
        hub = self

        class Handler(_Handler):
            """The handler of this server."""

            def __init__(self, *args: object) -> None:
                self.hub = hub
                super().__init__(*args)  # type: ignore[arg-type]

        class Server(ThreadingHTTPServer):
            """Takes many connections at once, and ends with its process."""

            daemon_threads = True
            request_queue_size = 128

        self._server = Server((HOST, self._port), Handler)
        self._port = self._server.server_address[1]
        self.service.url = self.url
        self.service.storage_url = f"http://localhost:{self._port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; requests that are held are dropped."""
        self.stopped.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self.requests.close()

    @property
    def url(self) -> str:
        """The address for ``HF_ENDPOINT`` or ``HfApi(endpoint=)``."""
        return f"http://{HOST}:{self._port}"

    @property
    def log(self) -> tuple[Exchange, ...]:
        """What was asked so far, in order."""
        return self.requests.entries()

    def asked(self, *routes: str) -> list[str]:
        """Return the routes asked so far, in order; only those named, if any are."""
        return [one.route for one in self.log if not routes or one.route in routes]

    def forget(self) -> None:
        """Empty the log; the faults' counting begins anew."""
        self.requests.clear()

    def wait_for(self, route: str, timeout: float = 30.0) -> bool:
        """Wait until a request of a route has come; False if the time runs out."""
        return self.requests.wait_for(route, timeout)

    def repository(self, name: str) -> Repository:
        """Return a repository, to look into it."""
        return self.store.repositories[name]

    def files(self, name: str, revision: str = MAIN) -> dict[str, bytes]:
        """Return path -> content of a revision."""
        tree = self.repository(name).commit_of(revision).tree
        return {path: self.store.content(entry) for path, entry in tree.items()}

    def put(self, name: str, files: Mapping[str, bytes | None], title: str = "a change by hand") -> str:
        """Commit contents by hand, None removing a file, in a new repository if need be; return the name."""
        store = self.store
        repository = store.repositories.get(name) or store.create(name, private=False)
        changes = []
        for path, content in files.items():
            if content is not None and store.is_large(repository, MAIN, path, len(content)):
                store.upload(sha256 := sha256_bytes(content), content)
                changes.append(Change(path, sha256=sha256))
            else:
                changes.append(Change(path, content))
        return store.commit(repository, title, "", changes).oid

    def tamper(self, name: str, path: str, content: bytes) -> None:
        """Replace the stored content of a file, and nothing that speaks of it."""
        entry = self.repository(name).commit_of(MAIN).tree[path]
        if entry.sha256 is None:
            self.store.blobs[entry.oid] = content
        else:
            self.store.objects[entry.sha256] = content


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    hub: HubServer
    protocol_version = "HTTP/1.1"
    server_version = "LoopbackHub"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024

    def log_message(self, *_: object) -> None:
        """Say nothing on standard error; the log has it."""

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        route, places = find_route(self.command, where.path)
        number, of_route = self.hub.requests.begin(route)
        fault = planned(self.hub.faults, route, of_route)
        headers = {name.lower(): value for name, value in self.headers.items()} | {"x-path": where.path}
        kind, _, token = headers.get("authorization", "").partition(" ")
        user = self.hub.tokens.get(token) if kind.lower() == "bearer" else None
        call = Call(route, places, dict(parse_qsl(where.query)), headers, b"", user)
        reply = None  # where the connection is dropped
        if isinstance(fault, CutUpload):
            self.rfile.read(min(fault.after, int(headers.get("content-length", 0))))
        else:
            call = replace(call, body=self._body())
            if not isinstance(fault, Held):
                reply = self._answer(call, fault)
            else:
                while not (fault.until.wait(0.02) or self.hub.stopped.is_set()):
                    pass
        status, sent = (0, 0) if reply is None else (reply.status, len(reply.body))
        name = None if fault is None else type(fault).__name__
        self.hub.requests.end(
            Exchange(number, route, self.command, where.path, status, len(call.body), sent, user, name)
        )
        if reply is not None:
            self._send(reply, fault.after if isinstance(fault, LostReply) else None)
        if reply is None or isinstance(fault, LostReply):  # so that the client sees a reset
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.connection.close()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def _answer(self, call: Call, fault: Fault | None) -> Reply:
        if isinstance(fault, Refused):
            echoed = f" ({self.headers.get('Authorization')})" if fault.echo else ""
            place = {"url": f"{self.hub.url}/datasets/user/other"}
            refusal = Refusal(fault.status, fault.message + echoed, fault.code, place)
            return refused(refusal, fault.retry_after)
        if isinstance(fault, HtmlPage):
            return Reply(_PAGE, 200, {"Content-Type": "text/html"})
        reply = self.hub.service.answer(call)
        if isinstance(fault, Tampered) and reply.body:
            spoiled = reply.body[:-1] + bytes([reply.body[-1] ^ 1])
            return Reply(spoiled, reply.status, reply.headers)
        return reply

    def _body(self) -> bytes:
        if (self.headers.get("Transfer-Encoding") or "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, reply: Reply, only: int | None = None) -> None:
        if only == 0:
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body if only is None else reply.body[:only])
        with contextlib.suppress(OSError):
            self.wfile.flush()
