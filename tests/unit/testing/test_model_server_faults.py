"""Every fault, as the real SDKs meet it."""

import json
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from fabula.testing.model_server import (
    Answer,
    Asked,
    BadRequestFault,
    ContentFilter,
    Dripping,
    Dropped,
    EchoSecrets,
    EchoSecretsInReply,
    EmptyChoices,
    EmptyText,
    Fault,
    Fenced,
    HtmlPage,
    Huge,
    MalformedJson,
    NoQuota,
    NoStructuredOutput,
    NoSuchModel,
    NotJson,
    Prose,
    RateLimited,
    Refused,
    SafetyBlock,
    ServerError,
    Slow,
    Thinking,
    TooLong,
    TruncatedBody,
    TruncatedJson,
    Unauthorized,
    Unsupported,
    WrongLanguage,
)
from fabula.testing.model_server.faults import known_faults

REPLY = {"moral": "greed", "words": ["a fox", "a crow"]}
ALL = ("openai", "google", "anthropic")


def answer(asked: Asked) -> dict[str, Any]:
    return REPLY


@pytest.mark.parametrize(
    ("fault", "statuses", "word"),
    [
        (RateLimited(), (429, 429, 429), ""),
        (ServerError(), (500, 500, 500), ""),
        (ServerError(502), (502, 502, 502), ""),
        (ServerError(503), (503, 503, 503), ""),
        (ServerError(529), (529, 529, 529), ""),
        (Unauthorized(), (401, 400, 401), "key"),
        (Unauthorized(status=401), (401, 401, 401), "key"),
        (Unauthorized(status=403), (403, 403, 403), ""),
        (NoQuota(), (429, 429, 400), ""),
        (NoQuota(status=402), (402, 402, 402), ""),
        (NoSuchModel(), (404, 404, 404), "tiny"),
        (Unsupported("temperature"), (400, 400, 400), "temperature"),
        (NoStructuredOutput(), (400, 400, 400), "json_schema"),
        (TooLong(), (400, 400, 400), "8192"),
        (TooLong(limit=3, status=413), (413, 413, 413), "3"),
        (ContentFilter(), (400, 400, 400), "filter"),
        (BadRequestFault(message="too many foxes", status=422), (422, 422, 422), "foxes"),
        (EchoSecrets(), (401, 401, 401), "sk-planted"),
        (HtmlPage(status=404), (404, 404, 404), ""),
    ],
    ids=repr,
)
def test_error_when_injected_reaches_the_sdk_with_its_status(
    serve: Any, sdks: Any, protocol: str, fault: Fault, statuses: tuple[int, int, int], word: str
) -> None:
    server = serve(answer, faults=fault)
    status, error = sdks.status(server, protocol, schema=sdks.schema)
    assert status == statuses[ALL.index(protocol)]
    assert word in str(error)
    assert server.log[0].status == status
    assert server.log[0].faults == (type(fault).__name__,)


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        (RateLimited(), ("requests", "RESOURCE_EXHAUSTED", "rate_limit_error")),
        (ServerError(529), ("server_error", "INTERNAL", "overloaded_error")),
        (ServerError(503), ("server_error", "UNAVAILABLE", "api_error")),
        (NoQuota(), ("insufficient_quota", "RESOURCE_EXHAUSTED", "invalid_request_error")),
        (Unauthorized(), ("invalid_request_error", "INVALID_ARGUMENT", "authentication_error")),
    ],
    ids=repr,
)
def test_error_when_injected_has_the_words_of_the_service(
    serve: Any, sdks: Any, protocol: str, fault: Fault, kinds: tuple[str, str, str]
) -> None:
    _, error = sdks.status(serve(faults=fault), protocol)
    kind = kinds[ALL.index(protocol)]
    if protocol == "google":
        assert error.status == kind
    else:
        body = error.body["error"] if protocol == "anthropic" else error.body
        assert body["type"] == kind


def test_retry_after_when_in_seconds_stands_in_the_header(serve: Any, sdks: Any, protocol: str) -> None:
    _, error = sdks.status(serve(faults=RateLimited(retry_after=2.5)), protocol)
    assert error.response.headers["retry-after"] == "2.5"
    if protocol == "google":
        assert error.details["error"]["details"][0]["retryDelay"] == "2.5s"


