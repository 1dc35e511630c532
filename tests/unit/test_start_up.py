"""What a command does not import: other kinds, and libraries that it has no use for."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REPLAYS = Path(__file__).parents[1] / "golden" / "replays"
COMMAND = """
import json, sys
from fabula.cli.main import main
try:
    main()
except SystemExit as stop:
    assert stop.code == 0, stop.code
with open("loaded.json", "w") as file:
    json.dump(sorted(sys.modules), file)
"""
EVERYWHERE = {
    "torch", "cv2", "datasets", "openai", "anthropic", "google.genai", "mlcroissant", "huggingface_hub",
    "httpx2", "sklearn", "scipy.stats", "PIL", "av", "urllib.request", "fabula.releases.hub.fetch",
    "fabula.people",
    *(f"fabula.{room}.{kind}" for room in ("validators", "releases", "builders", "people")
      for kind in ("events", "shots", "entities")),
    "fabula.evaluation.shots", "fabula.evaluation.katha.report", "fabula.evaluation.events.score",
}  # fmt: skip
READING = {
    "fabula.builders",
    "fabula.prompts",
    "fabula.engine.execute",
    "fabula.models.client",
    "jinja2",
    "multiprocessing",
    "yaml",
}
SCORING = {"scipy.integrate", "scipy.optimize", "datasketch", "asyncio", "pyarrow", "pandas"}
COMMANDS = {
    "validate": (("validate", "run"), READING | {"fabula.evaluation", "pyarrow", "pandas"}),
    "stats": (("stats", "run"), READING | SCORING | {"fabula.evaluation", "numpy", "scipy"}),
    "score": (("score", "run"), READING - {"fabula.prompts"} | SCORING),
    "verify": (("release", "verify", "release", "--quick"), {"fabula.builders", "fabula.evaluation"}),
    "build": (
        ("build", "katha", "stories.jsonl", "--out", "again", "--dry-run"),
        {"fabula.evaluation", "pyarrow", "pandas"},
    ),
}
"""Command -> its arguments, and what it does not import besides what no command of stories does."""


@pytest.mark.parametrize("name", COMMANDS)
def test_command_of_stories_when_run_imports_neither_other_kinds_nor_what_it_does_not_need(name, tmp_path):
    arguments, absent = COMMANDS[name]
    kept = "evaluate-katha" if name == "score" else "katha-rules"
    with tarfile.open(REPLAYS / f"{kept}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    program = [sys.executable, "-c", COMMAND, *arguments, "--json"]
    subprocess.run(program, cwd=tmp_path, capture_output=True, check=True)
    loaded = json.loads((tmp_path / "loaded.json").read_bytes())
    assert "fabula.kinds.registry" in loaded
    assert {*loaded} & EVERYWHERE == set()
    assert {*loaded} & absent == set()
