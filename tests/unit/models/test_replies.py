"""A reply's text into JSON that satisfies its schema."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.models import faults
from fabula.models.chat import CallFault, ChatRequest, Message, Reply, ReplySchema
from fabula.models.edge import messages_to_send, without_counts
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import open_model
from fabula.models.replies import (
    CUT_OFF,
    EMPTY,
    ENDLESS,
    LONGEST_REPLY,
    OUT_OF_FORM,
    Malformed,
    Parsed,
    named_outcome,
    parse_reply,
)
from fabula.models.spec import parse_spec

SCHEMA = ReplySchema(
    "answer",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["title", "scenes"],
        "properties": {
            "title": {"type": "string", "minLength": 1},
            "mood": {"enum": ["calm", "tense"]},
            "scenes": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["n"],
                    "properties": {"n": {"type": "integer"}},
                },
            },
        },
    },
)
VALUE = {"title": 'The fox {and} the "grapes"', "scenes": [{"n": 1}, {"n": 2}]}
TEXT = json.dumps(VALUE)
REPAIRED = ("json_repaired",)


def problem(text: str) -> str:
    with pytest.raises(Malformed) as caught:
        parse_reply(text, SCHEMA)
    assert caught.value.problem == str(caught.value)
    assert len(caught.value.problem) < 1000
    return caught.value.problem


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\n {TEXT}\n",
        f"\ufeff{TEXT}",
        f"```json\n{TEXT}\n```",
        f"```\n{json.dumps(VALUE, indent=2)}\n```\n",
        f"Here it is, as asked:\n\n{TEXT}\n\nI hope that {{this}} helps!",
        f'<think>First {{"a": 1}}, then more.</think>\n{TEXT}',
        f"<think>one</think><thinking>two</thinking>```json\n{TEXT}\n```",
        f"I should think about it.\n</think>\n\n{TEXT}",
    ],
)
def test_reply_when_wrapped_is_unwrapped_and_not_flagged(text: str) -> None:
    assert parse_reply(text, SCHEMA) == Parsed(VALUE)


@pytest.mark.parametrize(
    "text",
    [
        '{"title": "x", "scenes": [{"n": 1},],}',
        "{'title': 'x', 'scenes': [{'n': 1}]}",
        '```json\n{"title": "x" "scenes": [{"n": 1}]}\n```',
        '{title: "x", scenes: [{n: 1}]}',
        'Sure: {"title": "x", // the title\n "scenes": [{"n": 1}]}',
    ],
)
def test_reply_when_complete_but_invalid_is_mended_and_flagged(text: str) -> None:
    assert parse_reply(text, SCHEMA) == Parsed({"title": "x", "scenes": [{"n": 1}]}, REPAIRED)


@pytest.mark.parametrize("cut", range(1, len(TEXT)))
def test_reply_when_cut_off_anywhere_is_malformed_and_never_completed(cut: int) -> None:
    assert problem(TEXT[:cut])


@pytest.mark.parametrize(
    "text",
    [
        f"{TEXT}\n{TEXT}",
        f'{TEXT} or {{"title": "y", "scenes": []}}',
        f"{TEXT} and {{'title': 'y'}}".replace("'", '"') + '{"a"',
        '{"title": "x",} {"title": "y",}',
    ],
)
def test_reply_when_it_holds_several_objects_is_malformed(text: str) -> None:
    assert problem(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON object"),
        ("Certainly! A lovely story.", "no JSON object"),
        ("<think>Hmm, {", "never ends"),
        ("[1, 2]", "$: expected object, found a list of 2"),
        ("null", "$: expected object, found null"),
        ('"text"', '$: expected object, found "text"'),
        ('{"title": "x"}', '$: the key "scenes" is missing'),
        ('{"title": "", "scenes": [{"n": 1}]}', "$.title: breaks minLength 1"),
        ('{"title": 3, "scenes": [{"n": 1}]}', "$.title: expected string, found 3"),
        ('{"title": "x", "scenes": []}', "$.scenes: expected at least 1 entries, found 0"),
        ('{"title": "x", "scenes": [{"n": 1}, {"n": "2"}]}', '$.scenes[1].n: expected integer, found "2"'),
        ('{"title": "x", "mood": "odd", "scenes": [{"n": 1}]}', '$.mood: expected one of ["calm","tense"]'),
        ('{"title": "x", "scenes": [{"n": 1, "m": 2}]}', '$.scenes[0]: no key "m" was asked for'),
        ('{"title": "x", "title": "y", "scenes": [{"n": 1}]}', 'the key "title" stands twice'),
        ('{"title": "x", "scenes": [{"n": NaN}]}', "NaN"),
        ('{"title": "x", "scenes": [{"n": 1e999}]}', "too large"),
        ('{"title": "\\ud800", "scenes": [{"n": 1}]}', "surrogate"),
        ("[" * 100_000, "too deeply"),
        ('{"a":' * 100_000, "too deeply"),
        ('{"a":' * 600 + "1" + "}" * 600, ""),
        ("x" * (LONGEST_REPLY + 1), "at most 2,000,000"),
        ('{"title": "' + "9" * 5000 + '"', "broken"),
        ('{"n": ' + "9" * 5000 + "}", ""),
    ],
)  # fmt: skip
def test_reply_when_wrong_says_what_and_where(text: str, words: str) -> None:
    assert words in problem(text)


def test_reply_when_no_schema_is_asked_is_its_text_without_thinking() -> None:
    assert parse_reply("<think>hm</think>\n A fox. ", None) == Parsed("A fox.")
    with pytest.raises(Malformed, match="never ends"):
        parse_reply("<think>hm", None)


LONG = 100_000

LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@pytest.mark.slow
@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_reply_when_any_json_object_is_wrapped_comes_back_equal(inner: Any) -> None:
    value = {"value": inner}
    schema = ReplySchema("any", {"type": "object"})
    for text in (json.dumps(value), f"```json\n{json.dumps(value, ensure_ascii=False)}\n```"):
        assert parse_reply(text, schema) == Parsed(value)


@given(st.text(max_size=300))
def test_reply_when_any_text_arrives_is_parsed_or_malformed(text: str) -> None:
    for candidate in (text, "{" + text + "}", '{"a": "' + text):
        try:
            parsed = parse_reply(candidate, SCHEMA)
        except Malformed:
            continue
        json.dumps(parsed.value, allow_nan=False).encode()


@pytest.mark.parametrize(
    "text",
    [
        '{"a' + " " * LONG + "x",
        '{"a' + "``` " * LONG + "x",
        "<think></think>" * LONG + '{"a": 1',
        "{" + ",".join(f'"k{n}": 0' for n in (*range(LONG), LONG - 1)) + "}",
        "{'" + "a'b" * 33_000 + "'}",
    ],
    ids=["spaces", "fences", "thoughts", "keys", "quotes"],
)
def test_reply_when_made_to_keep_the_reader_busy_is_read_in_one_go(text: str) -> None:
    with pytest.raises(Malformed):  # going over it once for each of its places would take minutes
        parse_reply(text, SCHEMA)


def test_reply_when_nested_to_the_very_limit_is_malformed_at_every_depth() -> None:
    for depth in range(850, 1010):
        with pytest.raises(Malformed):
            parse_reply('{"a": ' + "[" * depth + '"\\u0041"' + "]" * depth + "}", SCHEMA)


# How a schema reaches services that do not enforce it, or not all of it.

SENT_SCHEMA = ReplySchema(
    "answer",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["maximum", "list"],
        "properties": {
            "maximum": {"type": ["integer", "null"], "minimum": 1, "maximum": 9, "description": "How many."},
            "list": {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 3}},
            "few": {
                "type": "array",
                "minItems": 1,
                "items": {"anyOf": [{"type": "number", "multipleOf": 2}]},
            },
        },
    },
)
MESSAGES = (Message("system", ("Be terse.",)), Message("user", ("Who?",)))


def test_messages_when_the_service_enforces_the_schema_are_sent_as_they_are() -> None:
    assert messages_to_send(ChatRequest("m", MESSAGES, SENT_SCHEMA)) is MESSAGES
    assert messages_to_send(ChatRequest("m", MESSAGES, structured="prompt")) is MESSAGES


def test_messages_when_it_does_not_carry_the_schema_in_the_last_one() -> None:
    sent = messages_to_send(ChatRequest("m", MESSAGES, SENT_SCHEMA, structured="json"))
    assert sent[0] == MESSAGES[0]
    first, text = sent[1].parts
    assert first == "Who?"
    assert isinstance(text, str)
    assert "JSON" in text
    assert json.loads(text[text.index("{") :]) == SENT_SCHEMA.schema


def test_schema_when_limits_are_not_known_to_the_service_says_them_in_words() -> None:
    relaxed = without_counts(SENT_SCHEMA)
    assert relaxed == {
        "title": "answer",
        "type": "object",
        "additionalProperties": False,
        "required": ["maximum", "list"],
        "properties": {
            "maximum": {"type": ["integer", "null"], "description": "How many. (maximum: 9, minimum: 1)"},
            "list": {
                "type": "array",
                "items": {"type": "string", "description": "(minLength: 3)"},
                "description": "(minItems: 2)",
            },
            "few": {
                "type": "array",
                "minItems": 1,
                "items": {"anyOf": [{"type": "number", "description": "(multipleOf: 2)"}]},
            },
        },
    }


# -- Reading error responses as the services word them

REQUEST = ChatRequest("openai:x", (Message("user", ("hi",)),), ReplySchema("s", {}), temperature=0.0)


def kind(status: int, error: Any) -> str:
    return faults.kind_of(faults.problem_of(status, {"error": error}))


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (400, {"message": "This endpoint's maximum context length is 8192 tokens."}, "too_long"),
        (400, {"message": "prompt is too long: 250000 tokens > 200000 maximum"}, "too_long"),
        (400, {"message": "The input token count (9) exceeds the maximum number of tokens"}, "too_long"),
        (413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}, "too_long"),
        (400, {"code": "context_length_exceeded", "message": "?"}, "too_long"),
        (400, {"message": "Unsupported value: 'temperature' does not support 0.0"}, "unsupported"),
        (400, {"message": "`temperature` is deprecated for this model."}, "unsupported"),
        (400, {"message": "Invalid schema for response_format 'x': unsupported keyword"}, "unsupported"),
        (400, {"message": 'Unknown name "seed": Cannot find field.', "status": "X"}, "unsupported"),
        (422, {"message": "response_format is not supported by this engine"}, "unsupported"),
        (400, {"message": "images are not supported"}, "bad_request"),
        (400, {"message": "Invalid value"}, "bad_request"),
        (400, "a plain text", "bad_request"),
        (400, {"message": "API key not valid. Please pass a valid API key."}, "key_refused"),
        (400, {"status": "FAILED_PRECONDITION", "message": "User location is not supported"}, "key_refused"),
        (403, {"message": "no access"}, "key_refused"),
        (403, {"code": "model_not_found", "message": "no access to model"}, "no_such_model"),
        (404, {"message": "no such model"}, "no_such_model"),
        (400, {"message": "Your credit balance is too low to access the API."}, "no_quota"),
        (403, {"message": "This API method requires billing to be enabled."}, "no_quota"),
        (402, {"message": "Payment Required"}, "no_quota"),
        (429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}, "no_quota"),
        (429, {"message": "You exceeded your current quota, check your plan and billing"}, "rate_limited"),
        (429, {"details": [{"violations": [{"quotaId": "RequestsPerMinute"}]}]}, "rate_limited"),
        (429, {"details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}, "no_quota"),
        (429, {"details": [{"violations": 3}, "x"]}, "rate_limited"),
        (408, {}, "timeout"),
        (409, {}, "server_error"),
        (500, {}, "server_error"),
        (501, {}, "not_an_api"),
        (529, {"type": "overloaded_error"}, "server_error"),
        (599, None, "server_error"),
    ],
)  # fmt: skip
def test_error_when_worded_as_a_service_does_is_told_apart(status: int, error: Any, expected: str) -> None:
    assert kind(status, error) == expected


@pytest.mark.parametrize(
    ("error", "filtered"),
    [
        ({"code": "content_filter", "message": "stopped"}, True),
        ({"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}, "message": "stopped"}, True),
        ({"message": "Your request was rejected by our safety system."}, True),
        ({"message": "Invalid value"}, False),
    ],
)
def test_error_when_a_filter_stopped_the_prompt_is_a_block(error: Any, filtered: bool) -> None:
    assert faults.problem_of(400, {"error": error}).filtered is filtered


@pytest.mark.parametrize(
    "body", [b"", b"no", b"[]", b'"x"', b'{"error": null}', b'{"detail": "Not Found"}', b"[" * 9999]
)
def test_error_when_its_body_is_anything_is_read(body: bytes) -> None:
    problem = faults.read_problem(404, "application/json", body)
    assert faults.kind_of(problem) == "no_such_model"
    assert faults.explain("no_such_model", problem, REQUEST)


NOW = "Sat, 01 Jan 2000 00:00:10 GMT"


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({}, [], None),
        ({"retry-after": "7"}, [], 7.0),
        ({"retry-after": "7.5"}, [], 7.5),
        ({"retry-after": "-3"}, [], 0.0),
        ({"retry-after": "1e300"}, [], 3600.0),
        ({"retry-after": "inf"}, [], None),
        ({"retry-after": "nan"}, [], None),
        ({"retry-after": "soon", "date": NOW}, [], None),
        ({"retry-after-ms": "250", "retry-after": "7"}, [], 0.25),
        ({"retry-after": "Sat, 01 Jan 2000 00:00:40 GMT", "date": NOW}, [], 30.0),
        ({"retry-after": "Sat, 01 Jan 2000 00:00:00 GMT", "date": NOW}, [], 0.0),
        ({"retry-after": "Sat, 01 Jan 2000 00:00:40 GMT"}, [], None),
        ({"retry-after": "Sat, 01 Jan 2000 00:00:40 -0000", "date": NOW}, [], None),
        ({}, [{"retryDelay": "17s"}], 17.0),
        ({}, [{"retryDelay": 3}, {"retryDelay": "0.5s"}], 0.5),
        ({}, [{"retryDelay": "a while"}], None),
    ],
)
def test_retry_after_when_given_in_any_form_is_seconds(headers, details, seconds):
    problem = faults.problem_of(429, {"error": {"details": details}})
    assert faults.retry_after(headers, problem) == (None if seconds is None else pytest.approx(seconds))


def test_explanation_when_a_page_answered_names_its_title() -> None:
    page = b"<!DOCTYPE html><title>\n Sign in </title>"
    problem = faults.read_problem(200, "text/html", page)
    assert "'Sign in'" in faults.explain("not_an_api", problem, REQUEST)
    assert "temperature" in faults.explain(
        "unsupported", faults.problem_of(400, {"error": json.dumps({"temperature": 1})}), REQUEST
    )


# Responses that no scripted model would give: compressed, endless, redirected, cut inside the head.

REPLY = json.dumps({"choices": [{"message": {"content": "fox"}, "finish_reason": "stop"}]}).encode()


def response(body: bytes, *headers: str, status: str = "200 OK", announce: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    if announce:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def ask(answer: bytes, *, endless: bytes = b"") -> tuple[Reply | CallFault, int]:
    """Ask a server that sends these bytes, whatever it is asked; also return how often it was asked."""
    return asyncio.run(_ask(answer, endless))


async def _ask(answer: bytes, endless: bytes) -> tuple[Reply | CallFault, int]:
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        await reader.readexactly(length)
        asked += 1
        writer.write(answer)
        try:
            while endless:
                writer.write(endless)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    spec = parse_spec(f"http://127.0.0.1:{port}/v1#tiny")
    model = open_model(spec, ModelOptions(), Redactor())
    found: Any
    try:
        found = await model.complete(ChatRequest(spec.text, (Message("user", ("hi",)),)))
    except CallFault as fault:
        found = fault
    await model.close()
    server.close()
    await server.wait_closed()
    return found, asked


def fault_kind(answer: bytes, **more: bytes) -> str:
    found, asked = ask(answer, **more)
    assert isinstance(found, CallFault)
    assert asked == 1
    return found.kind


@pytest.mark.slow
def test_response_when_compressed_and_large_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(faults.LONGEST_PACKED_BODY * 2000))
    assert len(bomb) > faults.LONGEST_PACKED_BODY
    assert fault_kind(response(bomb, "Content-Encoding: gzip")) == "too_long"


def test_response_when_it_never_ends_is_left_at_the_limit() -> None:
    head = response(b"", "Transfer-Encoding: chunked", announce=False)
    assert fault_kind(head, endless=b"10000\r\n" + b" " * 65536 + b"\r\n") == "too_long"
    assert faults.LONGEST_BODY == 4 * 1024 * 1024


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent"])
def test_response_when_it_leads_elsewhere_is_not_followed(status: str) -> None:
    assert fault_kind(response(b"", "Location: http://127.0.0.1:1/v1", status=status)) == "not_an_api"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "connection"),
        (b"HTTP/1.1 200 OK\r\nContent-", "connection"),
        (response(b"", status="204 No Content"), "broken_reply"),
        (response(REPLY[:-1]), "broken_reply"),
        (response(b"\xff\xfe{}"), "not_an_api"),
        (response(b"[" * 100_000), "broken_reply"),
        (response(b'{"choices": "many"}'), "not_an_api"),
    ],
)
def test_response_when_it_is_something_else_is_a_named_fault(answer: bytes, expected: str) -> None:
    assert fault_kind(answer) == expected


@pytest.mark.parametrize("user", ["token-in-a-proxy", "user:token-in-a-proxy"])
def test_proxy_when_its_address_holds_a_secret_makes_it_known(user, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://{user}@127.0.0.1:1")
    redactor = Redactor()
    spec = parse_spec("http://127.0.0.1:2/v1#toy")
    model = open_model(spec, ModelOptions(), redactor)
    asyncio.run(model.close())
    assert redactor.redact("said token-in-a-proxy") == "said [secret removed]"


@pytest.mark.parametrize(
    ("text", "endless"),
    [
        ("{" + "\n" * 200, True),
        ("He went on. " * 40, True),
        ("".join(f"{number}. The fox is in scene {number}.\n" for number in range(90, 110)), True),
        ("word " * 20, False),  # 100 characters: too few to say so
        (" ".join(f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"), False),
        ("", False),
    ],
    ids=["blanks", "sentence", "numbered", "short", "other-words", "empty"],
)
def test_reply_when_cut_off_is_endless_where_its_end_repeats_itself(text: str, endless: bool) -> None:
    assert named_outcome(Reply("truncated", text)) == (ENDLESS if endless else CUT_OFF)


@pytest.mark.parametrize(
    ("text", "what"),
    [("<think>hm</think> ", EMPTY), ("<think>hm", ENDLESS), ("no", OUT_OF_FORM), ("[1]", OUT_OF_FORM)],
)
def test_reply_when_malformed_says_what_it_is(text: str, what: str) -> None:
    with pytest.raises(Malformed) as raised:
        parse_reply(text, SCHEMA)
    assert raised.value.what == what
