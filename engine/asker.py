"""What answers the questions of model stages: the journal, then the model, within budget and limits."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..errors import ConfigError, FabulaError, ModelUnavailable
from ..models.chat import FATAL, TRANSIENT, CallFault, ChatRequest, Message, Reply
from ..models.client import ModelClient, ModelDown
from ..models.prices import Booked, Price, book, estimate_request, highest_cost, most_tokens
from ..models.replies import OUT_OF_FORM, SENSELESS, Malformed, named_outcome, parse_reply
from ..models.spec import ATTEMPT, ModelSettings, notes_on, parse_spec
from ..schemas.canonical import Json
from .batches.books import Batching, Lane
from .batches.desk import AskSingly, BatchDesk, House
from .budget import Budget, known_price, over_budget
from .calls import Call, Calls, Outgoing, Sending
from .config import MOST_ATTEMPTS, RunConfig
from .journal import NAME as JOURNAL
from .journal import Journal
from .journal_file import Done, on_disk
from .manifest import NAME as MANIFEST
from .manifest import read_manifest
from .stage import UNAVAILABLE, UNUSABLE, Answer, Ask, BadReply, NoAnswer, Receipt

if TYPE_CHECKING:
    from ..models.options import ModelOptions

_WORDS: dict[str, tuple[str, str]] = {
    "no_key": (
        "there is no API key",
        "set the variable that the message names, in the environment or in a .env file",
    ),
    "key_refused": ("the service refuses the key", "check the key and what it is allowed to use"),
    "no_quota": ("the account has no credit or quota left", "add credit or wait for the quota to be renewed"),
    "no_such_model": ("there is no such model", "check the name after the colon or #"),
    "not_an_api": (
        "what answers is not the API of a model",
        "check the address: http://HOST/v1#NAME in full, or base_url in the model's settings;"
        " OpenAI-compatible ones mostly end in /v1",
    ),
    "unsupported": ("the model refuses a part of the request", "change the setting that the message names"),
}
_DOWN = ("the service does not answer", "wait until it is well, or choose another model")
_OWN_DOWN = ("the server does not answer", "start it, or check its address; or choose another model")


def model_error(spec: str, fault: CallFault) -> ModelUnavailable:
    """Return the error that stops a run because of a fault."""
    down = _OWN_DOWN if parse_spec(spec).is_own else _DOWN
    said, fix = _WORDS.get(fault.kind, down)
    if fault.kind in TRANSIENT:
        slow = "if it is only slow, raise call_timeout and patience, or lower concurrency"
        fix += f'; {slow}, under [models."{spec}"] in fabula.toml'
    return ModelUnavailable(
        f"model {spec}", what=f"{said}: {fault.message}",
        fix=f"{fix}; then give the same command again: it continues where it stopped",
    )  # fmt: skip


T = TypeVar("T")

REPAIR = "repair_reply"
"""Id of the prompt that sends a malformed reply back."""
_QUOTED = 8000  # characters of a malformed reply that a repair request repeats


class Closed(Exception):
    """No new call may be made any more: the run is being stopped."""


@dataclass(slots=True)
class Line:
    """One model, ready to be asked."""

    client: ModelClient  # sends requests, with retries and limits
    options: "ModelOptions"  # the model's settings
    price: Price | None  # USD per token; None where it is not known


class Replies(Protocol):
    """Where the replies to questions come from."""

    attempts: int
    """Most attempts at a question while none gives a usable answer."""

    def prepared(self, request: ChatRequest) -> ChatRequest:
        """Return a request as the model's settings want it asked."""
        ...

    async def reply(
        self, request: ChatRequest, sample: int, stage: str, prompt: str | None = None
    ) -> tuple[str, Reply]:
        """Return the key of a request and the reply to it; see :meth:`Desk.reply`."""
        ...

    def cost(self, request: str, sample: int) -> float | None:
        """Return the USD that the run paid for a reply; None where the price is not known."""
        ...

    def note(self, *, at_work: int = 0, waiting: int = 0) -> None:
        """Count items that begin or end, or that begin or end to wait."""
        ...


