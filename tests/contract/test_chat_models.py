"""One suite over every registered chat model: real SDKs against the model server, every fault named."""

import asyncio
import base64
import gc
import html
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

import pytest

from fabula.models.chat import CallFault, ChatRequest, Image, Message, Reply, ReplySchema, Usage
from fabula.models.edge import LONGEST
from fabula.models.keys import MARK, Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import ADAPTERS, open_model
from fabula.models.replies import Malformed, parse_reply
from fabula.models.spec import OPEN, parse_spec
from fabula.testing import model_server as service

from .services import FAULTS, KEY, ask, place

PICTURE = Image(b"\x89PNG\r\n\x1a\n\xfb\xff picture", "image/png")
SCHEMA = ReplySchema(
    "moral_of",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["moral", "words"],
        "properties": {
            "moral": {"type": "string"},
            "words": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
    },
)
VALUE = {"moral": "Pride — «狐»", "words": ["fox", "grapes"]}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY", "LOCAL_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture(scope="module")
def running() -> Any:
    with service.ModelServer() as server:
        yield server


@pytest.fixture
def server(running: service.ModelServer) -> service.ModelServer:
    running.handler, running.faults, running.latency = (lambda _: VALUE), None, 0.0
    return running


@pytest.fixture(params=[provider for provider, _ in ADAPTERS if provider not in OPEN])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Chat:
    """A model at the server, and what is needed to ask it."""

    def __init__(self, provider: str, server: service.ModelServer, **options: Any) -> None:
        self.provider, self.server = provider, server
        self.spec, where = place(server, provider)
        keys = {"api_key_env": "LOCAL_KEY"} if provider == "compatible" else {}
        self.options = ModelOptions(**{**where, **keys, **options})

    def request(self, **changes: Any) -> ChatRequest:
        request = ChatRequest(
            self.spec.text,
            (Message("system", ("Be terse.",)), Message("user", ("What is the moral? Ωλ",))),
            SCHEMA,
            temperature=0.0,
            seed=7,
            max_tokens=3000,
        )
        return replace(request, **changes)

    def ask(self, **changes: Any) -> Reply:
        return ask(self.spec, self.options, self.request(**changes))

    def fault(self, **changes: Any) -> CallFault:
        with pytest.raises(CallFault) as caught:
            self.ask(**changes)
        assert "planted" not in f"{caught.value} {caught.value.args} {caught.value.__context__!r}"
        assert len(caught.value.message) <= 500
        assert caught.value.message.isprintable()
        return caught.value


@pytest.fixture
def chat(provider: str, server: service.ModelServer) -> Chat:
    return Chat(provider, server)


@pytest.fixture
def chat_with(provider: str, server: service.ModelServer) -> Callable[..., Chat]:
    return lambda **options: Chat(provider, server, **options)


def test_reply_when_all_is_well_comes_back_whole(chat: Chat) -> None:
    chat.server.handler = lambda _: service.Answer(
        json.dumps(VALUE), usage=Usage(100, 50, cached_tokens=30, thinking_tokens=20), model="tiny-2026"
    )
    reply = chat.ask()
    assert parse_reply(reply.text, SCHEMA).value == VALUE
    assert reply == Reply("ok", reply.text, None, reply.finish, "tiny-2026", Usage(100, 50, 30, 20))
    assert Reply.from_json(json.loads(json.dumps(reply.as_json()))) == reply


def test_usage_when_no_call_can_have_so_much_is_not_known(chat: Chat) -> None:
    chat.server.handler = lambda _: service.Answer(json.dumps(VALUE), usage=Usage(2**63, 10**12))
    assert chat.ask().usage in (None, Usage(None, None))


