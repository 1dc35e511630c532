"""Videos of which none can be judged: nobody is asked, and what lies in the folder is said."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.execute import execute
from fabula.errors import InputError
from fabula.evaluation.events.requests import EventOptions, estimate_events, events_request
from fabula.evaluation.outputs.videos import check_videos
from fabula.releases.events.suites import load_suite, suite_bytes
from fabula.testing.drawn import write_video
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import EventModel


@pytest.fixture
def suite(tmp_path: Path) -> Path:
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
    "methods": (methods, "this folder holds the videos of 2 methods\n  fix: give one of: a, b"),
    "other names": (others, "no video in this folder is called like one of the suite"),
    "spoilt": (spoilt, r"no video can be judged .1 missing-video, 1 unreadable-video"),
    "empty": (lambda folder: folder.mkdir(), "no video in this folder is called like one of the suite"),
}


@pytest.mark.parametrize(("make", "said"), SEEN.values(), ids=SEEN)
def test_evaluation_when_no_video_can_be_judged_asks_nobody_and_says_what_it_saw(
    suite: Path, tmp_path: Path, make: Callable[[Path], Any], said: str
) -> None:
    make(tmp_path / "videos")
    assert not check_videos(tmp_path / "videos", load_suite(suite)).ok
    with ModelServer(EventModel()) as server:
        options = EventOptions(judges=[f"{server.openai_url}#one"], workers=0)
        request = events_request(suite, [tmp_path / "videos"], tmp_path / "run", options)
        for run in (execute, estimate_events):
            with pytest.raises(InputError, match=said) as caught:
                run(request)
        assert server.count == 0 and caught.value.exit_code == 1
