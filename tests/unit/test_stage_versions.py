"""A stage whose code changes gets a new version: the code that it reaches is pinned.

The pinned hash of a stage covers the definitions that it reaches and the data files that these read, wherever
they stand; see ``fabula.testing.stage_code``. A prompt is not among them: its hash is in the keys of results.
After raising ``version`` in the stage's SPEC: UPDATE_GOLDEN=1 make test-slow PYTEST_ARGS="-k stage_versions"
"""

import json
import os
import re
import sys
from pathlib import Path

import pytest

import fabula
from fabula.builders.books.building import PIPELINE as BOOKS
from fabula.engine.pipeline import Stage, load_pipeline
from fabula.kinds.registry import kinds, run_kinds
from fabula.prompts.loader import prompt_source
from fabula.studies.experiments.evaluators.deriving import PIPELINE as QUESTIONS
from fabula.studies.memory.pipeline import PIPELINE as MEMORY
from fabula.studies.memory.shots.generating import PIPELINE as SHOTS
from fabula.studies.memory.shots.pipeline import PIPELINE as PACKETS
from fabula.studies.pictures import PIPELINE as GENERATING
from fabula.testing.stage_code import Code

pytestmark = pytest.mark.slow

ROOT = Path(fabula.__file__).parent
OTHERS = (BOOKS, GENERATING, QUESTIONS, MEMORY, PACKETS, SHOTS)
"""Pipelines of no kind of benchmark."""
GOLDEN = Path(__file__).parents[1] / "golden" / "stage_versions.json"


def hash_of(stage: Stage, code: Code) -> str:
    module, _, attribute = stage.path.partition(":")
    # The words that a reply may use are filled into its schema; the hash of the prompt lacks them.
    prompts = [prompt_source(name).decode() for name in (*stage.spec.prompts, *stage.spec.asks)]
    words = {f"{name}.json" for prompt in prompts for name in re.findall(r"vocabulary: *(\w+)", prompt)}
    return code.hash(module, [attribute] if attribute else ["SPEC", stage.run.__name__], words)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="syntax trees differ between versions of Python")
def test_stage_versions_when_code_changed_are_raised() -> None:
    code = Code(ROOT)
    pipelines = [*(run.pipeline for kind in kinds() for run in run_kinds(kind)), *OTHERS]
    stages = {
        f"{pipeline.name}/{stage.name}": stage
        for pipeline in pipelines
        for stage in load_pipeline(pipeline).stages
    }
    found = {
        name: {"version": stage.spec.version, "sha256": hash_of(stage, code)}
        for name, stage in stages.items()
    }
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    pinned = json.loads(GOLDEN.read_text())
    unraised = [
        name
        for name, now in found.items()
        if name in pinned
        and now["sha256"] != pinned[name]["sha256"]
        and now["version"] == pinned[name]["version"]
    ]
    assert unraised == [], "raise the version of these stages, then update the pinned hashes"
    assert found == pinned, "run with UPDATE_GOLDEN=1 to pin the new versions"
