"""The edge of every adapter: how a request says what shape its reply must have, and what a response means.

A response, or an exception of the SDK, becomes a reply or a named fault.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from ..schemas.canonical import Json, canonical_text
from .chat import CallFault, ChatRequest, Message, Reply, ReplySchema, Usage
from .faults import (
    Problem,
    connection_fault,
    explain,
    is_page,
    kind_of,
    one_line,
    problem_of,
    read_problem,
    retry_after,
)
from .keys import Redactor
from .options import ModelOptions
from .replies import Malformed, read_json
from .spec import ModelSpec

ReadReply: TypeAlias = Callable[[Mapping[str, Any]], Reply | None]
"""Makes a reply from the JSON of a response; None where it is not the service's form."""

_LONGEST_WORD = 200


class Edge:
    """Turns what one model's service answers into replies and faults.

    Args:
        options: the model's settings.
        redactor: knows the secrets.
    """

    def __init__(self, options: ModelOptions, redactor: Redactor) -> None:
        self._options = options
        self._redactor = redactor

    def reply(
        self, request: ChatRequest, headers: Mapping[str, str], body: bytes | str, read: ReadReply
    ) -> Reply:
        """Return the reply in a response of status 200.

        Raises:
            CallFault: there is none in it.
        """
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            raise self._no_json(request, headers, body) from None
        if not isinstance(document, dict):
            raise self._fault(
                CallFault("broken_reply", "the body is no JSON object", status=200, maybe_paid=True)
            )
        try:
            reply = read(document)
        except (TypeError, KeyError, ValueError, AttributeError, IndexError):
            raise self._fault(
                CallFault("broken_reply", "the body lacks what it needs", status=200, maybe_paid=True)
            ) from None
        if reply is not None:
            return self._cleaned(reply)
        if isinstance(document.get("error"), dict | str):
            # Some gateways report an upstream's error with status 200.
            return self.answered(request, headers, problem_of(_status_in(document["error"]), document))
        shown = ", ".join(sorted(document)[:8])
        raise self._fault(
            CallFault("not_an_api", f"the answer is JSON of another kind, with the keys: {shown}", status=200)
        )

    def failed(self, request: ChatRequest, error: Exception) -> Reply:
        """Return the reply that an SDK's exception stands for: a prompt that was blocked.

        Raises:
            CallFault: any other exception.
        """
        response = getattr(error, "response", None)
        if response is None or not hasattr(response, "status_code"):
            raise self._fault(connection_fault(error, self._options.call_timeout))
        problem = read_problem(
            response.status_code, response.headers.get("content-type", ""), response.content
        )
        return self.answered(request, response.headers, problem)

    def answered(self, request: ChatRequest, headers: Mapping[str, str], problem: Problem) -> Reply:
        """Return the reply that an error response stands for: a prompt that was blocked.

        Raises:
            CallFault: any other error.
        """
        kind = kind_of(problem)
        if problem.filtered and kind in ("bad_request", "key_refused", "unsupported"):
            return self._cleaned(Reply("blocked", "", detail=problem.text, finish="content_filter"))
        raise self._fault(
            CallFault(
                kind,
                explain(kind, problem, request),
                status=problem.status,
                retry_after=retry_after(headers, problem),
                maybe_paid=problem.status in (408, 502, 504),
            )
        )

    def _no_json(self, request: ChatRequest, headers: Mapping[str, str], body: bytes | str) -> CallFault:
        raw = body if isinstance(body, bytes) else body.encode("utf-8", "replace")
        start = raw.strip()[:1]
        if is_page(headers.get("content-type", ""), raw) or (start and start not in b"{["):
            problem = read_problem(200, headers.get("content-type", ""), raw)
            return self._fault(CallFault("not_an_api", explain("not_an_api", problem, request), status=200))
        text = "the body is empty" if not start else "the body is no whole JSON"
        return self._fault(CallFault("broken_reply", text, status=200, maybe_paid=True))

    def _fault(self, fault: CallFault) -> CallFault:
        fault.message = one_line(self._redactor.redact(fault.message))
        fault.args = (fault.kind, fault.message)
        return fault

    def _cleaned(self, reply: Reply) -> Reply:
        return Reply(
            reply.outcome,
            self._text(reply.text),
            None if reply.detail is None else one_line(self._redactor.redact(reply.detail)),
            self._word(reply.finish),
            self._word(reply.reported_model),
            reply.usage,
        )

    def _text(self, text: str) -> str:
        text = self._redactor.redact(unicode_only(text))
        # What is read from it may show what the text itself does not: an escape inside an escape.
        try:
            value, _ = read_json(text)
        except Malformed:
            return text
        clean = self._redactor.redact_json(value)
        return text if clean == value else json.dumps(clean, ensure_ascii=False)

    def _word(self, text: str | None) -> str | None:
        return None if text is None else one_line(self._redactor.redact(text))[:_LONGEST_WORD]


