"""A reply's text into JSON that satisfies its schema."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.models.chat import ChatRequest, Message, ReplySchema
from fabula.models.edge import messages_to_send, without_counts
from fabula.models.replies import LONGEST_REPLY, Malformed, Parsed, parse_reply

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
