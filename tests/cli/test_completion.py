"""What the shell is offered, asked as a shell asks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabula.evaluation.metrics import registry
from fabula.prompts.loader import prompt_ids

COMMAND = "import sys; sys.argv[0] = 'fabula'; from fabula.cli.main import main; main()"


def offered(*words: str) -> list[str]:
    asked = {"COMP_WORDS": " ".join(("fabula", *words)), "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND],
        env={**os.environ, **asked, "_FABULA_COMPLETE": "complete_bash"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("b",), ["build", "baseline"]),
        (("run", "sh"), ["show"]),
        (("build", "katha", "stories.jsonl", "--max"), ["--max-cost"]),
        (("build", "katha", "stories.jsonl", "--set", "draft_scenes.sc"), ["draft_scenes.scenes="]),
        (("prompts", "show", "events/"), [name for name in prompt_ids() if name.startswith("events/")]),
        (("evaluate", "images", "--metrics", "c"), [name for name in registry.names() if name[0] == "c"]),
        (("score", "runs/x", "--format", "c"), ["csv"]),
        (("run", "show", "/nowhere", "k"), []),
    ],
)  # fmt: skip
def test_shell_when_it_asks_is_offered_what_is_declared(words: tuple[str, ...], names: list[str]) -> None:
    assert offered(*words) == names


def test_shell_when_a_folder_is_named_is_offered_the_ids_in_it(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text('{"story_id": "kb_1"}\n{"story_id": "kb_2"}\n')
    assert offered("run", "show", str(tmp_path), "kb") == ["kb_1", "kb_2"]
    (tmp_path / "records.jsonl").write_bytes(b"\xff\x00 no JSON")
    assert offered("run", "show", str(tmp_path), "kb") == []
