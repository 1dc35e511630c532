"""The two published example videos of StoryEval: frame counts, Eq. 2 and times."""

from fractions import Fraction
from pathlib import Path

import av
import pytest

from fabula.evaluation.events.settings import prepare_video
from fabula.evaluation.judging.pictures import ImageSettings
from fabula.evaluation.outputs.videos import frame_count
from fabula.media.video import probe, sample_frames

pytestmark = pytest.mark.parity


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


def test_prepare_video_when_published_takes_32_frames_evenly(reference: Path) -> None:
    video = prepare_video(videos(reference)[0], ImageSettings(max_side=256))
    assert video.indices == tuple(step * 140 // 31 for step in range(32))
    assert video.times == tuple(Fraction(index, 25) for index in video.indices)
    assert {(one.width, one.height) for one in video.pictures} == {(256, 144)}
