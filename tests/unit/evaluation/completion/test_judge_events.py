"""Judging videos through the real SDKs: votes, refusals asked again, videos that cannot be judged, scores."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.execute import execute
from fabula.errors import InputError
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.events.requests import EVALUATING, EventOptions, events_request, video_budget
from fabula.evaluation.events.score import score_folder
from fabula.evaluation.outputs.videos import check_videos
from fabula.releases.events.form import load_suite, suite_bytes
from fabula.testing.drawn import write_video
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import EventModel

CREATED = "2026-01-01T00:00:00Z"
CUP, DOG, TOY = "A cup falls, and breaks.", "A dog runs, and sleeps.", "A toy turns, stops, and falls."
KEYS = {"openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
Judge = Callable[..., Any]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS.values():
        monkeypatch.setenv(name, "test-key-0123456789")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    def entry(prompt: str, events: int, *labels: str) -> dict[str, Any]:
        listed = [f"Event {number} of: {prompt}" for number in range(1, events + 1)]
        return {"prompt": prompt, "event_list": listed, "class": [*labels, f"{events}_events"]}

    path = tmp_path / "suite.json"
    document = {
        "cup.mp4": entry(CUP, 2, "object"),
        "dog.mp4": entry(DOG, 2, "animal"),
        "toy.mp4": entry(TOY, 3, "object"),
    }
    path.write_bytes(suite_bytes(document) + b"\n")
    return path


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    folder = tmp_path / "videos" / "model-x"
    folder.mkdir(parents=True)
    for name, width in (("cup", 48), ("dog", 64), ("toy", 80)):  # else the same frames are described once
        write_video(folder / f"{name}.mp4", 20, size=(width, 48))
    return folder


@pytest.fixture
def judge(suite: Path, videos: Path, tmp_path: Path) -> Judge:
    """Judge the videos with a server's model; return the report and the archive."""

    def run(server: ModelServer, spec: str = "openai:tested", out: str = "run", **options: Any) -> Any:
        base = {"openai": server.openai_url, "google": server.google_url}[spec.partition(":")[0]]
        models = {spec: {"base_url": base, "attempts": 2}}
        given = EventOptions(judges=[spec], models=models, workers=0, created_at=CREATED, **options)
        report = execute(events_request(suite, [videos], tmp_path / out, given))
        return report, read_archive(tmp_path / out)

    return run


@pytest.mark.parametrize("spec", ["openai:tested", "google:tested"])
@pytest.mark.parametrize("reply", ["mark", "structured"])
def test_videos_when_judged_get_three_votes_and_known_scores(judge, tmp_path, spec, reply):
    with ModelServer(EventModel({CUP: (1, 0), TOY: (0, 0, 0)})) as server:
        _, archive = judge(server, spec, settings=[f"judge_events.reply={reply}"])
        asked = Counter(
            "score" if "decide which events" in one.asked.system else "describe" for one in server.log
        )
    assert asked == {"describe": 9, "score": 9}
    assert len(archive.judgements) == 9
    first = archive.judgements[0]
    assert (first.unit, first.vote, first.outcome) == ("cup.mp4", 0, "answered")
    assert first.parsed == {"completion": [1, 0], "description": "5 frames. Something moves."}
    (panel,) = score_folder(tmp_path / "run").panels
    # cup 1/2, dog 1, toy 0
    assert panel.classes["average"].value == pytest.approx(0.5)
    assert panel.classes["object"].value == 0.25


def test_a_request_when_sent_shows_labelled_frames_without_file_or_method(judge: Judge) -> None:
    with ModelServer(EventModel()) as server:
        judge(server)
        texts = [one.asked.text for one in server.log]
        images = {len(one.asked.images) for one in server.log}
    assert images == {5}  # Eq. 2: floor(20 / 4)
    assert all(f"Frame {number}" in text for text in texts for number in range(1, 6))
    assert not any("model-x" in text or ".mp4" in text for text in texts)


def test_votes_when_asked_differ_in_seed_and_are_never_repaired(judge: Judge) -> None:
    with ModelServer(lambda asked: "I saw nothing to list.") as server:
        report, archive = judge(server)
        seeds = Counter(one.asked.params["seed"] for one in server.log)
    assert seeds == {42: 6, 43: 6, 44: 6}
    assert {one.outcome for one in archive.judgements} == {"malformed"}
    assert "no [COMPLETE_LIST]" in archive.judgements[0].reason
    assert archive.judgements[0].raw == "I saw nothing to list."
    assert report.totals["failed"] == 0


