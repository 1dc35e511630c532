"""Evaluations of videos that stop early, or are begun again with less: nothing goes, nothing becomes zero."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import BudgetStop, InputError
from fabula.evaluation.archive.archive import Archive, read_archive, write_archive
from fabula.evaluation.archive.replies import lacks
from fabula.evaluation.events.requests import EVALUATING, EventOptions, events_request
from fabula.evaluation.events.score import compare_folders, read_rates, score_folder
from fabula.evaluation.events.votes import Definitions
from fabula.evaluation.running import check_request
from fabula.releases.events.suites import write_suite
from fabula.schemas.events import Suite
from fabula.testing.drawn import write_video
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import EventModel

Judge = Callable[..., Any]
NAMES = ("cup", "dog", "toy", "war")


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Judge four videos, of which one is missing, into the same folder; every event is completed."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    entry = {"event_list": ["It falls.", "It breaks."], "class": ["object", "2_events"]}
    suite = {f"{name}.mp4": {"prompt": f"A {name} falls, and breaks.", **entry} for name in NAMES}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    videos = tmp_path / "videos" / "model-x"
    videos.mkdir(parents=True)
    for number, name in enumerate(NAMES[:-1]):
        write_video(videos / f"{name}.mp4", 20, size=(48 + 16 * number, 48))

    def run(server: ModelServer, *specs: str, **options: Any) -> Any:
        settings = {"base_url": server.openai_url, "concurrency": 1, "prices": {"input": 1.0, "output": 2.0}}
        judges = specs or ("openai:one",)
        given = EventOptions(
            judges=judges, models=dict.fromkeys(judges, settings), workers=0,
            created_at="2026-01-01T00:00:00Z", **options,
        )  # fmt: skip
        request = events_request(tmp_path / "suite.json", [videos], tmp_path / "run", given)
        check_request(request)
        EVALUATING.run(request, replace=given.replace)
        return read_archive(tmp_path / "run")

    return run


def test_events_when_stopped_are_scored_by_what_is_done_and_continue(judge: Judge, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with ModelServer(EventModel()) as server:
        with pytest.raises(BudgetStop, match="replies so far"):
            judge(server, max_cost=0.045)
        partial = read_archive(run)
        unasked, _ = lacks(partial.manifest.environment)
        (panel,) = (scores := score_folder(run, definitions=Definitions(resamples=0))).panels
        done = [video.unit for video in panel.videos if video.seen]
        assert 0 < len(done) < 3 and unasked == 9 - len(partial.judgements)
        assert panel.classes["average"].value == len(done) / (len(done) + 1), (
            "the missing video counts as zero"
        )
        assert "not finished" in scores.notes[1] and scores.notes[1] in list(scores.lines())[2]
        asked = server.count
        whole = judge(server)
        assert server.count - asked <= 2 * unasked
    assert (len(whole.judgements), lacks(whole.manifest.environment)) == (9, (0, 0))
    (panel,) = score_folder(run, definitions=Definitions(resamples=0)).panels
    assert panel.classes["average"].value == 0.75
    assert score_folder(run, definitions=Definitions(resamples=0)).notes == scores.notes[:1]


@pytest.mark.parametrize(
    ("specs", "options"),
    [(("openai:two",), {}), ((), {"units": ["cup.mp4"]}), ((), {"votes": 1})],
)
def test_events_when_the_folder_holds_more_keep_all_unless_told(
    judge: Judge, tmp_path: Path, specs: tuple[str, ...], options: dict[str, Any]
) -> None:
    with ModelServer(EventModel()) as server:
        first = judge(server)
        now = judge(server, *specs, **options)
        assert all(one in now.judgements for one in first.judgements)
        assert judge(server, "openai:one", "openai:two").manifest.protocol["judges"] == [
            "openai:one", "openai:two",
        ]  # fmt: skip
        assert judge(server, replace=True) == first
    assert not [*(tmp_path / "run").glob("earlier*")]


# Comparing evaluations of videos: paired over prompts, under one protocol.

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


# Completion rates for grading a suite: from scored evaluations, and from people's tables.


def test_peoples_rates_when_wrong_list_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "human.tsv"
    path.write_text("method\tunit\trate\nm\ta.mp4\t0.5\nm\ta.mp4\t1\nm\tb.mp4\t2\n")
    with pytest.raises(InputError) as caught:
        read_rates(path)
    assert len(caught.value.problems) == 2
    path.write_text("method\tunit\trate\nm\ta.mp4\t0.5\n")
    assert read_rates(path) == {"m": {"a.mp4": 0.5}}