class Desk:
    """Gets replies, each at most once: what all items and stages of an execution share.

    Used in one event loop.

    ``calls``: the journal's calls. ``budget``: the cost limit. ``options``: settings of every model that may
    be asked, by spec. ``open_line``: gets a model ready; called when it is first needed. ``attempts``: most
    attempts at a question while none gives a usable answer.
    """

    def __init__(
        self,
        calls: Calls,
        budget: Budget,
        options: Mapping[str, "ModelOptions"],
        open_line: Callable[[str], Line],
        attempts: int = 1,
    ) -> None:
        self.calls = calls
        self.attempts = attempts
        self.budget = budget
        self.closing: FabulaError | Closed | None = None
        self._options = options
        self._open_line = open_line
        self._lines: dict[str, Line] = {}
        self._flying: dict[tuple[str, int], asyncio.Task[Reply]] = {}
        self.unsent: set[asyncio.Task[Any]] = set()
        """Calls that wait for money, a slot, a limit, a pause or a batch: giving them up loses nothing."""
        self.batches: BatchDesk | None = None
        self.keeps, self.kept = False, deque[Call]()
        """Whether answered calls are kept for somebody who wants to know of them, and those that are."""
        self.under_way: dict[object, float] = {}
        """Requests that are sent and have no reply yet -> when, by the clock that only grows."""
        self.at_work = self.waiting = 0
        """Items that are worked on, and those of them that wait for a reply."""

    def use_batches(self, settings: Batching, open_lane: Callable[[str], Lane]) -> BatchDesk:
        """Send requests in batches from now on, where their services take them; return what does."""
        house = House(
            self.calls, self.budget, open_lane, on_disk, self._failed, self._is_quiet, self._note_answered
        )
        self.batches = BatchDesk(settings, house)
        return self.batches

    def _failed(self, model: str, why: FabulaError | CallFault) -> None:
        self.close_with(why if isinstance(why, FabulaError) else model_error(model, why))

    def _is_quiet(self) -> bool:
        """Whether nobody can go on before a batch is answered."""
        parked = 0 if self.batches is None else self.batches.waiting
        return self.closing is None and self.at_work == self.waiting and len(self._flying) == parked

    def note(self, *, at_work: int = 0, waiting: int = 0) -> None:
        """Count items that begin or end, or that begin or end to wait."""
        self.at_work += at_work
        self.waiting += waiting
        if self.batches is not None:
            self.batches.wake()

    def close_with(self, why: FabulaError | Closed) -> None:
        """Make no new call any more, and give up those that are not sent; the first reason counts."""
        if self.closing is None:
            self.closing = why
        for task in self.unsent:
            task.cancel()

    async def shut(self) -> None:
        """Close all connections; one that cannot be closed keeps no other open."""
        closing = [line.client.close() for line in self._lines.values()]
        if self.batches is not None:
            closing.append(self.batches.shut())
        await asyncio.gather(*closing, return_exceptions=True)

    def prepared(self, request: ChatRequest) -> ChatRequest:
        """Return a request as the model's settings want it asked."""
        return self._options[request.model].apply(request)

    def cost(self, request: str, sample: int) -> float | None:
        """Return the USD that the run paid for a reply that it holds; None where the price is not known."""
        return self.calls.cost(request, sample)

    async def reply(
        self, request: ChatRequest, sample: int, stage: str, prompt: str | None = None
    ) -> tuple[str, Reply]:
        """Return the key of a request and the reply to it: from the journal, or else from the model."""
        key = request.key()
        task = self._flying.get((key, sample))
        if task is None:
            known = self.calls.find(key, sample)
            if known is not None:
                return key, known
            other = self.calls.elsewhere(key, sample)
            call = Outgoing(request, key, sample, stage, prompt)
            work = self._ask(call) if other is None else self._take_over(other, call)
            task = asyncio.create_task(work)
            self._flying[key, sample] = task
            task.add_done_callback(lambda done: self._landed((key, sample), done))
        # Whoever waits may be cancelled; a call that is under way is finished and kept.
        return key, await asyncio.shield(task)

    def _landed(self, call: tuple[str, int], task: "asyncio.Task[Reply]") -> None:
        self._flying.pop(call, None)
        self.note()
        if not task.cancelled():
            task.exception()  # looked at, in case nobody waits for it any more

    def line(self, spec: str, stage: str) -> Line:
        """Return a model, ready to be asked by a stage."""
        if self.budget.is_limited(stage):
            known_price(spec, self._options[spec])
        if spec not in self._lines:
            self._lines[spec] = self._open_line(spec)
        return self._lines[spec]

    def loading(self) -> dict[str, float]:
        """Return the models that are being loaded on this machine, and for how many seconds."""
        lines = {spec: line.client.loading for spec, line in tuple(self._lines.items())}
        return {spec: seconds for spec, seconds in lines.items() if seconds is not None}

    async def _ask(self, call: Outgoing) -> Reply:
        if self.closing is not None:
            raise Closed
        try:
            if self.batches is not None and self.batches.takes(call):
                with suppress(AskSingly):
                    return await self._wait_for_batch(self.batches, call)
            return await self._ask_singly(call)
        except asyncio.CancelledError:
            if self.closing is None:
                raise
            raise Closed from None
        except CallFault as fault:
            if fault.kind in FATAL or isinstance(fault, ModelDown):
                self.close_with(model_error(call.request.model, fault))
                raise Closed from fault
            code = fault.kind if fault.kind in ("too_long", "bad_request") else UNAVAILABLE
            raise NoAnswer(code, str(fault)) from fault
        except FabulaError as error:
            self.close_with(error)
            raise Closed from error

    async def _wait_for_batch(self, batches: BatchDesk, call: Outgoing) -> Reply:
        task = asyncio.current_task()
        assert task is not None
        if self.budget.is_limited(call.stage):
            known_price(call.request.model, self._options[call.request.model])
        self.unsent.add(task)
        try:
            return await batches.reply(call)
        finally:
            self.unsent.discard(task)

    async def _ask_singly(self, call: Outgoing) -> Reply:
        line = self.line(call.request.model, call.stage)
        posting = _Posting(self, line, call)
        try:
            await posting.reserve()
            called = await line.client.call(call.request, posting.fault, posting.send, posting.ready)
        finally:
            posting.end()
        booked = posting.settle(called.reply)
        asked, cost = call.request.canonical(), None if booked is None else booked.cost
        made = Call(
            call.key, call.sample, call.stage, call.request.model, asked, called.reply, cost, called.attempts,
            is_read=booked is None or booked.is_read, prompt=call.prompt,
        )  # fmt: skip
        await self._keep(made, posting.sent)
        return called.reply

    async def _take_over(self, call: Call, to: Outgoing) -> Reply:
        await self._keep(replace(call, stage=to.stage, prompt=to.prompt), 0)
        return call.reply

    async def _keep(self, call: Call, sent: int) -> None:
        """Return when the reply is on disk."""
        await on_disk(lambda done: self.calls.put(call, sent, done))
        self._note_answered(call)

    def _note_answered(self, call: Call) -> None:
        if self.keeps:
            self.kept.append(call)


