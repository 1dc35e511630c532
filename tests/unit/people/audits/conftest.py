"""Gold records by an author, and drafts of the same stories, as runs on disk."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles

Bundles = list[dict[str, Any]]


def authored(count: int = 8) -> Bundles:
    """Sample bundles as an author's."""
    bundles = sample_bundles(count)
    for bundle in bundles:
        for entry in bundle["producers"]:
            entry["producer"] = "author:ana"
    return bundles


def drafted(bundles: Bundles, change: Callable[[dict[str, Any]], None] = lambda bundle: None) -> Bundles:
    """The same records as a planner's, each changed."""
    drafts = copy.deepcopy(bundles)
    for bundle in drafts:
        for entry in bundle["producers"]:
            entry["producer"] = "rules@1"
        change(bundle)
    return drafts


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Bundles, str], Path]:
    """Writes bundles as a run."""
    return lambda bundles, name: write_run(tmp_path / name, bundles)


@pytest.fixture
def as_file(tmp_path: Path) -> Callable[[Bundles, str], Path]:
    """Writes bundles as a bare file, which need not satisfy every rule."""

    def write(bundles: Bundles, name: str) -> Path:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(bundle) + "\n" for bundle in bundles), "utf-8")
        return path

    return write
