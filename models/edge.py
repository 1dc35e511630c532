"""The edge of every adapter: how a request says what shape its reply must have, and what a response means.

A response, or an exception of the SDK, becomes a reply or a named fault.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from ..schemas.canonical import Json, canonical_text
from .chat import CallFault, ChatRequest, Message, Reply, ReplySchema, Usage
from .faults import (
    Problem,
    connection_fault,
    error_in,
    explain,
    is_page,
    kind_of,
    one_line,
    read_problem,
    retry_after,
)
from .keys import Redactor
from .options import ModelOptions
from .replies import Malformed, read_json
from .spec import ModelSpec

# -- A stream of events that nobody asked for, put together into the document that was asked for
#
# Some servers stream unless they are told not to, and some gateways always do. A stream is as long as a body
# may be (:data:`~.faults.LONGEST_BODY`), and one that does not come to its end is none.

_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


class BrokenStream(ValueError):
    """The events cannot be read, or the last one is missing."""


def is_stream(content_type: str, body: bytes) -> bool:
    """Return whether a body is a stream of events, or a document with the end of one behind it."""
    text = body.strip()
    if text.startswith(b"<"):  # a page, whatever it is called
        return False
    ends = text.startswith(b"{") and text.endswith(b"[DONE]")
    return "event-stream" in content_type.lower() or text.startswith(_STARTS) or ends


def stream_document(body: bytes) -> dict[str, Any]:
    """Return the document that a stream of events makes, as the service gives it unstreamed."""
    events, is_over = _events(body)
    return merged_document(events, is_over=is_over)


def merged_document(events: list[dict[str, Any]], *, is_over: bool) -> dict[str, Any]:
    """Return the document that pieces of one make; ``is_over``: the service said that there are no more."""
    failed = next((event for event in events if event.get("error")), None)
    if failed is not None:
        return failed
    if any(isinstance(event.get("choices"), list) for event in events):
        document, ends = _completion(events)
    elif any(event.get("type") == "message_start" for event in events):
        document, ends = _message(events)
    elif any("candidates" in event or "usageMetadata" in event for event in events):
        document, ends = _candidates(events)
    elif len(events) == 1:
        document, ends = events[0], True
    else:
        raise BrokenStream("its events are of no kind that is known" if events else "it has none")
    if not (ends or is_over):
        raise BrokenStream("it ended early")
    return document


def _events(body: bytes) -> tuple[list[dict[str, Any]], bool]:
    events: list[dict[str, Any]] = []
    pending: list[str] = []
    is_over = False
    text = body.decode("utf-8", "replace").lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    for line in (*text.split("\n"), ""):
        if line.startswith("data:"):
            pending.append(line.removeprefix("data:").removeprefix(" "))
        elif line.startswith("{"):
            pending += [part for part in line.partition("data: [DONE]")[::2] if part.strip()]
            is_over = is_over or line.rstrip().endswith("data: [DONE]")
        elif not line.strip() and pending:
            done = [text for text in pending if text.strip() == "[DONE]"]
            is_over = is_over or bool(done)
            events += _documents([text for text in pending if text not in done])
            pending = []
    return events, is_over


def _documents(lines: list[str]) -> Iterable[dict[str, Any]]:
    """Yield the objects in the lines of an event: one over all of them, or one each."""
    try:
        found = [json.loads("\n".join(lines))] if lines else []
    except (ValueError, RecursionError):
        try:
            found = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            raise BrokenStream("an event is no JSON") from None
    for document in found:
        if not isinstance(document, dict):
            raise BrokenStream("an event is no JSON object")
        yield document


def _last(events: Iterable[Mapping[str, Any]], name: str) -> Any:  # noqa: ANN401 - any JSON
    return next((event[name] for event in reversed(list(events)) if event.get(name) is not None), None)


def _completion(events: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return a chat completion, and whether its first choice is over."""
    choices: dict[int, dict[str, Any]] = {}
    for event in events:
        for entry in event.get("choices") or ():
            index = entry.get("index") or 0
            choice = choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
            for name in ("finish_reason", "error", "native_finish_reason"):
                if entry.get(name):
                    choice[name] = entry[name]
            _add(choice["message"], entry.get("delta") or entry.get("message") or {})
    document = {"choices": [choices[index] for index in sorted(choices)]}
    for name in ("model", "usage"):
        document[name] = _last(events, name)
    first = document["choices"][0] if choices else {}
    return document, bool(first.get("finish_reason") or first.get("error"))


