"""``run cancel``: the batches of a run are stopped at their services, and what they have done is kept."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from ...errors import FabulaError
from ...models.chat import CallFault
from ...models.keys import Redactor
from ...models.options import options_for
from ...models.prices import batch_price_of
from ...models.registry import open_batches
from ...models.spec import parse_spec
from ..asker import model_error
from ..budget import Budget
from ..calls import Calls
from ..hooks import Event
from ..journal import Journal
from ..journal_file import NAME, on_disk
from ..lock import hold
from ..manifest import Manifest, read_manifest
from . import books
from .books import Batching, Lane
from .desk import BatchDesk, House

AT_ONCE = 1e-9  # hours


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What became of the batches of a run that were to be stopped."""

    batches: tuple[books.BatchStatus, ...]  # each of them as it is now
    now: float  # the time, in seconds since 1970
    troubles: tuple[str, ...] = ()  # what went wrong, in lines for people

    @property
    def left(self) -> int:
        """How many of them may still be at work."""
        return sum(batch.is_open for batch in self.batches)

    def as_json(self) -> dict[str, Any]:
        batches = [batch.as_json() for batch in self.batches]
        return {"batches": batches, "left": self.left, "troubles": list(self.troubles)}

    def lines(self) -> Iterator[str]:
        if not self.batches:
            yield "no batch of this run is under way"
        yield from (batch.line(self.now) for batch in self.batches)
        yield from self.troubles
        if self.left:
            yield "give the same command again to go on stopping what is left"


def cancel_batches(
    folder: Path, batching: Batching | None = None, tell: Callable[[Event], None] = lambda _: None
) -> Cancelled:
    """Stop all batches of a run at their services, wait until they are over, and book what they have done.

    Replies that are there by then are in the journal as if the run had waited for them. Killed at any moment,
    the same call goes on.
    """
    folder = Path(folder).absolute()
    manifest = read_manifest(folder)
    settings = replace(batching or Batching(), on=False, then_single=False, deadline=AT_ONCE)
    with hold(folder), Journal.open(folder) as journal:
        calls = Calls(journal)
        try:
            rows = books.kept_batches(calls.rows(books.KEPT))
            kept = [(row, books.entries_of(calls.rows(books.ENTRIES, (row.tag,)))) for row in rows]
            troubles = asyncio.run(_stop(calls, kept, _Lanes(manifest), settings, tell))
            journal.flush()
        finally:
            calls.close()
    tags = {row.tag for row in rows}
    now = tuple(batch for batch in books.batches_in(folder / NAME) if batch.tag in tags)
    return Cancelled(now, settings.now(), tuple(troubles))


class _Lanes:
    """Gets the batches of a run's models ready."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._redactor = Redactor()

    def __call__(self, model: str) -> Lane:
        spec = parse_spec(model)
        options = options_for(spec, self._manifest.models)
        service = open_batches(spec, options, self._redactor)
        day = date.fromisoformat(self._manifest.created_at[:10])
        return Lane(model, service, options, batch_price_of(spec, options, day))


async def _stop(
    calls: Calls,
    kept: list[tuple[books.Kept, list[books.Entry]]],
    lanes: _Lanes,
    settings: Batching,
    tell: Callable[[Event], None],
) -> list[str]:
    """Stop batches and wait for their end; return what went wrong."""
    errors: list[FabulaError] = []

    def failed(model: str, why: FabulaError | CallFault) -> None:
        errors.append(why if isinstance(why, FabulaError) else model_error(model, why))

    house = House(calls, Budget(None, 0.0), lanes, on_disk, failed, lambda: False, lambda _: None)
    desk = BatchDesk(settings, house)
    try:
        desk.start(kept)
        while desk.is_at_work:
            await desk.next_end()
            while desk.events:
                tell(desk.events.pop(0))
    finally:
        await desk.shut()
    if errors:
        raise errors[0]
    return desk.warnings