def test_request_when_sent_says_all_that_was_asked(chat: Chat) -> None:
    chat.ask(
        messages=(
            *chat.request().messages,
            Message("assistant", ("Hm.",)),
            Message("user", ("And?", PICTURE)),
        )
    )
    asked = chat.server.log[-1].asked
    assert asked.model == "tiny"
    assert asked.system == "Be terse."
    assert [(message.role, message.parts) for message in asked.messages] == [
        ("user", ("What is the moral? Ωλ",)),
        ("assistant", ("Hm.",)),
        ("user", ("And?", PICTURE)),
    ]
    assert asked.structured == "schema"
    assert asked.schema_name == "moral_of"
    assert asked.schema is not None
    assert asked.schema["required"] == SCHEMA.schema["required"]
    if chat.provider == "compatible":  # a small model behind it would list words without end
        assert asked.schema["properties"]["words"]["maxItems"] == LONGEST
    seed = {} if chat.provider == "anthropic" else {"seed": 7}
    assert asked.params == {"temperature": 0.0, "max_tokens": 3000, **seed}
    assert KEY in asked.secrets


def test_request_when_nothing_is_set_sends_nothing_extra(chat: Chat) -> None:
    chat.ask(temperature=None, seed=None, schema=None)
    asked = chat.server.log[-1].asked
    assert asked.params == {"max_tokens": 3000}
    assert asked.schema is None
    assert asked.structured is None


@pytest.mark.parametrize("structured", ["json", "prompt"])
def test_request_when_the_service_enforces_no_schema_has_it_where_the_model_sees_it(structured, chat):
    assert parse_reply(chat.ask(structured=structured).text, SCHEMA).value == VALUE
    asked = chat.server.log[-1].asked
    assert '"minItems":2' in asked.text
    if structured == "prompt":
        assert asked.structured is None
    else:
        assert asked.structured == ("tool" if chat.provider == "anthropic" else "json")


def test_request_when_there_are_extras_sends_them_as_they_are(chat: Chat) -> None:
    chat.ask(extra={"top_p": 0.5, "metadata": {"user_id": "x"}})
    body = chat.server.log[-1].asked.body
    assert body["top_p"] == 0.5
    assert body["metadata"] == {"user_id": "x"}


def test_request_when_headers_are_set_carries_them(chat_with, monkeypatch):
    monkeypatch.setenv("GATEWAY", "planted-gateway")
    chat = chat_with(headers={"X-Team": "stories", "X-Gateway-Key": "${GATEWAY}"})
    chat.server.handler = lambda asked: {**VALUE, "moral": asked.headers["x-gateway-key"]}
    reply = chat.ask()
    headers = chat.server.log[-1].asked.headers
    assert headers["x-team"] == "stories"
    assert headers["x-gateway-key"] == "planted-gateway"
    assert headers["accept-encoding"] == "identity"
    assert "planted" not in reply.text


def test_request_when_a_proxy_is_set_goes_through_it(chat_with, server, monkeypatch):
    monkeypatch.setenv("PROXY_PASSWORD", "planted-proxy")
    address = server.url.removeprefix("http://")
    chat = chat_with(proxy=f"http://me:${{PROXY_PASSWORD}}@{address}")
    if chat.provider == "compatible":
        chat.spec = parse_spec("http://model.invalid/v1#tiny")
    else:
        chat.options = chat.options.model_copy(
            update={"base_url": str(chat.options.base_url).replace(address, "model.invalid")}
        )
    assert chat.ask().outcome == "ok"
    assert server.log[-1].asked.target.startswith("http://model.invalid/")
    assert "proxy-authorization" in server.log[-1].asked.headers


def test_request_when_a_foreign_environment_is_around_is_not_moved_by_it(chat, monkeypatch):
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/v1")
    monkeypatch.setenv("GOOGLE_API_KEY", "another-key")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    monkeypatch.setenv("OPENAI_ORG_ID", "our-organization")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "X-Gateway: another-secret\nauthorization: Bearer another-secret")
    assert chat.ask().outcome == "ok"
    asked = chat.server.log[-1].asked
    assert asked.secrets == (KEY,)
    if chat.provider == "compatible":
        assert "our-organization" not in asked.headers.values()
    assert "another-secret" not in str(asked.headers)


