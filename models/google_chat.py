"""Adapter for Google's Gemini models through google-genai.

The SDK sends the request and hands the response over unread: its own types lose fields that it does not know.
Its automatic continuation and function calling are off, as they make further calls.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..schemas.canonical import Json
from .chat import ChatRequest, Image, Message, Part, Reply, ReplyOutcome, Usage, base64_text
from .edge import Adapter, added, instead, messages_to_send, text_or_none, titled, tokens, usage_or_none
from .faults import GRACE, LONGEST_BODY, headers_of, http_client
from .keys import Redactor, find_key
from .options import ModelOptions
from .spec import ModelSpec

if TYPE_CHECKING:
    import httpx2
    from google import genai

GOOGLE = "https://generativelanguage.googleapis.com"
API_VERSION = "v1beta"
"""The version that takes JSON Schemas; the SDK would choose another."""

BLOCKED = frozenset(
    (
        *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    )
)
"""How a candidate ends that a filter of the service stopped."""
BROKEN_OFF = frozenset(("OTHER", "MALFORMED_RESPONSE", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"))
"""How one ends that was not written to its end, and would end so again."""


def google_client(
    spec: ModelSpec, options: ModelOptions, redactor: Redactor, longest: int = LONGEST_BODY
) -> tuple["genai.Client", "httpx2.AsyncClient"]:
    """Return the SDK's client for one model, and the HTTP client in it; both are to be closed."""
    from google import genai
    from google.genai import types

    http = http_client(spec, options, redactor, longest)
    client = genai.Client(
        api_key=find_key(spec, options, redactor),
        vertexai=False,
        http_options=types.HttpOptions(
            base_url=options.base_url or GOOGLE,
            api_version=API_VERSION,
            headers=headers_of(spec, options, redactor),
            timeout=int((options.call_timeout + GRACE) * 1000),
            retry_options=types.HttpRetryOptions(attempts=1),
            httpx_async_client=http,
        ),
    )
    return client, http


async def close_google(client: "genai.Client", http: "httpx2.AsyncClient") -> None:
    await client.aio.aclose()
    client.close()
    await http.aclose()


async def post_contents(
    client: "genai.Client", body: dict[str, Any]
) -> tuple[Mapping[str, str], bytes | str]:
    """Return headers and body of the response to generateContent, unread."""
    response = await client.aio.models.generate_content(**body)
    raw = response.sdk_http_response
    headers = {} if raw is None else {k.lower(): v for k, v in (raw.headers or {}).items()}
    return headers, "" if raw is None else raw.body or ""


def read_reply(document: Mapping[str, Any]) -> Reply | None:
    """Return the reply in a generateContent response; None where the JSON is none."""
    candidates = document.get("candidates")
    feedback = pick(document, "promptFeedback")
    usage = pick(document, "usageMetadata")
    if candidates is None and feedback is None and usage is None:
        return None
    model = text_or_none(pick(document, "modelVersion"))
    if not candidates:
        counted = google_usage(usage, is_empty=True)
        reason = text_or_none(pick(feedback or {}, "blockReason"))
        if reason:
            return Reply("blocked", "", f"the prompt was blocked: {reason}", reason, model, counted)
        return Reply("empty", "", "the service gave no candidates", None, model, counted)
    candidate = candidates[0]
    finish = text_or_none(pick(candidate, "finishReason"))
    parts = (candidate.get("content") or {}).get("parts") or []
    text = "".join(part.get("text") or "" for part in parts if not part.get("thought"))
    counted = google_usage(usage, is_empty=not text)
    detail = text_or_none(pick(candidate, "finishMessage"))
    outcome: ReplyOutcome = "ok" if text.strip() else "empty"
    if finish in BLOCKED:
        outcome, detail = "blocked", detail or f"the reply was blocked: {finish}"
    elif finish == "MAX_TOKENS":
        outcome, detail = "truncated", "cut off at max_tokens"
    elif outcome == "ok" and finish in BROKEN_OFF:
        outcome, detail = "truncated", detail or f"broken off by the service: {finish}"
    elif outcome == "empty":
        detail = detail or _instead(candidates, parts, counted)
    return Reply(outcome, text, detail, finish, model, counted)


def _instead(candidates: list[Any], parts: list[Any], counted: Usage | None) -> str | None:
    """Return what a first candidate without text holds in place of it."""
    kinds = [name for part in parts for name in part if name != "text" or part.get("thought")]
    if counted is not None and counted.thinking_tokens:
        kinds.append("thought")
    others = [part for other in candidates[1:] for part in (other.get("content") or {}).get("parts") or []]
    return instead(kinds, other=any(part.get("text") and not part.get("thought") for part in others))


def pick(document: Mapping[str, Any], name: str) -> Json:
    """Return a member by its name, in either of the spellings that the API accepts and gives."""
    if name in document:
        return document[name]
    return document.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


