"""The fast schema validator agrees with the reference implementation, and never leaves the machine."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.schemas.export import json_schema
from fabula.schemas.paths import format_path, get_at, replace_at
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.schema_check import check_schema

RECORD = sample_bundles(1)[0]["record"]
VARIANT = sample_bundles(1)[0]["variants"][0]
REVIEW = {
    "story_id": "kb25k_0001", "decision": "accepted", "validation_status": "human_review_complete",
    "evidence_source": "text", "protocol_complete": True, "annotator_ids": ["a"], "adjudicator_id": None,
    "resolution": "unanimous", "final_moral_label": "courage", "correction_flags": [],
    "signed_at": "2025-02-01T10:00:00+01:00",
}  # fmt: skip
INSTANCES = {"katha_record": RECORD, "katha_variant": VARIANT, "katha_human_validation": REVIEW}
VALUES = st.sampled_from(
    [None, True, 0, 1, -1, 1.0, 1.5, 2**70, "", "x", "2025-01-01", "2025-01-01T00:00:00Z", [], ["x"], [1, 2],
     [1, 2, 3], {}, {"a": 1}, [[]], [None], "2025-13-01T00:00:00Z", "2025-01-01T24:00:00Z"]
)  # fmt: skip


def paths(node: Any, steps: tuple[str | int, ...] = ()) -> list[str]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [format_path(steps), *(path for key, value in children for path in paths(value, (*steps, key)))]


def reference_paths(name: str, instance: Any) -> set[str]:
    """Where the reference implementation finds errors; unknown fields are the business of a warning."""
    schema = json_schema(name)
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
    return {
        format_path(list(error.absolute_path))
        for error in validator.iter_errors(instance)
        if error.validator != "additionalProperties"
    }


def fast_paths(name: str, instance: Any) -> set[str]:
    return {
        finding.issue.path
        for finding in check_schema(name, instance, "x")
        if finding.issue.code != "unknown-field"
    }


@pytest.mark.parametrize("name", INSTANCES)
def test_check_schema_when_instance_is_valid_agrees_with_the_reference(name: str) -> None:
    assert fast_paths(name, INSTANCES[name]) == reference_paths(name, INSTANCES[name]) == set()


@pytest.mark.parametrize("name", INSTANCES)
@given(data=st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_check_schema_when_instance_is_corrupted_finds_what_the_reference_finds(
    name: str, data: st.DataObject
) -> None:
    instance = INSTANCES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        instance = replace_at(instance, data.draw(st.sampled_from(paths(instance))), data.draw(VALUES))
    assert fast_paths(name, instance) == reference_paths(name, instance)


@pytest.mark.parametrize("name", INSTANCES)
def test_check_schema_when_any_field_is_missing_names_it(name: str) -> None:
    for field in INSTANCES[name]:
        instance = {key: value for key, value in INSTANCES[name].items() if key != field}
        (finding,) = check_schema(name, instance, "x")
        assert finding.issue.message == f"expected a field {field!r}, found none"
        assert finding.broken == field


def test_check_schema_when_fields_are_unknown_warns_and_breaks_nothing() -> None:
    instance = replace_at(RECORD, "$.scenes[1]", {**RECORD["scenes"][1], "camera": 1})
    findings = list(check_schema("katha_record", {**instance, "a b": 2}, "x"))
    assert {item.issue.path for item in findings} == {"$.scenes[1].camera", "$.a b"}
    assert {item.issue.level for item in findings} == {"warning"}
    assert all(item.broken is None for item in findings)


def test_check_schema_when_time_is_not_rfc_3339_has_a_code_of_its_own() -> None:
    instance = replace_at(RECORD, "$.provenance.created_at", "2025-01-01 noon")
    (finding,) = check_schema("katha_record", instance, "x")
    assert (finding.issue.code, finding.broken) == ("timestamp", "provenance.created_at")
    assert get_at(RECORD, "$.provenance.created_at").endswith("Z")


def test_check_schema_when_schema_is_unknown_says_so() -> None:
    with pytest.raises(KeyError):
        list(check_schema("katha_poem", {}, "x"))