OUTCOMES: list[tuple[Any, str]] = [
    (service.TruncatedJson(), "truncated"),
    (service.EmptyChoices(), "empty"),
    (service.EmptyText(), "empty"),
    (service.ContentFilter(), "blocked"),
    (service.SafetyBlock(), "blocked"),
    (service.SafetyBlock("prompt", "PROHIBITED_CONTENT"), "blocked"),
    (service.SafetyBlock("reply", "RECITATION"), "blocked"),
    (service.Refused(), "refused"),
]


@pytest.mark.parametrize(("fault", "outcome"), OUTCOMES, ids=lambda value: str(value)[:40])
def test_outcome_when_the_service_gives_none_or_half_an_answer_is_named(fault, outcome, chat):
    chat.server.faults = fault
    # Gemini has no word for a refusal, and Anthropic's filters end as one.
    if isinstance(fault, service.Refused) and chat.provider == "google":
        outcome = "ok"
    if isinstance(fault, service.SafetyBlock) and chat.provider == "anthropic":
        outcome = "refused"
    reply = chat.ask()
    assert reply.outcome == outcome
    if isinstance(fault, service.Refused):
        assert reply.text == fault.text
    if outcome == "blocked":
        assert reply.detail
    if isinstance(fault, service.SafetyBlock) and chat.provider == "google":
        assert fault.reason in (reply.detail or "")


KINDS = [
    *FAULTS, (service.NoStructuredOutput(), "unsupported"), (service.Unsupported(), "unsupported"),
    (service.Huge(), "too_long"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "kind"), KINDS, ids=lambda value: str(value)[:40])
def test_fault_when_no_reply_arrives_is_named(fault: Any, kind: str, chat: Chat) -> None:
    chat.server.faults = fault
    before = chat.server.count
    found = chat.fault()
    assert found.kind == kind, found
    assert chat.server.count - before == 1, "neither SDK nor adapter asks again"
    assert found.retry_after is None
    if isinstance(fault, service.Dropped | service.TruncatedBody | service.Huge):
        assert found.maybe_paid
    if kind in ("rate_limited", "key_refused", "no_quota"):
        assert not found.maybe_paid


@dataclass(frozen=True)
class Said(service.DeliveryFault):
    """A response as a real service or gateway gave it."""

    status: int
    body: Any
    content_type: str = "application/json"

    def deliver(self, response: Any) -> Any:
        body = self.body if isinstance(self.body, str) else json.dumps(self.body)
        headers = {"content-type": self.content_type}
        return replace(response, status=self.status, body=body.encode(), headers=headers)


def outcome_of(chat: Chat, **changes: Any) -> tuple[str, str]:
    """What became of a request, as one word, and what is said of it."""
    try:
        reply = chat.ask(**changes)
    except CallFault as fault:
        return fault.kind, fault.message
    return reply.outcome, reply.detail or ""


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


