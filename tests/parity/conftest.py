"""What the parity tests share."""

import importlib.util
import json
import logging
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.kinds.benchmarks.kathatrace_demo import import_demo
from fabula.releases.loading import Release
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import ModelServer

CREATED = "2026-01-01T00:00:00Z"


def load_module(path: Path, name: str) -> ModuleType:
    """Load a file of public code as a module of its own; where messages are logged to stays as it is."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its data classes look for their module there
    handlers = list(logging.root.handlers)
    try:
        spec.loader.exec_module(module)
    finally:
        logging.root.handlers[:] = handlers
    return module


@cache
def evaluator(reference: Path, name: str = "official_entitybench") -> ModuleType:
    return load_module(reference / "official/entitybench/eval/evaluate_benchmark.py", name)


@pytest.fixture
def demo(reference: Path, tmp_path: Path) -> tuple[Release, Path]:
    """A release of the six stories as the scripted model drafts them, and the published storyboards.

    Their scenes are the captions of the published storyboards, so that each question is about the pictures of
    its scenes.
    """
    imported = import_demo(reference / "kathatrace_demo", tmp_path / "demo")
    ids = {story.id for story in imported.stories if story.captions}
    stories, shown = tmp_path / "stories.jsonl", tmp_path / "published"
    lines = (imported.folder / "stories.jsonl").read_text("utf-8").splitlines(keepends=True)
    stories.write_text("".join(line for line in lines if json.loads(line)["id"] in ids), "utf-8")
    (imported.folder / "storyboards").rename(shown)
    with ModelServer(KathaModel()) as server:
        options = BuildOptions(
            model=f"{server.openai_url}#stand-in", records=imported.folder / "records.jsonl", workers=0,
            created_at=CREATED,
        )  # fmt: skip
        build_katha(stories, tmp_path / "build", options)
    bundles = [
        json.loads(line)["payload"]
        for line in (tmp_path / "build" / "records.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    return judged_release(tmp_path / "release", bundles), shown