def test_retry_after_when_a_date_is_relative_to_the_services_clock(
    serve: Any, sdks: Any, protocol: str
) -> None:
    fault = RateLimited(retry_after=30, as_date=True, clock_error=-86400)
    _, error = sdks.status(serve(faults=fault), protocol)
    headers = error.response.headers
    now, then = (parsedate_to_datetime(headers[name]) for name in ("date", "retry-after"))
    assert (then - now).total_seconds() == 30


def test_faults_when_they_concern_some_requests_only_leave_others(
    serve: Any, sdks: Any, protocol: str
) -> None:
    for fault in (NoStructuredOutput(), TooLong(limit=1000), Unsupported("seed")):
        assert sdks.ask(serve(faults=fault), protocol).text == "OK"


def test_refusal_when_injected_stands_where_the_service_puts_it(serve: Any, sdks: Any, protocol: str) -> None:
    got = sdks.ask(serve(answer, faults=Refused("I will not.")), protocol, schema=sdks.schema)
    if protocol == "openai":
        assert got.raw.choices[0].message.refusal == "I will not."
        assert (got.text, got.finish) == (None, "stop")
    else:
        assert got.text == "I will not."
        assert got.finish == {"google": "STOP", "anthropic": "refusal"}[protocol]


def test_block_when_of_the_reply_ends_it(serve: Any, sdks: Any, protocol: str) -> None:
    got = sdks.ask(serve(answer, faults=SafetyBlock(reason="RECITATION")), protocol)
    finishes = {"openai": "content_filter", "google": "RECITATION", "anthropic": "refusal"}
    assert got.finish == finishes[protocol]
    assert REPLY["moral"] not in (got.text or "")


def test_block_when_of_the_prompt_gives_no_candidate(serve: Any, sdks: Any, protocol: str) -> None:
    server = serve(answer, faults=SafetyBlock("prompt"))
    if protocol == "openai":
        status, error = sdks.status(server, protocol)
        assert (status, error.code) == (400, "content_filter")
        return
    got = sdks.ask(server, protocol)
    assert got.text is None
    if protocol == "google":
        assert got.raw.prompt_feedback.block_reason.value == "SAFETY"


def test_choices_when_empty_are_empty(serve: Any, sdks: Any, protocol: str) -> None:
    got = sdks.ask(serve(answer, faults=EmptyChoices()), protocol)
    assert got.text is None
    assert sdks.ask(serve(answer, faults=EmptyText()), protocol).text == ""


TEXT = json.dumps(REPLY)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (TruncatedJson(at=0.5), TEXT[: len(TEXT) // 2]),
        (MalformedJson("commas"), TEXT[:-1] + ",}"),
        (MalformedJson("quotes"), TEXT.replace('"', "'")),
        (MalformedJson("unclosed"), TEXT[:-1]),
        (MalformedJson("wrong_type"), json.dumps([TEXT])),
        (Prose(), Prose.text),
        (Prose("Sure:", around=True), f"Sure:\n\n{TEXT}\n\nI hope this helps!"),
        (Fenced(), f"```json\n{TEXT}\n```"),
        (Thinking(text="Hm."), f"<think>\nHm.\n</think>\n{TEXT}"),
        (Thinking(closed=False, text="Hm."), f"<think>\nHm.\n\n{TEXT}"),
    ],
    ids=repr,
)
def test_text_when_spoiled_arrives_spoiled(
    serve: Any, sdks: Any, protocol: str, fault: Fault, expected: str
) -> None:
    server = serve(answer, faults=fault)
    assert sdks.ask(server, protocol, schema=sdks.schema).text == expected
    assert server.log[0].answer.text == expected


def test_truncation_when_not_said_looks_like_a_regular_end(serve: Any, sdks: Any) -> None:
    said = sdks.ask(serve(answer, faults=TruncatedJson()), "openai")
    unsaid = sdks.ask(serve(answer, faults=TruncatedJson(said=False)), "openai")
    assert (said.finish, unsaid.finish) == ("length", "stop")
    assert said.text == unsaid.text


def test_language_when_wrong_changes_free_strings_only(serve: Any, sdks: Any, protocol: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "moral": {"enum": ["greed"]},
            "words": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "more": {"anyOf": [{"type": "string", "enum": ["yes"]}, {"type": "null"}]},
        },
    }
    value = {"moral": "greed", "words": ["A fox", None, "狐狸"], "more": "yes"}
    got = sdks.ask(serve(lambda asked: value, faults=WrongLanguage()), protocol, schema=schema)
    assert json.loads(got.text) == {
        "moral": "greed",
        "words": ["А фох", None, "совсем другие слова"],
        "more": "yes",
    }


