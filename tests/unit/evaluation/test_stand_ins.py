"""Evaluations by stand-ins say so."""

import inspect

import pytest

from fabula.evaluation.archive.stand_ins import PROGRAMS, stand_in_notes
from fabula.models.stand_ins import stand_ins_among
from fabula.schemas.judgement import EvaluationManifest
from fabula.testing import drawn_entities, table_detector


def manifest(**protocol: object) -> EvaluationManifest:
    return EvaluationManifest(kind="images", protocol=protocol, subject={}, environment={})


def test_notes_when_judge_and_encoders_stand_in_name_each() -> None:
    made = manifest(
        judges=["compatible:stand-in", "openai:gpt-4.1-mini"],
        models={
            "detector": "table-detector@1/float32/cpu",
            "characters": {"x": "head-encoder@1/cpu"},
        },
    )
    judges, programs = stand_in_notes(made)
    assert judges.startswith("the replies of compatible:stand-in are made up")
    assert "gpt" not in judges
    assert programs.startswith("head-encoder, table-detector: small programs of fabula.testing")


def test_notes_when_models_are_models_are_none() -> None:
    made = manifest(judges=["openai:gpt-4.1-mini"], models={"style": "csd@1/float32/cpu", "clip": None})
    assert list(stand_in_notes(made)) == []


@pytest.mark.parametrize("module", [table_detector, drawn_entities])
def test_programs_of_the_tests_when_loaded_have_the_names_that_are_known(module: object) -> None:
    loaders = [value for name, value in inspect.getmembers(module) if name.startswith("load_")]
    assert loaders
    assert {loader("cpu").identity.partition("@")[0] for loader in loaders} <= PROGRAMS


@pytest.mark.parametrize(
    ("judge", "reported", "is_marked"),
    [
        ("openai:gpt-4.1", ["stand-in"], True),
        ("openai:gpt-4.1", ["gpt-4.1-2025-04-14", "drawn stand-in"], True),
        ("compatible:drawn", ["drawn"], True),
        ("compatible:stand-in", [], True),
        ("compatible:stand-in", ["qwen3"], False),
        ("openai:gpt-4.1", ["gpt-4.1-2025-04-14"], False),
        ("openai:gpt-4.1", [], False),
    ],
)
def test_notes_when_replies_name_their_model_go_by_that_and_not_by_what_was_asked_for(
    judge: str, reported: list[str], is_marked: bool
) -> None:
    told = {judge: {"outcomes": {"answered": 3}, "reported_models": reported}}
    made = EvaluationManifest(
        kind="katha", protocol={"judges": [judge]}, subject={}, environment={"judges": told}
    )
    assert [judge in note for note in stand_in_notes(made)] == [True] * is_marked


def test_stand_ins_when_among_producers_are_named_without_prompts() -> None:
    producers = (
        "openai:gpt-4.1 via katha/draft_scenes@3#0a1b, answered by a stand-in, json_repaired",
        "compatible:stand-in via shots/plan_shots@1#2c; rules@1; compatible:qwen3 via shots/x@1#3d",
        "rules@1", "author:ana", None,
    )  # fmt: skip
    assert stand_ins_among(producers) == ["compatible:stand-in", "openai:gpt-4.1, answered by a stand-in"]
