"""The addresses of the application, and what guards them."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ....errors import FabulaError
from ....schemas.canonical import Json
from ....schemas.plain_files import parse_storable
from ..flow import Step, find_place
from ..items import MEDIA, TYPES, Marked, opaque
from ..points import ADJUDICATOR
from ..standing import Reviewer, placed
from .access import COOKIE, is_ours, page_token, policy, reviewer_of, session_cookie, session_of
from .server import Given, Reader, Refused, Server

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOG = logging.getLogger("uvicorn.error")
LARGEST_BODY = 512 * 1024
LONGEST_BODY = 60.0
"""Seconds in which the body of a request must have come."""
STATIC = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
"""Ending of a file of ``static`` -> what the pages call it."""
LANGUAGE = "fabula_language"


def application(server: Server, more: Callable[["Routes"], list[Any]] | None = None) -> "Starlette":
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Route

    routes = Routes(server)
    changes = {
        "agree": routes.change(server.agree), "vote": routes.change(server.vote),
        "broken": routes.change(server.report), "draft": routes.change(server.draft),
        "close": routes.change(server.close),
        "more": routes.change(lambda person, _: server.more(person)),
        "leave": routes.change(lambda person, _: server.leave(person)),
    }  # fmt: skip
    listed = [
        Route("/", routes.home),
        Route("/enter/{token}", routes.enter),
        Route("/item/{key}", routes.item),
        Route("/media/{name}", routes.media),
        Route("/static/{name}", routes.static),
        *(Route(f"/api/{name}", handler, methods=["POST"]) for name, handler in changes.items()),
        *(more(routes) if more is not None else ()),
    ]
    handlers = {404: routes.lost, FabulaError: routes.failed}
    return Starlette(routes=listed, middleware=[Middleware(Guard)], exception_handlers=handlers)


class Guard:
    """Adds to every answer what keeps a page to itself.

    ``keeps_policy``: whether pages say themselves, in their head, what they may load.
    """

    def __init__(self, app: Any, *, keeps_policy: bool = False) -> None:  # noqa: ANN401 - any ASGI application
        self.app = app
        self._headers = [
            (name.encode(), value.encode())
            for name, value in policy()
            if not (keeps_policy and name == "content-security-policy")
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        async def sent(message: Any) -> None:  # noqa: ANN401 - ASGI
            if message["type"] == "http.response.start":
                own = [pair for pair in message["headers"] if pair[0] != b"server"]
                message = {**message, "headers": [*own, *self._headers]}
            await send(message)

        await self.app(scope, receive, sent)


class Routes:
    """What each address answers."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.secret = server.study.secret

    # -- who asks

    def person_of(self, request: "Request") -> Reviewer | None:
        """Return who asks, by the session; None where there is none."""
        hours = self.server.study.protocol.session_hours
        session = session_of(self.secret, request.cookies.get(COOKIE), hours)
        self.server.catch_up()
        return None if session is None else self.server.standing.reviewers.get(session.reviewer)

    def reader(self, request: "Request") -> Reader:
        """Return who reads a page: their language, and what their page sends with its requests."""
        session = session_of(
            self.secret, request.cookies.get(COOKIE), self.server.study.protocol.session_hours
        )
        if session is None:
            return Reader(self._language(request))
        mark = opaque(self.secret, "page", session.reviewer)
        return Reader(self._language(request), page_token(self.secret, session), mark)

    def _language(self, request: "Request") -> str:
        known = self.server.study.protocol.languages
        chosen = request.query_params.get("language") or request.cookies.get(LANGUAGE)
        if chosen in known:
            return str(chosen)
        for entry in request.headers.get("accept-language", "").split(","):
            name = entry.partition(";")[0].strip().partition("-")[0].lower()
            if name in known:
                return name
        return known[0]

    # -- pages

    async def enter(self, request: "Request") -> "Response":
        """Open a session for whoever has a personal link."""
        from starlette.responses import RedirectResponse

        reviewer = reviewer_of(self.secret, request.path_params["token"])
        self.server.catch_up()
        person = None if reviewer is None else self.server.standing.reviewers.get(reviewer)
        if person is None or person.revoked:
            return self.error(request, 403, "error.link")
        answer = RedirectResponse("/", 303)
        self.open_session(answer, person.id)
        return answer

    def open_session(self, answer: "Response", reviewer: str) -> None:
        """Give an answer the cookie of a new session.

        It is sent along when somebody follows their link from a message or another site, as ``strict`` would
        not have it; pages change nothing, and what changes something asks for our own token besides.
        """
        answer.set_cookie(
            COOKIE, session_cookie(self.secret, reviewer), httponly=True, samesite="lax",
            secure=self.server.secure, path="/",
        )  # fmt: skip

    async def home(self, request: "Request") -> "Response":
        """Show what comes next."""
        from starlette.responses import RedirectResponse

        person = self.person_of(request)
        if person is None or person.revoked:
            return self.error(request, 403, "error.expired")
        if person.role == ADJUDICATOR:
            return RedirectResponse("/cases", 303)
        await self.server.seat(person)
        return self.page(request, self._shown(request, person, self.server.step(person)))

    def _shown(self, request: "Request", person: Reviewer, step: Step) -> str:
        reader, pages, server = self.reader(request), self.server.pages, self.server
        if step.kind == "item" and step.place is not None:
            key = placed(step.place.item, step.place.repeat)
            return pages.item(reader, person, step, Given(_answers(server.journal.draft_of(person.id, key))))
        if step.kind == "overview":
            return pages.overview(reader, server.standing, person, step)
        if step.kind == "break":
            return pages.rest(reader, step)
        return pages.show(step.kind, reader, step=step, more=server.has_more(person))

    async def item(self, request: "Request") -> "Response":
        """Show an answered item of the open block again, or the next one."""
        person = self.person_of(request)
        if person is None or person.revoked:
            return self.error(request, 403, "error.expired")
        key = request.path_params["key"]
        there = find_place(self.server.study, self.server.standing, person, key)
        if there is None or person.ended is not None:
            return self.error(request, 404, "error.lost")
        step = self.server.step_at(person, *there)
        votes = person.votes.get(key)
        given = Given(
            begun=_answers(self.server.journal.draft_of(person.id, key)),
            saved=dict(votes[-1].answers) if votes else None,
            feedback=self.server.told(person, key) if votes else None,
        )
        return self.page(request, self.server.pages.item(self.reader(request), person, step, given))

    def page(self, request: "Request", text: str, status: int = 200) -> "Response":
        """Return an answer that is a page; a language that was chosen is kept."""
        from starlette.responses import HTMLResponse

        answer = HTMLResponse(text, status)
        chosen = request.query_params.get("language")
        if chosen in self.server.study.protocol.languages:
            answer.set_cookie(LANGUAGE, str(chosen), samesite="strict", secure=self.server.secure, path="/")
        return answer

    def error(self, request: "Request", status: int, why: str) -> "Response":
        """Return a page that says why there is none."""
        return self.page(request, self.server.pages.show("error", self.reader(request), why=why), status)

    async def lost(self, request: "Request", _error: Exception) -> "Response":
        """Answer an address that there is not."""
        return self.error(request, 404, "error.lost")

    async def failed(self, request: "Request", error: Exception) -> "Response":
        """Answer where something cannot be written now, such as on a full disk; who serves is told why."""
        LOG.error("%s", error)
        return self.error(request, 503, "error.busy")

    # -- files

    async def media(self, request: "Request") -> "Response":
        """Give the pixels of an item that the reviewer may see now."""
        from starlette.responses import Response, StreamingResponse

        person = self.person_of(request)
        name = request.path_params["name"]
        kept = None if person is None or person.revoked else self.server.may_see(person, name)
        path = None if kept is None else self.server.study.folder / MEDIA / kept
        if path is None or not path.is_file():
            return Response(status_code=404)
        marked = Marked.of(path, name, self.secret)
        part, size = request.headers.get("range"), marked.size
        asked = range(size) if part is None else _range_of(part, size)
        headers = {"accept-ranges": "bytes", "content-length": str(len(asked))}
        if not asked:
            return Response(status_code=416, headers={"content-range": f"bytes */{size}"})
        if len(asked) < size:
            headers["content-range"] = f"bytes {asked.start}-{asked.stop - 1}/{size}"
        pieces = marked.pieces(asked.start, asked.stop)
        status = 206 if len(asked) < size else 200
        return StreamingResponse(pieces, status, headers, TYPES[path.suffix.lstrip(".")])

    async def static(self, request: "Request") -> "Response":
        """Give style, script and icon."""
        from starlette.responses import Response

        name = request.path_params["name"]
        kind = STATIC.get(name.rpartition(".")[2])
        there = {entry.name for entry in (files(__package__) / "static").iterdir()}
        if name not in there or kind is None:
            return Response(status_code=404)
        content = (files(__package__) / "static" / name).read_bytes()
        if name == "review.css":
            from ....pages.page import base_style

            content = base_style().encode("utf-8") + content
        return Response(content, media_type=kind)

    # -- changes

    def change(
        self, act: Callable[[Reviewer, Mapping[str, Json]], Any], role: str = "reviewer"
    ) -> Callable[["Request"], Awaitable["Response"]]:
        """Return what answers a request that changes something: one of ours, with JSON as its body."""

        async def handle(request: "Request") -> "Response":
            from starlette.responses import JSONResponse

            session = session_of(
                self.secret, request.cookies.get(COOKIE), self.server.study.protocol.session_hours
            )
            person = self.person_of(request)
            if session is None or person is None or person.revoked:
                return JSONResponse({"why": "session"}, 403)
            if not is_ours(request, self.secret, session) or person.role != role:
                return JSONResponse({"why": "page"}, 403)
            try:
                made = act(person, await body_of(request))
                if hasattr(made, "__await__"):
                    made = await made
            except Refused as refused:
                return JSONResponse({"why": refused.why, "fields": refused.fields}, refused.status)
            except FabulaError as error:  # the page keeps the answer; who serves the study must know why
                LOG.error("%s", error)
                return JSONResponse({"why": "server"}, 503)
            return JSONResponse(made if made is not None else {"saved": True})

        return handle


_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def _range_of(text: str, size: int) -> range:
    """Return the bytes that a header asks for, as players do; all where it asks for several parts."""
    match = _RANGE.fullmatch(text.replace(" ", ""))
    if match is None or match[0] == "bytes=-":
        return range(size)
    first, last = match.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    return range(int(first), min(size, int(last) + 1 if last else size))


def _answers(draft: Any) -> Mapping[str, Json] | None:  # noqa: ANN401 - any JSON value
    answers = draft.get("answers") if isinstance(draft, dict) else None
    return answers if isinstance(answers, dict) else None


async def body_of(request: "Request") -> dict[str, Json]:
    from starlette.requests import ClientDisconnect

    content = bytearray()
    try:
        async with asyncio.timeout(LONGEST_BODY):
            async for chunk in request.stream():
                content += chunk
                if len(content) > LARGEST_BODY:
                    raise Refused(413, "large")
    except (TimeoutError, ClientDisconnect) as error:
        raise Refused(408, "slow") from error
    try:
        body = parse_storable(bytes(content))
    except ValueError as error:
        raise Refused(422, "body") from error
    if not isinstance(body, dict):
        raise Refused(422, "body")
    return body
