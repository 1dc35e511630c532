"""As much of HTTP/1.1 as model clients need: one request after the other on connections that stay open."""

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from email.utils import formatdate
from http.client import responses
from urllib.parse import urlsplit

import h11

from .answers import Response
from .wire import HttpRequest

LONGEST_HEAD = 64 * 1024
RESET = struct.pack("ii", 1, 0)


class Connection(asyncio.Protocol):
    """One connection of a client.

    Args:
        take: is given each request, and answers it with :meth:`respond`, once, at once or later.
        open_connections: where it is kept while it is open.
    """

    def __init__(
        self, take: Callable[[HttpRequest, "Connection"], None], open_connections: "set[Connection]"
    ) -> None:
        self._take = take
        self._open = open_connections
        self._transport: asyncio.Transport | None = None
        self._reader = h11.Connection(h11.SERVER, LONGEST_HEAD)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._busy = False
        self._ended: Callable[[bool], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        """Report that the client did not get all."""
        self._open.discard(self)
        self._transport = None
        self._end(whole=False)

    def data_received(self, data: bytes) -> None:
        """Serve the next request once it is whole."""
        self._reader.receive_data(data)
        self._advance()

    def respond(self, response: Response, ended: Callable[[bool], None] = lambda _: None) -> None:
        """Deliver a response; ``ended`` hears whether all of it was sent as meant."""
        self._ended = ended
        if response.delay > 0 and self._transport is not None:
            asyncio.get_running_loop().call_later(response.delay, self._send, response)
        else:
            self._send(response)

    def abort(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _advance(self) -> None:
        while not self._busy and self._transport is not None:
            try:
                event = self._reader.next_event()
            except h11.RemoteProtocolError as error:
                self._busy = True
                body = f'{{"error": {{"message": "{error}"}}}}'.encode()
                self.respond(Response(400, body, keep=len(body) + LONGEST_HEAD))
                return
            if isinstance(event, h11.Request):
                self._head = event
            elif isinstance(event, h11.Data):
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self._busy = True
                self._take(self._whole(), self)
            else:  # there is no more yet, or ever
                return

    def _whole(self) -> HttpRequest:
        """Return the request that has come, and read what follows as the next one."""
        assert self._head is not None
        target, headers = self._head.target.decode("latin-1"), self._head.headers
        path = urlsplit(target).path if "://" in target else target.partition("?")[0]
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        request = HttpRequest(self._head.method.decode("ascii"), target, path, named, bytes(self._body))
        following, _ = self._reader.trailing_data
        self._reader, self._head = h11.Connection(h11.SERVER, LONGEST_HEAD), None
        self._body.clear()
        if following:
            self._reader.receive_data(following)
        return request

    def _send(self, response: Response) -> None:
        transport = self._transport
        if transport is None:
            self._end(whole=False)
            return
        data = head(response) + response.body
        if response.keep == 0:
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._end(whole=True)
            transport.abort()
        else:
            self._write(memoryview(data)[: response.keep], response)

    def _write(self, rest: memoryview, response: Response) -> None:
        """Write a piece of what is left, or all of it where it is not sent in pieces."""
        if self._transport is None:
            self._end(whole=False)
            return
        piece = response.piece or len(rest)
        self._transport.write(bytes(rest[:piece]))
        if len(rest) > piece:
            asyncio.get_running_loop().call_later(response.pause, self._write, rest[piece:], response)
            return
        self._end(whole=True)
        cut = response.announced is not None and response.announced != len(response.body)
        if response.keep is not None or cut:
            self._transport.close()
            return
        self._busy = False
        self._advance()

    def _end(self, *, whole: bool) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(whole)


def head(response: Response) -> bytes:
    """Return status line and headers; the clock is read for the Date header, as HTTP wants it."""
    now = time.time() + response.clock_error
    length = len(response.body) if response.announced is None else response.announced
    lines = [f"HTTP/1.1 {response.status} {responses.get(response.status, 'Status')}"]
    headers = {"content-type": "application/json", **response.headers}
    if response.retry_date is not None:
        headers["retry-after"] = formatdate(now + response.retry_date, usegmt=True)
    headers |= {"date": formatdate(now, usegmt=True), "content-length": str(length)}
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
