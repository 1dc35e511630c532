import pytest

from fabula.prompts.replies import reply_schema
from fabula.schemas.vocabulary import vocabulary


def closed(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def test_reply_schema_when_strict_is_named_after_the_prompt() -> None:
    declared = closed(scenes={"type": "array", "items": closed(first={"type": "integer"}), "minItems": 1})
    reply = reply_schema("katha/draft_scenes", declared)
    assert reply.name == "katha_draft_scenes"
    assert reply.schema == declared


def test_reply_schema_when_it_names_a_vocabulary_lists_its_values() -> None:
    schema = reply_schema(
        "p",
        closed(
            label={"vocabulary": "moral_label", "nullable": True, "description": "what it teaches"},
            kinds={"type": "array", "items": {"vocabulary": "transition_type"}},
        ),
    ).schema["properties"]
    assert schema["label"] == {
        "anyOf": [{"type": "string", "enum": list(vocabulary("moral_label").values)}, {"type": "null"}],
        "description": "what it teaches",
    }
    assert schema["kinds"]["items"]["enum"] == list(vocabulary("transition_type").values)


def test_reply_schema_when_a_property_is_called_vocabulary_leaves_it_alone() -> None:
    declared = closed(vocabulary={"type": "string"})
    assert reply_schema("p", declared).schema == declared


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"type": "array", "items": {"type": "string"}}, r"\$: the reply must be an object"),
        ({"type": "object"}, r"\$: an object must list its properties"),
        ({**closed(a={"type": "string"}), "additionalProperties": True}, r"additionalProperties: false"),
        ({**closed(a={"type": "string"}), "required": []}, r"required must list every property: a"),
        (closed(a={"type": "array", "items": {"type": "object"}}), r"\$\.a\.items: an object must list"),
        (closed(a={"type": "array"}), r"\$\.a\.items: not a schema"),
        (closed(a={"type": "text"}), r"\$\.a: type must be one of object"),
        (closed(a={"enum": ["x"]}), r"\$\.a: type must be one of object"),
        (closed(a={"type": "string", "pattern": "^x"}), r"\$\.a: keywords .*: pattern"),
        (closed(a={"type": "string", "enum": ["yes", True]}), r"\$\.a\.enum: True is no string; quote it"),
        (closed(a={"type": "integer", "enum": [True]}), r"\$\.a\.enum: True is no integer"),
        (closed(a={"anyOf": [{"type": "null"}, {"type": "x"}]}), r"\$\.a\.anyOf\[1\]: type must be"),
        (closed(a={"vocabulary": "nothing"}), "no vocabulary 'nothing'"),
        (closed(a={"vocabulary": "split", "enum": ["train"]}), r"unknown keys \['enum'\]"),
    ],
)
def test_reply_schema_when_not_strict_is_refused_with_the_place(declared, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        reply_schema("p", declared)
