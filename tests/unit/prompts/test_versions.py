"""A prompt whose file changes gets a new version: the hash of every version is pinned for good.

After raising ``version`` in the front matter: UPDATE_GOLDEN=1 make test PYTEST_ARGS="-k prompt_versions"
"""

import json
import os
from pathlib import Path

from fabula.prompts.loader import load_prompt, prompt_ids

GOLDEN = Path(__file__).parents[2] / "golden" / "prompt_versions.json"
Pinned = dict[str, dict[str, str]]


def problems(found: dict[str, tuple[int, str]], pinned: Pinned) -> list[str]:
    """What is wrong with prompts as found (id -> version, hash), given the pinned hash of each version."""
    wrong = []
    for name, (version, sha256) in found.items():
        known = pinned.get(name, {})
        if known.get(str(version), sha256) != sha256:
            wrong.append(f"{name}: the file changed; raise its version to {max(map(int, known)) + 1}")
        elif known and version < max(map(int, known)):
            wrong.append(f"{name}: version {version} is lower than one there was")
    return wrong


def with_new(found: dict[str, tuple[int, str]], pinned: Pinned) -> Pinned:
    """The pinned hashes, and those of versions not yet pinned. What is pinned never changes."""
    return {name: {str(version): sha256} | pinned.get(name, {}) for name, (version, sha256) in found.items()}


def test_prompt_versions_when_a_file_changed_are_raised() -> None:
    found = {name: (load_prompt(name).card.version, load_prompt(name).sha256) for name in prompt_ids()}
    pinned = json.loads(GOLDEN.read_text())
    assert problems(found, pinned) == []
    if os.environ.get("UPDATE_GOLDEN"):
        pinned = with_new(found, pinned)
        GOLDEN.write_text(json.dumps(pinned, indent=2, sort_keys=True) + "\n")
    assert with_new(found, pinned) == pinned, "run with UPDATE_GOLDEN=1 to pin new prompts and versions"
