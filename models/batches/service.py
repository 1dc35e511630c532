"""What a service that takes batches can do, in one form for all, and how its answers become ours."""

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from ...schemas.canonical import Json
from ..chat import CallFault, ChatRequest, Image, Message, Reply
from ..edge import Edge, ReadReply, text_or_none
from ..faults import one_line, problem_of
from ..keys import Redactor
from ..openai_models import OpenAIChat, openai_client, read_reply
from ..options import ModelOptions
from ..prices import checked, most_tokens
from ..spec import ModelSpec

if TYPE_CHECKING:
    import httpx2

LONGEST_RESULTS = 1024 * 1024 * 1024
"""Most bytes of a file of results that are read."""
PATIENT = 900.0
"""Seconds that a file of a batch may take on its way, at least."""
MOST_PAGES = 100
"""Pages of a list of batches that are looked through for one of ours."""

BatchState: TypeAlias = Literal["running", "ended", "failed", "unknown"]
"""Where a batch is: under way, over (whatever share of it was answered), refused as a whole, or in a state
that this version has no word for."""


@dataclass(frozen=True, slots=True)
class BatchView:
    """What a service says about a batch."""

    remote: str  # the service's id
    state: BatchState  # where it is
    word: str  # the service's own word for that
    answered: int | None = None  # requests that were answered so far; None where it does not say
    failed: int | None = None  # requests that ended with an error so far; None as well
    outputs: tuple[str, ...] = ()  # files that hold results
    problem: str = ""  # why it was refused as a whole
    # place of a request, from 0 -> what is wrong with it, where that is why the whole was refused
    lines: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Order:
    """A batch as it is to be made."""

    tag: str  # our name for it, by which it is found again
    # name of each request in it -> the request, in order
    requests: Mapping[str, ChatRequest] = field(repr=False)
    # the same, as :meth:`BatchService.encode` wrote them
    lines: Sequence[bytes] = field(default=(), repr=False)
    written: float = 0.0  # when it was written down, in seconds since 1970
    known: frozenset[str] = frozenset()  # ids of other batches of ours


@dataclass(frozen=True, slots=True)
class NotDone:
    """The service did not come to a request: the batch expired or was cancelled. It costs nothing."""

    reason: Literal["expired", "cancelled"]


Outcome: TypeAlias = Reply | CallFault | NotDone
"""What became of one request of a batch."""


@dataclass(frozen=True, slots=True)
class Results:
    """What became of the requests of a batch that is over."""

    # name of a request -> its outcome; what the service says nothing about is missing
    outcomes: Mapping[str, Outcome]
    torn: bool = False  # whether a line could not be read, so that what is missing may have been answered


class NotYetKnown(Exception):
    """Whether a batch was made shows only when others that it may be are over."""


