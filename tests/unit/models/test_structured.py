"""How a schema reaches services that do not enforce it, or not all of it."""

import json

from fabula.models.chat import ChatRequest, Message, ReplySchema
from fabula.models.edge import messages_to_send, titled, without_counts

SCHEMA = ReplySchema(
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
    assert messages_to_send(ChatRequest("m", MESSAGES, SCHEMA)) is MESSAGES
    assert messages_to_send(ChatRequest("m", MESSAGES, structured="prompt")) is MESSAGES


def test_messages_when_it_does_not_carry_the_schema_in_the_last_one() -> None:
    sent = messages_to_send(ChatRequest("m", MESSAGES, SCHEMA, structured="json"))
    assert sent[0] == MESSAGES[0]
    first, text = sent[1].parts
    assert first == "Who?"
    assert isinstance(text, str)
    assert "JSON" in text
    assert json.loads(text[text.index("{") :]) == SCHEMA.schema


def test_schema_when_limits_are_not_known_to_the_service_says_them_in_words() -> None:
    relaxed = without_counts(SCHEMA)
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


def test_schema_when_it_has_a_title_keeps_it() -> None:
    assert titled(ReplySchema("a", {"title": "b"})) == {"title": "b"}
