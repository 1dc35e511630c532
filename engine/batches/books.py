"""The batches in a run's journal: each with its requests, written down before anything of it is sent.

What a batch may be: ``written``; ``creating``, from before the service is asked to make it until its answer
is there; ``open``, known to the service; then ``done``, ``unsent`` (the service never had it) or ``gone``
(the service has it no more). A request is ``open``, then ``answered``, ``failed``, ``expired``,
``cancelled``, ``lost`` (it may have been paid for) or ``unsent``.
"""

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import ConfigError
from ...models.batches.service import BatchService, NotDone, Order, Outcome
from ...models.chat import CallFault, ChatRequest, Reply
from ...models.limits import Clock, SystemClock
from ...models.prices import Price, book, highest_cost, most_tokens
from ...models.spec import parse_spec
from ...schemas.canonical import Json
from ...schemas.text import quoted
from .. import journal_file
from ..calls import Call, Calls, Sending, call_row, packed, unpacked
from ..journal_file import Statement, explained

if TYPE_CHECKING:
    from ...models.options import ModelOptions

OPEN = ("written", "creating", "open")
"""States of batches that are not settled."""

_PUT_BATCH = "INSERT INTO batches (tag, model, state, written) VALUES (?, ?, 'written', ?)"
_PUT_REQUEST = "INSERT INTO batch_requests VALUES (?, ?, ?, ?, ?, ?, ?, 'open', NULL, ?)"
_CREATING = "UPDATE batches SET state = 'creating', file = ? WHERE tag = ?"
_OPENED = "UPDATE batches SET state = 'open', remote = ?, word = ? WHERE tag = ?"
_LOOKED = "UPDATE batches SET word = ?, answered = ?, failed = ? WHERE tag = ?"
_STOP = "UPDATE batches SET stop = 1 WHERE tag = ?"
_END = "UPDATE batches SET state = ?, word = ?, ended = ?, note = ? WHERE tag = ?"
_SETTLE = "UPDATE batch_requests SET state = ?, reason = ?, asked = NULL WHERE tag = ? AND place = ?"
_SETTLE_REST = (
    "UPDATE batch_requests SET state = ?, reason = ?, asked = NULL WHERE tag = ? AND state = 'open'"
)


class Entry(NamedTuple):
    """One request of a batch."""

    number: int  # its place in the batch, from 0
    request: ChatRequest  # what is asked
    key: str  # of the request
    sample: int  # which sample of the reply
    stage: str  # that asks
    bound: float | None  # USD that it costs at most; None where the price is not known
    prompt: str | None = None  # the prompt that it was made from, as ``id@version#hash``

    @property
    def call(self) -> tuple[str, int]:
        """Under what its reply is kept."""
        return self.key, self.sample


class Kept(NamedTuple):
    """A batch in the journal that is not settled, without its requests."""

    tag: str
    model: str
    state: str
    remote: str | None
    file: str | None
    written: float
    stop: bool


def name_of(tag: str, number: int) -> str:
    """Return the name that a request has in its batch: letters, digits, ``-``, at most 64."""
    return f"{tag}-{number}"


def write_down(tag: str, model: str, written: float, entries: Iterable[Entry]) -> list[Statement]:
    """Return what writes a batch into the journal."""
    rows: list[Statement] = [(_PUT_BATCH, (tag, model, written))]
    for entry in entries:
        asked = packed(entry.request.canonical())
        row = (tag, entry.number, entry.key, entry.sample, entry.stage, asked, entry.bound, entry.prompt)
        rows.append((_PUT_REQUEST, row))
    return rows


def note_creating(tag: str, file: str) -> Statement:
    """Return what notes that the service is about to be asked to make a batch."""
    return _CREATING, (file, tag)


def note_open(tag: str, remote: str, word: str) -> Statement:
    """Return what notes that the service has made a batch."""
    return _OPENED, (remote, word, tag)


def note_look(tag: str, word: str, answered: int | None, failed: int | None) -> Statement:
    """Return what notes what the service says of a batch."""
    return _LOOKED, (word, answered, failed, tag)


def note_stop(tag: str) -> Statement:
    """Return what notes that the service was asked to stop a batch."""
    return _STOP, (tag,)


