"""The calls of models in a run's journal: raw replies by request, and what was sent and never came back.

A reply is on disk before anything uses it. A call that is under way has a line in ``sent``; the line goes
when the reply is there. What a killed process left there may have been charged: it counts at its upper bound.
"""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FabulaError
from ..models.chat import ChatRequest, Reply, Usage
from ..schemas.canonical import Json, plain_parts
from ..schemas.plain_files import unzipped
from ..schemas.text import tallied
from . import journal_file
from .journal import Journal
from .journal_file import Done, Statement, explained

LEVEL = 1  # replies are small: a higher level saves little and costs time on every call


_ANSWERED = """
SELECT stage, model, sum(attempts > 0), sum(attempts),
    coalesce(sum(CASE WHEN attempts > 0 THEN input_tokens END), 0),
    coalesce(sum(CASE WHEN attempts > 0 THEN output_tokens END), 0),
    coalesce(exact_sum(cost), 0.0), sum(cost IS NULL AND attempts > 0), 0, 0.0, sum(attempts = 0),
    sum(attempts > 0 AND (input_tokens IS NULL OR output_tokens IS NULL OR doubt IS 'unread')),
    sum(attempts > 0 AND doubt IS 'overclaimed'),
    coalesce(sum(CASE WHEN attempts > 0 THEN {cached_tokens} END), 0),
    coalesce(sum(CASE WHEN attempts > 0 THEN {written_tokens} END), 0)
FROM calls GROUP BY stage, model
"""
_AT_MOST = ": booked at the most that a call can cost"
_UNANSWERED = """
SELECT stage, model, count(*), coalesce(exact_sum(bound), 0.0) FROM sent GROUP BY stage, model
"""


UNUSABLE = "unusable:"
"""Begin of the facts that say which replies that a result came from were of no use, and what they were."""
_OF_EACH_PROMPT = "SELECT model, {prompt}, count(*) FROM calls GROUP BY 1, 2 ORDER BY 2, 1"
_OF_NO_USE = f"""
SELECT model, {{prompt}}, what, count(*) FROM calls JOIN (
    SELECT DISTINCT json_extract(each.value, '$[0]') AS request, json_extract(each.value, '$[1]') AS sample,
        json_extract(each.value, '$[2]') AS what
    FROM meta, json_each(CASE WHEN json_valid(meta.value) THEN meta.value ELSE '[]' END) AS each
    WHERE name GLOB '{UNUSABLE}*'
) USING (request, sample) GROUP BY 1, 2, 3
"""


@contextmanager
def replies_in(paths: Iterable[Path]) -> Iterator[Callable[[str, int], Reply | None]]:
    """Give what looks a reply up by request and sample, in several journals; reads only."""
    with ExitStack() as opened:
        readers = []
        for path in paths:
            opened.enter_context(explained(path))
            readers.append(opened.enter_context(closing(journal_file.connect(path, read_only=True))))

        def find(request: str, sample: int) -> Reply | None:
            sql = "SELECT reply FROM calls WHERE request = ? AND sample = ?"
            for reader in readers:
                row = reader.execute(sql, (request, sample)).fetchone()
                with suppress(*DAMAGED):
                    if row is not None:
                        return Reply.from_json(unpacked(row[0]))
            return None

        yield find


@dataclass(frozen=True, slots=True)
class Call:
    """One call that was answered."""

    request: str  # key of the request
    sample: int  # which answer to it
    stage: str  # the stage that asked first
    model: str  # spec of the model
    asked: Mapping[str, Json]  # the request's canonical form
    reply: Reply  # what came back
    cost: float | None  # USD; None where the price is not known
    attempts: int  # how often it was sent until it was answered; 0 for a reply taken over from another run
    # whether the counts that its cost depends on could be read; only known while it is written
    is_read: bool = True
    # the prompt that it was asked with, as ``id@version#hash``; only known while it is written
    prompt: str | None = None

    def as_json(self) -> dict[str, Json]:
        names = ("request", "sample", "stage", "model", "asked", "reply", "cost", "attempts")
        return plain_parts(self, *names)


class Outgoing(NamedTuple):
    """One call that a model gets."""

    request: ChatRequest  # what is asked
    key: str  # of the request
    sample: int  # which sample of the reply
    stage: str  # that asks
    prompt: str | None = None  # the prompt that it was made from, as ``id@version#hash``


@dataclass(frozen=True, slots=True)
class Sending:
    """A request that is about to be sent, and the USD that it costs at most, if that is known."""

    model: str
    request: str
    sample: int
    stage: str
    bound: float | None


