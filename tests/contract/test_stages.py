"""One suite over every registered stage of every registered builder."""

import asyncio
import json
import pickle
from importlib import import_module
from pathlib import Path

import pytest

import fabula
from fabula.engine.pipeline import Pipeline, Stage, load_pipeline
from fabula.engine.stage import Item, Made, Rejected, Tools
from fabula.errors import RunError
from fabula.kinds.registry import kinds, run_kinds
from fabula.kinds.verbs import pipeline_of
from fabula.testing import load_films

BUILT = Path(fabula.__file__).parent / "builders"
SAMPLES = BUILT / "katha" / "samples"
SOURCES = {
    "katha": ("stories", SAMPLES / "stories.jsonl"),
    "events": ("seeds", BUILT / "events" / "samples" / "seeds.jsonl"),
    "shots": ("stories", SAMPLES / "stories.jsonl"),
    "films": ("films", Path("films.json")),
}
"""Kind of run -> role and file of its sample; films are written by the test."""
FILMS = {
    "one": "AB1 A2 B1 AC2 B1 C2 A3 AB1 C3 A1 BC2",
    "two": "A1 B1 AB1 A1 B2 AB2 A2 B2 A1 B1 A2 AB1",
    "three": "AB1 AB1 AB1 AB1 AB2 AB2 AB2 AB2 AB1 AB1 AB1",
}
CREATED = "2026-01-01T00:00:00Z"


def pipelines() -> list[Pipeline]:
    return [kind.drafting().run.pipeline for kind in kinds()]


def judging_stages() -> list[Stage]:
    return [
        stage
        for kind in kinds()
        for run in run_kinds(kind)[1:]
        for stage in load_pipeline(run.pipeline).stages
    ]


STAGES = list({one.path: one for pipeline in pipelines() for one in load_pipeline(pipeline).stages}.values())
"""Every stage of a builder, once: builders share some."""
_OF_FILMS = load_pipeline(load_films.PIPELINE).names()
VIDEO = [stage for stage in STAGES if ".entities." in stage.path and stage.name not in _OF_FILMS]
"""Stages that look at videos."""
PASSED = [stage for stage in STAGES if stage not in VIDEO]


def tools(stage: Stage, **more: object) -> Tools:
    return Tools(settings=stage.spec.settings(), created_at=CREATED, **more)  # type: ignore[arg-type]


def outcome_of(stage: Stage, item: Item) -> object:
    """Run a map stage on one item; no model is named, so a model stage has nothing to wait for."""
    outcome = stage.run(item, tools(stage))
    return asyncio.run(outcome) if stage.is_async else outcome


@pytest.fixture(scope="module")
def passage(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Item, object]]]:
    """What each stage of each builder got and gave for its first three samples.

    Episodes are built from films here: the stages before that look at videos have tests of their own.
    """
    films = tmp_path_factory.mktemp("films") / "films.json"
    films.write_text(json.dumps({name: {"shots": shots.split()} for name, shots in FILMS.items()}))
    passed: dict[str, list[tuple[Item, object]]] = {}
    for pipeline in pipelines():
        if pipeline.name == "entities":
            passed |= passage_of(load_films.PIPELINE, films)
        else:
            passed |= passage_of(pipeline, SOURCES[pipeline.name][1])
    return passed