class Service(ABC):
    """A model behind a service, whose response is handed over unread.

    Args:
        spec: which model, and where.
        options: its settings.
        redactor: learns the key and takes it out of all that comes back.

    Raises:
        MissingRequirement: the library, the key or a variable that the settings name is not there.
    """

    _path: ClassVar[str] = ""
    _client: Any

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        self._name = spec.name
        self._edge = Edge(options, redactor)

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """Return what is sent for a request."""
        return self._body(request)

    async def _asked(self, request: ChatRequest, read: ReadReply) -> Reply:
        """Ask once, and read the response."""
        body = self._body(request)
        try:
            headers, content = await self._send(body)
        except Exception as error:  # noqa: BLE001 - adapter boundary
            failure = error
        else:
            return self._edge.reply(request, headers, content, read)
        # Raised out here, a fault drags no exception along that holds the request with its key.
        return self._edge.failed(request, failure)

    @abstractmethod
    def _body(self, request: ChatRequest) -> dict[str, Any]:
        """Return what is sent."""

    async def _send(self, body: dict[str, Any]) -> tuple[Mapping[str, str], bytes | str]:
        """Return headers and body of the response to what is posted to the service's path."""
        from httpx2 import Response

        response = await self._client.post(self._path, body=body, cast_to=Response)
        return response.headers, response.content


class Adapter(Service):
    """A model that answers in words or numbers: what it is asked does not change how its reply is read."""

    async def complete(self, request: ChatRequest) -> Reply:
        """Ask once.

        Raises:
            CallFault: no reply arrived, or the request is none that the service takes.
        """
        return await self._asked(request, self._read)

    @staticmethod
    @abstractmethod
    def _read(document: Mapping[str, Any]) -> Reply | None:
        """Return the reply in the JSON of a response; None where it is not the service's form."""


def unicode_only(text: str) -> str:
    """Return the text with halves of surrogate pairs replaced; they can be in JSON and in no file."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def text_or_none(value: object) -> str | None:
    """Return a text as it is, None for anything else."""
    return value if isinstance(value, str) else None


def tokens(counts: Json, name: str) -> int | None:
    """Return a number of tokens among the counts of a service; None where it is missing or no such number."""
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return value if type(value) is int and value >= 0 else None


def added(*counts: int | None) -> int | None:
    """Return the sum of counts; None where one of them is not known."""
    return None if None in counts else sum(count for count in counts if count is not None)


def usage_or_none(usage: Usage) -> Usage | None:
    """Return None for a usage that counts nothing: the service did not tell."""
    return None if not usage.input_tokens and not usage.output_tokens else usage


def _status_in(error: Any) -> int:  # noqa: ANN401 - whatever the service put there
    code = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def messages_to_send(request: ChatRequest) -> tuple[Message, ...]:
    """Return a request's messages; unless the service enforces the schema, it stands in the last one."""
    if request.schema is None or request.structured == "schema":
        return request.messages
    *before, last = request.messages
    text = (
        "\n\nAnswer with one JSON object and nothing else. It must satisfy this JSON Schema:\n"
        f"{canonical_text(request.schema.schema)}"
    )
    return (*before, Message(last.role, (*last.parts, text)))


def titled(schema: ReplySchema) -> dict[str, Any]:
    """Return a reply schema that carries its name as title, for services that take no name beside it."""
    return {"title": schema.name, **schema.schema}


_COUNTS = (
    "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "maxItems", "uniqueItems", "minProperties", "maxProperties",
)  # fmt: skip


def without_counts(schema: ReplySchema) -> dict[str, Any]:
    """Return a reply schema without limits on lengths and numbers, which then stand in descriptions.

    For services whose grammar knows no such limits; replies are checked against the whole schema.
    """
    cleaned: dict[str, Any] = json.loads(_without_counts(canonical_text(titled(schema))))
    return cleaned


@lru_cache(maxsize=256)
def _without_counts(text: str) -> str:
    return canonical_text(_relaxed(json.loads(text)))


def _relaxed(schema: Any) -> Any:  # noqa: ANN401 - a schema or a part of one
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    dropped: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _COUNTS or (key == "minItems" and value > 1):
            dropped[key] = value
        elif key in ("properties", "$defs"):
            kept[key] = {name: _relaxed(inner) for name, inner in value.items()}
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            kept[key] = [_relaxed(inner) for inner in value]
        else:
            kept[key] = _relaxed(value) if key == "items" else value
    if dropped:
        limits = ", ".join(f"{key}: {value}" for key, value in sorted(dropped.items()))
        kept["description"] = f"{kept.get('description', '')} ({limits})".strip()
    return kept