GUIDELINES = "Content violates usage guidelines. Team: t, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO"
FLAGGED = 'm requires moderation on P. Your input was flagged for "violence".'
INSPECTED = "Input data may contain inappropriate content."
NGINX = "<html><head><title>413 Request Entity Too Large</title></head><body><hr>nginx</body></html>"
RAW = '{"error": {"message": "stopped", "code": "content_filter"}}'
ERRORS: list[tuple[int, Any, str]] = [
    # a filter stopped this one item
    (403, {"code": "The caller does not have permission", "error": GUIDELINES}, "blocked"),  # xAI
    (403, {"code": "permission-denied", "error": "Content violates usage guidelines. "}, "blocked"),
    (403, error(FLAGGED, code=403, metadata={"reasons": ["violence"], "flagged_input": "x"}), "blocked"),
    (400, error(INSPECTED, code="data_inspection_failed", type="data_inspection_failed"), "blocked"),
    (400, error("<400> InternalError.Algo.DataInspectionFailed: Input text data may contain"), "blocked"),
    (400, error("Content Exists Risk", type="invalid_request_error"), "blocked"),  # DeepSeek
    (400, {"detail": "Content Exists Risk"}, "blocked"),
    (400, error("The request was rejected because it was considered high risk", code=400), "blocked"),  # Kimi
    (400, error("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301"), "blocked"),  # GLM
    (400, error("input contains sensitive words: [x]", code="sensitive_words_detected"), "blocked"),
    (400, {"type": "error", **error("Output blocked by content filtering policy")}, "blocked"),  # Anthropic
    (400, error("Provider returned error", code=400, metadata={"raw": RAW, "provider_name": "A"}), "blocked"),
    (403, {"statusCode": 403, "error": "Forbidden", "message": "Blocked by our moderation."}, "blocked"),
    (451, error("The request is censored."), "blocked"),
    (400, error("may contain sensitive facts", code="InputTextSensitiveContentDetected"), "blocked"),  # Ark
    # the service refuses the key, or a setting: every item would meet it
    (403, {"code": "permission-denied", "error": "Access to the chat endpoint is denied"}, "key_refused"),
    (403, error("Your account lacks access to this model."), "key_refused"),
    (400, error("Failed to initialize samplers: failed to parse grammar", code=400), "unsupported"),
    (400, error("JSON schema conversion failed:\nUnrecognized schema: {}", code=400), "unsupported"),
    (400, error("Failed to initialize samplers: Unexpected empty grammar stack after {"), "unsupported"),
    (400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}, "unsupported"),  # LM Studio
    # one item is too long
    (413, NGINX, "too_long"),
    (413, error("Payload Too Large"), "too_long"),
    (413, "", "too_long"),
    (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9"}, "too_long"),  # TGI
    (400, error("the request exceeds the available context size, try increasing it"), "too_long"),
    (400, error("messages.0: image exceeds 5 MB maximum: 6100000 bytes > 5242880 bytes"), "too_long"),
    # nothing of this
    (498, error("flex capacity exceeded", type="capacity_exceeded"), "server_error"),  # Groq
    (400, error("Invalid content type. image_url is only supported by certain models."), "bad_request"),
    (400, error("messages.0.content: Field required", type="invalid_request_error"), "bad_request"),
    (
        400,
        error("Failed to generate JSON. See 'failed_generation'.", code="json_validate_failed"),
        "bad_request",
    ),
    # an error in a body of status 200
    (200, error("Overloaded", type="overloaded_error"), "server_error"),
    (200, error("slow down", type="rate_limit_error"), "rate_limited"),
    (200, error("Resource exhausted", code=429, status="RESOURCE_EXHAUSTED"), "rate_limited"),
    (200, error("stopped", code="content_filter"), "blocked"),
    (200, {"object": "error", "message": "upstream is down", "code": 502}, "server_error"),
    (200, {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, "rate_limited"),
    (200, {"choices": None, "base_resp": {"status_code": 1026, "status_msg": "new_sensitive"}}, "blocked"),
    (200, {"success": False, "errors": [{"code": 3040, "message": "Capacity exceeded"}]}, "server_error"),
]


@pytest.mark.parametrize(("status", "body", "outcome"), ERRORS, ids=lambda value: str(value)[:60])
def test_error_when_worded_as_real_services_do_concerns_what_it_says(status, body, outcome, chat):
    kind = "text/html" if body == NGINX else "application/json"
    chat.server.faults = Said(status, body, kind)
    found, words = outcome_of(chat)
    assert found == outcome, words
    if outcome == "unsupported":
        assert 'set structured = "json"' in words
    if status == 413:
        assert "bytes" in words and "client_max_body_size" in words


def choice(text: str | None = None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    return {"index": 0, "finish_reason": finish, "message": message, **more}


LOST = {"code": 502, "message": "Network connection lost."}
HALF = '{"moral": "Pri'
CHOICES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"choices": [choice(HALF, "error", error=LOST)]},
        "server_error",
        "status 502: Network connection lost.",
    ),
    ({"choices": [choice("", "error", error=LOST)]}, "server_error", "status 502"),
    ({"choices": [choice(HALF, error={"code": 429, "message": "x"})]}, "rate_limited", "status 429"),
    ({"choices": [choice(HALF, error={"code": 401, "message": "x"})]}, "server_error", "status 401"),
    ({"choices": [choice(HALF, "error", error={"code": 403, "message": "flagged"})]}, "blocked", "flagged"),
    ({"choices": [choice(HALF)], "error": LOST}, "server_error", "status 502"),
    *(
        ({"choices": [choice(HALF, finish)]}, "server_error", f"broke off (finish_reason '{finish}')")
        for finish in ("error", "abort", "network_error", "insufficient_system_resource")
    ),
    ({"choices": [choice(HALF, "sensitive")]}, "blocked", "content filter"),
    ({"choices": [choice(HALF, "model_length")]}, "truncated", "max_tokens"),
    ({"choices": [choice(None, message={"reasoning_content": "hm"})]}, "empty", "but reasoning; raise max"),
    ({"choices": [choice("", message={"tool_calls": [{"type": "function"}]})]}, "empty", "but a tool call"),
    ({"choices": [choice(""), choice("{}")]}, "empty", "but another choice with text"),
    ({"choices": [choice("")]}, "empty", ""),
    ({"choices": [choice("", message={"error": "upstream is down"})]}, "server_error", "status 500"),
]


