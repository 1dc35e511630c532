"""Adapters for OpenAI's chat completions and embeddings, and for the many servers that speak the same."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..schemas.canonical import Json
from .chat import (
    ChatRequest,
    Image,
    Message,
    Part,
    Reply,
    ReplyOutcome,
    Usage,
    base64_text,
    first_vector,
    read_vector,
    text_to_encode,
)
from .edge import Adapter, bounded, instead, messages_to_send, text_or_none, tokens, usage_or_none
from .faults import GRACE, LONGEST_BODY, headers_not_ours, headers_of, http_client
from .keys import Redactor, find_key
from .options import ModelOptions
from .spec import COMPATIBLE, ModelSpec

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
"""The SDK's default, named here so that no environment variable moves it unseen."""


def openai_client(
    spec: ModelSpec,
    options: ModelOptions,
    redactor: Redactor,
    longest: int = LONGEST_BODY,
    key: str | None = None,
) -> "openai.AsyncOpenAI":
    """Return the client for one model, without retries of its own; it reads at most ``longest`` bytes.

    ``key``: of a server that we started; None for the one that the settings name.
    """
    import openai

    key = find_key(spec, options, redactor) if key is None else key
    headers: dict[str, Any] = headers_not_ours("OPENAI_CUSTOM_HEADERS", key, openai.omit)
    if spec.is_own:
        # The SDK would take both from the environment; they are nobody else's business.
        headers |= {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}
    return openai.AsyncOpenAI(
        api_key=key,
        base_url=options.base_url or spec.base_url or OPENAI,
        timeout=options.call_timeout + GRACE,
        max_retries=0,
        default_headers={**headers, **headers_of(spec, options, redactor)},
        http_client=http_client(spec, options, redactor, longest),
    )


def _message(message: Message) -> dict[str, Json]:
    if len(message.parts) == 1 and isinstance(message.parts[0], str):
        return {"role": message.role, "content": message.parts[0]}
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def _part(part: Part) -> dict[str, Json]:
    if isinstance(part, Image):
        data = base64_text(part.data)
        picture: dict[str, Json] = {"url": f"data:{part.media_type};base64,{data}"}
        detail = {} if part.detail is None else {"detail": part.detail}
        return {"type": "image_url", "image_url": {**picture, **detail}}
    return {"type": "text", "text": part}


_CUT_OFF = frozenset(("length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded"))
_BLOCKED = frozenset(("content_filter", "sensitive", "safety", "SAFETY", "ERROR_TOXIC"))


def read_reply(document: Mapping[str, Any]) -> Reply | None:
    """Return the reply in a chat completion; None where the JSON is no chat completion."""
    choices = document.get("choices")
    if not isinstance(choices, list):
        return None
    counted = _usage(document.get("usage"))
    model = text_or_none(document.get("model"))
    if not choices:
        return Reply("empty", "", "the service gave no choices", None, model, counted)
    choice = choices[0]
    message = choice.get("message") or {}
    finish = text_or_none(choice.get("finish_reason"))
    text = _text(message.get("content"))
    refusal = text_or_none(message.get("refusal"))
    outcome: ReplyOutcome = "ok" if text.strip() else "empty"
    detail = None if text.strip() else _instead(choices, counted)
    if finish in _BLOCKED:
        outcome, detail = "blocked", "the service's content filter"
    elif refusal:
        outcome, text, detail = "refused", refusal, None
    elif finish in _CUT_OFF:
        outcome, detail = "truncated", "cut off at max_tokens"
    return Reply(outcome, text, detail, finish, model, counted)


def _instead(choices: list[Any], counted: Usage | None) -> str | None:
    """Return what an empty first choice holds in place of text."""
    first, *others = [each.get("message") or {} for each in choices if isinstance(each, Mapping)]
    kinds = [name for name, value in first.items() if value and name not in ("role", "content")]
    if isinstance(first.get("content"), list):
        kinds += [str(part.get("type")) for part in first["content"] if isinstance(part, Mapping)]
    if counted is not None and counted.thinking_tokens:
        kinds.append("reasoning")
    return instead(kinds, other=any(_text(message.get("content")).strip() for message in others))


def _text(content: Json) -> str:
    if isinstance(content, list):  # some servers answer in parts
        return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    given = usage.get("prompt_tokens_details")
    return usage_or_none(
        Usage(
            tokens(usage, "prompt_tokens"),
            tokens(usage, "completion_tokens"),
            cached_tokens=tokens(given, "cached_tokens"),
            thinking_tokens=tokens(usage.get("completion_tokens_details"), "reasoning_tokens"),
            cache_write_tokens=tokens(given, "cache_write_tokens"),
        )
    )


class OpenAIChat(Adapter):
    """A model behind OpenAI's chat completions."""

    _path = "/chat/completions"
    _read = staticmethod(read_reply)

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        super().__init__(spec, options, redactor)
        self._is_openai = spec.provider != COMPATIBLE  # others may refuse what they do not know
        self._limit = "max_completion_tokens" if self._is_openai else "max_tokens"
        self._client = openai_client(spec, options, redactor)

    def _body(self, request: ChatRequest) -> dict[str, Json]:
        body: dict[str, Json] = {
            "model": self._name,
            "messages": [_message(message) for message in messages_to_send(request)],
            self._limit: request.max_tokens,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.seed is not None:
            body["seed"] = request.seed
        if request.schema is not None and request.structured == "schema":
            form = request.schema.schema if self._is_openai else bounded(request.schema.schema)
            wanted = {"name": request.schema.name, "strict": True, "schema": form}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif request.schema is not None and request.structured == "json":
            body["response_format"] = {"type": "json_object"}
        if request.prefix is not None and self._is_openai:
            body["prompt_cache_key"] = request.prefix.key
        return {**body, **request.extra}


def read_embedding(document: Mapping[str, Any]) -> Reply | None:
    """Return the reply in an embeddings response; None where the JSON is none."""
    if not isinstance(document.get("data"), list):
        return None
    usage = document.get("usage")
    counted = usage_or_none(Usage(tokens(usage, "prompt_tokens")))
    model = text_or_none(document.get("model"))
    vector = read_vector(first_vector(document))
    if vector is None:
        return Reply("empty", "", "the service gave no vector that can be used", None, model, counted)
    return Reply("ok", vector, None, None, model, counted)


class OpenAIEmbedding(Adapter):
    """An encoder behind OpenAI's embeddings: one text per call; ``extra`` may hold ``dimensions``.

    Several texts in one call would be fewer calls, and numbers that depend on the company they were sent in:
    servers that pad batches give slightly other vectors.
    """

    _path = "/embeddings"
    _read = staticmethod(read_embedding)

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        super().__init__(spec, options, redactor)
        self._client = openai_client(spec, options, redactor)

    def _body(self, request: ChatRequest) -> dict[str, Json]:
        asked: dict[str, Json] = {"model": self._name, "input": [text_to_encode(request)]}
        return {"encoding_format": "float", **request.extra, **asked}