class _Posting:
    """The money and the books of one call, through all its attempts. Made in the call's own task."""

    def __init__(self, desk: Desk, line: Line, call: Outgoing) -> None:
        self._desk, self._line, self._call = desk, line, call
        self._most = most_tokens(call.request, line.options)
        self._bound = 0.0 if line.price is None else highest_cost(line.price, self._most)
        self.sent = 0
        self._open = self._under_way = self._reserved = False
        self._task = asyncio.current_task()

    async def reserve(self) -> None:
        """Set aside what the call costs at most."""
        self._wait()
        if not await self._desk.budget.reserve(self._bound, self._call.stage):
            raise over_budget(self._desk.budget, self._bound, self._call.stage)
        self._reserved = True

    async def ready(self) -> None:
        """Called before each attempt that has its slot: returns when it stands on the books, on disk.

        Later, a kill could take what was sent off the books; earlier, it would leave there what never was.
        """
        if self._desk.closing is not None:
            raise Closed
        if not self._open:
            await on_disk(self._note)

    def _note(self, done: Done) -> None:
        request, key, sample, stage, _ = self._call
        bound = None if self._line.price is None else self._bound
        self.sent = self._desk.calls.send(Sending(request.model, key, sample, stage, bound), done)
        self._open = True

    def _wait(self) -> None:
        """Enter a time in which the call may be given up."""
        if self._desk.closing is not None:
            raise Closed
        if self._task is not None:
            self._desk.unsent.add(self._task)

    def send(self) -> None:
        """Called right before each attempt is sent."""
        self._desk.unsent.discard(self._task)
        if self._desk.closing is not None:
            raise Closed
        self._under_way = True
        self._desk.under_way[self] = time.monotonic()

    def fault(self, fault: CallFault) -> None:
        """Called after each attempt that failed; one that may have been charged counts at its bound."""
        self._desk.under_way.pop(self, None)
        if self._open:
            self._desk.calls.unsend(self.sent, charged=fault.maybe_paid)
            self._open = self._under_way = False
        if fault.maybe_paid and self._bound:
            budget, stage = self._desk.budget, self._call.stage
            budget.spend(self._bound, stage)
            if not budget.fits(0.0, stage):
                raise over_budget(budget, self._bound, stage)
        if fault.kind in TRANSIENT:
            self._wait()

    def settle(self, reply: Reply) -> Booked | None:
        """Book what the reply cost, and return that; None where the price is not known."""
        if self._line.price is None:
            return None
        booked = book(self._line.price, reply.usage, self._most)
        self._desk.budget.spend(booked.cost, self._call.stage)
        return booked

    def end(self) -> None:
        """Give back what was set aside."""
        self._desk.unsent.discard(self._task)
        self._desk.under_way.pop(self, None)
        if self._open and not self._under_way:
            self._desk.calls.unsend(self.sent, charged=False)
            self._open = False
        if self._reserved:
            self._reserved = False
            self._desk.budget.release(self._bound, self._call.stage)


