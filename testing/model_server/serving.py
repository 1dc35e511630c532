"""From a request to a response: read it, ask plan and handler, apply the faults, write it down."""

import asyncio
import inspect
import json
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ...models.chat import Message
from ...schemas.canonical import Json
from .answers import (
    Answer,
    Given,
    Problem,
    Response,
    as_answer,
    from_schema,
    json_text,
    plain_picture,
    within_limit,
)
from .anthropic_wire import AnthropicWire
from .asked import Asked, meaning_key
from .batches import FORMS, BatchStep, Form, Served, Store
from .faults import ContentFault, DeliveryFault, ErrorFault, Fault, concerns
from .google_wire import GoogleWire, VideosWire
from .http import Connection
from .log import Exchange, Log, PromptCache
from .openai_wire import EmbeddingsWire, ImagesWire, OpenAIWire, encoded
from .wire import BadRequest, HttpRequest, Wire, form_of

Outcome: TypeAlias = Given | Fault
Handler: TypeAlias = Callable[[Asked], Outcome | Awaitable[Outcome]]
Struck: TypeAlias = Fault | Sequence[Fault] | None
Faults: TypeAlias = Callable[[Asked], Struck] | Fault | Sequence[Fault | None] | None
Latency: TypeAlias = float | Callable[[Asked], float]


def smallest(asked: Asked) -> Answer:
    """Answer with the smallest reply that satisfies the schema, without a schema with ``OK``.

    A text whose vector is wanted gets that of its words; a picture or video is one of a single colour.
    """
    if asked.wants in ("image", "video"):
        return Answer(picture=plain_picture(asked))
    if asked.protocol == "embeddings":
        return encoded(asked)
    return Answer("OK" if asked.schema is None else json_text(from_schema(asked.schema)))