def candidate(finish: str, part: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"finishReason": finish, "content": {"parts": [part]}}]}


@pytest.mark.parametrize(
    ("provider", "body", "outcome", "words"),
    [
        *((provider, *case) for provider in ("openai", "compatible") for case in CHOICES),
        ("google", candidate("STOP", {"text": "x", "thought": True}), "empty", "but reasoning"),
        ("google", candidate("STOP", {"functionCall": {"name": "f"}}), "empty", "but a tool call"),
        ("google", candidate("OTHER", {"text": HALF}), "truncated", "broken off by the service: OTHER"),
        ("anthropic", {"content": [{"type": "thinking", "thinking": "hm"}], "stop_reason": "end_turn"},
         "empty", "but reasoning"),
        ("anthropic", {"content": [{"type": "text", "text": HALF}], "stop_reason": "pause_turn"},
         "truncated", ""),
    ],
    indirect=["provider"], ids=lambda value: str(value)[:70],
)  # fmt: skip
def test_reply_when_it_is_empty_or_broken_off_says_what_came_instead(body, outcome, words, chat):
    chat.server.faults = Said(200, body)
    found, said = outcome_of(chat)
    assert found == outcome and words in said, said
    assert "\n" not in said and HALF not in said


def events(*documents: Any, end: str = "data: [DONE]\n\n") -> str:
    return "".join(f"data: {json.dumps(document)}\n\n" for document in documents) + end


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
        **more,
    }