class ItemAsker:
    """Answers the questions of one item in one stage.

    Attributes:
        asked: request and sample of every reply that was used, in order.
        unusable: request and sample of those of them that were of no use -> the name of what they were.
        stopped: whether a question stays open because the run is being stopped.
    """

    def __init__(self, desk: Replies, stage: str, settings: ModelSettings) -> None:
        self._desk, self._stage, self._settings = desk, stage, settings
        self.asked: list[tuple[str, int]] = []
        self.unusable: dict[tuple[str, int], str] = {}
        self.stopped = False
        self._open = 0

    async def ask(self, ask: Ask[T]) -> Answer[T]:
        """Return the model's answer; see :class:`.asking.Asker`.

        Attempts that gave nothing of use are in the journal; another is made only where the run allows more.
        """
        request = self._desk.prepared(ask.request)
        self._check_length(request)
        allowed = self._desk.attempts if ask.attempts is None else ask.attempts
        missed: list[NoAnswer] = []
        while True:
            try:
                answer = await self._attempt(ask, request, ask.sample + len(missed) * ATTEMPT)
            except NoAnswer as none:
                if none.code not in UNUSABLE or len(missed) + 1 >= allowed:
                    none.missed = tuple(missed)
                    raise
                missed.append(none)
                if ask.warmer and request.temperature is not None:
                    request = replace(request, temperature=request.temperature + ask.warmer)
            else:
                attempt = (f"attempt_{len(missed) + 1}",) if missed else ()
                return replace(answer, notes=(*answer.notes, *attempt), missed=tuple(missed))

    async def _attempt(self, ask: Ask[T], request: ChatRequest, sample: int) -> Answer[T]:
        asked, left, before = request, ask.repairs, ""
        while True:
            call, receipt = await self._reply(asked, sample, ask.prompt)
            try:
                answer = _read(ask, request, receipt)
            except BadReply as problem:
                has_form = ask.strict and not ask.plain and request.schema is not None
                self.unusable[call] = problem.what or (SENSELESS if has_form else OUT_OF_FORM)
                if not left:
                    raise _malformed(problem, receipt, before) from problem
                asked = _repair_request(request, receipt.reply, str(problem))
            else:
                return replace(answer, notes=(*answer.notes, *(("asked_again",) if before else ())))
            left, before = left - 1, "also the last reply: "

    async def _reply(self, request: ChatRequest, sample: int, prompt: str) -> tuple[tuple[str, int], Receipt]:
        self._wait(1)
        try:
            key, reply = await self._desk.reply(request, sample, self._stage, prompt)
        except Closed:
            self.stopped = True
            raise
        finally:
            self._wait(-1)
        self.asked.append((key, sample))
        receipt = Receipt(reply, self._desk.cost(key, sample))
        if reply.outcome != "ok":
            self.unusable[key, sample] = named_outcome(reply)
            reason = f"the reply was {reply.outcome}" + (f": {reply.detail}" if reply.detail else "")
            raise NoAnswer(reply.outcome, reason, reply.text or None, receipt)
        return (key, sample), receipt

    def _wait(self, more: int) -> None:
        """Count questions that are open; the item waits while there are some."""
        before, self._open = self._open, self._open + more
        if not before or not self._open:
            self._desk.note(waiting=more)

    def _check_length(self, request: ChatRequest) -> None:
        limit = self._settings.max_input_tokens
        tokens = estimate_request(request)
        if tokens > limit:
            raise NoAnswer(
                "too_long",
                f"not sent: about {tokens} tokens, more than max_input_tokens = {limit} of the stage;"
                " raise it if the model's context allows",
            )


