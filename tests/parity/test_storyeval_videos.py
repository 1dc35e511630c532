"""The two published videos, judged through the real SDK against the scripted server and scored."""

from pathlib import Path

import pytest

from fabula.engine.execute import execute
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.events.requests import EventOptions, events_request, video_budget
from fabula.evaluation.events.score import score_folder
from fabula.releases.events.suites import load_suite
from fabula.testing.event_model import EventModel
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.parity

BEAR = "A_bear_opens_a_honey_jar_licks_the_honey_and_then_closes_the_jar.mp4"


def test_published_videos_when_judged_show_the_frames_of_the_formula_and_get_known_scores(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    suite_path = reference / "storyeval" / "prompts" / "all_prompts.json"
    suite = load_suite(suite_path)
    with ModelServer(EventModel({suite.prompts[BEAR].prompt: (1, 1, 0)})) as server:
        options = EventOptions(
            judges=["openai:tested"],
            models={"openai:tested": {"base_url": server.openai_url}},
            settings=["take_frames.max_side=256", "run.threshold=0"],
            workers=0,
        )
        request = events_request(suite_path, [reference / "storyeval" / "videos"], tmp_path / "run", options)
        budget = video_budget(request)
        assert (budget.videos, budget.present, budget.calls) == (423, 2, 12)
        execute(request)
        sent = [len(one.asked.images) for one in server.log]
    archive = read_archive(tmp_path / "run")
    assert len(sent) == 12
    assert set(sent) == {32}  # max(min(32, floor(K / 4)), 4), and both have more than 128 frames
    assert archive.manifest.subject["methods"]["videos"]["valid"] == 2
    (panel,) = score_folder(tmp_path / "run").panels
    # (2/3 + 1) / 423, all others without a video
    assert panel.classes["average"].value == pytest.approx((2 / 3 + 1) / 423)
    assert panel.classes["average"].counts == {"prompts": 423, "answered": 2, "missing": 421}
