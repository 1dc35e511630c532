"""What a batch brought becomes rows of calls, money spent, and what those hear who wait for a reply.

How an execution uses batches, and how often it looks at them.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import ConfigError
from ...models.batches.service import BatchService, NotDone, Order, Outcome
from ...models.chat import CallFault, ChatRequest, Reply
from ...models.limits import Clock, SystemClock
from ...models.prices import Price, book, highest_cost, most_tokens
from ..calls import Call, Calls, Sending, call_row
from ..group_commit import Statement
from .books import Entry, name_of, settle_request

if TYPE_CHECKING:
    from ...models.options import ModelOptions


@dataclass(frozen=True, slots=True)
class Lane:
    """One model whose service takes batches."""

    model: str  # its spec
    service: BatchService  # takes the batches
    options: "ModelOptions"  # the model's settings
    price: Price | None  # of requests in a batch, USD per token; None where it is not known


@dataclass(slots=True)
class Batch:
    """One batch at work."""

    tag: str  # our name for it
    lane: Lane  # its model
    entries: tuple[Entry, ...] = field(repr=False)  # its requests, in order
    written: float  # when it was written down, in seconds since 1970
    remote: str | None = None  # the service's id; None before it is known
    stop: bool = False  # whether the service was asked to stop it

    def order(self, lines: tuple[bytes, ...] = (), known: frozenset[str] = frozenset()) -> Order:
        """Return it as its service takes it."""
        requests = {name_of(self.tag, entry.number): entry.request for entry in self.entries}
        return Order(self.tag, requests, lines, self.written, known)


@dataclass(slots=True)
class Settlement:
    """What a batch brought."""

    statements: list[Statement] = field(default_factory=list)  # what writes it into the journal
    # USD that were spent, or may have been, each with the stage that asked
    costs: list[tuple[float, str]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)  # those that were answered
    # key and sample of a request -> what whoever waits for it hears; a :class:`NotDone` or a fault that may
    # pass means that it has to be asked again
    heard: dict[tuple[str, int], Outcome] = field(default_factory=dict)


LOST = CallFault("broken_reply", "the batch ended without a word about this request", maybe_paid=True)


def settled(batch: Batch, outcomes: Iterator[tuple[Entry, Outcome]], calls: Calls) -> Settlement:
    """Return what comes of the outcomes of a batch's requests.

    A request that the service may have charged without an answer counts at its bound, as a single call does.
    """
    settlement = Settlement()
    for entry, outcome in outcomes:
        settlement.heard[entry.call] = outcome
        if isinstance(outcome, Reply):
            _book(batch, entry, outcome, settlement)
            continue
        state: str = "failed"
        reason: str | None = str(outcome)
        if isinstance(outcome, NotDone):
            state, reason = outcome.reason, None
        elif outcome.maybe_paid:
            state = "lost"
            sending = Sending(batch.lane.model, entry.key, entry.sample, entry.stage, entry.bound)
            settlement.statements.append(calls.lost(sending))
            settlement.costs.append((entry.bound or 0.0, entry.stage))
        settlement.statements.append(settle_request(batch.tag, entry.number, state, reason))
    return settlement


def _book(batch: Batch, entry: Entry, reply: Reply, settlement: Settlement) -> None:
    lane = batch.lane
    most = most_tokens(entry.request, lane.options)
    booked = None if lane.price is None else book(lane.price, reply.usage, most)
    call = Call(
        entry.key, entry.sample, entry.stage, lane.model, entry.request.canonical(), reply,
        None if booked is None else booked.cost, 1,
        is_read=booked is None or booked.is_read, prompt=entry.prompt,
    )  # fmt: skip
    settlement.calls.append(call)
    settlement.statements += [call_row(call), settle_request(batch.tag, entry.number, "answered")]
    settlement.costs.append((0.0 if booked is None else booked.cost, entry.stage))


def bound_of(lane: Lane, request: ChatRequest) -> float | None:
    """Return the USD that a request costs at most in a batch; None where the price is not known."""
    if lane.price is None:
        return None
    return highest_cost(lane.price, most_tokens(request, lane.options))


HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """How an execution uses batches."""

    on: bool = False  # whether requests go out in batches, to services that take them
    deadline: float | None = None  # hours after which a batch is cancelled; None for never
    then_single: bool = False  # whether what a batch did not answer is asked by itself, at the full price
    first_look: float = 10.0  # seconds before the first look at a batch
    longest_look: float = 600.0  # seconds between two looks, at most
    clock: Clock = field(default_factory=SystemClock)  # what waiting goes by
    # gives the time in seconds since 1970. It says how old a batch is, and stands in no output.
    now: Callable[[], float] = time.time

    def check(self) -> None:
        """Raise ConfigError when an option does not fit the others."""
        for option, given in (("--batch-deadline", self.deadline is not None),
                              ("--batch-then-single", self.then_single)):  # fmt: skip
            if given and not self.on:
                raise ConfigError(option, what="this option goes only with --batch", fix="add --batch")
        if self.deadline is not None and not 0 < self.deadline < float("inf"):
            raise ConfigError(
                "--batch-deadline", expected="hours, more than 0", found=str(self.deadline),
                fix="give another number",
            )  # fmt: skip

    def next_look(self, wait: float) -> float:
        """Return how long to wait next time, after so many seconds: half as long again."""
        return min(wait * 1.5, self.longest_look)
