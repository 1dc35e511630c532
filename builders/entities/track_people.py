"""Stage: boxes of people into tracklets within a shot, as ByteTrack defines it (:mod:`.tracking`).

A tracklet never crosses shots, because each shot is tracked by itself.
"""

import statistics
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from pydantic import Field

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.base import Own
from .drafts import Seen, Shot, Tracklet
from .tracking import Look, TrackRules, track_boxes


class Settings(Own):
    """The numbers of ByteTrack; defaults are those of its paper."""

    high: float = Field(default=0.6, ge=0, le=1, description="Least score of a box of high score.")
    low: float = Field(default=0.1, ge=0, le=1, description="Boxes of low score have more than this.")
    begin: float = Field(default=0.7, ge=0, le=1, description="Least score with which a tracklet begins.")
    cost: float = Field(default=0.8, gt=0, le=1, description="Highest cost of the first assignment.")
    lost: float = Field(default=1.0, ge=0, description="Seconds for which somebody may be lost.")
    fuse: bool = Field(default=True, description="Whether overlaps are multiplied with scores.")
    least: int = Field(default=1, ge=1, description="Tracklets seen in fewer frames are left out.")


SPEC = StageSpec(
    name="track_people",
    version=1,
    shape="map",
    reads=("shot", "seen", "detection"),
    writes=("tracklets", "tracking"),
    libraries=("numpy", "scipy"),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the tracklets of a shot, by when and where they begin, and what became of all boxes."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    shot = Shot.model_validate(item["shot"])
    seen = [Seen.model_validate(one) for one in item["seen"]]
    tracks = tracks_of(seen, item["detection"]["looked"], shot.video.fps, settings)
    kept = [track for track in tracks if len(track) >= settings.least]
    kept.sort(key=lambda track: (track[0].frame, track[0].box))
    tracklets = [
        Tracklet(tracklet_id=f"{shot.shot_id}__t{number:03d}", shot=shot.number, seen=tuple(track))
        for number, track in enumerate(kept, start=1)
    ]
    told = {
        "boxes": len(seen),
        "in_tracklets": sum(map(len, kept)),
        "too_short": len(tracks) - len(kept),
    }
    return Made({"tracklets": [one.as_json() for one in tracklets], "tracking": told})


def tracks_of(
    seen: Sequence[Seen], looked: Sequence[int], fps: float, settings: Settings
) -> list[list[Seen]]:
    """Return the tracks through a shot.

    Args:
        seen: who was found.
        looked: the frames that were looked at, ascending; those in which somebody was found may be left out.
        fps: frames per second.
        settings: the numbers.
    """
    frames = sorted({*looked, *(one.frame for one in seen)})
    by_frame: dict[int, list[Seen]] = {frame: [] for frame in frames}
    for one in seen:
        by_frame[one.frame].append(one)
    step = statistics.median_low([b - a for a, b in pairwise(frames)] or [1])
    rules = TrackRules(
        high=settings.high, low=settings.low, begin=settings.begin, cost=settings.cost, fuse=settings.fuse,
        buffer=round(settings.lost * fps / step),
    )  # fmt: skip
    looks = [_look(by_frame[frame]) for frame in frames]
    return [[by_frame[frames[look]][box] for look, box in track] for track in track_boxes(looks, rules)]


def _look(some: Sequence[Seen]) -> Look:
    boxes = np.array([one.box for one in some], dtype=np.float64).reshape(len(some), 4)
    return Look(boxes, np.array([one.score for one in some], dtype=np.float64))
