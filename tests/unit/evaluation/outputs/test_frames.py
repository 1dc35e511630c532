"""Frames of generated videos, as judges get them."""

from fractions import Fraction
from pathlib import Path

import pytest

from fabula.evaluation.events.settings import prepare_video
from fabula.evaluation.judging.pictures import ImageSettings
from fabula.evaluation.outputs.videos import frame_count
from fabula.media.images import MediaProblem
from fabula.testing.drawn import write_video


@pytest.mark.parametrize(
    ("frames", "count"),
    # floor(K / 4) between 4 and 32; the lengths from 16 to 313 are those of Table 5.
    [
        (1, 4),
        (16, 4),
        (19, 4),
        (20, 5),
        (49, 12),
        (80, 20),
        (93, 23),
        (120, 30),
        (127, 31),
        (128, 32),
        (313, 32),
    ],
)
def test_frame_count_when_worked_by_hand_agrees(frames: int, count: int) -> None:
    assert frame_count(frames) == count


def test_prepare_video_when_sound_gives_frames_as_eq_2_says(tmp_path: Path) -> None:
    video = prepare_video(write_video(tmp_path / "one.mp4", 25), ImageSettings(max_side=32))
    # 25 frames: floor(25 / 4) = 6; i * 24 // 5
    assert video.indices == (0, 4, 9, 14, 19, 24)
    assert video.times == tuple(Fraction(index, 8) for index in video.indices)
    assert video.info.frames == 25
    assert {(one.width, one.height) for one in video.pictures} == {(32, 24)}
    assert len({one.sha256 for one in video.pictures}) == 6


def test_prepare_video_when_count_is_stated_takes_so_many(tmp_path: Path) -> None:
    video = prepare_video(write_video(tmp_path / "one.mp4", 25), ImageSettings(), count=3)
    assert video.indices == (0, 12, 24)


@pytest.mark.parametrize("frames", [1, 3])
def test_prepare_video_when_shorter_than_four_frames_names_the_problem(tmp_path: Path, frames: int) -> None:
    with pytest.raises(MediaProblem) as raised:
        prepare_video(write_video(tmp_path / "short.mp4", frames), ImageSettings())
    assert raised.value.code == "too_few_frames"