def test_reply_when_huge_is_valid_and_that_large(serve: Any, sdks: Any, protocol: str) -> None:
    got = sdks.ask(serve(answer, faults=Huge(size=300_000)), protocol, schema=sdks.schema)
    value = json.loads(got.text)
    assert 300_000 <= len(got.text) < 310_000
    assert value["moral"] == "greed"
    assert value["words"][1] == "a crow"
    numbers = serve(lambda asked: [1, 2], faults=Huge(size=1000))
    assert len(sdks.ask(numbers, protocol).text) == 1000


def test_key_when_it_comes_back_stands_in_reply_and_model(serve: Any, sdks: Any, protocol: str) -> None:
    got = sdks.ask(serve(answer, faults=EchoSecretsInReply()), protocol, schema=sdks.schema)
    assert json.loads(got.text)["words"][0] == f"{sdks.key} a fox"
    assert sdks.key in got.raw.model_dump_json().replace(got.text, "")


@pytest.mark.parametrize(
    "fault",
    [Dropped(), Dropped(after=40), Dropped(after=400), TruncatedBody(), TruncatedBody(announced=True)],
    ids=repr,
)
def test_body_when_it_does_not_arrive_whole_is_an_error_of_the_sdk(
    serve: Any, sdks: Any, protocol: str, fault: Fault
) -> None:
    server = serve(lambda asked: "word " * 100, faults=fault)
    with pytest.raises(Exception) as caught:
        sdks.ask(server, protocol)
    assert type(caught.value).__module__.partition(".")[0] in (
        "openai",
        "anthropic",
        "httpx2",
        "json",
        "google",
    )
    assert server.log[0].status == 200
    server.faults = None
    assert sdks.ask(server, protocol).text == "word " * 100


@pytest.mark.parametrize("fault", [HtmlPage(), NotJson(), NotJson(body=b"")], ids=repr)
def test_body_when_it_is_no_json_object_arrives_with_status_200(
    serve: Any, sdks: Any, protocol: str, fault: Any
) -> None:
    import httpx2

    server = serve(answer, faults=fault)
    paths = {
        "openai": "/v1/chat/completions",
        "google": "/v1beta/models/m:generateContent",
        "anthropic": "/v1/messages",
    }
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
        "contents": [{"parts": [{"text": "hi"}]}],
    }
    reply = httpx2.post(server.url + paths[protocol], json=body)
    assert reply.status_code == 200
    assert reply.text == (fault.body.decode() if isinstance(fault, NotJson) else reply.text)
    assert not reply.text.startswith("{")


def test_answer_when_it_drips_arrives_in_the_end(serve: Any, sdks: Any, protocol: str) -> None:
    fault = Dripping(size=100, pause=0.005)
    assert sdks.ask(serve(lambda asked: "word " * 100, faults=fault), protocol).text == "word " * 100


def test_answer_when_it_is_slow_times_out_and_is_lost(serve: Any, sdks: Any, protocol: str) -> None:
    server = serve(answer, faults=[Slow(seconds=20)])
    with pytest.raises(Exception) as caught:
        sdks.ask(server, protocol, timeout=0.1)
    assert "time" in f"{type(caught.value).__name__} {caught.value}".lower()
    assert sdks.ask(server, protocol).text == TEXT
    assert [exchange.lost for exchange in server.log] == [True, False]


def test_handler_when_it_returns_a_fault_is_obeyed(serve: Any, sdks: Any, protocol: str) -> None:
    def handler(asked: Asked) -> Any:
        if "limit" in asked.text:
            return RateLimited()
        return Fenced(answer=Answer("[1]")) if "fence" in asked.text else Slow(seconds=0.01)

    server = serve(handler)
    assert sdks.status(server, protocol, text="limit")[0] == 429
    assert sdks.ask(server, protocol, "fence").text == "```json\n[1]\n```"
    assert sdks.ask(server, protocol, "neither").text == "OK"


def test_fault_names_when_listed_are_the_public_faults() -> None:
    from fabula.testing import model_server

    public = {getattr(model_server, name) for name in model_server.__all__}
    bases = {model_server.ErrorFault, model_server.ContentFault, model_server.DeliveryFault, Fault}
    faults = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Fault)} - bases
    assert set(known_faults().values()) == faults
    assert {"rate_limited", "no_such_model", "bad_request", "html_page"} <= known_faults().keys()
