"""Diffs of releases that name subsets: which came, went, or have other members."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import diff, pack
from fabula.releases.diff.render import as_json, lines
from fabula.releases.diff.version import Step
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles

Pack = Callable[..., Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("subsets") / "run", sample_bundles(24))


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Pack:
    def make(name: str, version: str, *subsets: str, **more: Any) -> Path:
        return pack(
            run, tmp_path / name, PackOptions(version, subsets=subsets, **more, allow_drafts=True)
        ).folder

    return make


def test_diff_when_subsets_differ_lists_who_came_and_went(packed: Pack) -> None:
    old = packed("old", "0.1.0", "lite=6", "even=1/category", "small=3")
    new = packed("new", "0.2.0", "lite=8", "even=1/category", "small=none", "more=4", since=old)
    found = diff(old, new)
    lite, more, small = found.sections["subsets"]
    assert (lite.name, lite.kind, lite.asked, lite.stories) == ("lite", "changed", ("6", "8"), (6, 8))
    assert (len(lite.came), lite.went) == (2, ())
    assert (more.name, more.kind, len(more.came)) == ("more", "added", 4)
    assert (small.name, small.kind, len(small.went)) == ("small", "removed", 3)
    assert [(step, why) for step, why in found.reasons] == [
        (Step.MAJOR, "the subset small is gone"),
        (Step.MINOR, "0 stories left the subset lite, 2 came"),
        (Step.MINOR, "the subset more is new"),
    ]
    told = list(lines(found))
    assert "subsets: 3" in told
    assert f"  lite changed: 6 (6) -> 8 (8); came: {', '.join(lite.came)}" in told
    assert [one["name"] for one in as_json(found)["subsets"]] == ["lite", "more", "small"]
    kept = json.loads((new / "changes.json").read_bytes())
    assert kept["subsets"] == as_json(found)["subsets"]


def test_diff_when_subsets_are_the_same_says_nothing_of_them(packed: Pack) -> None:
    old = packed("old", "0.1.0", "lite=6")
    new = packed("new", "0.1.1", since=old)
    found = diff(old, new)
    assert (found.sections["subsets"], found.step) == ((), Step.PATCH)
    assert "subsets" not in json.loads((new / "changes.json").read_bytes())


def test_pack_when_a_subset_loses_stories_asks_for_a_major_step(packed: Pack) -> None:
    old = packed("old", "1.0.0", "lite=6")
    with pytest.raises(ConfigError, match="2 stories left the subset lite, 0 came"):
        packed("new", "1.1.0", "lite=4", since=old)


def test_diff_when_the_list_of_subsets_is_damaged_refuses(packed: Pack) -> None:
    old = packed("old", "0.1.0", "lite=6")
    (old / "subsets" / "lite.jsonl").unlink()
    with pytest.raises(InputError, match="the subsets of a packed release"):
        diff(old, old)