class Service:
    """Answers requests; lives in the event loop, one request at a time up to the delivery."""

    def __init__(
        self, handler: Handler | None, log: Log, cache: PromptCache | None, video_looks: int
    ) -> None:
        self.handler: Handler = handler or smallest
        self.faults: Faults = None
        self.latency: Latency = 0.0
        self.errors: tuple[BaseException, ...] = ()
        self.rejected: tuple[str, ...] = ()
        self.busiest = 0
        self._log, self._cache = log, cache
        self._in_flight = 0
        videos = VideosWire(video_looks)
        self._wires: tuple[Wire, ...] = (*_WIRES.values(), EmbeddingsWire(), ImagesWire(), videos)
        self._store = Store(self._inside_batch)
        self._attempts: Counter[str] = Counter()
        self._number = 0
        self._started = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, request: HttpRequest, connection: Connection) -> None:
        """Answer a request."""
        for form in FORMS:
            if (step := form.step(request)) is not None:
                self._take_batch(form, step, request, connection)
                return
        wire = next((wire for wire in self._wires if wire.takes(request.path)), None)
        if wire is None or request.method not in wire.methods:
            self.rejected += (f"no such place: {request.method} {request.path}",)
            text = f"this server has no {request.method} {request.path}"
            connection.respond(_answered({"error": {"message": text, "type": "not_found"}}, 404))
            return
        try:
            asked = self._read(wire, request)
        except BadRequest as error:
            self.rejected += (f"{request.path}: {error}",)
            connection.respond(_error(wire, Problem("bad_request", str(error))))
            return
        self._begin()
        faults: list[Fault] = []
        try:
            faults = self._planned(asked)
            outcome: Json = _error_in(faults) or (self.handler(asked) if asked.step == "create" else Answer())
        except Exception as error:  # noqa: BLE001 - adapter boundary
            outcome = self._failed(error)
        if inspect.isawaitable(outcome):
            later = self._later(wire, asked, outcome, faults, connection)
            task = asyncio.get_running_loop().create_task(later)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._finish(wire, asked, outcome, faults, connection)

    def _take_batch(self, form: Form, step: BatchStep, request: HttpRequest, connection: Connection) -> None:
        """Answer a request about a batch or its file; an error that is planned keeps it from being done."""
        self._begin()
        message = Message("user", (f"{request.method} {request.target}",))
        asked = Asked("batches", request.path, form.provider, "", (message,), step=step)
        asked = self._counted(asked, meaning_key("", "", [message], None, {}), request)
        faults: list[Fault] = []
        try:
            faults = [fault for fault in self._planned(asked) if not isinstance(fault, ContentFault)]
            error = _error_in(faults)
            problem = None if error is None else error.problem(asked)
            served = form.serve(step, request, self._store) if problem is None else Served(problem=problem)
        except (AttributeError, BadRequest, KeyError, TypeError, ValueError) as wrong:
            self.rejected += (f"{request.path}: {wrong!r}",)
            served = Served(problem=Problem("bad_request", str(wrong)))
        except Exception as error:  # noqa: BLE001 - adapter boundary
            served = Served(problem=self._failed(error))
        wire = _WIRES[form.provider]
        response = _answered(served.body) if served.problem is None else _error(wire, served.problem)
        response = replace(response, headers={**response.headers, **served.headers})
        self._send(asked, None, response, faults, connection)

    def _inside_batch(self, path: str, body: Mapping[str, Json], request: HttpRequest) -> tuple[int, Json]:
        """Return status and body of the response to a request inside a batch."""
        wire = next(wire for wire in self._wires if wire.takes(path))
        inner = HttpRequest("POST", path, path, request.headers, json.dumps(body).encode("ascii"))
        asked = self._read(wire, inner)
        faults = [fault for fault in self._planned(asked) if not isinstance(fault, DeliveryFault)]
        outcome: Any = _error_in(faults) or self.handler(asked)
        faults = _struck(faults, outcome, asked)
        response, answer = self._response(wire, asked, outcome, faults)
        self._log.add(Exchange(asked, response.status, answer, _names(faults)))
        return response.status, json.loads(response.body)

    async def cancel(self) -> None:
        """Cancel handlers that are still at work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self) -> None:
        self._in_flight += 1
        self.busiest = max(self.busiest, self._in_flight)

    def _counted(self, asked: Asked, key: str, request: HttpRequest, **more: Any) -> Asked:  # noqa: ANN401
        """Return a question with its key, its numbers and the request that it came with."""
        self._attempts[key] += 1
        self._number += 1
        return replace(
            asked, headers=request.headers, target=request.target, key=key, attempt=self._attempts[key],
            number=self._number, at=time.monotonic() - self._started, **more,
        )  # fmt: skip

    def _read(self, wire: Wire, request: HttpRequest) -> Asked:
        document = _document(request)
        if document.get("stream"):
            raise BadRequest("this server does not stream")
        try:
            asked = wire.read(request, document)
            params = dict(asked.params)
            if "temperature" in params:
                params["temperature"] = float(params["temperature"])
            key = meaning_key(asked.model, asked.system, asked.messages, asked.schema, params)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadRequest(f"the body has an unexpected shape: {error!r}") from None
        asked = self._counted(asked, key, request, params=params, body=document)
        return asked if self._cache is None else self._cache.look(asked)

    def _planned(self, asked: Asked) -> list[Fault]:
        faults = self.faults
        if isinstance(faults, Sequence):
            struck: Struck = faults[asked.number - 1] if asked.number <= len(faults) else None
        else:
            struck = faults(asked) if callable(faults) else faults
        several = [struck] if isinstance(struck, Fault) else list(struck or ())
        return [fault for fault in several if concerns(fault, asked)]

    async def _later(
        self, wire: Wire, asked: Asked, outcome: Awaitable[Outcome], faults: list[Fault],
        connection: Connection,
    ) -> None:  # fmt: skip
        try:
            found: Any = await outcome
        except Exception as error:  # noqa: BLE001 - adapter boundary
            found = self._failed(error)
        self._finish(wire, asked, found, faults, connection)

    def _finish(
        self, wire: Wire, asked: Asked, outcome: Json, faults: list[Fault], connection: Connection
    ) -> None:
        faults = _struck(faults, outcome, asked)
        try:
            response, answer = self._response(wire, asked, outcome, faults)
            latency = self.latency(asked) if callable(self.latency) else self.latency
        except Exception as error:  # noqa: BLE001 - adapter boundary
            response, answer, latency = _error(wire, self._failed(error)), None, 0.0
        response = replace(response, delay=response.delay + latency)
        self._send(asked, answer, response, faults, connection)

    def _send(
        self, asked: Asked, answer: Answer | None, response: Response, faults: list[Fault],
        connection: Connection,
    ) -> None:  # fmt: skip
        """Deliver a response as the faults will have it, and write it down."""
        for fault in faults:
            response = fault.deliver(response)
        exchange = Exchange(asked, response.status, answer, _names(faults))
        self._log.add(exchange)

        def ended(whole: bool) -> None:
            self._in_flight -= 1
            if self._cache is not None and answer is not None:
                self._cache.keep(asked)
            if not whole:
                self._log.lose(exchange)

        connection.respond(response, ended)

    def _response(
        self, wire: Wire, asked: Asked, outcome: Json, faults: list[Fault]
    ) -> tuple[Response, Answer | None]:
        """Return the response before its delivery, and the answer in it; None where it is an error."""
        error = _error_in(faults)
        problem = outcome if isinstance(outcome, Problem) else error.problem(asked) if error else None
        if problem is None:
            if isinstance(outcome, Fault):
                outcome = smallest(asked) if outcome.answer is None else outcome.answer
            answer = within_limit(as_answer(outcome), asked)
            for fault in faults:
                if isinstance(fault, ContentFault):
                    answer = fault.alter(asked, answer)
            body = wire.reply(asked, answer)
            if not isinstance(body, Problem):
                return _answered(body), answer
            problem = body
        return _error(wire, problem), None

    def _failed(self, error: BaseException) -> Problem:
        """Keep the handler's exception; the client hears of it as a bad request, which nobody retries."""
        self.errors += (error,)
        last = traceback.format_exception_only(error)[-1].strip()
        return Problem("bad_request", f"the handler of the test server failed: {last}")


