"""The fast schema validator agrees with the reference implementation, and never leaves the machine."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.schemas.export import json_schema
from fabula.schemas.paths import format_path, get_at, replace_at
from fabula.schemas.vocabulary import vocabulary
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.lines import check_schema
from fabula.validators.statistics import (
    HiddenCounts,
    StatisticsCollector,
    distribution,
    moral_balance,
)

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


@pytest.mark.slow
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


# Counts and distributions against numbers worked out by hand, and against the published tables.


def statistics_over(bundles, hidden=None):
    counts = StatisticsCollector()
    for bundle in bundles:
        counts.add_record(bundle["record"])
        for variant in bundle["variants"]:
            counts.add_variant(variant)
    return counts.result(hidden or HiddenCounts())


def test_statistics_when_two_stories_equal_the_counts_by_hand() -> None:
    bundles = sample_bundles(2)
    bundles[1]["record"]["transitions"][0] |= {"intention": "to sell pots", "transition_type": None}
    document = statistics_over(bundles)
    assert document["totals"] == {
        "stories": 2,
        "scenes": 10,
        "transitions": 8,
        "questions": 12,
        "variants": 4,
    }
    assert document["splits"] == {"train": 1, "validation": 0, "public_test": 1, "hidden_test": 0, "test": 1}
    # Each story has 2 cause_effect, 1 consequence_reveal, 1 moral_choice; one cause_effect is taken away.
    types = document["transition_types"]
    assert {name: entry["count"] for name, entry in types.items()} == {
        "cause_effect": 3, "moral_choice": 2, "consequence_reveal": 2, "none": 1,
    }  # fmt: skip
    # 3 of 8 is 0.375, the target 2 of 4 is 0.5.
    assert types["cause_effect"] == {"count": 3, "share": 0.375, "target_share": 0.5, "deviation": -0.125}
    assert types["none"] == {"count": 1, "share": 0.125}
    assert document["transition_field_coverage"]["intention"] == {"count": 1, "share": 0.125}
    assert document["transition_field_coverage"]["moral_target"] == {"count": 2, "share": 0.25}
    assert document["source_mix"]["kathasaritasagara"] == {"count": 1, "share": 0.5}
    assert document["languages"] == {"en": {"count": 2, "share": 1.0}}
    assert document["change_types"]["remove_consequence"]["count"] == 2
    assert document["review"]["resolution"]["not_reviewed"] == {"count": 2, "share": 1.0}


def test_statistics_when_hidden_stories_exist_count_them_and_nothing_else() -> None:
    hidden = HiddenCounts(stories=3, scenes=15, transitions=12, questions=18, variants=6)
    with_hidden, without = statistics_over(sample_bundles(2), hidden), statistics_over(sample_bundles(2))
    assert with_hidden["totals"]["stories"] == 5
    assert with_hidden["public"] == without["totals"]
    assert with_hidden["splits"] == {
        "train": 1, "validation": 0, "public_test": 1, "hidden_test": 3, "test": 4,
    }  # fmt: skip
    changed = {name for name in without if with_hidden[name] != without[name]}
    assert changed == {"totals", "hidden_test", "splits"}


def test_statistics_when_there_is_nothing_have_every_key_and_no_division() -> None:
    document = statistics_over([])
    assert document.keys() == statistics_over(sample_bundles(1)).keys()
    assert document["moral_labels"]["courage"]["share"] == 0.0


def test_distribution_when_counts_are_the_published_ones_deviates_nowhere() -> None:
    for name in ("narrative_type", "moral_label", "question_type"):
        table = distribution(name, vocabulary(name).targets)
        assert {entry["deviation"] for entry in table.values()} == {0.0}, name


def test_moral_balance_when_labels_are_the_published_ones_is_within_tolerance() -> None:
    # Table 12: 5,000 stories over 12 labels, 416 or 417 each; the uniform target is 416.6667.
    targets = vocabulary("moral_label").targets
    audit = moral_balance(label for label, count in targets.items() for _ in range(count))
    assert audit["target_distribution"]["courage"] == 416.6667
    assert audit["observed_distribution"] == targets
    assert audit["per_label_deviation"]["courage"] == 0.3333
    assert audit["per_label_deviation"]["wisdom"] == -0.6667
    assert audit["tolerance_status"] == "within_tolerance"
    assert audit["automatic_relabeling"] is False


@pytest.mark.parametrize(("extra", "status"), [(8, "within_tolerance"), (10, "outside_tolerance")])
def test_moral_balance_when_one_label_has_too_many_uses_the_larger_bound(extra: int, status: str) -> None:
    # 12 x 417 + extra: the target is 417 + extra / 12, the bound 2 % of it, about 8.35.
    names = vocabulary("moral_label").values
    labels = [name for name in names for _ in range(417)] + ["courage"] * extra
    audit = moral_balance(labels)
    assert audit["per_label_status"]["courage"] == status
    assert audit["tolerance_status"] == status


def test_moral_balance_when_labels_are_missing_or_unknown_counts_them_apart() -> None:
    audit = moral_balance(["courage", None, None, "thrift"])
    assert (audit["unlabelled"], audit["unlisted"]) == (2, {"thrift": 1})
    assert audit["target_distribution"]["courage"] == 0.0833
