"""Builds in shards, merged: every file is that of one run, but the journal; also when the merge is killed."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.katha.building import BuildOptions
from fabula.builders.shots.building import ShotOptions
from fabula.engine.machines.merging import Merge
from fabula.errors import RunError
from fabula.kinds.verbs import build, merge_runs, pack
from fabula.releases.options import PackOptions
from fabula.testing.endurance import VARIABLE
from fabula.testing.killing import differing, kill_after

CREATED = "2026-01-01T00:00:00Z"
OF = 3
MERGES = 20
OPTIONS: dict[str, Any] = {"katha": BuildOptions, "shots": ShotOptions}


@pytest.fixture(scope="module")
def stories(katha: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten of the sample stories."""
    path = tmp_path_factory.mktemp("stories") / "stories.jsonl"
    lines = (katha.samples / "stories.jsonl").read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:10]), "utf-8")
    return path


def build_shards(kind: str, stories: Path, folder: Path) -> list[Path]:
    """Build the whole run and its shards; return the shards."""
    made = partial(OPTIONS[kind], created_at=CREATED, workers=0)
    build(kind, stories, folder / "whole", made())
    parts = [folder / f"part{number}" for number in range(1, OF + 1)]
    for number, part in enumerate(parts, 1):
        build(kind, stories, part, made(shard=f"{number}/{OF}"))
    return parts


@pytest.fixture(scope="module")
def katha_shards(stories: Path) -> list[Path]:
    """A KathaBench run in shards; the whole one lies beside them."""
    return build_shards("katha", stories, stories.parent)


def test_katha_when_made_in_shards_merges_into_the_bytes_of_one_run(katha_shards: list[Path]) -> None:
    folder = katha_shards[0].parent
    merge_runs(katha_shards, folder / "merged", Merge(workers=0))
    assert differing(folder / "merged", folder / "whole") == []


def test_shots_when_made_in_shards_merge_into_the_bytes_of_one_run(stories: Path, tmp_path: Path) -> None:
    parts = build_shards("shots", stories, tmp_path)
    merge_runs(parts, tmp_path / "merged", Merge(workers=0))
    assert differing(tmp_path / "merged", tmp_path / "whole") == []


@pytest.mark.waits
@pytest.mark.endurance
def test_merge_when_killed_at_any_moment_ends_with_the_bytes_of_one_run(katha_shards, starter):
    folder = katha_shards[0].parent
    for number in range(MERGES if os.environ.get(VARIABLE) else 1):
        out = folder / f"merged{number}"
        command = ("run", "merge", *katha_shards, "--out", out, "--workers", 1, "--json")
        code, events = None, 1 + number
        while code != 0:
            code, _ = kill_after(partial(starter.start, command), events)
            assert code in (0, -signal.SIGKILL)
            events += MERGES  # so that all of them together are killed after each event
        assert differing(out, folder / "whole") == []


def test_pack_when_the_folder_is_a_shard_says_to_merge_first(stories: Path, tmp_path: Path) -> None:
    build("shots", stories, tmp_path / "part", ShotOptions(created_at=CREATED, workers=0, shard="1/2"))
    with pytest.raises(RunError, match="shard 1/2 of a run") as raised:
        pack(
            tmp_path / "part",
            tmp_path / "release",
            PackOptions("0.1.0", license="CC0-1.0", allow_drafts=True),
        )
    assert "fabula run merge" in raised.value.fix
