"""The connections of a served study: uvicorn alone would wait without end for the first byte of a request."""

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from ....pages.serving import WAIT

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