TEXT = json.dumps(VALUE, ensure_ascii=False)
ONE, TWO = TEXT[:20], TEXT[20:]
USED = {"prompt_tokens": 9, "completion_tokens": 5}
GOOGLE = [
    {"candidates": [{"content": {"parts": [{"text": ONE}]}}], "modelVersion": "m"},
    {"candidates": [{"content": {"parts": [{"text": TWO}]}, "finishReason": "STOP"}],
     "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}},
]  # fmt: skip
BEGUN = {"input_tokens": 9, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
ANTHROPIC = [
    {"type": "message_start", "message": {"model": "m", "content": [], "usage": BEGUN}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ONE}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TWO}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]  # fmt: skip
WHOLE = {"model": "m", "choices": [choice(TEXT)], "usage": USED}
STREAMS: list[tuple[str, str, str]] = [
    (
        "compatible",
        ": PROCESSING\n\n" + events(chunk(ONE), chunk(TWO, "stop"), {"choices": [], "usage": USED}),
        "ok",
    ),
    ("compatible", events(chunk(ONE), chunk(TWO, "stop", usage=USED), end="").replace("\n", "\r\n"), "ok"),
    ("compatible", json.dumps(WHOLE) + "data: [DONE]\n\n", "ok"),
    ("compatible", events(WHOLE), "ok"),
    ("compatible", events(chunk(ONE), end=""), "broken_reply"),
    ("compatible", events(chunk(ONE), end='data: {"choi'), "broken_reply"),
    ("compatible", events(chunk(ONE), chunk("", "error", error=LOST)), "server_error"),
    ("compatible", events(chunk(ONE), {"error": LOST}), "server_error"),
    ("compatible", events(chunk(ONE), chunk("", "length")), "truncated"),
    ("compatible", "data: [DONE]\n\n", "broken_reply"),
    ("compatible", ": PROCESSING\n\n", "broken_reply"),
    ("compatible", "<html><title>Sign in</title></html>", "not_an_api"),
    ("openai", events(chunk(ONE), chunk(TWO, "stop", usage=USED)), "ok"),
    ("google", events(*GOOGLE, end=""), "ok"),
    ("google", json.dumps(GOOGLE), "ok"),
    ("google", events(GOOGLE[0], end=""), "broken_reply"),
    ("anthropic", events(*ANTHROPIC, end=""), "ok"),
    ("anthropic", events(*ANTHROPIC[:-2], end=""), "broken_reply"),
    ("anthropic", events(*ANTHROPIC[:4], error("x", type="overloaded_error")), "server_error"),
]


@pytest.mark.parametrize(
    ("provider", "body", "outcome"), STREAMS, indirect=["provider"], ids=lambda v: str(v)[:60]
)
def test_stream_when_nobody_asked_for_one_is_read_to_its_end_or_is_a_fault(body, outcome, chat):
    chat.server.faults = Said(200, body, "text/event-stream; charset=utf-8")
    if outcome == "ok":
        reply = chat.ask()
        assert (reply.text, reply.reported_model) == (TEXT, "m")
        assert reply.usage is not None
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (9, 5)
    else:
        assert outcome_of(chat)[0] == outcome


@pytest.mark.parametrize(
    "fault",
    [
        service.RateLimited(2.0),
        service.RateLimited(2.0, as_date=True),
        service.RateLimited(2.0, as_date=True, clock_error=-90_000.0),
        service.ServerError(503, retry_after=2.0),
    ],
    ids=lambda value: str(value)[:60],
)
def test_fault_when_the_service_says_when_to_come_back_tells_by_no_clock_of_ours(fault, chat):
    chat.server.faults = fault
    assert chat.fault().retry_after == pytest.approx(2.0, abs=1.0)


@pytest.mark.parametrize("name", ["temperature", "seed"])
def test_fault_when_a_parameter_is_refused_says_which_setting_helps(name: str, chat: Chat) -> None:
    if name == "seed" and chat.provider == "anthropic":
        pytest.skip("there is no seed to refuse")
    chat.server.faults = service.Unsupported(name)
    fault = chat.fault()
    assert f'unsupported = ["{name}"] in [models."{chat.spec}"]' in fault.message
    assert chat.ask(**{name: None}).outcome == "ok"


def test_fault_when_schemas_are_refused_says_which_setting_helps(chat: Chat) -> None:
    chat.server.faults = service.NoStructuredOutput(json_too=True)
    assert 'structured = "json"' in chat.fault().message
    assert 'structured = "prompt"' in chat.fault(structured="json").message
    assert chat.ask(structured="prompt").outcome == "ok"


@pytest.mark.parametrize(
    ("fault", "good"),
    [
        (service.Fenced(), True),
        (service.Thinking(), True),
        (service.Prose(around=True), True),
        (service.MalformedJson("quotes"), True),
        (service.MalformedJson("unclosed"), False),
        (service.MalformedJson("wrong_type"), False),
        (service.Thinking(closed=False), False),
        (service.TruncatedJson(said=False), False),
        (service.Prose(), False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_text_when_not_plain_json_reaches_the_parser_as_it_is(fault: Any, good: bool, chat: Chat) -> None:
    chat.server.faults = fault
    reply = chat.ask()
    assert reply.outcome == "ok"
    if good:
        assert parse_reply(reply.text, SCHEMA).value == VALUE
    else:
        with pytest.raises(Malformed):
            parse_reply(reply.text, SCHEMA)


def test_text_when_it_holds_the_key_loses_it(chat: Chat) -> None:
    chat.server.faults = service.EchoSecretsInReply()
    assert "planted" not in json.dumps(chat.ask().as_json())


ECHOES = {
    "escapes": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "escaped slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "a string in a string": lambda key: json.dumps(json.dumps({"key": key}))[1:-1],
    "percent": lambda key: quote(key, safe=""),
    "HTML in escapes": lambda key: "".join(f"\\u0026\\u0023{ord(char)};" for char in key),
    "base64 with escaped slashes": lambda key: (
        base64.b64encode(b"me:" + key.encode()).decode().replace("/", "\\/")
    ),
}


@pytest.mark.parametrize("key", ["planted/key+0123?456789~abcdef", 'planted"key\\with=every<kind>'])
def test_text_when_it_holds_the_key_in_other_forms_loses_them_before_and_after_reading(
    key: str, chat_with: Callable[..., Chat], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHOED_KEY", key)
    chat = chat_with(api_key_env="ECHOED_KEY")
    echoes = [echo(key) for echo in ECHOES.values()]
    words = ", ".join(f'"see {echo} there"' for echo in echoes)
    chat.server.handler = lambda _: service.Answer(
        f'{{"moral": "x", "words": [{words}]}}', model=quote(key, safe="")
    )
    reply = chat.ask()
    read = parse_reply(reply.text, SCHEMA).value["words"]
    assert len(read) == len(echoes) and all(MARK in word for word in read)
    for shown in (reply.text, *read, *map(unquote, read), *map(html.unescape, read)):
        assert key not in shown and not any(echo in shown for echo in echoes)
    assert reply.reported_model == MARK
    chat.server.handler = lambda _: service.Answer(" ".join(echoes))
    text = chat.ask(schema=None).text
    assert [name for name, echo in zip(ECHOES, echoes, strict=True) if echo in text] == ["HTML in escapes"]


def test_text_when_it_holds_half_a_surrogate_pair_can_be_stored(chat: Chat) -> None:
    chat.server.handler = lambda _: service.Answer('{"moral": "\ud83e", "words": ["a", "b"]}')
    assert "\ufffd" in chat.ask(schema=None).text
    assert chat.ask(schema=None).text.encode()


def test_request_when_it_cannot_be_encoded_is_a_fault_of_that_request(chat: Chat) -> None:
    fault = chat.fault(messages=(Message("user", ("half \ud83e",)),))
    assert fault.kind == "bad_request"


def test_cancellation_when_a_call_is_slow_leaves_nothing_open(chat: Chat) -> None:
    script = iter([service.Slow(20.0), service.Dripping(4, 0.2)])
    chat.server.faults = lambda _: next(script, None)

    async def play() -> None:
        model = open_model(chat.spec, chat.options, Redactor())
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.15):
                    await model.complete(chat.request())
        assert (await model.complete(chat.request())).outcome == "ok"
        await model.close()

    asyncio.run(play())
    gc.collect()


def test_connection_when_nobody_listens_is_unpaid(chat_with: Callable[..., Chat]) -> None:
    chat = chat_with(base_url="http://127.0.0.1:1/v1")
    fault = chat.fault()
    assert fault.kind == "connection"
    assert not fault.maybe_paid


def test_environment_when_models_were_asked_is_as_before(chat: Chat) -> None:
    before = dict(os.environ)
    chat.ask()
    assert dict(os.environ) == before
