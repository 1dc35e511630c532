"""Serving a study: one process holds it; it stops when asked, after what is under way is on disk.

uvicorn alone would wait without end for the first byte of a request; connections are looked at here.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar

from ....engine.lock import hold
from ....errors import ConfigError, RunError, needing
from ....pages.page import WAIT, few_lines, most_connections
from ....schemas.canonical import Json
from ..design import Place
from ..folder import Study
from ..items import Part, Value, edits_after, listed_edits, opaque, values_of
from ..points import ADJUDICATOR, REASON, Known, NotDecided, Point, cases, decide, has_reviewed
from ..standing import Reviewer, VoteJournal
from ..task import LONGEST_TEXT, Question, place_of
from .access import no_extra
from .routes import Routes, application
from .server import Reader, Refused, Server, Shown, sent_id

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Base
else:
    _Base = object

EVERY = 2.0
"""Seconds between two looks at what connections do."""


class House:
    """The connections of a server. Where there is no room, the one that has been idle longest goes.

    ``most``: how many there may be. ``wait``: seconds after which one that keeps the server waiting is
    closed.
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
        super().connection_made(transport)
        self.house.enter(self)

    def connection_lost(self, error: Exception | None) -> None:
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
    with needing(no_extra()):
        import uvicorn
    address.check()
    with hold(study.folder), VoteJournal(study.folder) as journal, few_lines("uvicorn.error", "asyncio"):
        server = Server(study, journal, now, secure=address.secure)
        running = uvicorn.Server(configured(application(server, adjudication_routes), address))
        listen(running, address, started)


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


def listen(running: Any, address: Address, started: Callable[[str], None]) -> None:  # noqa: ANN401 - uvicorn's
    """Serve at an address until the process is asked to stop; tell where, once it is open."""
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


# -- The pages of adjudicators: the cases of a study, and one case with all that was said about it
#
# Reviewers get none of it: for them these addresses are not there.

LISTED = 500
"""Most cases of a list."""


def adjudication_routes(routes: Routes) -> list[Any]:
    """Return the routes of adjudication, to be added to those of a study."""
    from starlette.routing import Route

    own = Adjudication(routes)
    return [
        Route("/cases", own.cases),
        Route("/case/{case}", own.case),
        Route("/api/decide", routes.change(own.decide, role=ADJUDICATOR), methods=["POST"]),
    ]