def google_usage(usage: Json, *, is_empty: bool) -> Usage | None:
    """Return the counts. The service leaves out those that are 0; the total then shows that they are."""
    if not isinstance(usage, Mapping):
        return None
    given = added(_tokens(usage, "promptTokenCount"), _tokens(usage, "toolUsePromptTokenCount", 0))
    total = _tokens(usage, "totalTokenCount")
    written = _tokens(usage, "candidatesTokenCount", 0 if is_empty else None)
    rest = None if total is None or given is None or written is None else total - given - written
    thinking = _tokens(usage, "thoughtsTokenCount", rest)
    return usage_or_none(
        Usage(
            given,
            added(written, thinking),
            cached_tokens=_tokens(usage, "cachedContentTokenCount", 0),
            thinking_tokens=thinking,
        )
    )


def _tokens(usage: Mapping[str, Any], name: str, left_out: int | None = None) -> int | None:
    if pick(usage, name) is None:
        return left_out if left_out is not None and left_out >= 0 else None
    return tokens({name: pick(usage, name)}, name)


class GoogleChat(Adapter):
    """A Gemini model; ``extra`` of its settings is merged into the request's body."""

    _read = staticmethod(read_reply)

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        from google.genai import types

        super().__init__(spec, options, redactor)
        self._types = types
        self._client, self._http = google_client(spec, options, redactor)

    @staticmethod
    def rest_body(request: ChatRequest) -> dict[str, Json]:
        """Return what the SDK sends for a request, for files in which the service wants it so."""
        messages = messages_to_send(request)
        contents: list[Json] = [_rest_content(message) for message in messages if message.role != "system"]
        body: dict[str, Json] = {"contents": contents}
        system = _system_text(messages)
        if system is not None:
            body["systemInstruction"] = {"parts": [{"text": system}], "role": "user"}
        config: dict[str, Json] = {
            "temperature": request.temperature,
            "seed": request.seed,
            "maxOutputTokens": request.max_tokens,
        }
        if request.schema is not None and request.structured != "prompt":
            config["responseMimeType"] = "application/json"
            if request.structured == "schema":
                config["responseJsonSchema"] = titled(request.schema)
        body["generationConfig"] = {name: value for name, value in config.items() if value is not None}
        return _merged(body, request.extra)

    async def close(self) -> None:
        await close_google(self._client, self._http)

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        messages = messages_to_send(request)
        contents = [self._content(message) for message in messages if message.role != "system"]
        return {"model": self._name, "contents": contents, "config": self._config(request, messages)}

    async def _send(self, body: dict[str, Any]) -> tuple[Mapping[str, str], bytes | str]:
        return await post_contents(self._client, body)

    def _config(self, request: ChatRequest, messages: tuple[Message, ...]) -> Any:  # noqa: ANN401 - SDK type
        types = self._types
        wants_json = request.schema is not None and request.structured != "prompt"
        enforced = request.schema is not None and request.structured == "schema"
        return types.GenerateContentConfig(
            system_instruction=_system_text(messages),
            temperature=request.temperature,
            seed=request.seed,
            max_output_tokens=request.max_tokens,
            response_mime_type="application/json" if wants_json else None,
            response_json_schema=titled(request.schema) if enforced and request.schema else None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            automatic_continuation=False,
            should_return_http_response=True,
            http_options=types.HttpOptions(extra_body=dict(request.extra)) if request.extra else None,
        )

    def _content(self, message: Message) -> Any:  # noqa: ANN401 - SDK type
        role = "model" if message.role == "assistant" else "user"
        return self._types.Content(role=role, parts=[self._part(part) for part in message.parts])

    def _part(self, part: Part) -> Any:  # noqa: ANN401 - SDK type
        if isinstance(part, Image):
            return self._types.Part.from_bytes(data=part.data, mime_type=part.media_type)
        return self._types.Part(text=part)


def _system_text(messages: tuple[Message, ...]) -> str | None:
    texts = [part for m in messages if m.role == "system" for part in m.parts if isinstance(part, str)]
    return "\n\n".join(texts) or None


def _rest_content(message: Message) -> dict[str, Json]:
    role = "model" if message.role == "assistant" else "user"
    return {"role": role, "parts": [_rest_part(part) for part in message.parts]}


def _rest_part(part: Part) -> dict[str, Json]:
    if isinstance(part, Image):
        return {"inlineData": {"mimeType": part.media_type, "data": base64_text(part.data)}}
    return {"text": part}


def _merged(body: dict[str, Json], extra: Mapping[str, Json]) -> dict[str, Json]:
    """Return a body with more parameters in it, objects inside objects."""
    merged = dict(body)
    for name, value in extra.items():
        known = merged.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[name] = _merged(known, value)
        else:
            merged[name] = value
    return merged