def passage_of(pipeline: Pipeline, sample: Path) -> dict[str, list[tuple[Item, object]]]:
    passed: dict[str, list[tuple[Item, object]]] = {}
    role = SOURCES[pipeline.name][0]
    fields: dict[str, dict[str, object]] = {}
    for stage in load_pipeline(pipeline).stages:
        reads = stage.spec.reads
        if stage.spec.shape == "expand":
            source = Item("sources", {"sources": [{"role": role, "name": sample.name, "sha256": "0"}]})
            parents = [Item(key, {name: held[name] for name in reads}) for key, held in fields.items()]
            children = [
                (parent, child)
                for parent in parents or [source]
                for child in list(stage.run(parent, tools(stage, paths=(sample,))))[:3]
            ][:3]
            fields = {child.id: dict(child.outcome.fields) for _, child in children}
            passed[stage.path] = [(parent, child.outcome) for parent, child in children]
            continue
        items = [Item(key, {name: held[name] for name in reads}) for key, held in fields.items()]
        if stage.spec.shape == "gather":
            rows = stage.run(items, tools(stage))
            given = [(item, Made(rows[item.id])) for item in items]
        else:
            given = [(item, outcome_of(stage, item)) for item in items]
        passed[stage.path] = list(given)
        for item, outcome in given:
            fields[item.id].update(outcome.fields)
    return passed


@pytest.mark.parametrize("stage", STAGES + judging_stages(), ids=lambda stage: stage.name)
def test_declaration_when_read_is_complete(stage: Stage) -> None:
    place, _, attribute = stage.path.partition(":")
    module = import_module(place)
    names = (place.rpartition(".")[2], attribute.lower())
    assert stage.name in names, "a stage has the name of its module, or of the step in it"
    assert "_" in stage.name, "a stage is named verb_noun"
    assert stage.spec.version >= 1
    assert stage.spec.writes
    assert module.__doc__ is not None
    assert attribute or module.__doc__.startswith(("Stage: ", "Stages: ")), (
        "a value stands in the module of its concept"
    )
    assert all(stage.spec.reject_codes.values()), "every reject code says what it means"
    settings = stage.spec.settings()
    assert settings.model_config["frozen"] is True
    assert json.loads(json.dumps(settings.as_json())) == settings.as_json()


@pytest.mark.parametrize("stage", PASSED, ids=lambda stage: stage.name)
def test_outcome_when_samples_pass_keeps_to_the_declaration(stage: Stage, passage) -> None:
    assert len(passage[stage.path]) == 3
    for _, outcome in passage[stage.path]:
        assert isinstance(outcome, Made)
        assert set(outcome.fields) == set(stage.spec.writes)
        assert json.loads(json.dumps(outcome.fields, allow_nan=False)) == outcome.fields, (
            "fields are plain JSON"
        )


@pytest.mark.parametrize("stage", [s for s in PASSED if s.spec.shape == "map"], ids=lambda stage: stage.name)
def test_map_when_run_twice_gives_the_same_and_leaves_its_input_alone(stage: Stage, passage) -> None:
    for item, outcome in passage[stage.path]:
        before = pickle.dumps(item)
        again = outcome_of(stage, pickle.loads(before))
        assert again == outcome
        assert pickle.dumps(item) == before


@pytest.mark.parametrize(
    "stage", [s for s in PASSED if s.spec.shape == "gather"], ids=lambda stage: stage.name
)
def test_gather_when_items_come_in_another_order_gives_the_same(stage: Stage, passage) -> None:
    items = [item for item, _ in passage[stage.path]]
    rows = stage.run(items[::-1], tools(stage))
    assert [Made(rows[item.id]) for item in items] == [outcome for _, outcome in passage[stage.path]]


def test_rejection_when_too_short_uses_a_declared_code() -> None:
    stage = next(stage for stage in STAGES if stage.name == "draft_scenes")
    analyze = next(stage for stage in STAGES if stage.name == "analyze_story")
    story = json.loads((SAMPLES / "stories.jsonl").read_text("utf-8").splitlines()[0])
    story.update(text="A fox slept.", normalized_text="A fox slept.")
    analysis = analyze.run(Item("x", {"story": story}), tools(analyze)).fields["analysis"]
    outcome = outcome_of(stage, Item("x", {"story": story, "given": None, "analysis": analysis}))
    assert isinstance(outcome, Rejected)
    assert outcome.code in stage.spec.reject_codes


def test_pipeline_of_when_folder_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="run"):
        pipeline_of(tmp_path)
