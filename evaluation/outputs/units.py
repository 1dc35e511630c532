"""Other units than storyboard panels: comic panels, illustrated pages, video keyframes and shots.

Panels and pages are pictures. Keyframes and shots may be videos, one file for each: judges see frames of it,
so that questions, packets and scores stay the same. Which frames is one rule for all: a video is cut into so
many equal parts as frames are wanted, and the middle frame of each part is taken; of one, that is the middle
frame. Sound and motion are not seen.

Source: KathaTrace, L.4 (partly applicable to video through sampled shots or keyframes); the rule is ours.
"""

import re
from pathlib import Path
from typing import Literal

from ...media.images import LIMITS, MediaProblem, PictureLimits
from ...media.moving import SUFFIXES, chosen_frames, is_video, pictures_in
from ...schemas.canonical import sha256_file
from .checked import Looked, look_at_picture, unreadable

Unit = Literal["panel", "page", "keyframe", "shot"]
MOVING: tuple[Unit, ...] = ("keyframe", "shot")
"""Units that may be videos."""
MOST_FRAMES = 8
"""Most frames of one video that judges are shown."""
_START = r"(?:(?:scene|panel|frame|image|page|keyframe|shot|clip)[_-]?)?([0-9]{1,6})\."
_PICTURE = re.compile(rf"{_START}(?:png|jpe?g|webp)", re.I | re.ASCII)
_VIDEO = re.compile(rf"{_START}(?:{'|'.join(suffix[1:] for suffix in SUFFIXES)})", re.I | re.ASCII)


def number_of(name: str, unit: Unit | None) -> int | None:
    """Return the number that a file is called by; None where it is called otherwise, or is no such unit."""
    named = _PICTURE.fullmatch(name) or (_VIDEO.fullmatch(name) if unit in MOVING else None)
    return None if named is None else int(named[1])


def look_at_unit(
    file: Path, where: str, frames: int, limits: PictureLimits = LIMITS, *, decode: bool = True
) -> Looked:
    """Return what is seen of a picture or video.

    ``frames``: how many frames of a video judges see. ``limits``: what a picture may be at most. ``decode``:
    whether pictures, and the frames of videos, are decoded.
    """
    if not is_video(file):
        return look_at_picture(file, where, limits, decode=decode)
    try:
        chosen_frames(file, frames)
        for _ in pictures_in(file, frames, limits) if decode else ():
            pass
        return Looked(sha256_file(file), [])
    except MediaProblem as problem:
        return Looked(None, [unreadable(where, problem, "unreadable-video")])
    except OSError as error:
        missing = MediaProblem(
            str(file), code="unreadable", expected="a video", found=str(error.strerror), fix="check the file"
        )
        return Looked(None, [unreadable(where, missing, "unreadable-video")])
