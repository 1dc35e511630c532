"""Settings of judging events: which frames of a video judges get, and how many (StoryEval, Eq. 2)."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from pydantic import Field

from ...media.images import Picture
from ...media.video import LIMITS, VideoInfo, VideoLimits, probe, sample_frames
from ...models.spec import parse_spec
from ...schemas.values import Listed, Own
from ..judging.pictures import ImageSettings, PreparedPicture, prepare_picture
from ..judging.settings import JudgeSettings
from ..outputs.videos import frame_count

SERVICE_VOTES, OWN_VOTES = 3, 2
"""Votes of a judge behind a public service, and of one that the user serves: the paper's N for its closed and
for its open verifier."""


class VideoSelection(Own):
    """Which prompts of a suite are judged; every condition must hold."""

    units: Listed[str] = Field(default=(), description="Only these file names; none: all.")
    label: Listed[str] = Field(default=(), description="Only prompts with one of these labels; none: all.")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many of those.")


class FrameSettings(ImageSettings):
    """How many frames judges see, and how they are encoded."""

    count: int | None = Field(
        default=None, ge=1, le=256, description="Frames of every video; null takes as many as Eq. 2 says."
    )


class EventJudgeSettings(JudgeSettings):
    """Who is asked about videos, and how often.

    The votes of a judge are meant to differ, so the temperature is the service's own unless it is set; each
    vote has a sampling seed of its own.
    """

    temperature: float | None = Field(default=None, ge=0, le=2)
    votes: int = Field(
        default=0, ge=0, le=100,
        description="Votes of each judge on each video; 0: three from a service, two from a server of yours.",
    )  # fmt: skip
    retries: int = Field(
        default=2, ge=0, le=20,
        description="Most additional votes of a judge on a video in place of refused and blocked ones.",
    )  # fmt: skip
    reply: Literal["mark", "structured"] = Field(
        default="mark", description="Whether the flags stand in a marked line, or the reply is structured."
    )

    def votes_of(self, spec: str) -> int:
        """Return how many votes of a judge count on each video."""
        if self.votes:
            return self.votes
        return OWN_VOTES if parse_spec(spec).is_own else SERVICE_VOTES


@dataclass(frozen=True, slots=True)
class PreparedVideo:
    """The frames of one video, as judges get them."""

    info: VideoInfo  # what the video is
    indices: tuple[int, ...]  # which frames were taken, from 0
    times: tuple[Fraction, ...]  # their seconds after the first frame, exact
    pictures: tuple[PreparedPicture, ...]  # the frames, encoded, in order


def prepare_video(
    path: Path, settings: ImageSettings, limits: VideoLimits = LIMITS, count: int | None = None
) -> PreparedVideo:
    """Take frames evenly from a video, as many as Eq. 2 says or as stated, and encode each once.

    The first and the last frame are among them. A video with fewer frames than are wanted (fewer than four
    under Eq. 2) cannot be judged.
    """
    info = probe(path, limits)
    indices, times, pictures = [], [], []
    for frame in sample_frames(path, frame_count(info.frames) if count is None else count, limits):
        indices.append(frame.index)
        times.append(frame.time)
        pictures.append(prepare_picture(Picture(frame.image, "VIDEO", frame.notes), settings))
    return PreparedVideo(info, tuple(indices), tuple(times), tuple(pictures))