def usd_text(cost: float, unpriced: int) -> str:
    """Return a cost as people read it: ``unknown`` where only calls without a known price were made.

    ``unpriced``: how many calls have no known price; they are not in ``cost``.
    """
    return "unknown" if unpriced and not cost else f"{cost:.4f}"


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one stage used of one model."""

    stage: str  # the stage
    model: str  # the model's spec
    calls: int = 0  # answered calls
    attempts: int = 0  # requests sent for them
    input_tokens: int = 0  # as the service counted them
    output_tokens: int = 0  # the same for the replies
    cost: float = 0.0  # USD of the calls whose price is known
    unpriced: int = 0  # calls whose price is not known
    # requests that got no answer and may have been charged; of a run that is at work now, also those that are
    # under way
    uncertain: int = 0
    uncertain_cost: float = 0.0  # USD that those cost at most
    taken_over: int = 0  # replies taken over from other runs, for nothing; they count in no other number
    # calls whose tokens the service did not tell, or not so that they can be read; what is missing counts at
    # the most that it can cost
    unread: int = 0
    # calls for which the service claims more tokens than they can have used; they count at the most that they
    # can have used
    overclaimed: int = 0
    cached_tokens: int = 0  # of the input tokens, those that the service had kept
    written_tokens: int = 0  # of the input tokens, those that it kept and charged for

    def line(self) -> str:
        paid = f"{self.cost:.4f} USD"
        if self.unpriced:
            rest = tallied(self.unpriced, "calls") if self.unpriced < self.calls else "calls"
            paid = f"{paid} and {rest} at a price that is not known" if self.cost else "price not known"
        text = (
            f"{self.stage}: {tallied(self.calls, 'calls')} of {self.model},"
            f" {self.input_tokens} tokens in{self._kept()}, {self.output_tokens} out, {paid}"
        )
        if self.uncertain:
            requests = "request" if self.uncertain == 1 else "requests"
            text += (
                f"; {self.uncertain} {requests} without a reply may cost up to {self.uncertain_cost:.4f} more"
            )
        if self.taken_over:
            text += f"; {tallied(self.taken_over, 'replies')} taken over from other runs"
        if self.unread:
            replies = "reply gives" if self.unread == 1 else "replies give"
            text += f"; {self.unread} {replies} no count of tokens that can be read{_AT_MOST}"
        if self.overclaimed:
            replies = "reply claims" if self.overclaimed == 1 else "replies claim"
            text += f"; {self.overclaimed} {replies} more tokens than the request can have used{_AT_MOST}"
        return text

    def _kept(self) -> str:
        counts = {"read from a cache": self.cached_tokens, "written into one": self.written_tokens}
        kept = [f"{count} {what}" for what, count in counts.items() if count]
        return f" ({', '.join(kept)})" if kept else ""


@dataclass(frozen=True, slots=True)
class PromptReplies:
    """What a model's replies to one prompt were."""

    prompt: str  # as ``id@version#hash``; empty where the run is older than such notes
    model: str  # the model's spec
    replies: int  # all that came
    unusable: Mapping[str, int]  # what those of no use were, such as ``cut off`` -> how many

    def line(self) -> str:
        several = ", ".join(f"{count} {what}" for what, count in self.unusable.items())
        prompt = self.prompt.partition("#")[0] or "earlier prompts"
        bad = sum(self.unusable.values())
        return f"{prompt}: {bad} of {tallied(self.replies, 'replies')} of {self.model} of no use: {several}"


def replies_by_prompt(path: Path) -> tuple[PromptReplies, ...]:
    """Return what the replies to each prompt were, over all the time of the run; sorted."""
    bad: dict[tuple[str, str | None], dict[str, int]] = {}
    for model, prompt, what, count in rows_of(path, _OF_NO_USE):
        bad.setdefault((model, prompt), {})[str(what)] = count
    return tuple(
        PromptReplies(prompt or "", model, count, bad.get((model, prompt), {}))
        for model, prompt, count in rows_of(path, _OF_EACH_PROMPT)
    )


ON_THIS_MACHINE = "on-this-machine:"
"""What the fact begins with that says for how many seconds a run held an open model."""


