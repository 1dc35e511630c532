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
from .batch_forms import FORMS
from .batches import BatchStep, Form, Served, Store
from .faults import ContentFault, DeliveryFault, ErrorFault, Fault, RateLimited, concerns
from .google_wire import GoogleWire, Spelling, VideosWire
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
    """Serves requests; lives in the event loop, one request at a time up to the delivery.

    Attributes:
        handler: answers questions.
        faults: what goes wrong; see ``ModelServer``.
        latency: seconds before an answer, or a function that says so.
        log: where everything is written down.
        cache: the prompts that were answered; None keeps none.
        errors: exceptions that the handler raised.
        rejected: why requests were answered without being understood.
        busiest: most requests that were in flight at once.
    """

    def __init__(
        self, handler: Handler | None, log: Log, spelling: Spelling = "camel", video_looks: int = 0
    ) -> None:
        self.handler: Handler = handler or smallest
        self.faults: Faults = None
        self.latency: Latency = 0.0
        self.log = log
        self.cache: PromptCache | None = None
        self.errors: list[BaseException] = []
        self.rejected: list[str] = []
        self.busiest = 0
        self._in_flight = 0
        self._wires: tuple[Wire, ...] = (
            OpenAIWire(),
            GoogleWire(spelling),
            AnthropicWire(),
            EmbeddingsWire(),
            ImagesWire(),
            VideosWire(video_looks),
        )
        self.store = Store(self._inside_batch)
        self._attempts: Counter[str] = Counter()
        self._number = 0
        self._started = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, request: HttpRequest, connection: Connection) -> None:
        """Answer a request."""
        for form in FORMS:
            step = form.step(request)
            if step is not None and (
                step != "fetch" or form.provider != "google" or "results-" in request.path
            ):
                self._serve_batch(form, step, request, connection)
                return
        wire = next((wire for wire in self._wires if wire.takes(request.path)), None)
        if wire is None or request.method not in wire.methods:
            self.rejected.append(f"no such place: {request.method} {request.path}")
            connection.respond(_elsewhere(request), lambda _: None)
            return
        try:
            asked = self._read(wire, request)
        except BadRequest as error:
            self.rejected.append(f"{request.path}: {error}")
            connection.respond(self._error(wire, Problem("bad_request", str(error))), lambda _: None)
            return
        self._in_flight += 1
        self.busiest = max(self.busiest, self._in_flight)
        faults: list[Fault] = []
        try:
            faults = self._planned(asked)
            refusal = next((fault for fault in faults if isinstance(fault, ErrorFault)), None)
            outcome: Json = refusal or (self.handler(asked) if asked.step == "create" else Answer())
        except Exception as error:  # noqa: BLE001 - adapter boundary
            outcome = self._failed(error)
        if inspect.isawaitable(outcome):
            task = asyncio.get_running_loop().create_task(
                self._later(wire, asked, outcome, faults, connection)
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._finish(wire, asked, outcome, faults, connection)

    def _serve_batch(self, form: Form, step: BatchStep, request: HttpRequest, connection: Connection) -> None:
        """Answer a request about a batch or its file; an error that is planned keeps it from being done."""
        wire = next(wire for wire in self._wires if wire.errors is _WIRES[form.provider].errors)
        self._in_flight += 1
        self.busiest = max(self.busiest, self._in_flight)
        question = f"{request.method} {request.target}"
        key = meaning_key("", "", [Message("user", (question,))], None, {})
        self._attempts[key] += 1
        self._number += 1
        asked = Asked(
            "batches", request.path, form.provider, "", (Message("user", (question,)),),
            headers=request.headers, target=request.target, key=key, attempt=self._attempts[key],
            number=self._number, at=time.monotonic() - self._started, step=step,
        )  # fmt: skip
        faults: list[Fault] = []
        try:
            faults = [fault for fault in self._planned(asked) if not isinstance(fault, ContentFault)]
            error = next((fault for fault in faults if isinstance(fault, ErrorFault)), None)
            problem = None if error is None else error.problem(asked)
            served = form.serve(step, request, self.store) if problem is None else Served(problem=problem)
        except (BadRequest, KeyError, TypeError, ValueError) as wrong:
            self.rejected.append(f"{request.path}: {wrong!r}")
            served = Served(problem=Problem("bad_request", str(wrong)))
        except Exception as error:  # noqa: BLE001 - adapter boundary
            served = Served(problem=self._failed(error))
        response = _answered(served.body) if served.problem is None else self._error(wire, served.problem)
        response = replace(response, headers={**response.headers, **served.headers})
        for fault in faults:
            if isinstance(fault, DeliveryFault):
                response = fault.deliver(response)
            elif isinstance(fault, RateLimited):
                response = _rate_limited(response, fault)
        exchange = Exchange(asked, response.status, None, tuple(type(fault).__name__ for fault in faults))
        self.log.add(exchange)

        def ended(whole: bool) -> None:
            self._in_flight -= 1
            if not whole:
                self.log.lose(exchange)

        connection.respond(response, ended)

    def _inside_batch(self, path: str, body: Mapping[str, Json], request: HttpRequest) -> tuple[int, Json]:
        """Return status and body of the response to a request inside a batch."""
        wire = next(wire for wire in self._wires if wire.takes(path))
        inner = HttpRequest("POST", path, path, request.headers, json.dumps(body).encode("ascii"))
        asked = self._read(wire, inner)
        faults = [fault for fault in self._planned(asked) if not isinstance(fault, DeliveryFault)]
        refusal = next((fault for fault in faults if isinstance(fault, ErrorFault)), None)
        outcome: Any = refusal or self.handler(asked)
        if isinstance(outcome, Fault) and outcome not in faults and concerns(outcome, asked):
            faults = [outcome, *faults]
        response, answer = self._response(wire, asked, outcome, faults)
        names = tuple(type(fault).__name__ for fault in faults)
        self.log.add(Exchange(asked, response.status, answer, names))
        return response.status, json.loads(response.body)

    async def close(self) -> None:
        """Cancel handlers that are still at work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

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
        self._attempts[key] += 1
        self._number += 1
        asked = replace(
            asked,
            params=params,
            headers=request.headers,
            body=document,
            target=request.target,
            key=key,
            attempt=self._attempts[key],
            number=self._number,
            at=time.monotonic() - self._started,
        )
        return asked if self.cache is None else self.cache.look(asked)

    def _planned(self, asked: Asked) -> list[Fault]:
        faults = self.faults
        if isinstance(faults, Sequence):
            struck: Struck = faults[asked.number - 1] if asked.number <= len(faults) else None
        else:
            struck = faults(asked) if callable(faults) else faults
        several = [struck] if isinstance(struck, Fault) else list(struck or ())
        return [fault for fault in several if concerns(fault, asked)]

    async def _later(
        self,
        wire: Wire,
        asked: Asked,
        outcome: Awaitable[Outcome],
        faults: list[Fault],
        connection: Connection,
    ) -> None:
        try:
            found: Any = await outcome
        except Exception as error:  # noqa: BLE001 - adapter boundary
            found = self._failed(error)
        self._finish(wire, asked, found, faults, connection)

    def _finish(
        self, wire: Wire, asked: Asked, outcome: Json, faults: list[Fault], connection: Connection
    ) -> None:
        if isinstance(outcome, Fault) and outcome not in faults:
            faults = [outcome, *faults] if concerns(outcome, asked) else faults
        try:
            response, answer = self._response(wire, asked, outcome, faults)
            latency = self.latency(asked) if callable(self.latency) else self.latency
        except Exception as error:  # noqa: BLE001 - adapter boundary
            response, answer, latency = self._error(wire, self._failed(error)), None, 0.0
        response = replace(response, delay=response.delay + latency)
        names = tuple(type(fault).__name__ for fault in faults)
        exchange = Exchange(asked, response.status, answer, names)
        self.log.add(exchange)

        def ended(whole: bool) -> None:
            self._in_flight -= 1
            if self.cache is not None and answer is not None:
                self.cache.keep(asked)
            if not whole:
                self.log.lose(exchange)

        connection.respond(response, ended)

    def _response(
        self, wire: Wire, asked: Asked, outcome: Json, faults: list[Fault]
    ) -> tuple[Response, Answer | None]:
        error = next((fault for fault in faults if isinstance(fault, ErrorFault)), None)
        problem = outcome if isinstance(outcome, Problem) else error.problem(asked) if error else None
        answer: Answer | None = None
        if problem is None:
            if isinstance(outcome, Fault):
                outcome = smallest(asked) if outcome.answer is None else outcome.answer
            answer = as_answer(outcome)
            answer = within_limit(answer, asked)
            for fault in faults:
                if isinstance(fault, ContentFault):
                    answer = fault.alter(asked, answer)
            body = wire.reply(asked, answer)
            if isinstance(body, Problem):
                problem, answer = body, None
        response = self._error(wire, problem) if problem is not None else _answered(body)
        for fault in faults:
            if isinstance(fault, DeliveryFault):
                response = fault.deliver(response)
            elif isinstance(fault, RateLimited):
                response = _rate_limited(response, fault)
        return response, answer

    def _error(self, wire: Wire, problem: Problem) -> Response:
        error = wire.errors[problem.code]
        status = problem.status or error.status
        headers = dict(problem.headers)
        if problem.retry_after is not None:
            headers["retry-after"] = f"{problem.retry_after:g}"
        return Response(status, _encoded(wire.error(status, error, problem)), headers)

    def _failed(self, error: BaseException) -> Problem:
        """Keep the handler's exception; the client hears of it as a bad request, which nobody retries."""
        self.errors.append(error)
        last = traceback.format_exception_only(error)[-1].strip()
        return Problem("bad_request", f"the handler of the test server failed: {last}")


_WIRES: Mapping[str, type[Wire]] = {"openai": OpenAIWire, "google": GoogleWire, "anthropic": AnthropicWire}


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


def _answered(body: Json) -> Response:
    if isinstance(body, bytes):
        return Response(200, body, {"content-type": "application/octet-stream"})
    return Response(200, _encoded(body))


def _rate_limited(response: Response, fault: RateLimited) -> Response:
    headers = dict(response.headers)
    if fault.as_date:
        headers.pop("retry-after", None)
    date = fault.retry_after if fault.as_date else None
    return replace(response, headers=headers, clock_error=fault.clock_error, retry_date=date)


def _elsewhere(request: HttpRequest) -> Response:
    text = f"this server has no {request.method} {request.path}"
    return Response(404, _encoded({"error": {"message": text, "type": "not_found"}}))


def _encoded(body: Json) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # half a character, which JSON can carry only escaped
        return json.dumps(body).encode("ascii")
