"""What every step keeps to, and a package that adds a step, drafts one of ours otherwise, and adds a rule."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.builders.shots.building import PIPELINE as SHOTS
from fabula.builders.step import ADDED, PlannerSettings, Step
from fabula.engine.pipeline import load_pipeline
from fabula.engine.stage import Item, Made, Tools
from fabula.kinds.registry import OURS, run_kinds
from fabula.prompts.loader import load_prompt

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
CREATED = "2026-01-01T00:00:00Z"
PIPELINES = {kind.name: run_kinds(kind)[0].pipeline for kind in OURS}
STEPS = {
    step.id: (kind, step)
    for kind, pipeline in PIPELINES.items()
    for stage in load_pipeline(pipeline).stages
    if isinstance(step := getattr(stage.run, "__self__", None), Step)
}
every_step = pytest.mark.parametrize(("kind", "step"), STEPS.values(), ids=STEPS)


def test_kinds_that_draft_have_steps() -> None:
    assert {kind for kind, _ in STEPS.values()} == {"katha", "shots", "entities"}
    assert len(STEPS) >= 21


@every_step
def test_step_when_declared_says_who_drafted_and_asks_prompts_of_its_kind(kind: str, step: Step) -> None:
    spec = step.SPEC
    assert step.id.partition("/")[::2] == (kind, spec.name)
    assert issubclass(spec.settings, PlannerSettings)
    assert spec.settings().planner == "rules"
    assert spec.writes[-1].endswith("_by") and len(set(spec.writes)) == len(spec.writes)
    assert all(load_prompt(name).card.id.startswith(f"{kind}/") for name in spec.asks)


@pytest.mark.parametrize("kind", PIPELINES)
def test_stages_when_they_reject_say_for_every_code_what_keeps_the_item(kind: str) -> None:
    for stage in load_pipeline(PIPELINES[kind]).stages:
        assert stage.spec.reject_codes.keys() - {"withdrawn"} == stage.spec.keep.keys(), stage.name


def drafted(kind: str) -> dict[str, Any]:
    """The fields of the first sample, as the rules draft it."""
    fields: dict[str, Any] = {"duplicate_of": None, "split": "train"}
    tools: Mapping[str, Any] = {"created_at": CREATED, "paths": (SAMPLES,)}
    source = {"sources": [{"role": "stories", "name": SAMPLES.name, "sha256": "0"}]}
    for stage in load_pipeline(PIPELINES[kind]).stages:
        settings = stage.spec.settings()
        if stage.spec.shape == "expand":
            child = next(iter(stage.run(Item("sources", source), Tools(settings, **tools))))
            fields |= child.outcome.fields
        elif isinstance(step := getattr(stage.run, "__self__", None), Step):
            sketch = step.sketch(Item("one", {name: fields[name] for name in stage.spec.reads}))
            value = step.given(sketch, settings) or step.settle(
                step.rules(sketch, settings), sketch, settings
            )
            fields |= {step.writes[0]: value} if len(step.writes) == 1 else value
            fields[stage.spec.writes[-1]] = step.maker
            fields.setdefault("steps", []).append((step, sketch, settings))
        elif stage.name == "analyze_story":
            outcome = stage.run(Item("one", {"story": fields["story"]}), Tools(settings, **tools))
            assert isinstance(outcome, Made)
            fields |= outcome.fields
    return fields


@pytest.mark.parametrize("kind", ["katha", "shots"])
def test_step_when_it_shows_a_draft_fills_exactly_the_inputs_of_its_prompt(kind: str) -> None:
    shown = 0
    for step, sketch, settings in drafted(kind)["steps"]:
        inputs = step.show(sketch, settings)
        if inputs is not None:
            shown += 1
            assert set(inputs) == set(load_prompt(step.SPEC.asks[0]).card.inputs)
            assert inputs == step.show(sketch, settings)
    assert shown >= 4


PACKAGE = '''
"""Moods of shots, settings in one word, and a rule about titles."""
from dataclasses import replace

from fabula.builders.shots.cast import Sketch
from fabula.builders.shots.script_parts import DESCRIBE_SETTINGS
from fabula.builders.step import Step
from fabula.schemas.values import Issue
from fabula.validators.katha.scene_rules import StoryRule

MOODS = Step(
    id="shots/name_moods", version=1, writes=("moods",), reads=("story", "analysis", "plot"),
    sketch=Sketch.of, rules=lambda sketch, settings: ["calm" for _ in sketch.plot],
    libraries=("house-steps",), maker="house@1",
)
PLACES = replace(
    DESCRIBE_SETTINGS, rules=lambda sketch, settings: ["Somewhere" for _ in sketch.plot],
    libraries=("house-steps",), maker="house@1",
)


def check_title(story):
    """A title is no question."""
    if story.record["title"].endswith("?"):
        yield Issue(story.where, "$.title", "house-title", "warning", "The title asks. Let it tell.")


RULE = StoryRule("house-title", check_title, ("title",))
'''
ENTRIES = """[fabula.steps]
shots/name_moods = house_steps:MOODS
shots/describe_settings = house_steps:PLACES