class Calls:
    """Reads and writes the calls in a journal. Reading uses a connection of its own.

    ``journal``: of the run. ``others``: folders of other runs, whose replies may be taken over.

    Raises RunError: one of the others is no run.
    """

    def __init__(self, journal: Journal, others: Sequence[Path] = ()) -> None:
        self._journal = journal
        self._others: list[tuple[Path, sqlite3.Connection]] = []
        for other in others:
            self._open_other(other / journal_file.NAME)
        self._reader = journal_file.connect(journal.path, read_only=True)
        self._sent = int(self._number("SELECT coalesce(max(id), 0) FROM sent"))

    def _open_other(self, path: Path) -> None:
        try:
            with explained(path):
                connection = journal_file.connect(path, read_only=True)
                self._others.append((path, connection))
                journal_file.check_format(path, connection)
        except FabulaError:
            self._close_others()
            raise

    def _close_others(self) -> None:
        for _, connection in self._others:
            connection.close()

    def close(self) -> None:
        self._close_others()
        self._reader.close()

    def find(self, request: str, sample: int) -> Reply | None:
        """Return the reply to a request, if it was ever answered."""
        sql = "SELECT reply FROM calls WHERE request = ? AND sample = ?"
        with explained(self._journal.path):
            row = self._reader.execute(sql, (request, sample)).fetchone()
        try:
            return None if row is None else Reply.from_json(unpacked(row[0]))
        except DAMAGED:
            self._forget(request, sample)
            return None

    def _forget(self, request: str, sample: int) -> None:
        """Take a reply that cannot be read for one that was lost: it counts as not asked, and as paid."""
        self._sent += 1
        key = (request, sample)
        self._journal.write((journal_file.LOSE_CALL, (self._sent, *key)), (journal_file.DROP_CALL, key))

    def stages(self) -> frozenset[str]:
        """Return the stages that asked anything."""
        with explained(self._journal.path):
            return frozenset(name for (name,) in self._reader.execute("SELECT DISTINCT stage FROM calls"))

    def cost(self, request: str, sample: int) -> float | None:
        """Return the USD that the run paid for a reply that it holds; None where the price is not known."""
        sql = "SELECT cost FROM calls WHERE request = ? AND sample = ?"
        with explained(self._journal.path):
            row = self._reader.execute(sql, (request, sample)).fetchone()
        return None if row is None else row[0]

    def elsewhere(self, request: str, sample: int) -> Call | None:
        """Return the call that another run holds for a request, as one that costs nothing here."""
        sql = f"SELECT {_COLUMNS} FROM calls c WHERE request = ? AND sample = ?"
        for path, connection in self._others:
            with explained(path):
                row = connection.execute(sql, (request, sample)).fetchone()
            with suppress(*DAMAGED):
                if row is not None:
                    return replace(_call(row), cost=0.0, attempts=0)
        return None

    def put(self, call: Call, sent: int, done: Done) -> None:
        """Queue a reply; ``done`` is told when it is on disk. The line in ``sent`` goes with it.

        ``sent`` is 0 for a reply taken over from another run.
        """
        # Together: a kill in between would take the call off the books, or leave it there twice.
        self._journal.write((journal_file.DROP_SENT, (sent,)), call_row(call), done=done)

    def lost(self, sending: Sending) -> Statement:
        """Return what books a request as sent and lost, at its bound."""
        self._sent += 1
        row = (self._sent, sending.request, sending.sample, sending.stage, sending.model, sending.bound)
        return journal_file.PUT_LOST, row

    def write(self, *statements: Statement, done: Done | None = None) -> None:
        """Queue statements, all of which or none get to disk; ``done`` is told when."""
        self._journal.write(*statements, done=done)

    @property
    def path(self) -> Path:
        """The journal's file."""
        return self._journal.path

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with explained(self._journal.path):
            return self._reader.execute(sql, values).fetchall()

    def send(self, sending: Sending, done: Done | None = None) -> int:
        """Note that a request is about to be sent; return the note's number."""
        self._sent += 1
        row = (self._sent, sending.request, sending.sample, sending.stage, sending.model, sending.bound)
        self._journal.write((journal_file.PUT_SENT, row), done=done)
        return self._sent

    def unsend(self, sent: int, *, charged: bool) -> None:
        """Settle a request that got no reply; one that may have been charged stays on the books."""
        if charged:
            self._journal.write((journal_file.MARK_SENT, ("uncertain", sent)))
        else:
            self._journal.write((journal_file.DROP_SENT, (sent,)))

    def mark_lost(self) -> None:
        """Mark what a process that died had under way. Only the holder of the run may."""
        self._journal.write((journal_file.MARK_LOST, ()))
        self._journal.flush()

    def spent(self) -> float:
        """Return the USD spent so far: what was charged, and the bounds of what may have been."""
        rows = "SELECT cost AS usd FROM calls UNION ALL SELECT bound FROM sent"
        return self._number(f"SELECT coalesce(exact_sum(usd), 0.0) FROM ({rows})")

    def spent_by_stage(self) -> dict[str, float]:
        rows = "SELECT stage, cost AS usd FROM calls UNION ALL SELECT stage, bound FROM sent"
        return dict(self.rows(f"SELECT stage, coalesce(exact_sum(usd), 0.0) FROM ({rows}) GROUP BY stage"))

    def unpriced(self) -> Iterator[Call]:
        """Yield each call that was answered when its price was not known."""
        sql = f"SELECT {_COLUMNS} FROM calls c WHERE cost IS NULL AND attempts > 0"
        with explained(self._journal.path):
            yield from map(_call, self._reader.execute(sql))

    def is_batched(self, call: Call) -> bool:
        sql = "SELECT count(*) FROM batch_requests WHERE request = ? AND sample = ? AND state = 'answered'"
        return bool(self.rows(sql, (call.request, call.sample))[0][0])

    def link(
        self, result: str, asked: Iterable[tuple[str, int]], unusable: Mapping[tuple[str, int], str]
    ) -> None:
        """Keep which calls a result was made from, and what those replies were that were of no use."""
        lines = [(result, index, *call) for index, call in enumerate(asked)]
        name, rows = f"{UNUSABLE}{result}", [[*call, what] for call, what in unusable.items()]
        self._journal.write(
            (journal_file.DROP_ASKS, (result,)), *((journal_file.PUT_ASK, line) for line in lines),
            (journal_file.PUT_META, (name, json.dumps(rows))) if rows else (journal_file.DROP_META, (name,)),
        )  # fmt: skip

    def _number(self, sql: str) -> float:
        with explained(self._journal.path):
            (number,) = self._reader.execute(sql).fetchone()
        return float(number)