def test_a_refusal_when_it_comes_is_kept_and_another_vote_is_asked(judge: Judge, tmp_path: Path) -> None:
    with ModelServer(EventModel({CUP: (1, 0)}, refused={CUP: 1, DOG: 99})) as server:
        _, archive = judge(server)
    told = Counter((one.unit, one.outcome) for one in archive.judgements)
    assert told == {
        ("cup.mp4", "refused"): 1, ("cup.mp4", "answered"): 3, ("dog.mp4", "refused"): 5,
        ("toy.mp4", "answered"): 3,
    }  # fmt: skip
    assert [one.vote for one in archive.judgements if one.unit == "dog.mp4"] == [0, 1, 2, 3, 4]
    (panel,) = score_folder(tmp_path / "run").panels
    assert panel.videos[0].events == (1, 0)
    assert panel.videos[1].rate is None
    assert panel.nonresponse.value == pytest.approx(1 / 3)


def test_videos_when_some_cannot_be_judged_are_counted_and_the_rest_is_judged(judge, videos, tmp_path):
    (videos / "dog.mp4").unlink()
    (videos / "toy.mp4").write_bytes(b"")
    (videos / "Cup.mp4").write_bytes(b"x")
    with ModelServer(EventModel()) as server:
        _, archive = judge(server)
    method = archive.manifest.subject["methods"]["model-x"]
    assert (method["requested"], method["valid"]) == (3, 1)
    assert [(one["unit"], one["code"]) for one in method["invalid"]] == [
        ("dog.mp4", "missing"), ("toy.mp4", "empty"),
    ]  # fmt: skip
    assert method["strays"] == ["Cup.mp4"]
    (panel,) = score_folder(tmp_path / "run").panels
    assert panel.classes["average"].value == pytest.approx(1 / 3)
    assert panel.classes["average"].counts == {"prompts": 3, "answered": 1, "missing": 2}


def test_seeds_when_there_are_several_are_judged_and_averaged(judge, videos, tmp_path):
    for seed in (1, 2):
        (videos / f"seed_{seed}").mkdir()
    (videos / "cup.mp4").rename(videos / "seed_1" / "cup.mp4")
    with ModelServer(EventModel()) as server:
        _, archive = judge(server, units=["cup.mp4"])
    assert {(one.unit, one.seed) for one in archive.judgements} == {("cup.mp4", 1)}
    (panel,) = score_folder(tmp_path / "run").panels
    assert panel.videos[0].rate == 0.5
    assert panel.classes["average"].counts["prompts"] == 1


def test_a_budget_when_told_counts_two_calls_a_vote(suite: Path, videos: Path, tmp_path: Path) -> None:
    (videos / "toy.mp4").unlink()
    own = "http://127.0.0.1:9/v1#mine"
    given = EventOptions(judges=["openai:tested", own])
    budget = video_budget(events_request(suite, [videos], tmp_path / "run", given))
    # Three votes from the service and two from an own server: 2 videos x 5 votes x 2 calls.
    assert budget.as_json() == {"videos": 3, "present": 2, "judges": 2, "calls": 20}


# -- Videos of which none can be judged: nobody is asked, and what lies in the folder is said


@pytest.fixture
def one_suite(tmp_path: Path) -> Path:
    path = tmp_path / "suite.json"
    entry = {"prompt": "A cup falls, and breaks.", "event_list": ["It falls", "It breaks"]}
    document = {name: {**entry, "class": ["object", "2_events"]} for name in ("cup.mp4", "dog.mp4")}
    path.write_bytes(suite_bytes(document) + b"\n")
    return path


def methods(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        write_video(folder / name / "cup.mp4", 8)


def others(folder: Path) -> None:
    folder.mkdir()
    write_video(folder / "something.mp4", 8)


def spoilt(folder: Path) -> None:
    folder.mkdir()
    (folder / "cup.mp4").write_bytes(b"no video")


SEEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "methods": (methods, "this folder holds the outputs of 2 methods\n  fix: give one of: a, b"),
    "other names": (others, "no video in this folder is called like one of the suite"),
    "spoilt": (spoilt, r"no video can be judged .1 missing, 1 unreadable-video"),
    "empty": (lambda folder: folder.mkdir(), "no video in this folder is called like one of the suite"),
}


@pytest.mark.parametrize(("make", "said"), SEEN.values(), ids=SEEN)
def test_evaluation_when_no_video_can_be_judged_asks_nobody_and_says_what_it_saw(
    one_suite: Path, tmp_path: Path, make: Callable[[Path], Any], said: str
) -> None:
    make(tmp_path / "videos")
    assert not check_videos(tmp_path / "videos", load_suite(one_suite)).ok
    with ModelServer(EventModel()) as server:
        options = EventOptions(judges=[f"{server.openai_url}#one"], workers=0)
        request = events_request(one_suite, [tmp_path / "videos"], tmp_path / "run", options)
        for run in (execute, EVALUATING.estimate):
            with pytest.raises(InputError, match=said) as caught:
                run(request)
        assert server.count == 0 and caught.value.exit_code == 1