def settle_request(tag: str, number: int, state: str, reason: str | None = None) -> Statement:
    """Return what notes what became of one request."""
    return _SETTLE, (state, reason, tag, number)


class End(NamedTuple):
    """How a batch ended: its state, the service's word for it, when, and why where that is to be said."""

    state: str
    word: str | None
    ended: float
    note: str | None = None


def end_batch(tag: str, end: End, rest: str = "lost") -> list[Statement]:
    """Return what notes that a batch is over; requests that are still open get the state ``rest``."""
    return [(_SETTLE_REST, (rest, end.note, tag)), (_END, (*end, tag))]


def note_picture(model: str, picture: str, ref: str, stored: float) -> Statement:
    """Return what notes that a picture, by its SHA-256, is in the store of a model's service."""
    return "INSERT OR REPLACE INTO batch_pictures VALUES (?, ?, ?, ?)", (model, picture, ref, stored)


PICTURES = "SELECT picture, ref FROM batch_pictures WHERE model = ? AND stored >= ?"
"""Selects the pictures that were stored since a moment."""


def has_batches(connection: Any) -> bool:  # noqa: ANN401 - a connection of sqlite3
    """Return whether a journal has tables for batches: those of older formats have none."""
    sql = "SELECT count(*) FROM sqlite_master WHERE name = 'batches'"
    return bool(connection.execute(sql).fetchone()[0])


_KEPT = (
    "SELECT tag, model, state, remote, file, written, stop FROM batches"
    f" WHERE state IN ({','.join(repr(state) for state in OPEN)}) ORDER BY written, tag"
)
_ENTRIES = (
    "SELECT place, asked, request, sample, stage, bound, prompt FROM batch_requests"
    " WHERE tag = ? AND state = 'open' ORDER BY place"
)


def kept_batches(rows: Sequence[Any]) -> list[Kept]:
    """Return the unsettled batches in what :data:`KEPT` selects."""
    return [Kept(*row)._replace(stop=bool(row[-1])) for row in rows]


KEPT, ENTRIES = _KEPT, _ENTRIES


def entries_of(rows: Sequence[Any]) -> list[Entry]:
    """Return the requests in what :data:`ENTRIES` selects; one whose row is damaged is left out."""
    entries = []
    for number, asked, key, sample, stage, bound, prompt in rows:
        try:
            request = ChatRequest.from_canonical(unpacked(asked))
        except (zlib.error, ValueError, LookupError, TypeError, AttributeError):
            continue
        entries.append(Entry(number, request, key, sample, stage, bound, prompt))
    return entries


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """One batch of a run, as it stands in the journal."""

    tag: str  # our name for it
    remote: str | None  # the service's id; None where it is not known
    model: str  # spec of the model
    stages: tuple[str, ...]  # the stages that ask
    state: str  # see the module
    word: str | None  # the service's last word for where it is
    written: float  # when it was written down, in seconds since 1970
    ended: float | None  # when it was settled; None while it is not
    requests: int  # how many it has
    answered: int  # of these, those that are answered
    failed: int  # those that got no answer, whatever the reason
    open: int  # those of which nothing is known yet; the three add up to ``requests``
    reported: int | None  # requests that the service says are answered; None where it has not said
    bound: float | None  # USD that the open ones cost at most; None where the price is not known
    cost: float | None  # USD that the answered ones cost; None where the price of one is not known
    stop: bool  # whether the service was asked to stop it
    note: str | None  # why it ended as it did, where that is to be said

    @property
    def is_open(self) -> bool:
        """Whether the service may be at work on it."""
        return self.state in ("creating", "open")

    @property
    def name(self) -> str:
        """What people look for at the service: its id, else our name for it."""
        return self.remote or self.tag

    def age(self, now: float) -> float:
        """Return how many hours it took, or has taken by now."""
        return max(0.0, (now if self.ended is None else self.ended) - self.written) / 3600.0

    def as_json(self) -> dict[str, Json]:
        document: dict[str, Json] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**document, "stages": list(self.stages)}

    def line(self, now: float) -> str:
        provider = parse_spec(self.model).provider
        word = f", {self.word}" if self.word and self.word != self.state else ""
        text = (
            f"batch {self.name} at {provider} ({', '.join(self.stages)}): {self.state}{word},"
            f" {self.age(now):.1f} h; {self.requests} requests = {self.answered} answered"
            f" + {self.failed} failed + {self.open} open"
        )
        if self.is_open and self.reported is not None:
            text += f", {self.reported} answered there"
        if self.open:
            text += ", price not known" if self.bound is None else f", at most {self.bound:.4f} USD to come"
        if self.answered and self.cost is not None:
            text += f", {self.cost:.4f} USD"
        return text + (f"; {self.note}" if self.note else "")


