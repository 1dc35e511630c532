"""Editing in the browser: a field of a record, or one change to all records that a list shows.

The pages are those of :mod:`.site`, served by what serves studies (:mod:`..people.review.serve`): to this
machine alone, to whoever has the link with its token, and only our own page can change anything. What is
written are lines of ``edits.jsonl``, as ``fabula edit`` writes them.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_bytes
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..builders.edit_files import (
    AppliedFile,
    Editable,
    EditFile,
    EditHeader,
    apply_file,
    item_of,
    items_of,
    signed,
)
from ..engine.edits import edits_of, is_withdrawal
from ..errors import ConfigError, FabulaError, needing
from ..pages.page import WAIT, most_connections
from ..people.review.serve.access import (
    COOKIE,
    Session,
    enter_token,
    is_ours,
    page_token,
    reviewer_of,
    session_cookie,
    session_of,
)
from ..people.review.serve.routes import Guard, body_of
from ..people.review.serve.running import Address, configured, listen
from ..people.review.serve.server import Refused
from ..schemas.canonical import Json
from ..schemas.paths import parse_quoted, quoted_path, value_at
from ..schemas.values import Edit
from .site import Site

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

WHO, HOURS = "editor", 24.0
EVERY = "[*]"
MOST_ITEMS = 1_000
"""Records that one change may go over."""
SHOWN = 50
"""Changes that an answer lists; all are counted."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be changed, in one record or in many."""

    items: Sequence[str]  # ids of the records
    path: str  # of the field; ``[*]`` for every part of a list
    new: Json  # the new value; with ``find`` the text that takes the place of each find
    find: str | None  # text that is replaced in the field; None where the whole value is
    who: str
    why: str


def apply_change(run: Editable, change: Change, *, save: bool) -> AppliedFile:
    """Add a change to a run's corrections, all or none; or only say what it would add, and what rules find.

    A record that was withdrawn, that has no such field, or in which nothing is to be found is passed over; a
    field that none of them has is a ValueError.
    """
    rows, known, drafts = [], False, items_of(run, change.items)
    if not drafts and change.items:
        item_of(run, change.items[0])  # says why it has no draft
    for item, draft in drafts.items():
        waiting = edits_of(run.folder, item)
        if any(map(is_withdrawal, waiting)):
            continue
        form = draft.editing.form(draft.reads, draft.draft(waiting))
        for path, old in fields_at(form, change.path):
            known = True
            new = change.new if change.find is None else replaced(old, change.find, str(change.new))
            if new != old:
                edit = signed(item, path, new, change.who, change.why)
                rows.append(edit.model_copy(update={"old": old}))
    if not known:
        raise ValueError(f"no record of these has a field at {change.path}, or all were withdrawn")
    header = EditHeader(format=1, release=None, run=None, simulated=False)
    file = EditFile(Path("browser"), header, list(enumerate(rows, 1)))
    return apply_file(run, file, dry_run=not save, again=True)