class BatchService(ABC):
    """Batches of one model at one service. Makes exactly one HTTP call for one thing and retries nothing.

    ``spec``: which model, and where. ``redactor``: learns the key and takes it out of all that comes back.

    Raises MissingRequirement: the library, the key or a variable that the settings name is not there.
    """

    most_requests: ClassVar[int]
    keeps_pictures: ClassVar[float] = 0.0
    """Seconds for which a picture in the service's store may be named in new batches; 0: it takes none."""
    most_bytes: ClassVar[int]
    _read: ReadReply
    _client: Any

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        self.spec = spec
        self._options = options
        self._redactor = redactor
        self._edge = Edge(options, redactor)
        self._some = ChatRequest(spec.text, (Message("user", ("",)),))  # for what concerns no request

    def limits(self) -> tuple[int, int]:
        """Return the most requests and the most bytes of one batch."""
        own = self._options
        most = self.most_requests if own.batch_requests is None else own.batch_requests
        size = self.most_bytes if own.batch_megabytes is None else int(own.batch_megabytes * 1_000_000)
        return min(most, self.most_requests), min(size, self.most_bytes)

    @abstractmethod
    def encode(self, name: str, request: ChatRequest, stored: Mapping[str, str] | None = None) -> bytes:
        """Return one request as it stands in a batch, without a line's end.

        ``stored``: pictures in base64 -> what names them in the service's store; others stand in the request.
        """

    async def store(self, picture: Image, name: str) -> str:
        """Send a picture to the service's store of files; return what names it there."""
        raise NotImplementedError

    async def upload(self, order: Order) -> str:  # noqa: ARG002 - where requests go with the creation
        """Send the requests ahead of the batch.

        Return the id of the file, or nothing where none is needed.
        """
        return ""

    @abstractmethod
    async def create(self, order: Order, file: str) -> BatchView:
        """Make a batch."""

    @abstractmethod
    async def find(self, order: Order) -> BatchView | None:
        """Return a batch that may have been made, by its tag; None where it was not."""

    @abstractmethod
    async def look(self, remote: str) -> BatchView:
        """Return where a batch is."""

    @abstractmethod
    async def results(self, view: BatchView, requests: Mapping[str, ChatRequest]) -> Results:
        """Return what became of the requests of a batch that is over."""

    @abstractmethod
    async def cancel(self, remote: str) -> None:
        """Ask the service to stop a batch; one that is over stays as it is."""

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()

    # -- what all of them need

    def _get(self, path: str) -> Any:  # noqa: ANN401 - what the SDK promises
        from httpx2 import Response

        return self._client.get(path, cast_to=Response)

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what the SDK promises
        from httpx2 import Response

        return self._client.post(path, body=body, cast_to=Response)

    async def _response(self, sending: "Awaitable[httpx2.Response]") -> bytes:
        """Return the body of a response of status 200."""
        try:
            response = await sending
        except Exception as error:  # noqa: BLE001 - adapter boundary
            failure = error
        else:
            return response.content
        raise self._fault(failure)

    async def _document(self, sending: "Awaitable[httpx2.Response]") -> dict[str, Any]:
        """Return the JSON of a response of status 200."""
        return self._object(await self._response(sending))

    @staticmethod
    def _object(body: bytes | str) -> dict[str, Any]:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            raise CallFault(
                "broken_reply", "the body is no whole JSON", status=200, maybe_paid=True
            ) from None
        if not isinstance(document, dict):
            raise CallFault("broken_reply", "the body is no JSON object", status=200, maybe_paid=True)
        return document

    def _shown(self, text: str) -> str:
        """Return what a service says on one line, without secrets that it repeats."""
        return one_line(self._redactor.redact(text))

    def _clean(self, view: BatchView) -> BatchView:
        """Return what a service says about a batch without secrets that it repeats."""
        lines = {number: self._shown(text) for number, text in view.lines.items()}
        remote, word, problem = map(self._shown, (view.remote, view.word, view.problem))
        return replace(view, remote=remote, word=word, problem=problem, lines=lines)

    def _fault(self, error: Exception) -> CallFault:
        """Return what an exception of the SDK means."""
        if isinstance(error, CallFault):
            return error
        try:
            reply = self._edge.failed(self._some, error)
        except CallFault as fault:
            return fault
        return CallFault("bad_request", f"the service refuses it: {reply.detail}", status=400)

    def _answer(self, request: ChatRequest, status: int, body: Json) -> Outcome:
        """Return what a response inside a batch means: what the same response to a single call means."""
        try:
            if status == 200:
                return self._checked(request, self._edge.reply(request, {}, json.dumps(body), self._read))
            problem = problem_of(status, body if isinstance(body, Mapping) else {"error": str(body)})
            return self._edge.answered(request, {}, problem)
        except CallFault as fault:
            return fault

    def _checked(self, request: ChatRequest, reply: Reply) -> Reply:
        return checked(reply, most_tokens(request, self._options))


def is_refused(fault: CallFault) -> bool:
    """Return whether a fault says that a batch was not made: else nobody knows."""
    if fault.status is None:
        return not fault.maybe_paid
    return 400 <= fault.status < 500 and fault.status not in (408, 409)


