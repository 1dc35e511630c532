"""The address at which participants of a recruitment platform come in.

``/join?PROLIFIC_PID=...``, or as the protocol calls it, gives a new participant a pseudonym and a session, a
known one a session as the reviewer that they are. The id is hashed: no page, file or message has it.
"""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ....errors import FabulaError
from ..flow import Step
from ..journal import Event
from ..participants import Participants, fits_platform, is_id, room
from .routes import Routes

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def join_routes(routes: Routes) -> list[Any]:
    """Return the route for participants of a platform; none where the protocol names no platform's parameter.

    Raises:
        RunError: the salt of the participants is missing. TargetError: their file cannot be written.
    """
    from starlette.routing import Route

    study = routes.server.study
    if study.protocol.participant is None:
        return []
    return [Route("/join", Joining(routes, Participants(study)).join)]


@dataclass
class Joining:
    """Lets participants in.

    Attributes:
        routes: what the other addresses answer.
        participants: who is which reviewer.
    """

    routes: Routes
    participants: Participants
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def join(self, request: "Request") -> "Response":
        """Open a session for a participant, if there is room."""
        from starlette.responses import RedirectResponse

        study = self.routes.server.study
        participant = request.query_params.get(study.protocol.participant or "", "")
        if not is_id(participant) or not fits_platform(study, dict(request.query_params)):
            return self.routes.error(request, 403, "error.link")
        try:
            async with self._lock:
                reviewer = await self._reviewer(participant)
        except FabulaError:
            return self.routes.error(request, 503, "error.busy")
        if reviewer is None:
            return self._no_room(request)
        person = self.routes.server.standing.reviewers[reviewer]
        if person.revoked:
            return self.routes.error(request, 403, "error.link")
        answer = RedirectResponse("/", 303)
        self.routes.open_session(answer, reviewer)
        return answer

    async def _reviewer(self, participant: str) -> str | None:
        """Return who a participant is; None where they are new and there is no room for them."""
        server = self.routes.server
        server.catch_up()
        reviewer = await asyncio.to_thread(self.participants.reviewer, participant)
        if reviewer is None:
            if not room(server.study, server.standing, server.clock()):
                return None
            reviewer = await asyncio.to_thread(self.participants.add, participant, server.clock())
        if reviewer not in server.standing.reviewers:
            body = {"role": "reviewer", "group": None}
            protocol = server.study.protocol.sha256
            name = f"{reviewer}/joined"
            await server.put(Event(name, server.clock(), protocol, reviewer, "invited", None, body))
        return reviewer

    def _no_room(self, request: "Request") -> "Response":
        reader, step = self.routes.reader(request), Step("done", why="no_seat")
        page = self.routes.server.pages.show("done", reader, step=step, more=False, link=None, code=None)
        return self.routes.page(request, page)
