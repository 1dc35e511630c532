"""The HTTP client that the SDKs are given: proxy, no redirects, and bodies of a bounded size."""

import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ..errors import MissingRequirement
from .keys import Redactor, expand
from .options import ModelOptions
from .spec import ModelSpec

if TYPE_CHECKING:
    import httpx2

LONGEST_BODY = 4 * 1024 * 1024
"""Most bytes of a response that are read."""

LONGEST_PACKED_BODY = 64 * 1024
"""The same for a compressed one, which nobody asked for and which may unpack to a thousand times more."""

GRACE = 30.0
"""Seconds that the SDK waits longer than the client, so that the client's timeout is the one that counts."""

_CONNECT = 30.0
_KEEP_ALIVE = 20.0


class BodyTooLong(Exception):
    """A response has more bytes than are read.

    Attributes:
        most: how many are read.
    """

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


class BodyLost(Exception):
    """The connection ended, or brought something else than HTTP, inside a response."""


def http_client(
    spec: ModelSpec, options: ModelOptions, redactor: Redactor, longest: int = LONGEST_BODY
) -> "httpx2.AsyncClient":
    """Return an HTTP client for one model.

    It follows no redirects: some headers that carry keys would be sent to wherever they lead.

    ``longest``: most bytes of a response that are read.
    """
    import httpx2

    class _Bounded(httpx2.AsyncByteStream):
        """A response's stream that ends with an error beyond a number of bytes."""

        def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
            self._stream = stream
            self._most = self._left = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._stream:
                    self._left -= len(chunk)
                    if self._left < 0:
                        raise BodyTooLong(self._most)
                    yield chunk
            except httpx2.TimeoutException:
                raise
            except httpx2.TransportError as error:
                raise BodyLost(str(error)) from error

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: httpx2.Response) -> None:
        packed = response.headers.get("content-encoding", "identity") != "identity"
        response.stream = _Bounded(
            response.stream,  # type: ignore[arg-type]  # the stream of an asynchronous client is of this kind
            LONGEST_PACKED_BODY if packed else longest,
        )

    try:
        return httpx2.AsyncClient(
            proxy=_proxy(spec, options, redactor),
            trust_env=not spec.is_local,  # a proxy cannot reach this machine
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(options.call_timeout + GRACE, connect=_CONNECT, pool=None),
            limits=httpx2.Limits(
                max_connections=None,
                max_keepalive_connections=options.concurrency,
                keepalive_expiry=_KEEP_ALIVE,
            ),
            event_hooks={"response": [bound]},
        )
    except ImportError as error:
        raise MissingRequirement(
            f'[models."{spec}"] proxy', what=f"such a proxy needs a library that is not installed ({error})",
            fix="pip install socksio, or use an http proxy",
        ) from error  # fmt: skip


def headers_of(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> dict[str, str]:
    """Return the extra headers of a model with their variables filled in."""
    return {
        name: expand(value, f'[models."{spec}"] headers.{name}', redactor)
        for name, value in options.headers.items()
    }


def headers_not_ours(variable: str, key: str, omit: object) -> dict[str, Any]:
    """Return what undoes the headers that an SDK takes from an environment variable for every request.

    They may hold secrets that the redactor does not know, and would go to whoever serves the model.
    """
    lines = os.environ.get(variable, "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    return {name: f"Bearer {key}" if name.lower() == "authorization" else omit for name in names}


def _proxy(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> str | None:
    if options.proxy is None:
        # The HTTP library takes it from the environment.
        from urllib.request import getproxies_environment

        for address in getproxies_environment().values():
            _remember(address, redactor)
        return None
    address = expand(options.proxy, f'[models."{spec}"] proxy', redactor)
    _remember(address, redactor)
    return address


def _remember(address: str, redactor: Redactor) -> None:
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    for secret in (parts.password, unquote(parts.password or "")):
        if secret:
            redactor.add(secret)
    if parts.username and parts.password:
        redactor.add(f"{unquote(parts.username)}:{unquote(parts.password)}")
    elif parts.username:  # alone it may be a token
        redactor.add(unquote(parts.username))
