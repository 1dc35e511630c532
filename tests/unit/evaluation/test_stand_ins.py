"""Evaluations by stand-ins say so."""

import inspect

import pytest

from fabula.evaluation.archive.stand_ins import PROGRAMS, stand_in_notes
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
