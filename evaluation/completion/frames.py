"""Frames of a generated video for judges: how many (Eq. 2 of the StoryEval paper), which, and encoded."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ...media.images import Picture
from ...media.video import LIMITS, VideoInfo, VideoLimits, probe, sample_frames
from ..judges.images import ImageSettings, PreparedPicture, prepare_picture

FEWEST, MOST, EVERY = 4, 32, 4


@dataclass(frozen=True, slots=True)
class PreparedVideo:
    """The frames of one video, as judges get them.

    Attributes:
        info: what the video is.
        indices: which frames were taken, from 0.
        times: their seconds after the first frame, exact.
        pictures: the frames, encoded, in order.
    """

    info: VideoInfo
    indices: tuple[int, ...]
    times: tuple[Fraction, ...]
    pictures: tuple[PreparedPicture, ...]


def frame_count(frames: int) -> int:
    """Return how many of K frames judges see: ``max(min(32, floor(K / 4)), 4)`` (Eq. 2)."""
    return max(min(MOST, frames // EVERY), FEWEST)


def prepare_video(
    path: Path, settings: ImageSettings, limits: VideoLimits = LIMITS, count: int | None = None
) -> PreparedVideo:
    """Take frames evenly from a video, as many as Eq. 2 says or as stated, and encode each once.

    The first and the last frame are among them. A video with fewer frames than are wanted (fewer than four
    under Eq. 2) cannot be judged.

    Raises:
        MediaProblem: the video cannot be used (see :mod:`fabula.media.video`).
        MissingRequirement: the extra ``video`` is not installed.
    """
    info = probe(path, limits)
    indices, times, pictures = [], [], []
    for frame in sample_frames(path, frame_count(info.frames) if count is None else count, limits):
        indices.append(frame.index)
        times.append(frame.time)
        pictures.append(prepare_picture(Picture(frame.image, "VIDEO"), settings))
    return PreparedVideo(info, tuple(indices), tuple(times), tuple(pictures))