@dataclass
class Adjudication:
    """What the addresses of adjudication answer."""

    routes: Routes
    _seen: int = field(default=-1, repr=False)
    _cases: list[Point] = field(default_factory=list, repr=False)
    _points: Known = field(default_factory=dict, repr=False)

    def known(self) -> list[Point]:
        """Return all cases, decided ones too; they are looked for again when something has happened."""
        server = self.routes.server
        server.catch_up()
        if self._seen != server.standing.events:
            self._cases = cases(server.study, server.standing, everything=True, known=self._points)
            self._seen = server.standing.events
        return self._cases

    def adjudicator(self, request: "Request") -> Reviewer | None:
        """Return the adjudicator who asks; None where it is somebody else, or nobody."""
        person = self.routes.person_of(request)
        fits = person is not None and not person.revoked and person.role == ADJUDICATOR
        return person if fits else None

    async def cases(self, request: "Request") -> "Response":
        """List the cases that somebody may decide, open ones first."""
        person = self.adjudicator(request)
        if person is None:
            return self.routes.error(request, 404, "error.lost")
        listed = sorted(self._own(person), key=lambda point: not point.is_open)
        reader = self.routes.reader(request)
        page = self.routes.server.pages.show(
            "cases", reader, total=len(listed), left=sum(point.is_open for point in listed),
            entries=[self._entry(reader, point) for point in listed[:LISTED]],
        )  # fmt: skip
        return self.routes.page(request, page)

    def _own(self, person: Reviewer) -> list[Point]:
        return [point for point in self.known() if not has_reviewed(person, point.item)]

    def _entry(self, reader: Reader, point: Point) -> dict[str, Json]:
        part = self._part(point)
        why = [reader.say(f"case.why.{reason}") for reason in point.verdict.why]
        return {"case": point.id, "about": point.about, "title": dict(point.question.title),
                "part": part.text if part else "", "why": why, "open": point.is_open}  # fmt: skip

    async def case(self, request: "Request") -> "Response":
        """Show a case: the item, what each reviewer said, and what is to be decided."""
        person = self.adjudicator(request)
        known = {} if person is None else {point.id: point for point in self._own(person)}
        point = known.get(request.path_params["case"])
        if person is None or point is None:
            return self.routes.error(request, 404, "error.lost")
        others = [each for each in known.values() if each.is_open and each is not point]
        after = next(
            (each.id for each in others if each.item == point.item), others[0].id if others else None
        )
        return self.routes.page(request, self._page(self.routes.reader(request), point, after))

    def _page(self, reader: Reader, point: Point, following: str | None) -> str:
        from markupsafe import Markup

        pages, study = self.routes.server.pages, self.routes.server.study
        item, after = study.items[point.item], edits_after(study.task, point.question)
        shown = Shown(item, Place(point.item, 0), item.parts, study.task.card, point.id)
        values = () if after is None else values_of(item, after, point.part)
        return pages.show(
            "case", reader, point=point, item=shown, part=self._part(point), values=values,
            evidence=Markup(pages.evidence(reader, shown)), votes=self._votes(point, after, values),
            decided=_decided(point), answers=_begun(point, after), following=following,
            asked_questions=[point.question, *([after] if after is not None else ()), _reason(reader)],
            place_of=place_of, longest_text=LONGEST_TEXT,
        )  # fmt: skip

    def _votes(self, point: Point, after: Question | None, values: Sequence[Value]) -> list[dict[str, Any]]:
        """Return what each reviewer said, under letters; which letter is whose is drawn for each item."""
        secret, known = self.routes.server.study.secret, {value.path: value for value in values}
        ordered = sorted(point.said, key=lambda said: opaque(secret, "letter", point.item, said.reviewer))
        return [
            {
                "letter": _letter(number),
                "answer": _text_of(point.question, said.answer),
                "note": said.note,
                "said": _as_answers(point, after, said.answer, said.edits),
                "edits": [
                    {"label": known[path].label, "old": known[path].value, "new": new}
                    for path, new in sorted(said.edits.items())
                ],
            }
            for number, said in enumerate(ordered)
        ]

    def _part(self, point: Point) -> Part | None:
        parts = self.routes.server.study.items[point.item].parts.get(point.question.each or "", ())
        return next((part for part in parts if part.id == point.part), None)

    async def decide(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Take a decision; one that was sent before counts once."""
        server = self.routes.server
        sent = sent_id(body)
        server.catch_up()
        if server.standing.knows(f"{person.id}/{sent}"):
            return
        try:
            event = decide(server.study, server.standing, person.id, body, server.clock(), sent)
        except NotDecided as error:
            status, why = REFUSED.get(error.code, (422, "answers"))
            raise Refused(status, why, {error.place: error.code} if error.place else {}) from error
        if event is not None:
            await server.put(event)


REFUSED = {"role": (403, "page"), "own": (403, "page"), "case": (409, "closed")}
"""Why a decision is not taken -> status and word of the answer; all else is a matter of what was answered."""


def _letter(number: int) -> str:
    return ascii_uppercase[number] if number < len(ascii_uppercase) else str(number + 1)


def _reason(reader: Reader) -> Question:
    title = {"en": reader.say("case.reason")}
    return Question(name=REASON, type="text", title=title, help={"en": reader.say("case.reason.help")})


def _text_of(question: Question, answer: Json) -> Any:  # noqa: ANN401 - texts by language
    listed = answer if isinstance(answer, list) else [answer]
    texts = {option.value: dict(option.text) for option in question.choices}
    if len(listed) == 1:
        return texts.get(listed[0], {"en": str(listed[0])})
    return {"en": ", ".join(str(texts.get(value, {}).get("en", value)) for value in listed)}


def _decided(point: Point) -> Sequence[dict[str, Any]]:
    return [
        {
            "value": _text_of(point.question, each.value),
            "reason": each.reason,
            "stands": each is point.decision,
        }
        for each in reversed(point.decisions)
    ]


def _begun(point: Point, after: Question | None) -> dict[str, Json]:
    """Return the answers that the form begins with: those of the decision that stands."""
    decision = point.decision
    if decision is None:
        return {}
    return {REASON: decision.reason, **_as_answers(point, after, decision.value, decision.edits)}


def _as_answers(
    point: Point, after: Question | None, value: Json, edits: Mapping[str, Json]
) -> dict[str, Json]:
    """Return an answer with its corrections as the form has them: place -> answer."""
    listed = {} if after is None or not edits else {place_of(after.name, point.part): listed_edits(edits)}
    return {point.place: value, **listed}