def json_lines_of(body: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the objects in a file of JSON lines, and whether some lines are none."""
    documents, torn = [], False
    for line in body.split(b"\n"):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict):
            documents.append(document)
        else:
            torn = True
    return documents, torn


def count_or_none(value: object) -> int | None:
    """Return a count as a number; services give some of them as texts."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int and value >= 0 else None


def with_stored(body: Any, swap: Callable[[Mapping[str, Any]], Json | None]) -> Any:  # noqa: ANN401 - any JSON
    """Return a body in which objects are replaced by what ``swap`` gives for them, if it gives any."""
    if isinstance(body, list):
        return [with_stored(entry, swap) for entry in body]
    if not isinstance(body, Mapping):
        return body
    other = swap(body)
    return {name: with_stored(value, swap) for name, value in body.items()} if other is None else other


# -- OpenAI's batches of chat completions: a file of requests goes ahead, files of results come back
#
# The tag stands in the metadata of a batch and in the name of its file. Pictures are part of the requests:
# chat completions take no ids of files.

ENDPOINT = "/v1/chat/completions"
KEPT = 10 * 24 * 3600
"""Seconds after which the service deletes our files."""
STATES: Mapping[str, BatchState] = {
    **dict.fromkeys(("validating", "in_progress", "finalizing", "cancelling"), "running"),
    **dict.fromkeys(("completed", "expired", "cancelled"), "ended"),
    "failed": "failed",
}
TAG = "fabula"
"""The name of the metadata that holds our tag."""


class OpenAIBatches(BatchService):
    """Batches of a model behind OpenAI's chat completions."""

    most_requests = 20_000  # the service takes 50,000, in files of 200 MB
    most_bytes = 90_000_000
    _read = staticmethod(read_reply)

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        super().__init__(spec, options, redactor)
        self._chat = OpenAIChat(spec, options, redactor)  # makes the bodies; asks nothing
        patient = options.model_copy(update={"call_timeout": max(options.call_timeout, PATIENT)})
        self._client = openai_client(spec, patient, redactor, LONGEST_RESULTS)

    async def close(self) -> None:
        await self._chat.close()
        await self._client.close()

    def encode(self, name: str, request: ChatRequest, stored: Mapping[str, str] | None = None) -> bytes:  # noqa: ARG002
        """Return a line of the file; chat completions take no ids of pictures."""
        line = {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": self._chat.body(request)}
        return json.dumps(line).encode("ascii")

    async def upload(self, order: Order) -> str:
        """Send the file; return its id."""
        file = (f"{order.tag}.jsonl", b"\n".join(order.lines) + b"\n", "application/jsonl")
        expires: Any = {"anchor": "created_at", "seconds": KEPT}
        try:
            sent = await self._client.files.create(file=file, purpose="batch", expires_after=expires)
            name = sent.id
        except Exception as error:  # noqa: BLE001 - adapter boundary
            failure = error
        else:
            if isinstance(name, str) and name:
                return name
            failure = CallFault("broken_reply", "the service names no file", status=200)
        raise self._fault(failure)

    async def create(self, order: Order, file: str) -> BatchView:
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {TAG: order.tag},
        }
        return self._view(await self._document(self._post("/batches", body)))

    async def find(self, order: Order) -> BatchView | None:
        """Return the batch that has the tag; the newest stand first in the list."""
        after: str | None = None
        for _ in range(MOST_PAGES):
            query = "?limit=100" + (f"&after={after}" if after else "")
            page = await self._document(self._get(f"/batches{query}"))
            batches = [entry for entry in page.get("data") or () if isinstance(entry, dict)]
            for entry in batches:
                if (entry.get("metadata") or {}).get(TAG) == order.tag:
                    return self._view(entry)
            if not batches or not page.get("has_more"):
                return None
            after = text_or_none(batches[-1].get("id"))
        return None

    async def look(self, remote: str) -> BatchView:
        return self._view(await self._document(self._get(f"/batches/{remote}")))

    async def cancel(self, remote: str) -> None:
        """Ask the service to stop a batch."""
        try:
            await self._document(self._post(f"/batches/{remote}/cancel", {}))
        except CallFault as fault:
            if fault.status not in (400, 409):  # it is over, or being cancelled
                raise

    async def results(self, view: BatchView, requests: Mapping[str, ChatRequest]) -> Results:
        """Return what stands in both files of a batch."""
        outcomes: dict[str, Outcome] = {}
        torn = False
        for file in view.outputs:
            lines, broken = json_lines_of(await self._response(self._get(f"/files/{file}/content")))
            torn = torn or broken
            for line in lines:
                name = line.get("custom_id")
                if isinstance(name, str) and name in requests:
                    outcomes.setdefault(name, self._outcome(requests[name], line))
        return Results(outcomes, torn)

    def _outcome(self, request: ChatRequest, line: Mapping[str, Any]) -> Outcome:
        response, error = line.get("response"), line.get("error")
        if isinstance(response, dict):
            status = count_or_none(response.get("status_code"))
            return self._answer(request, 500 if status is None else status, response.get("body"))
        code = str(error.get("code")) if isinstance(error, dict) else ""
        if code == "batch_expired":
            return NotDone("expired")
        if code in ("batch_cancelled", "batch_canceled"):
            return NotDone("cancelled")
        return self._answer(request, 200, {"error": error or "no reason is given"})

    def _view(self, document: Mapping[str, Any]) -> BatchView:
        remote, word = document.get("id"), document.get("status")
        if not isinstance(remote, str) or not isinstance(word, str):
            raise CallFault("broken_reply", "the answer describes no batch", status=200, maybe_paid=True)
        counts = document.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        files = (document.get("output_file_id"), document.get("error_file_id"))
        problems, lines = _problems(document.get("errors"))
        view = BatchView(
            remote, STATES.get(word, "unknown"), word,
            count_or_none(counts.get("completed")), count_or_none(counts.get("failed")),
            tuple(file for file in files if isinstance(file, str) and file),
            problems, lines,
        )  # fmt: skip
        return self._clean(view)


def _problems(errors: object) -> tuple[str, dict[int, str]]:
    """Return why a batch was refused, and what is wrong with which of its requests, counted from 0."""
    data = errors.get("data") if isinstance(errors, dict) else None
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    lines = {
        entry["line"] - 1: str(entry.get("message") or entry.get("code"))
        for entry in entries
        if type(entry.get("line")) is int and entry["line"] > 0
    }
    rest = [problem_of(400, {"error": entry}) for entry in entries if entry.get("line") is None]
    return "; ".join(f"{', '.join(sorted(p.codes))}: {p.text}" for p in rest), lines