def call_row(call: Call) -> Statement:
    """Return what writes a call into a journal."""
    usage = call.reply.usage
    if usage is None and call.is_read and call.cost is not None:
        usage = Usage()  # such as a picture, which has a price of its own whatever tokens it takes
    row = (
        call.request, call.sample, call.stage, call.model, packed(call.asked), packed(call.reply.as_json()),
        None if usage is None else usage.input_tokens, None if usage is None else usage.output_tokens,
        call.cost, call.attempts, _doubt(call), call.prompt,
        None if usage is None else usage.cached_tokens, None if usage is None else usage.cache_write_tokens,
    )  # fmt: skip
    return journal_file.PUT_CALL, row


def calls_of(journal: Journal, result: str) -> list[Call]:
    """Return the calls that a result was made from, in order."""
    sql = (
        f"SELECT {_COLUMNS} FROM asks a JOIN calls c USING (request, sample)"
        " WHERE a.result = ? ORDER BY a.place"
    )
    return list(_readable(rows_of(journal.path, sql, (result,))))


def answered(path: Path) -> Iterator[Call]:
    """Yield every call in a journal that can be read, in the order of their keys."""
    yield from _readable(rows_of(path, f"SELECT {_COLUMNS} FROM calls c ORDER BY request, sample"))


_COLUMNS = "c.request, c.sample, c.stage, c.model, c.asked, c.reply, c.cost, c.attempts"


def _readable(rows: Iterable[Sequence[Any]]) -> Iterator[Call]:
    for row in rows:
        with suppress(*DAMAGED):  # it counts as not asked
            yield _call(row)


def _call(row: Sequence[Any]) -> Call:
    request, sample, stage, model, asked, reply, cost, attempts = row
    return Call(
        request, sample, stage, model, unpacked(asked), Reply.from_json(unpacked(reply)), cost, attempts
    )


def model_uses(path: Path) -> tuple[ModelUse, ...]:
    """Return what each stage used of each model, over all the time of the run; sorted."""
    uses: dict[tuple[str, str], ModelUse] = {}
    for row in rows_of(path, _ANSWERED):
        uses[row[0], row[1]] = ModelUse(*row)
    for stage, model, count, bound in rows_of(path, _UNANSWERED):
        known = uses.get((stage, model), ModelUse(stage, model))
        uses[stage, model] = replace(known, uncertain=count, uncertain_cost=bound)
    return tuple(uses[key] for key in sorted(uses))


def rows_of(path: Path, sql: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield what a query about calls gives."""
    with explained(path), closing(journal_file.connect(path, read_only=True)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('calls')")}
        for column in ("prompt", "cached_tokens", "written_tokens"):
            sql = sql.replace(f"{{{column}}}", column if column in there else "NULL")
        yield from connection.execute(sql, values)


def _doubt(call: Call) -> str | None:
    if call.reply.claimed is not None:
        return "overclaimed"
    return None if call.is_read else "unread"


def packed(document: Mapping[str, Json]) -> bytes:
    """Return a request or reply as a row of calls holds it."""
    # Escaped, because a hostile reply may hold lone surrogates, which UTF-8 does not have.
    return zlib.compress(json.dumps(document, sort_keys=True).encode("ascii"), LEVEL)


DAMAGED = (zlib.error, ValueError, LookupError, TypeError, AttributeError)
"""What :func:`unpacked` and the readers of what it returns raise where a row is damaged."""


def unpacked(blob: bytes) -> dict[str, Any]:
    """Return the document that a row of calls holds, of a request or a reply."""
    document: dict[str, Any] = json.loads(unzipped(blob))
    return document
