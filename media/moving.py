"""A file that is a picture or a video, as pictures: of a video the middle frames of equal parts."""

from collections.abc import Iterator
from pathlib import Path

from .images import MediaProblem, Picture, open_picture
from .video import frames_at, middle_indices, probe

SUFFIXES = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi")
"""Endings of files that are taken for videos."""


def is_video(file: Path) -> bool:
    """Whether a file is called like a video."""
    return file.suffix.lower() in SUFFIXES


def chosen_frames(file: Path, count: int) -> tuple[int, ...]:
    """Return which frames of a video are taken, from 0; see :func:`.video.middle_indices`."""
    there = probe(file).frames
    if there < count:
        raise MediaProblem(
            str(file), code="too_few_frames", expected=f"at least {count} frames", found=str(there),
            fix="give a longer video, or ask for fewer frames",
        )  # fmt: skip
    return middle_indices(there, count)


def pictures_in(file: Path, count: int = 1) -> Iterator[Picture]:
    """Yield what a file shows: the picture, or so many frames of the video, in order.

    ``count``: frames of a video.
    """
    if not is_video(file):
        yield open_picture(file)
        return
    for frame in frames_at(file, chosen_frames(file, count)):
        yield Picture(frame.image, "VIDEO", frame.notes)
