"""Comparing evaluations of videos: paired over prompts, under one protocol."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import Archive, write_archive
from fabula.evaluation.events.compare import compare_folders
from fabula.evaluation.events.votes import Definitions
from fabula.releases.events.suites import write_suite
from fabula.schemas.events import Suite

Make = Callable[..., Archive]


@pytest.fixture
def folder(tmp_path: Path, suite: Suite) -> Callable[..., Path]:
    def make(name: str, archive: Archive) -> Path:
        place = tmp_path / name
        place.mkdir()
        write_archive(place, archive.manifest, archive.judgements)
        write_suite(place / "all_prompts.json", suite)
        return place

    return make


def test_two_evaluations_when_compared_are_paired_over_prompts(archive: Make, folder) -> None:
    first = folder("a", archive({"a.mp4": [(1, 1)] * 2, "b.mp4": [(1, 0)] * 2, "c.mp4": [(1, 1, 1)] * 2}))
    second = folder("b", archive({"a.mp4": [(1, 0)] * 2, "b.mp4": [(0, 0)] * 2, "c.mp4": ["refused"] * 2}))
    (one,) = compare_folders(first, second, None, Definitions(interval="percentile")).comparisons
    # 1 - 1/2, 1/2 - 0, 1 - 0
    assert (one.n, one.difference) == (3, pytest.approx(2 / 3))
    assert one.low == pytest.approx(0.5)
    assert one.rank_biserial == 1
    found = compare_folders(first, second, None, Definitions(nonresponse="excluded", resamples=0))
    assert (found.comparisons[0].n, found.comparisons[0].low) == (2, None)
    assert found.as_json()["comparisons"][0]["prompts"] == 2
    assert any("+50.0" in line for line in found.lines())
    assert found.as_json()["comparisons"][0]["first"] == "m"


def test_two_evaluations_when_made_otherwise_are_refused_unless_allowed(archive: Make, folder) -> None:
    votes = {"a.mp4": [(1, 1)] * 2}
    first, second = folder("a", archive(votes)), folder("b", archive(votes, frames={"count": 4}))
    with pytest.raises(InputError, match="frames"):
        compare_folders(first, second, None, Definitions())
    found = compare_folders(first, second, None, Definitions(), ["frames"])
    assert found.comparisons[0].difference == 0
    assert len(found.differences) == 1