def _add(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for name, piece in delta.items():
        known: Any = message.get(name)
        if name != "role" and type(known) is type(piece) and type(known) in (str, list):
            message[name] = known + piece
        elif piece is not None:
            message[name] = piece


def _message(events: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return a message of Anthropic's form, and whether it is over."""
    begun = next(event for event in events if event.get("type") == "message_start")["message"]
    usage = dict(begun.get("usage") or {})
    document = {**begun, "content": [], "usage": usage}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "json": ""}
        elif event.get("type") == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            for name in ("text", "thinking"):
                if isinstance(delta.get(name), str):
                    block[name] = block.get(name, "") + delta[name]
            block["json"] += delta.get("partial_json") or ""
        elif event.get("type") == "message_delta":
            document |= {name: value for name, value in event["delta"].items() if value is not None}
            usage |= {name: value for name, value in (event.get("usage") or {}).items() if value is not None}
    for _, block in sorted(blocks.items()):
        text = block.pop("json")
        if text:
            try:
                block["input"] = json.loads(text)
            except (ValueError, RecursionError):
                block["input"] = text
        document["content"].append(block)
    return document, any(event.get("type") == "message_stop" for event in events)


def _candidates(events: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return a generateContent response, and whether its candidate is over, or the prompt was blocked."""
    candidate: dict[str, Any] = {}
    parts: list[Any] = []
    for event in events:
        for entry in (event.get("candidates") or ())[:1]:
            candidate |= entry
            parts += (entry.get("content") or {}).get("parts") or []
    document = {
        name: value
        for name in ("promptFeedback", "usageMetadata", "modelVersion")
        if (value := _last(events, name)) is not None
    }
    if candidate:
        document["candidates"] = [{**candidate, "content": {"parts": parts}}]
    return document, bool(candidate.get("finishReason") or "promptFeedback" in document)


# -- The edge of every adapter

ReadReply: TypeAlias = Callable[[Mapping[str, Any]], Reply | None]
"""Makes a reply from the JSON of a response; None where it is not the service's form."""

_LONGEST_WORD = 200
MOST_TOKENS = 10**12
"""No call has so many tokens; sums of fewer fit the journal."""


class Edge:
    """Turns what one model's service answers into replies and faults.

    Args:
        options: the model's settings.
        redactor: knows the secrets.
    """

    reads_errors: ClassVar[bool] = False
    """Whether a document with an error in it is for ``read``: it may tell of more than that."""

    def __init__(self, options: ModelOptions, redactor: Redactor) -> None:
        self._options = options
        self._redactor = redactor

    def reply(
        self, request: ChatRequest, headers: Mapping[str, str], body: bytes | str, read: ReadReply
    ) -> Reply:
        """Return the reply in a response of status 200."""
        document = self._document(request, headers, body)
        problem = error_in(document)
        if problem is not None and not self.reads_errors:
            return self.answered(request, headers, problem)
        try:
            reply = read(document)
        except (TypeError, KeyError, ValueError, AttributeError, IndexError):
            raise self._broken("the body lacks what it needs") from None
        if reply is not None:
            return self._cleaned(reply)
        if problem is not None:
            return self.answered(request, headers, problem)
        shown = ", ".join(sorted(document)[:8])
        raise self._fault(
            CallFault("not_an_api", f"the answer is JSON of another kind, with the keys: {shown}", status=200)
        )

    def _document(
        self, request: ChatRequest, headers: Mapping[str, str], body: bytes | str
    ) -> dict[str, Any]:
        """Return the JSON of a response, put together where it comes in pieces."""
        raw = body if isinstance(body, bytes) else body.encode("utf-8", "replace")
        try:
            document = json.loads(body)
            if isinstance(document, list) and document and all(isinstance(piece, dict) for piece in document):
                document = merged_document(document, is_over=False)
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            if not is_stream(headers.get("content-type", ""), raw):
                raise self._no_json(request, headers, raw) from None
            document = self._streamed(raw)
        if not isinstance(document, dict):
            raise self._broken("the body is no JSON object")
        return document

    def _streamed(self, body: bytes) -> dict[str, Any]:
        try:
            return stream_document(body)
        except BrokenStream as error:
            words = f"the body is a stream of events, and {error}"
        except (ValueError, TypeError, KeyError, AttributeError):
            words = "the body is a stream of events, and one lacks what it needs"
        raise self._broken(words)

    def _broken(self, words: str) -> CallFault:
        return self._fault(CallFault("broken_reply", words, status=200, maybe_paid=True))

    def failed(self, request: ChatRequest, error: Exception) -> Reply:
        """Return the reply that an SDK's exception stands for: a prompt that was blocked."""
        response = getattr(error, "response", None)
        if response is None or not hasattr(response, "status_code"):
            raise self._fault(connection_fault(error, self._options.call_timeout))
        problem = read_problem(
            response.status_code, response.headers.get("content-type", ""), response.content
        )
        return self.answered(request, response.headers, problem)

    def answered(self, request: ChatRequest, headers: Mapping[str, str], problem: Problem) -> Reply:
        """Return the reply that an error response stands for: a prompt that was blocked."""
        kind = kind_of(problem)
        if problem.filtered and (problem.begun or kind in ("bad_request", "key_refused", "unsupported")):
            return self._cleaned(Reply("blocked", "", detail=problem.text, finish="content_filter"))
        raise self._fault(
            CallFault(
                kind,
                explain(kind, problem, request),
                status=problem.status,
                retry_after=retry_after(headers, problem),
                maybe_paid=problem.begun or problem.status in (408, 502, 504),
            )
        )

    def _no_json(self, request: ChatRequest, headers: Mapping[str, str], raw: bytes) -> CallFault:
        start = raw.strip()[:1]
        if is_page(headers.get("content-type", ""), raw) or (start and start not in b"{["):
            problem = read_problem(200, headers.get("content-type", ""), raw)
            return self._fault(CallFault("not_an_api", explain("not_an_api", problem, request), status=200))
        return self._broken("the body is empty" if not start else "the body is no whole JSON")

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
        await self._client.close()

    def body(self, request: ChatRequest) -> dict[str, Any]:
        return self._body(request)

    async def _asked(self, request: ChatRequest, read: ReadReply) -> Reply:
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
        """Ask once."""
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


def instead(kinds: Iterable[object], *, other: bool = False) -> str | None:
    """Return what a reply without text holds in place of it, in words; None where it holds nothing."""
    words = " ".join(str(kind).lower() for kind in kinds)
    held = [name for name, found in _HELD.items() if any(word in words for word in found)]
    held += ["another choice with text, of which the first is read"] if other else []
    if not held:
        return None
    advice = "; raise max_tokens, or make it think less" if held[0] == "reasoning" else ""
    return f"no text came, but {' and '.join(held)}{advice}"


_HELD: Mapping[str, tuple[str, ...]] = {
    "reasoning": ("reason", "think", "thought"),
    "a tool call": ("tool", "function", "executable"),
    "a picture or a file": ("image", "inline", "file", "video"),
    "sound": ("audio",),
}
"""What a part is -> how services name it."""


def text_or_none(value: object) -> str | None:
    """Return a text as it is, None for anything else."""
    return value if isinstance(value, str) else None


def tokens(counts: Json, name: str) -> int | None:
    """Return a number of tokens among the counts of a service; None where it is missing or no such number."""
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return value if type(value) is int and 0 <= value < MOST_TOKENS else None


def added(*counts: int | None) -> int | None:
    """Return the sum of counts; None where one of them is not known."""
    return None if None in counts else sum(count for count in counts if count is not None)


def usage_or_none(usage: Usage) -> Usage | None:
    """Return None for a usage that counts nothing: the service did not tell."""
    return None if not usage.input_tokens and not usage.output_tokens else usage


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


LARGEST, LONGEST = 999_999_999, 200
"""Largest integer and most entries of a list where a schema says nothing: a small model that is held to it by
its grammar could write digits or entries without end."""
_ENDLESS = {"integer": {"minimum": -LARGEST, "maximum": LARGEST}, "array": {"maxItems": LONGEST}}


def bounded(schema: Any) -> Any:  # noqa: ANN401 - a schema or a part of one
    """Return a schema with limits on integers and lists; what satisfies it satisfies the schema as it was."""
    if isinstance(schema, list):
        return [bounded(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    kinds = schema.get("type")
    named = kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else []
    limits = {key: limit for name in named for key, limit in _ENDLESS.get(name, {}).items()}
    return {**limits, **{name: bounded(part) for name, part in schema.items()}}


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
