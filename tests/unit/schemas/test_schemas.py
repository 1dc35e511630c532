"""The published schemas, the two kinds of types, and the word lists."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from fabula.schemas.canonical import pretty_bytes
from fabula.schemas.export import PUBLISHED, export_schemas, json_schema
from fabula.schemas.katha import (
    HumanValidation,
    KathaBundle,
    Question,
    Scene,
    StoryRecord,
    Transition,
    Variant,
)
from fabula.schemas.values import NAMES, vocabulary, wire_of
from fabula.testing.katha_samples import sample_bundles

FOLDER = Path(str(files("fabula.schemas") / "json"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_schema_when_generated_again_equals_the_file(name: str) -> None:
    path = FOLDER / f"{name}.schema.json"
    assert path.read_bytes() == pretty_bytes(json_schema(name)), (
        "run: fabula schemas export --out schemas/json"
    )


def described(schema: Any, path: str = "$") -> list[str]:
    """Paths of properties without a description; a reference has the one of its target."""
    missing = []
    for name, part in schema.get("properties", {}).items():
        if "description" not in part and not ("$ref" in part or "$ref" in part.get("items", {})):
            missing.append(f"{path}.{name}")
    for name, part in schema.get("$defs", {}).items():
        missing += described(part, f"{path}.{name}")
    return missing


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_schema_when_read_is_valid_2020_12_with_id_and_descriptions(name: str) -> None:
    schema = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:fabula:schema:{name}:1"
    assert schema["description"]
    assert described(schema) == []


def test_export_schemas_when_folder_is_new_writes_every_schema(tmp_path: Path) -> None:
    paths = export_schemas(tmp_path / "a" / "b")
    assert {path.name: path.read_bytes() for path in paths} == {
        path.name: path.read_bytes() for path in FOLDER.iterdir()
    }


# The paper's tables, by number; our additions are stated in the types' docstrings.
TABLE_7 = """
    story_id scene_index scene_text characters objects action state emotion visual_evidence
    visual_must_show generation_prompt
"""
TABLE_8 = """
    story_id from_scene to_scene transition_type action causality intention emotion consequence
    expected_change moral_target recoverability_target
"""
TABLE_13 = """
    question_id story_id question_type question gold_answer accepted_answers target_scene
    target_transition evidence_scenes required_evidence answerability
"""
TABLE_15 = """
    variant_id base_story_id variant_kind subset narrative_type has_variant pair_id changed_scene_id
    change_type original_moral contrastive_moral semantic_delta contrastive_scene_text
    contrastive_story_text
"""
TABLE_16 = """
    story_id decision validation_status evidence_source protocol_complete annotator_ids
    adjudicator_id resolution final_moral_label correction_flags signed_at
"""


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (Scene, TABLE_7),
        (Transition, TABLE_8),
        (Question, TABLE_13),
        (Variant, TABLE_15),
        (HumanValidation, TABLE_16),
    ],
)
def test_type_when_compared_with_its_table_has_exactly_its_fields(kind: Any, table: str) -> None:
    required = [name for name, field in kind.model_fields.items() if field.is_required()]
    assert required == table.split()


def test_record_when_read_has_the_top_level_and_provenance_fields_of_the_appendix() -> None:
    record = sample_bundles(1)[0]["record"]
    assert set(record) == set(StoryRecord.model_fields) - {"moral"}  # ours, where there is none
    assert set(record["provenance"]) >= {
        "source_dataset", "source_prompt_hash", "source_annotations_sha256", "source_contrastives_sha256",
        "contrastive_variant_ids", "created_at", "source_rights_status", "dataset_license",
    }  # fmt: skip
    assert set(record["evidence_status"]) == {"human_evidence_accepted", "resolution"}


def test_own_type_when_read_from_json_round_trips_is_frozen_and_refuses_extras() -> None:
    (bundle,) = sample_bundles(1)
    read = KathaBundle.model_validate(bundle)
    assert read.as_json() == bundle
    assert isinstance(read.record.scenes, tuple)
    with pytest.raises(ValidationError):
        read.record.title = "other"
    with pytest.raises(ValidationError, match="extra"):
        KathaBundle.model_validate({**bundle, "more": 1})


OFFICIAL = {
    "story_id": "kb25k_0001",
    "title": None,
    "scenes": [{"scene_index": 1, "camera": {"lens": 35}, "characters": ["fox"]}],
    "questions": [{"target_transition": [1, 2]}, {"target_transition": None}, {}],
    "provenance": {"source_dataset": "aesop", "edition": "1912"},
    "batch": [1, {"x": None}],
}


def test_wire_type_when_fields_are_absent_null_or_unknown_gives_back_what_was_read() -> None:
    wire = wire_of(StoryRecord).model_validate(OFFICIAL)
    assert wire.as_json() == OFFICIAL
    assert wire.unknown_fields() == ("batch",)
    assert wire.scenes[0].unknown_fields() == ("camera",)
    assert wire.split is None
    assert "split" not in wire.as_json()
    assert "title" in wire.as_json()


def test_wire_type_when_record_is_complete_equals_the_own_type() -> None:
    record = sample_bundles(1)[0]["record"]
    assert wire_of(StoryRecord).model_validate(record).as_json() == record
    assert wire_of(StoryRecord) is wire_of(StoryRecord)


VOCABULARY_ATTRIBUTES = (
    "target", "label", "aliases", "reviewed", "releasable", "en", "ch", "judge", "rank"
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_vocabulary_when_read_is_well_formed(name: str) -> None:
    document = json.loads((files("fabula.schemas") / "vocabularies" / f"{name}.json").read_text("utf-8"))
    assert set(document) == {"name", "source", "closed", "values"}
    assert document["name"] == name
    assert document["source"]
    values = [entry["value"] for entry in document["values"]]
    assert len(values) == len(set(values)) > 1
    for entry in document["values"]:
        assert entry["value"].isidentifier() and entry["value"] == entry["value"].lower()
        assert entry["description"].endswith(".")
        assert set(entry) <= {"value", "description", *VOCABULARY_ATTRIBUTES}
    for attribute in VOCABULARY_ATTRIBUTES:
        assert sum(attribute in entry for entry in document["values"]) in (0, len(values)), attribute


@pytest.mark.parametrize(
    ("name", "count", "total"),
    [
        ("narrative_type", 8, 5000),
        ("moral_label", 12, 5000),
        ("transition_type", 3, 4),
        ("question_type", 6, 28712),
        ("split", 4, 100),
        ("style_category", 10, 80),
        ("story_type", 11, 80),
        ("culture", 6, 80),
        ("character_tag", 3, 344),
        ("gender", 3, 344),
    ],
)
def test_vocabulary_when_targets_are_summed_equals_the_published_total(name, count, total):
    assert len(vocabulary(name).targets) == len(vocabulary(name).values) == count
    assert sum(vocabulary(name).targets.values()) == total


def test_resolve_when_text_is_an_alias_in_any_case_returns_the_value() -> None:
    words = vocabulary("source_dataset")
    assert words.resolve("  Aesop's Fables ") == "aesop"
    assert words.resolve("Kathasaritsagara") == "kathasaritasagara"
    assert words.resolve("Grimm") == "Grimm"


def test_vocabulary_when_unknown_lists_what_there_is() -> None:
    with pytest.raises(KeyError, match="moral_label"):
        vocabulary("colour")
