"""Questions and answers through the real SDKs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fabula.models.chat import ChatRequest, Message, ReplySchema, Usage
from fabula.models.keys import Redactor
from fabula.models.options import options_for
from fabula.models.registry import open_model
from fabula.models.spec import parse_spec
from fabula.testing.model_server import Answer, Asked, ModelServer, RateLimited, from_schema, key_of


def test_question_when_asked_is_recorded_as_asked(serve: Any, sdks: Any, protocol: str) -> None:
    server = serve(lambda asked: {"moral": "greed", "words": ["a", "b"]})
    got = sdks.ask(server, protocol, schema=sdks.schema, images=[sdks.picture])
    asked = server.log[0].asked
    assert json.loads(got.text) == {"moral": "greed", "words": ["a", "b"]}
    assert (asked.protocol, asked.model, asked.system) == (protocol, "tiny", "Be brief.")
    assert asked.messages == (Message("user", ("The fox.", sdks.picture)),)
    assert (asked.schema, asked.structured) == (sdks.schema, "schema")
    assert asked.schema_name == ("moral_of" if protocol == "openai" else None)
    assert asked.params == {"temperature": 0.0, "max_tokens": 500}
    assert asked.secrets == (sdks.key,)
    assert "The fox." in asked.text
    assert asked.images == (sdks.picture,)
    assert server.rejected == ()


def test_answer_when_no_usage_is_given_counts_a_token_for_four_characters(
    serve: Any, sdks: Any, protocol: str
) -> None:
    got = sdks.ask(serve(lambda asked: "one two three"), protocol, "The fox ran off.")
    # "Be brief.\nThe fox ran off." has 26 characters, the answer 13.
    assert got.usage == (7, 4)


def test_answer_when_usage_is_given_reports_it(serve: Any, sdks: Any, protocol: str) -> None:
    usage = Usage(input_tokens=100, output_tokens=50, cached_tokens=30, thinking_tokens=20)
    got = sdks.ask(serve(lambda asked: Answer("yes", usage=usage)), protocol)
    assert got.usage == ((70, 50) if protocol == "anthropic" else (100, 50))
    cached, thinking = {
        "openai": lambda raw: (
            raw.usage.prompt_tokens_details.cached_tokens,
            raw.usage.completion_tokens_details.reasoning_tokens,
        ),
        "google": lambda raw: (
            raw.usage_metadata.cached_content_token_count,
            raw.usage_metadata.thoughts_token_count,
        ),
        "anthropic": lambda raw: (raw.usage.cache_read_input_tokens, 20),
    }[protocol](got.raw)
    assert (cached, thinking) == (30, 20)


def test_answer_when_it_is_longer_than_allowed_is_cut(serve: Any, sdks: Any, protocol: str) -> None:
    got = sdks.ask(serve(lambda asked: "word " * 1000), protocol)
    assert len(got.text) == 2000
    assert got.finish == {"openai": "length", "google": "MAX_TOKENS", "anthropic": "max_tokens"}[protocol]


def test_answer_when_it_ends_reports_a_regular_end(serve: Any, sdks: Any, protocol: str) -> None:
    got = sdks.ask(serve(lambda asked: "Done."), protocol)
    assert got.finish == {"openai": "stop", "google": "STOP", "anthropic": "end_turn"}[protocol]


def test_answer_when_the_service_thinks_keeps_thinking_apart(serve: Any, sdks: Any, protocol: str) -> None:
    got = sdks.ask(serve(lambda asked: Answer("Done.", thinking="Hm, a fox.")), protocol)
    assert got.text == "Done."
    assert "Hm, a fox." in got.raw.model_dump_json()


def test_server_when_it_has_no_handler_gives_the_smallest_reply(serve: Any, sdks: Any, protocol: str) -> None:
    server = serve()
    reply = json.loads(sdks.ask(server, protocol, schema=sdks.schema).text)
    jsonschema.validate(reply, sdks.schema)
    assert sdks.ask(server, protocol).text == "OK"


def test_tool_when_forced_is_called_with_the_answer(serve: Any, sdks: Any) -> None:
    server = serve(lambda asked: {"moral": "pride", "words": ["a", "b"]})
    got = sdks.ask(server, "anthropic", schema=sdks.schema, tool=True)
    assert got.finish == "tool_use"
    assert got.raw.content[0].input == {"moral": "pride", "words": ["a", "b"]}
    assert server.log[0].asked.schema_name == "moral_of"


def test_questions_when_asked_at_once_are_answered_each(serve: Any, sdks: Any, protocol: str) -> None:
    server = serve(lambda asked: asked.messages[0].parts[0], latency=0.05)
    texts = [f"number {n}" for n in range(20)]
    answers = asyncio.run(sdks.ask_async(server, protocol, texts))
    assert [got.text for got in answers] == texts
    assert 2 <= server.busiest <= 20
    assert server.count == 20


def test_handler_when_it_is_a_coroutine_is_awaited(serve: Any, sdks: Any, protocol: str) -> None:
    async def handler(asked: Asked) -> str:
        await asyncio.sleep(0)
        return "later"

    assert sdks.ask(serve(handler), protocol).text == "later"


def test_key_when_the_question_is_the_same_is_the_same(serve: Any, sdks: Any) -> None:
    server = serve()
    for protocol in ("openai", "google", "anthropic"):
        sdks.ask(server, protocol, schema=sdks.schema, images=[sdks.picture])
    sdks.ask(server, "openai", "Another fox.", schema=sdks.schema, images=[sdks.picture])
    keys = [exchange.asked.key for exchange in server.log]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert [exchange.asked.attempt for exchange in server.log] == [1, 2, 3, 1]


@pytest.mark.parametrize("structured", ["schema", "json", "prompt"])
def test_key_when_made_from_a_request_is_the_servers(
    serve: Any, sdks: Any, protocol: str, structured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, sdks.key)
    server = serve()
    request = ChatRequest(
        f"{protocol}:tiny",
        (Message("system", ("Be brief.",)), Message("user", ("The fox.", "Its moral?", sdks.picture))),
        ReplySchema("moral_of", sdks.schema),
        temperature=0,
        seed=3,
        max_tokens=500,
        structured=structured,
    )
    url = getattr(server, f"{protocol}_url")
    spec = parse_spec(request.model)
    model = open_model(spec, options_for(spec, {request.model: {"base_url": url}}), Redactor())

    async def call() -> None:
        await model.complete(request)
        await model.close()

    asyncio.run(call())
    asked = server.log[0].asked
    assert key_of(request, "tiny") == asked.key
    assert asked.schema_name == ("moral_of" if asked.schema else None)


def test_spelling_when_snake_case_is_chosen_reaches_clients_that_read_it(serve: Any) -> None:
    import httpx2

    server = serve(lambda asked: "hi", google_spelling="snake")
    body = {
        "contents": [
            {"role": "user", "parts": [{"inline_data": {"data": "aGk=", "mime_type": "image/png"}}]}
        ],
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "generation_config": {"max_output_tokens": 9, "response_mime_type": "application/json"},
    }
    url = f"{server.google_url}/v1beta/models/tiny:generateContent"
    reply = httpx2.post(url, json=body).json()
    asked = server.log[0].asked
    assert reply["candidates"][0]["finish_reason"] == "STOP"
    assert reply["usage_metadata"]["prompt_token_count"] == asked.input_tokens
    assert (asked.system, asked.params, asked.structured) == ("Be brief.", {"max_tokens": 9}, "json")
    assert asked.images[0].data == b"hi"


def test_handler_when_it_raises_answers_400_and_raises_at_the_end(sdks: Any, protocol: str) -> None:
    def handler(asked: Asked) -> str:
        raise LookupError("no such fox")

    with pytest.raises(LookupError, match="no such fox"), ModelServer(handler) as server:
        status, error = sdks.status(server, protocol)
        assert status == 400
        assert "no such fox" in str(error)


@pytest.mark.parametrize("option", ["faults", "latency"])
def test_option_when_its_function_raises_answers_400_and_raises_at_the_end(sdks: Any, option: str) -> None:
    def wrong(asked: Asked) -> Any:
        raise LookupError("no such fox")

    with pytest.raises(LookupError), ModelServer(**{option: wrong}) as server:
        assert sdks.status(server, "openai")[0] == 400
        server.faults, server.latency = None, 0.0
        assert sdks.ask(server, "openai").text == "OK"


def test_text_when_it_holds_half_a_character_is_refused_or_sent(serve: Any, tmp_path: Path) -> None:
    import httpx2

    path = tmp_path / "log.jsonl"
    server = serve(lambda asked: "half \ud83d", log_path=path)
    url = f"{server.openai_url}/chat/completions"
    body = '{"model": "m", "messages": [{"role": "user", "content": "%s"}]}'
    assert httpx2.post(url, content=body % r"\ud83d").status_code == 400
    assert rb'"half \ud83d"' in httpx2.post(url, content=body % "whole").content
    assert b"half \xed\xa0\xbd" in path.read_bytes()


def test_handler_when_it_returns_what_it_may_not_is_told(sdks: Any) -> None:
    with pytest.raises(TypeError, match="not int"), ModelServer(lambda asked: 5) as server:
        assert sdks.status(server, "openai")[0] == 400


def test_request_when_not_understood_is_reported(serve: Any) -> None:
    import httpx2

    server = serve()
    bodies: list[Any] = [
        {"model": "m"},
        {"model": "m", "messages": [], "stream": True},
        {"model": "m", "messages": [{"role": "user", "content": [{"type": "sound"}]}]},
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": "warm"},
        [],
    ]
    for body in bodies:
        assert httpx2.post(f"{server.openai_url}/chat/completions", json=body).status_code == 400
    assert httpx2.get(f"{server.url}/nowhere").status_code == 404
    assert len(server.rejected) == 6
    assert "messages" in server.rejected[0]
    assert "stream" in server.rejected[1]
    assert server.count == 0


def test_request_when_sent_through_the_server_as_proxy_is_answered(serve: Any, sdks: Any) -> None:
    import httpx2
    import openai

    server = serve(lambda asked: "through")
    proxy = server.url.replace("http://", "http://user:word@")
    with (
        httpx2.Client(proxy=proxy) as http,
        openai.OpenAI(base_url="http://model.test/v1", api_key="k", http_client=http) as client,
    ):
        reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert reply.choices[0].message.content == "through"
    asked = server.log[0].asked
    assert asked.target == "http://model.test/v1/chat/completions"
    assert asked.headers["proxy-authorization"].startswith("Basic ")


def test_request_when_chunked_is_read(serve: Any) -> None:
    import httpx2

    def pieces() -> Any:
        yield b'{"model": "m", "messages": [{"role": "user", '
        yield b'"content": "hi"}]}'

    server = serve(lambda asked: asked.text)
    reply = httpx2.post(f"{server.openai_url}/chat/completions", content=pieces())
    assert reply.json()["choices"][0]["message"]["content"] == "hi"


def test_handler_when_changed_answers_from_then_on(serve: Any, sdks: Any) -> None:
    server = serve(faults=RateLimited())
    assert sdks.status(server, "openai")[0] == 429
    server.faults, server.handler, server.latency = None, lambda asked: "well again", 0.01
    assert sdks.ask(server, "openai").text == "well again"


def test_port_when_taken_is_an_error(serve: Any) -> None:
    with pytest.raises(OSError, match="in use"), ModelServer(port=serve().port):
        pass


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
        {"type": ["string", "null"], "minLength": 9},
        {"anyOf": [{"type": "number", "exclusiveMinimum": 1}, {"type": "null"}]},
        {"allOf": [{"type": "object"}, {"properties": {"b": {"const": 7}}, "required": ["b"]}]},
        {
            "$defs": {"x": {"enum": ["one", "two"]}},
            "type": "array",
            "minItems": 2,
            "items": {"$ref": "#/$defs/x"},
        },
        {"type": "boolean"},
        {"type": "null"},
        {},
    ],
)
def test_from_schema_when_asked_gives_a_valid_value(schema: dict[str, Any]) -> None:
    jsonschema.validate(from_schema(schema), schema)


def test_from_schema_when_the_schema_never_ends_is_an_error() -> None:
    schema = {"$ref": "#"}
    with pytest.raises(ValueError, match="too deeply"):
        from_schema(schema)