_STATUS = """
SELECT b.tag, b.remote, b.model, (SELECT group_concat(stage) FROM
    (SELECT DISTINCT stage FROM batch_requests s WHERE s.tag = b.tag ORDER BY stage)),
    b.state, b.word, b.written, b.ended, count(r.place), coalesce(sum(r.state = 'answered'), 0),
    coalesce(sum(r.state NOT IN ('answered', 'open')), 0), coalesce(sum(r.state = 'open'), 0), b.answered,
    CASE WHEN sum(r.state = 'open' AND r.bound IS NULL) > 0 THEN NULL
        ELSE coalesce(exact_sum(CASE WHEN r.state = 'open' THEN r.bound END), 0.0) END,
    CASE WHEN sum(r.state = 'answered' AND c.cost IS NULL) > 0 THEN NULL
        ELSE coalesce(exact_sum(CASE WHEN r.state = 'answered' THEN c.cost END), 0.0) END,
    b.stop, b.note
FROM batches b LEFT JOIN batch_requests r ON r.tag = b.tag
LEFT JOIN calls c ON c.request = r.request AND c.sample = r.sample
GROUP BY b.tag ORDER BY b.written, b.tag
"""


def batches_in(path: Path) -> tuple[BatchStatus, ...]:
    """Return the batches in a journal, oldest first; reads only."""
    with explained(path), closing(journal_file.connect(path, read_only=True)) as connection:
        if not has_batches(connection):
            return ()
        rows = connection.execute(_STATUS).fetchall()
    return tuple(map(_status, rows))


def _status(row: Any) -> BatchStatus:  # noqa: ANN401 - a row of what _STATUS selects
    stages = tuple((row[3] or "").split(","))
    return replace(BatchStatus(*row), stages=stages, stop=bool(row[15]))


def counts_of(batches: Iterable[BatchStatus]) -> Mapping[str, int]:
    """Return the sums of the requests in batches that the services were given."""
    some = [batch for batch in batches if batch.state != "unsent"]
    return {name: sum(getattr(batch, name) for batch in some)
            for name in ("requests", "answered", "failed", "open")}  # fmt: skip


def counts_line(batches: Iterable[BatchStatus]) -> str:
    """Return the sums of the requests in batches in one line for people."""
    sums = counts_of(batches)
    return (
        f"in batches: {sums['requests']} requests = {sums['answered']} answered + {sums['failed']} failed"
        f" + {sums['open']} open; a request that failed is in another batch, too, where it was sent again"
    )


def running_lines(path: Path, run: Path) -> list[str]:
    """Return what people must know when a run stops while batches of it are at work; empty where none are."""
    running = [batch for batch in batches_in(path) if batch.is_open] if path.exists() else []
    if not running:
        return []
    bounds = [batch.bound for batch in running]
    cost = (
        "at a price that is not known"
        if None in bounds
        else f"which cost up to {sum(bound for bound in bounds if bound is not None):.4f} USD"
    )
    plural = "1 batch keeps" if len(running) == 1 else f"{len(running)} batches keep"
    lines = [f"{plural} running at the service, {cost}:"]
    for batch in running:
        provider = parse_spec(batch.model).provider
        lines.append(f"  {batch.name} at {provider}: {batch.open} requests of {', '.join(batch.stages)}")
    lines.append(
        f"the same command continues and collects them; to stop them: fabula run cancel {quoted(run)}"
    )
    return lines


# -- What a batch brought becomes rows of calls, money spent, and what those hear who wait for a reply
#
# How an execution uses batches, and how often it looks at them.


@dataclass(frozen=True, slots=True)
class Lane:
    """One model whose service takes batches."""

    model: str  # its spec
    service: BatchService  # takes the batches
    options: "ModelOptions"  # the model's settings
    price: Price | None  # of requests in a batch, USD per token; None where it is not known


@dataclass(slots=True)
class Batch:
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