_WIRES: Mapping[str, Wire] = {"openai": OpenAIWire(), "google": GoogleWire(), "anthropic": AnthropicWire()}


def _names(faults: Sequence[Fault]) -> tuple[str, ...]:
    return tuple(type(fault).__name__ for fault in faults)


def _error_in(faults: Sequence[Fault]) -> ErrorFault | None:
    return next((fault for fault in faults if isinstance(fault, ErrorFault)), None)


def _struck(faults: list[Fault], outcome: object, asked: Asked) -> list[Fault]:
    """Return the faults with the one that a handler returned, where it is about such a question."""
    new = isinstance(outcome, Fault) and outcome not in faults and concerns(outcome, asked)
    return [outcome, *faults] if new and isinstance(outcome, Fault) else faults


def _document(request: HttpRequest) -> dict[str, Any]:
    """Return the body of a request: JSON, the fields of a form, or nothing where it has no body."""
    if request.method == "GET":
        return {}
    if request.headers.get("content-type", "").startswith("multipart/"):
        return form_of(request)
    try:
        document = json.loads(request.body)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRequest("the body is not a JSON object")
    return document


def _answered(body: Json, status: int = 200) -> Response:
    if isinstance(body, bytes):
        return Response(status, body, {"content-type": "application/octet-stream"})
    try:
        return Response(status, json.dumps(body, ensure_ascii=False).encode("utf-8"))
    except UnicodeEncodeError:  # half a character, which JSON can carry only escaped
        return Response(status, json.dumps(body).encode("ascii"))


def _error(wire: Wire, problem: Problem) -> Response:
    error = wire.errors[problem.code]
    status = problem.status or error.status
    headers = dict(problem.headers)
    if problem.retry_after is not None:
        headers["retry-after"] = f"{problem.retry_after:g}"
    return replace(_answered(wire.error(status, error, problem), status), headers=headers)
