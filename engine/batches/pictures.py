"""Pictures that go to a service's store of files, once each, and not into every request that shows them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from ...models.chat import ChatRequest, Image, base64_text
from ...schemas.canonical import sha256_bytes
from ..calls import Calls
from ..group_commit import Statement
from . import books
from .carrier import Carrier
from .settle import Lane

LARGE = 100_000
"""Bytes from which on a picture is stored; smaller ones stand in the requests."""
TOGETHER = 8


async def stored_pictures(
    lane: Lane,
    requests: Iterable[ChatRequest],
    calls: Calls,
    carrier: Carrier,
    write: Callable[[Statement], Awaitable[None]],
) -> dict[str, str]:
    """Store the large pictures of some requests; return each in base64 -> what names it at the service.

    A picture that is in the store already, by its content, is not sent again while the service keeps it.

    Raises:
        CallFault: the service does not take one. Halted: the run is being stopped.
    """
    kept = lane.service.keeps_pictures
    if not lane.options.batch_files or not kept:
        return {}
    now = carrier.now()
    known = dict(calls.rows(books.PICTURES, (lane.model, now - kept)))
    parts = (part for request in requests for message in request.messages for part in message.parts)
    large = {part.data: part for part in parts if isinstance(part, Image) and len(part.data) >= LARGE}
    several = asyncio.Semaphore(TOGETHER)

    async def ref_of(picture: Image) -> str:
        sha256 = sha256_bytes(picture.data)
        if sha256 in known:
            return str(known[sha256])
        async with several:
            ref = await carrier.store(lane, picture, f"fabula-{sha256[:32]}")
        await write(books.note_picture(lane.model, sha256, ref, now))
        return ref

    refs = await asyncio.gather(*map(ref_of, large.values()))
    return {base64_text(data): ref for data, ref in zip(large, refs, strict=True)}
