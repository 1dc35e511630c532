"""One suite over every registered text encoder: the real SDK against the model server, every fault named."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from fabula.models.chat import CallFault, Image, Message, Reply, ReplySchema, encode_request, unpacked
from fabula.models.options import ModelOptions
from fabula.models.registry import ENCODERS, check_adapter
from fabula.models.spec import parse_spec
from fabula.testing import model_server as service

from .services import FAULTS, KEY, ask, place

Encode = Callable[..., Reply]


@pytest.fixture
def server() -> Iterator[service.ModelServer]:
    with service.ModelServer() as running:
        yield running


@pytest.fixture(params=[provider for provider, _ in ENCODERS])
def encode(request: pytest.FixtureRequest, server: service.ModelServer, monkeypatch) -> Encode:
    monkeypatch.setenv("MY_KEY", KEY)
    spec, where = place(server, request.param, "embedding:")

    def run(changes: dict[str, object] | None = None, **given: object) -> Reply:
        options = ModelOptions.model_validate({**where, "api_key_env": "MY_KEY", **given})
        plain = encode_request(spec.text, "The fox ran.")
        return ask(spec, options, options.apply(replace(plain, **(changes or {}))))

    return run


def test_encoder_when_all_is_well_gives_the_vector_of_one_text(
    encode: Encode, server: service.ModelServer
) -> None:
    reply = encode()
    assert unpacked(reply.text) == pytest.approx(service.word_vector("The fox ran."), abs=1e-7)
    assert (reply.outcome, reply.reported_model) == ("ok", "stand-in")
    assert reply.usage is not None and (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 0)
    (exchange,) = server.log
    assert exchange.asked.body == {"model": "tiny", "input": ["The fox ran."], "encoding_format": "float"}
    assert exchange.asked.headers["authorization"] == f"Bearer {KEY}"


def test_encoder_when_settings_want_other_forms_sends_and_reads_them(encode, server):
    extra = {"dimensions": 60, "encoding_format": "base64", "input": ["another text"]}
    assert unpacked(encode(extra=extra).text) == pytest.approx(
        service.word_vector("The fox ran.")[:60], abs=1e-7
    )
    assert server.log[-1].asked.body["input"] == ["The fox ran."]


@pytest.mark.parametrize(
    "answer",
    ["[]", "[0, 0]", '["a"]', "[1, true]", "no vector", "[1e39]", json.dumps([1.0] * 70_000)],
    ids=lambda text: text[:10],
)
def test_encoder_when_the_vector_is_of_no_use_says_so(encode, server, answer):
    server.handler = lambda _: service.Answer(answer)
    reply = encode()
    assert (reply.outcome, reply.text, reply.detail) == (
        "empty", "", "the service gave no vector that can be used"
    )  # fmt: skip


@pytest.mark.parametrize(("fault", "kind"), FAULTS, ids=lambda value: str(value)[:40])
def test_encoder_when_the_service_fails_names_the_fault_without_secrets(encode, server, fault, kind):
    server.faults = fault  # type: ignore[assignment]
    with pytest.raises(CallFault) as caught:
        encode()
    assert caught.value.kind == kind
    assert KEY not in str(caught.value)
    assert server.count == 1, "one HTTP call"


@pytest.mark.parametrize(
    "fault", [service.EmptyChoices(), service.Prose()], ids=lambda one: type(one).__name__
)
def test_encoder_when_the_answer_is_spoiled_has_no_vector(encode, server, fault):
    server.faults = fault  # type: ignore[assignment]
    assert encode().outcome == "empty"


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": ReplySchema("x", {"type": "object"})},
        {"messages": (Message("system", ("Be brief.",)), Message("user", ("Who?",)))},
        {"messages": (Message("user", (Image(b"x", "image/png"),)),)},
    ],
)
def test_encoder_when_asked_a_question_refuses_before_sending(encode, server, changes):
    with pytest.raises(CallFault, match="it answers no questions") as caught:
        encode(changes)
    assert (caught.value.kind, server.count) == ("unsupported", 0)


def test_spec_when_it_names_an_encoder_says_so_and_only_some_services_have_one() -> None:
    read = parse_spec("embedding:http://localhost:8000/v1#bge-m3")
    assert (read.provider, read.name, read.base_url) == ("compatible", "bge-m3", "http://localhost:8000/v1")
    assert read.encodes and not parse_spec("openai:x").encodes
    for wrong in ("embedding:", "embedding:x", "embedding:embedding:openai:x"):
        with pytest.raises(Exception, match="for vectors, embedding: before it"):
            parse_spec(wrong)
    with pytest.raises(Exception, match="of vectors; there are: openai, compatible"):
        check_adapter(parse_spec("embedding:anthropic:x"))
