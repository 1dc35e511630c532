"""Evaluations of videos that stop early, or are begun again with less: nothing goes, nothing becomes zero."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.progress import PlainReporter
from fabula.errors import BudgetStop, ConfigError
from fabula.evaluation.archive import read_archive
from fabula.evaluation.completion.requests import EventOptions, events_request
from fabula.evaluation.completion.score import score_folder
from fabula.evaluation.completion.votes import Definitions
from fabula.evaluation.lacking import lacks
from fabula.evaluation.running import check_request, run_evaluation
from fabula.testing.drawn import write_video
from fabula.testing.event_model import EventModel
from fabula.testing.model_server import ModelServer

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
        check_request(request, replace=given.replace)
        run_evaluation(request)
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
        assert "not finished" in scores.notes[0] and scores.notes[0] in list(scores.lines())[1]
        asked = server.count
        whole = judge(server)
        assert server.count - asked <= 2 * unasked
    assert (len(whole.judgements), lacks(whole.manifest.environment)) == (9, (0, 0))
    (panel,) = score_folder(run, definitions=Definitions(resamples=0)).panels
    assert panel.classes["average"].value == 0.75
    assert score_folder(run, definitions=Definitions(resamples=0)).notes == ()


@pytest.mark.parametrize(
    ("specs", "options", "said"),
    [
        (("openai:two",), {}, "9 of openai:one to videos, for which it is not named"),
        ((), {"units": ["cup.mp4"]}, "6 about stories or prompts that are not chosen"),
        ((), {"votes": 1}, "6 of openai:one, as it has fewer votes"),
        ((), {"settings": ["take_frames.count=2"]}, "9 on pictures made with other settings (frames)"),
        ((), {"settings": ["judge_events.reply=structured"]}, "9 asked with other settings (reply)"),
    ],
)
def test_events_when_votes_would_go_are_refused_unless_told(
    judge: Judge, specs: tuple[str, ...], options: dict[str, Any], said: str
) -> None:
    with ModelServer(EventModel()) as server:
        first = judge(server)
        asked = server.count
        with pytest.raises(ConfigError) as refused:
            judge(server, *specs, **options)
        assert said in str(refused.value)
        assert server.count == asked
        assert judge(server, "openai:one", "openai:two").manifest.protocol["judges"] == [
            "openai:one", "openai:two",
        ]  # fmt: skip
        assert judge(server, replace=True) == first


def test_evaluation_when_lines_of_the_earlier_one_cannot_be_read_names_and_replaces_them(
    judge: Judge, tmp_path: Path
) -> None:
    path = tmp_path / "run" / "judgements.jsonl"
    with ModelServer(EventModel()) as server:
        whole = judge(server)
        lines = path.read_bytes().splitlines(keepends=True)
        damaged = [lines[0], b"{torn\n", lines[2].replace(b'"vote":', b'"votes":'), *lines[3:]]
        path.write_bytes(b"".join(damaged))
        with pytest.warns(UserWarning) as told:
            again = judge(server, votes=4)
    texts = [str(one.message) for one in told]
    assert texts[0].startswith(f"2 lines of {path} cannot be read and will be replaced")
    assert texts[1].startswith(f"{path}:2 $: ") and texts[2].startswith(f"{path}:3 $.vote: ")
    assert len(texts) == 3
    assert len(again.judgements) > len(whole.judgements) == len(lines)


def test_check_when_there_is_a_reporter_tells_it_which_lines_cannot_be_read(
    judge: Judge, tmp_path: Path
) -> None:
    with ModelServer(EventModel()) as server:
        judge(server)
        path = tmp_path / "run" / "judgements.jsonl"
        path.write_bytes(b"\xff\n" * 9 + path.read_bytes())
        given = EventOptions(
            judges=("openai:one",), models={"openai:one": {"base_url": server.openai_url}}, workers=0
        )
        request = events_request(
            tmp_path / "suite.json", [tmp_path / "videos/model-x"], tmp_path / "run", given
        )
        stream = io.StringIO()
        check_request(request, replace=False, reporter=PlainReporter(stream))
        check_request(request, replace=True, reporter=PlainReporter(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("warning: 9 lines of ")
    assert [f"jsonl:{number} $" in line for number, line in enumerate(lines[1:7], 1)] == [True] * 6
    assert lines[7:] == [f"warning: {path}: 3 more"]
