"""As much of HTTP/1.1 as model clients need: one request after the other on connections that stay open."""

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Protocol
from urllib.parse import urlsplit

from .answers import Response
from .wire import HttpRequest

LONGEST_HEAD = 64 * 1024
LONGEST_BODY = 256 * 1024 * 1024
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 500: "Server Error"}
RESET = struct.pack("ii", 1, 0)


class Responder(Protocol):
    """Answers requests through the connection they came on, at once or later."""

    def serve(self, request: HttpRequest, connection: "Connection") -> None:
        """Answer with :meth:`Connection.respond`, once."""
        ...


class Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, responder: Responder, open_connections: "set[Connection]") -> None:
        self._responder = responder
        self._open = open_connections
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._busy = False
        self._ended: Callable[[bool], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
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
        self._buffer += data
        self._advance()

    def respond(self, response: Response, ended: Callable[[bool], None]) -> None:
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
        if self._busy or self._transport is None:
            return
        try:
            request = take_request(self._buffer)
        except ValueError as error:
            self._busy = True
            body = f'{{"error": {{"message": "{error}"}}}}'.encode()
            self.respond(Response(400, body, keep=len(body) + LONGEST_HEAD), lambda _: None)
            return
        if request is not None:
            self._busy = True
            self._responder.serve(request, self)

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
        elif response.piece:
            self._drip(memoryview(data)[: response.keep], response)
        else:
            transport.write(data if response.keep is None else data[: response.keep])
            self._sent(response)

    def _drip(self, rest: memoryview, response: Response) -> None:
        if self._transport is None:
            self._end(whole=False)
            return
        self._transport.write(bytes(rest[: response.piece]))
        if len(rest) > (response.piece or 0):
            loop = asyncio.get_running_loop()
            loop.call_later(response.pause, self._drip, rest[response.piece :], response)
        else:
            self._sent(response)

    def _sent(self, response: Response) -> None:
        self._end(whole=True)
        cut = response.announced is not None and response.announced != len(response.body)
        if (response.keep is not None or cut) and self._transport is not None:
            self._transport.close()
            return
        self._busy = False
        if self._buffer:
            self._advance()

    def _end(self, *, whole: bool) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(whole)


def head(response: Response) -> bytes:
    """Return status line and headers; the clock is read for the Date header, as HTTP wants it."""
    now = time.time() + response.clock_error
    length = len(response.body) if response.announced is None else response.announced
    lines = [f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Status')}"]
    headers = {"content-type": "application/json", **response.headers}
    if response.retry_date is not None:
        headers["retry-after"] = formatdate(now + response.retry_date, usegmt=True)
    headers |= {"date": formatdate(now, usegmt=True), "content-length": str(length)}
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def take_request(buffer: bytearray) -> HttpRequest | None:
    """Take the next whole request off a buffer; None while it is not whole."""
    end = buffer.find(b"\r\n\r\n", 0, LONGEST_HEAD)
    if end < 0:
        if len(buffer) > LONGEST_HEAD:
            raise ValueError("the head of the request is too long")
        return None
    first, *lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.rpartition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("this is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    start = end + 4
    if headers.get("transfer-encoding", "").lower() == "chunked":
        found = _chunked(buffer, start)
        if found is None:
            return None
        body, stop = found
    else:
        length = headers.get("content-length", "0")
        if not length.isdigit():
            raise ValueError("the content-length is no number")
        stop = start + int(length)
        if stop - start > LONGEST_BODY:
            raise ValueError("the body of the request is too long")
        if len(buffer) < stop:
            return None
        body = bytes(buffer[start:stop])
    del buffer[:stop]
    path = urlsplit(target).path if "://" in target else target.partition("?")[0]
    return HttpRequest(method, target, path, headers, body)


def _chunked(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    body = bytearray()
    while True:
        end = buffer.find(b"\r\n", start)
        if end < 0:
            return None
        size = int(bytes(buffer[start:end]).partition(b";")[0], 16)
        start = end + 2
        if len(buffer) < start + size + 2:
            return None
        if size == 0:
            return bytes(body), start + 2
        body += buffer[start : start + size]
        start += size + 2
