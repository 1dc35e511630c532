"""One suite over every registered text encoder: the real SDK against the model server, every fault named."""

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest

from fabula.models.chat import (
    CallFault,
    ChatRequest,
    Image,
    Message,
    Reply,
    ReplySchema,
    encode_request,
    unpacked,
)
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import ENCODERS, check_adapter, open_model
from fabula.models.spec import ModelSpec, parse_spec
from fabula.testing.model_server import (
    Answer,
    Dropped,
    EchoSecrets,
    EmptyChoices,
    HtmlPage,
    ModelServer,
    NoQuota,
    NoSuchModel,
    NotJson,
    Prose,
    RateLimited,
    ServerError,
    TooLong,
    TruncatedBody,
    Unauthorized,
    word_vector,
)

KEY = "planted-key-0123456789abcdef0123456789"
Encode = Callable[..., Reply]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(params=[provider for provider, _ in ENCODERS])
def spec(request: pytest.FixtureRequest, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelSpec:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("MY_KEY", KEY)
    where = f"{server.openai_url}#e5" if request.param == "compatible" else f"{request.param}:e5"
    return parse_spec(f"embedding:{where}")


@pytest.fixture
def encode(spec: ModelSpec, server: ModelServer) -> Encode:
    def run(text: str | ChatRequest = "The fox ran.", **given: object) -> Reply:
        places = {} if spec.base_url else {"base_url": server.openai_url}
        options = ModelOptions.model_validate({**places, "api_key_env": "MY_KEY", **given})
        request = encode_request(spec.text, text) if isinstance(text, str) else text

        async def ask() -> Reply:
            model = open_model(spec, options, Redactor())
            try:
                return await model.complete(options.apply(request))
            finally:
                await model.close()

        return asyncio.run(ask())

    return run


def test_encoder_when_all_is_well_gives_the_vector_of_one_text(encode: Encode, server: ModelServer) -> None:
    reply = encode()
    assert unpacked(reply.text) == pytest.approx(word_vector("The fox ran."), abs=1e-7)
    assert (reply.outcome, reply.reported_model) == ("ok", "stand-in")
    assert reply.usage is not None and (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 0)
    (exchange,) = server.log
    assert exchange.asked.body == {"model": "e5", "input": ["The fox ran."], "encoding_format": "float"}
    assert exchange.asked.headers["authorization"] == f"Bearer {KEY}"


def test_encoder_when_settings_want_other_forms_sends_and_reads_them(encode, server):
    extra = {"dimensions": 60, "encoding_format": "base64", "input": ["another text"]}
    assert unpacked(encode(extra=extra).text) == pytest.approx(word_vector("The fox ran.")[:60], abs=1e-7)
    assert server.log[-1].asked.body["input"] == ["The fox ran."]


@pytest.mark.parametrize(
    "answer",
    ["[]", "[0, 0]", '["a"]', "[1, true]", "no vector", "[1e39]", json.dumps([1.0] * 70_000)],
    ids=lambda text: text[:10],
)
def test_encoder_when_the_vector_is_of_no_use_says_so(encode, server, answer):
    server.handler = lambda _: Answer(answer)
    reply = encode()
    assert (reply.outcome, reply.text, reply.detail) == (
        "empty", "", "the service gave no vector that can be used"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Unauthorized(), "key_refused"), (NoQuota(), "no_quota"), (NoSuchModel(), "no_such_model"),
        (RateLimited(), "rate_limited"), (ServerError(500), "server_error"), (TooLong(), "too_long"),
        (Dropped(0), "connection"), (TruncatedBody(), "broken_reply"), (HtmlPage(), "not_an_api"),
        (NotJson(), "broken_reply"), (EchoSecrets(), "bad_request"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)  # fmt: skip
def test_encoder_when_the_service_fails_names_the_fault_without_secrets(encode, server, fault, kind):
    server.faults = fault  # type: ignore[assignment]
    with pytest.raises(CallFault) as caught:
        encode()
    if not isinstance(fault, EchoSecrets):
        assert caught.value.kind == kind
    assert KEY not in str(caught.value)
    assert server.count == 1, "one HTTP call"


@pytest.mark.parametrize("fault", [EmptyChoices(), Prose()], ids=lambda one: type(one).__name__)
def test_encoder_when_the_answer_is_spoiled_has_no_vector(encode, server, fault):
    server.faults = fault  # type: ignore[assignment]
    assert encode().outcome == "empty"


def test_encoder_when_asked_a_question_refuses_before_sending(encode, spec, server):
    schema = ReplySchema("x", {"type": "object"})
    for request in (
        ChatRequest(spec.text, (Message("user", ("Who?",)),), schema=schema),
        ChatRequest(spec.text, (Message("system", ("Be brief.",)), Message("user", ("Who?",)))),
        ChatRequest(spec.text, (Message("user", (Image(b"x", "image/png"),)),)),
    ):
        with pytest.raises(CallFault, match="it answers no questions") as caught:
            encode(request)
        assert caught.value.kind == "unsupported"
    assert server.count == 0


def test_spec_when_it_names_an_encoder_says_so_and_only_some_services_have_one() -> None:
    read = parse_spec("embedding:http://localhost:8000/v1#bge-m3")
    assert (read.provider, read.name, read.base_url) == ("compatible", "bge-m3", "http://localhost:8000/v1")
    assert read.encodes and not parse_spec("openai:x").encodes
    for wrong in ("embedding:", "embedding:x", "embedding:embedding:openai:x"):
        with pytest.raises(Exception, match="for vectors, embedding: before it"):
            parse_spec(wrong)
    with pytest.raises(Exception, match="of vectors; there are: openai, compatible"):
        check_adapter(parse_spec("embedding:anthropic:x"))