[fabula.rules]
title = house_steps:RULE
"""


def package(folder: Path, entries: str = ENTRIES) -> Path:
    info = folder / "house_steps-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-steps\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    (folder / "house_steps.py").write_text(PACKAGE)
    return folder


def command(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    line = [sys.executable, "-m", "fabula.cli.main", *arguments]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_steps_of_a_package_draft_in_a_build_and_say_so(tmp_path: Path) -> None:
    site, run = package(tmp_path / "site"), tmp_path / "run"
    done = command(site, "build", "shots", str(SAMPLES), "--out", str(run), "--limit", "2", "--workers", "0")
    assert done.returncode == 0, done.stderr
    assert all(
        set(row["moods"]) == {"calm"} and row["moods_by"] == "house@1" for row in lines_of(run / ADDED)
    )
    assert len(lines_of(run / ADDED)) == 2
    for row in lines_of(run / "producers.jsonl"):
        makers = {entry["path"]: entry["producer"] for entry in row["producers"]}
        assert makers["$.Shots[*]['Setting Description'].en"] == "house@1"
        assert makers["$.Shots[*]['Static Shot Description'].en"] == "rules@1"
    for row in lines_of(run / "scripts.jsonl"):
        assert {shot["Setting Description"]["en"] for shot in row["script"]["Shots"]} == {"Somewhere"}
    assert "name_moods" not in load_pipeline(SHOTS).names()


@pytest.mark.slow
def test_step_of_a_package_when_it_does_not_name_its_package_is_refused(tmp_path: Path) -> None:
    entries = "[fabula.steps]\nshots/plan_shots = fabula.builders.shots.script_parts:PLAN_SHOTS\n"
    site = package(tmp_path / "site", entries)
    done = command(site, "build", "shots", str(SAMPLES), "--out", str(tmp_path / "run"), "--limit", "1")
    assert done.returncode == 2
    assert "house-steps is not among the Step's libraries" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_rule_of_a_package_is_checked_by_validate(tmp_path: Path) -> None:
    site, run = package(tmp_path / "site"), tmp_path / "run"
    row = json.loads(SAMPLES.read_text("utf-8").splitlines()[0])
    (tmp_path / "stories.jsonl").write_text(json.dumps({**row, "title": "Who was it?"}))
    stories = str(tmp_path / "stories.jsonl")
    assert command(site, "build", "katha", stories, "--out", str(run), "--workers", "0").returncode == 0
    done = command(site, "validate", str(run), "--strict", "--json")
    found = json.loads(done.stdout)
    assert "house-title" in {issue["code"] for issue in found["issues"]}
    assert done.returncode == 1