def _read(ask: Ask[T], request: ChatRequest, receipt: Receipt) -> Answer[T]:
    who = notes_on(request.model, receipt.reply.reported_model)
    if ask.plain:
        return Answer(ask.read(receipt.reply.text), who, receipt)
    try:
        parsed = parse_reply(receipt.reply.text, request.schema, strict=ask.strict)
    except Malformed as problem:
        bad = BadReply(str(problem))
        bad.what = problem.what
        raise bad from problem
    return Answer(ask.read(parsed.value), (*who, *parsed.notes), receipt)


def _malformed(problem: BadReply, receipt: Receipt, before: str = "") -> NoAnswer:
    return NoAnswer("malformed", f"{before}{problem}", receipt.reply.text, receipt)


def _repair_request(request: ChatRequest, reply: Reply, problem: str) -> ChatRequest:
    from ..prompts.loader import load_prompt

    said = reply.text.encode("utf-8", "replace").decode("utf-8")[:_QUOTED]
    asked: Json = load_prompt(REPAIR).render(problem=problem.encode("utf-8", "replace").decode("utf-8"))
    more = (Message("assistant", (said,)), Message("user", (asked,)))
    return replace(request, messages=(*request.messages, *more))


FACT = "attempts"
"""The fact in a journal that says how many attempts the last pass allowed that came to its end."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """What a pass through a run does about questions without a usable answer."""

    allowed: int  # most attempts at each question
    again: bool  # whether what failed before is made again

    def config(self, config: RunConfig) -> RunConfig:
        """Return the settings of a run with this number of attempts."""
        return replace(config, run=replace(config.run, attempts=self.allowed))


def attempts_of(folder: Path, config: RunConfig, *, retry_failed: bool) -> Attempts:
    """Return what the next pass through the run in a folder, which may be new, does; reads only."""
    kept = read_manifest(folder).run.attempts if (folder / MANIFEST).exists() else 1
    done = _done(folder)
    allowed = max(kept, config.run.attempts)
    if retry_failed and allowed <= done:
        allowed = done + 1
    if allowed > MOST_ATTEMPTS:
        raise ConfigError(
            "--retry-failed",
            what=f"{done} attempts were made already, the most that are allowed for one question",
            fix="change the model, its settings or what it is asked about",
        )
    return Attempts(allowed, retry_failed or allowed > done)


def is_under_way(folder: Path, allowed: int) -> bool:
    """Whether a run was stopped while it asked once more about what had failed."""
    return allowed > _done(folder)


def _done(folder: Path) -> int:
    """Return how many attempts the last pass allowed that came to its end."""
    if not (folder / JOURNAL).exists():
        return 1
    with Journal.open(folder, writable=False) as journal:
        return max(1, int(journal.fact(FACT) or 1))