def fields_at(document: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Yield the fields that a path with ``[*]`` reaches, each by its own path, with what stands there."""
    first, *rest = path.split(EVERY)
    reached: list[tuple[str | int, ...]] = [parse_quoted(first)]
    for part in rest:
        lists = [(steps, value_at(document, steps)) for steps in reached if _is_there(document, steps)]
        reached = [
            (*steps, number, *parse_quoted(f"${part}"))
            for steps, value in lists if isinstance(value, list) for number in range(len(value))
        ]  # fmt: skip
    yield from (
        (quoted_path(steps), value_at(document, steps)) for steps in reached if _is_there(document, steps)
    )


def _is_there(document: Json, steps: Sequence[str | int]) -> bool:
    try:
        value_at(document, steps)
    except LookupError:
        return False
    return True


def replaced(value: Json, find: str, new: str) -> Json:
    """Return a text, or a list of texts, with every find replaced; any other value as it is."""
    if isinstance(value, str):
        return value.replace(find, new)
    if isinstance(value, list):
        return [replaced(inner, find, new) for inner in value]
    return value


def answer_of(applied: AppliedFile, run: Path, *, save: bool) -> dict[str, Json]:
    """Return what the page is told of a change."""
    edits: list[Edit] = [*applied.added, *applied.also]
    return {
        "saved": save,
        "fields": len(applied.added),
        "records": len({edit.id for edit in edits}),
        "edits": [edit.as_json() for edit in edits[:SHOWN]],
        "also": [edit.as_json() for edit in applied.also[:SHOWN]],
        "findings": [issue.as_dict() for issue in applied.issues[:SHOWN]],
        "errors": sum(issue.level == "error" for issue in applied.issues),
        "notes": list(applied.notes[:SHOWN]),
        "next": f"fabula run retry {run}",
    }


@dataclass
class Editing:
    """The application: pages for whoever entered by the link, and changes from our own page."""

    site: Site
    run: Editable
    secret: bytes = field(default_factory=lambda: token_bytes(32))

    @property
    def token(self) -> str:
        """What the link ends with."""
        return enter_token(self.secret, WHO)

    def application(self) -> "Starlette":
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.routing import Route

        routes = [
            Route("/enter/{token}", self.enter),
            Route("/api/change", self.change, methods=["POST"]),
            Route("/{path:path}", self.page),
        ]
        own = [Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])]
        return Starlette(routes=routes, middleware=[*own, Middleware(Guard, keeps_policy=True)])

    async def enter(self, request: "Request") -> "Response":
        """Open a session for whoever has the link."""
        from starlette.responses import RedirectResponse

        if reviewer_of(self.secret, request.path_params["token"]) != WHO:
            return _refused()
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            COOKIE, session_cookie(self.secret, WHO), httponly=True, samesite="strict", path="/"
        )
        return answer

    def session(self, request: "Request") -> Session | None:
        return session_of(self.secret, request.cookies.get(COOKIE), HOURS)

    async def page(self, request: "Request") -> "Response":
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        session = self.session(request)
        if session is None:
            return _refused()
        address = request.scope["raw_path"].decode("latin-1") + (
            f"?{request.url.query}" if request.url.query else ""
        )
        site = replace(self.site, editor=page_token(self.secret, session))
        made = await run_in_threadpool(site.answer, address)
        headers = {"Refresh": str(made.again)} if made.again else {}
        return Response(made.body, made.status, headers, made.type)

    async def change(self, request: "Request") -> "Response":
        """Try or save a change."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        session = self.session(request)
        if session is None or not is_ours(request, self.secret, session):
            return JSONResponse({"why": "open the link that fabula view printed again"}, 403)
        try:
            body = await body_of(request)
            made = await run_in_threadpool(self._changed, body)
        except Refused as refused:
            return JSONResponse({"why": f"the request cannot be read ({refused.why})"}, refused.status)
        except (FabulaError, ValueError) as error:
            return JSONResponse({"why": str(error)}, 422)
        return JSONResponse(made)

    def _changed(self, body: Mapping[str, Json]) -> dict[str, Json]:
        find, save = body.get("find"), body.get("save") is True
        change = Change(
            self._items(body), str(body.get("path")), body.get("new"), str(find) if find else None,
            str(body.get("who") or ""), str(body.get("why") or ""),
        )  # fmt: skip
        return answer_of(apply_change(self.run, change, save=save), self.run.folder, save=save)

    def _items(self, body: Mapping[str, Json]) -> list[str]:
        """Return the records that a change is about: one, or those that a list shows."""
        asked = body.get("list")
        if not isinstance(asked, dict):
            return [str(body.get("item"))]
        names = self.site.names(str(asked.get("file")), {name: str(value) for name, value in asked.items()})
        if len(names) > MOST_ITEMS:
            raise ValueError(f"{len(names):,} records at once are too many: filter them to {MOST_ITEMS:,}")
        return names


def _refused() -> "Response":
    from starlette.responses import PlainTextResponse

    return PlainTextResponse("Open the link that fabula view printed: it ends with a token.", 403)


def serve_editing(editing: Editing, port: int, started: Callable[[str], None]) -> None:
    """Serve the pages until the process is asked to stop."""
    from ..people.review.serve.access import no_extra

    with needing(no_extra()):
        import uvicorn
    address, token = Address(port=port), editing.token
    running: Any = uvicorn.Server(configured(editing.application(), address))
    listen(running, address, lambda at: started(f"{at}/enter/{token}"))


# -- The server of :mod:`viewing`: read-only, for this machine alone

HOST = "127.0.0.1"
OWN = (HOST, "localhost")
"""Names by which a browser of this machine asks for the pages; another site cannot make it ask by these."""


MOST = 64
"""Connections at once, each with a thread; one more takes the place of the one that waits longest."""


class Server(ThreadingHTTPServer):
    """Answers browsers of this machine; a context manager, as those of the library.

    ``port``: 0 takes a free one. ``site``: the pages. ``wait``: seconds in which a request must have come,
    and an answer must have been taken.
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
