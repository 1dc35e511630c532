"""The people of a shot: who is seen in its frames, and which of these boxes are one person (tracklets)."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, Tools, batch_stage, stage
from ...errors import InputError
from ...media.images import MediaProblem
from ...models.vision.needs import VisionSettings, opened
from ...models.vision.store import Box
from ...schemas.canonical import Json, sha256_file
from ...schemas.values import Own
from .detections import Detections, Row, open_detections, unreadable, wrong
from .identities import packed_rows
from .names import Box4, Seen, Shot, Tracklet, Video
from .pictures import ModelName, frames_of
from .selecting import faces_of_people
from .videos import segments_of

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Stage: the people in a shot, and the face of each, in every k-th frame; or as a file says
#
# A face belongs to a person whose box holds most of it; where several faces or people come into question,
# they are given out so that faces are as near as can be to where a head is, in the middle of the top of a
# box. A face without a person is counted and left out.

SEGMENT = 1000
"""Frames of a long shot, about, whose people are kept together."""
DEFAULTS: Mapping[str, Mapping[str, Any]] = {"people-yolo11n": {"threshold": 0.1}}
"""Options of models that differ from their own: tracking makes use of boxes of low score."""


class DetectPeopleSettings(VisionSettings):
    """Who looks for people, and where; or the file of detections that is used instead."""

    people: ModelName = Field(default="people-yolo11n", description="Detector of people; none: nobody looks.")
    faces: ModelName = Field(default="faces-scrfd-10g", description="Detector of faces, or none.")
    every: int = Field(
        default=3, ge=1, le=10_000, description="Every so many frames of a shot are looked at."
    )
    least: float = Field(default=0.1, ge=0, le=1, description="Least score of a person.")
    least_face: float = Field(default=0.5, ge=0, le=1, description="Least score of a face.")
    detections: str | None = Field(
        default=None, description="File of detections (docs/identities.md), instead of detectors."
    )
    detections_sha256: str | None = Field(default=None, description="Of that file, as the run began with it.")

    def looking(self) -> tuple[str, ...]:
        """Return the names of the models that look; with a file of detections nobody does."""
        if self.detections is not None or self.people is None:
            return ()
        return (self.people,) if self.faces is None else (self.people, self.faces)


@batch_stage(
    version=2,
    reads=("shot",),
    writes=("seen", "given", "detection"),
    libraries=("pillow", "numpy", "scipy"),
    settings=DetectPeopleSettings,
    patience=20,
)
def detect_people(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return who is seen in each shot, what vectors came with it, and what was looked at.

    ``seen`` is sorted by frame, then by falling score. ``given`` has packed vectors ``face`` and ``body`` for
    every row, null where a row has none; it is null itself where the file has no vectors at all.
    ``detection`` says who looked (``by``), at which frames (``looked``), and has counts.
    """
    settings = tools.own(DetectPeopleSettings)
    shots = [Shot.model_validate(item["shot"]) for item in items]
    if settings.detections is not None:
        return [_given(shot, settings) for shot in shots]
    if settings.people is None:
        return [_made([], None, {"by": {}, "looked": [], "faces_alone": 0}) for _ in shots]
    lookout = _Lookout.of(tools)
    made: dict[str, Outcome] = {}
    by_video: dict[str, list[Shot]] = {}
    for shot in shots:
        by_video.setdefault(shot.video.video_id, []).append(shot)
    for some in by_video.values():
        made |= _looked(some, lookout)
    return [made[shot.shot_id] for shot in shots]


@dataclass(slots=True)
class _Found:
    """What was found in a shot so far."""

    seen: list[Seen] = field(default_factory=list)
    alone: int = 0

    def part(self) -> Json:
        return {"seen": [seen_here.as_json() for seen_here in self.seen], "alone": self.alone}

    def take(self, part: Json) -> None:
        """Add what :meth:`part` returned."""
        self.seen += [Seen.model_validate(seen_here) for seen_here in part["seen"]]
        self.alone += part["alone"]


@dataclass(frozen=True, slots=True)
class _Lookout:
    people: Any
    faces: Any | None
    tools: Tools

    @classmethod
    def of(cls, tools: Tools) -> "_Lookout":
        """Open the detectors."""
        settings = tools.own(DetectPeopleSettings)
        assert settings.people is not None
        people = opened(settings.people, settings, "detector", DEFAULTS.get(settings.people, {}))
        faces = None if settings.faces is None else opened(settings.faces, settings, "detector", {})
        return cls(people, faces, tools)

    @property
    def settings(self) -> DetectPeopleSettings:
        return self.tools.own(DetectPeopleSettings)

    def by(self) -> dict[str, Json]:
        """Return who looks."""
        return {"people": self.people.identity, "faces": None if self.faces is None else self.faces.identity}

    def look(self, images: "Sequence[Image]") -> list[tuple[list[Box], list[Box]]]:
        """Return people and faces of each picture."""
        people = self.people.detect(images)
        faces = [()] * len(images) if self.faces is None else self.faces.detect(images)
        return [
            (
                _kept(some, image, self.settings.least),
                _kept(heads, image, self.settings.least_face),
            )
            for some, heads, image in zip(people, faces, images, strict=True)
        ]


def _kept(boxes: Sequence[Box], image: "Image", least: float) -> list[Box]:
    """Return the boxes of enough score, cut to the picture: by falling score, then by place."""
    inside = [box.within(*image.size) for box in boxes if box.score >= least]
    kept = [box for box in inside if box.area > 0]
    return sorted(kept, key=lambda box: (-box.score, box.left, box.top, box.right, box.bottom))


def _looked(shots: Sequence[Shot], lookout: _Lookout) -> dict[str, Outcome]:
    """Look through the shots of a video, all at once; where it cannot be read, one by one."""
    wanted = {shot.shot_id: range(shot.first, shot.last + 1, lookout.settings.every) for shot in shots}
    many = lookout.settings.batch * max(1, SEGMENT // lookout.settings.batch)
    by_shot: dict[str, _Found] = {}
    try:
        for shot in shots:
            if len(wanted[shot.shot_id]) > many:
                by_shot[shot.shot_id] = _through_parts(shot, wanted[shot.shot_id], many, lookout)
        others = {name: frames for name, frames in wanted.items() if name not in by_shot}
        by_shot |= _through(shots[0].video, others, lookout)
    except MediaProblem as problem:
        if len(shots) == 1:
            return {shots[0].shot_id: Failed(problem.code, str(problem))}
        return {name: made for shot in shots for name, made in _looked([shot], lookout).items()}
    return {
        name: _made(
            look.seen, None, {"by": lookout.by(), "looked": list(wanted[name]), "faces_alone": look.alone}
        )
        for name, look in by_shot.items()
    }


def _through_parts(shot: Shot, wanted: Sequence[int], many: int, lookout: _Lookout) -> _Found:
    """Look through a long shot, so many frames at a time, of which each part is kept."""
    inputs = {"sha256": shot.video.sha256, "shot": [shot.first, shot.last], "by": lookout.by()}
    segments, whole = segments_of(detect_people.SPEC, lookout.tools, inputs), _Found()
    for number, start in enumerate(range(0, len(wanted), many)):
        part = segments.get(number)
        if part is None:
            some = {shot.shot_id: wanted[start : start + many]}
            part = _through(shot.video, some, lookout)[shot.shot_id].part()
            segments.put(number, part)
        whole.take(part)
    return whole


def _through(video: Video, wanted: Mapping[str, Sequence[int]], lookout: _Lookout) -> dict[str, _Found]:
    by_shot = {name: _Found() for name in wanted}
    waiting: list[tuple[int, tuple[str, ...], Image]] = []

    def look() -> None:
        made = lookout.look([image for _, _, image in waiting])
        for (frame, names, _), (people, faces) in zip(waiting, made, strict=True):
            seen, alone = _seen_in(frame, people, faces)
            for name in names:
                by_shot[name].seen += seen
                by_shot[name].alone += alone
        waiting.clear()

    for frame, names in frames_of(video, wanted, lookout.tools):
        waiting.append((frame.index, names, frame.image))
        if len(waiting) == lookout.settings.batch:
            look()
    if waiting:
        look()
    return by_shot


def _seen_in(frame: int, people: Sequence[Box], faces: Sequence[Box]) -> tuple[list[Seen], int]:
    """Return the people of a frame with their faces, and how many faces are nobody's."""
    heads = faces_of_people(people, faces)
    seen = [
        Seen(
            frame=frame,
            box=_edges(person),
            score=person.score,
            face=None if head is None else _edges(faces[head]),
            face_score=None if head is None else faces[head].score,
        )
        for person, head in zip(people, heads, strict=True)
    ]
    return seen, len(faces) - sum(head is not None for head in heads)


def _given(shot: Shot, settings: DetectPeopleSettings) -> Outcome:
    assert settings.detections is not None
    try:
        detections = _file(settings.detections, settings.detections_sha256)
        _check(detections, shot.video)
    except InputError as error:
        return Failed("bad_detections", str(error))
    rows = [row for row in detections.rows(shot.video, shot.first, shot.last) if row.score >= settings.least]
    seen = [_seen(row, index, shot.video) for index, row in enumerate(rows)]
    pairs = list(zip(seen, rows, strict=True))
    header = detections.header
    counts = {
        "by": {
            "file": Path(settings.detections).name,
            **header.model_dump(exclude={"videos", "format", "version"}),
        },
        "looked": _frames_looked_at(detections.frames(shot.video), shot),
        "clipped": sum(seen_here.box != row.box for seen_here, row in pairs),
        "faces_outside": sum(seen_here.face is None and row.face is not None for seen_here, row in pairs),
    }
    given = {kind: packed_rows([row.vector(kind) for row in rows]) for kind in ("face", "body")}
    return _made(seen, given if detections.vectors else None, counts)


@cache
def _file(path: str, sha256: str | None) -> Detections:
    file = Path(path)
    detections = open_detections(file)
    if sha256 is not None and sha256_file(file) != sha256:
        raise unreadable(file, "another content than when the run began")
    return detections


def _check(detections: Detections, video: Video) -> None:
    if not detections.looked_at(video):
        names = ", ".join(sorted(detections.names))[:200]
        raise InputError([wrong(str(detections.path), f"rows of {video.video_id}", f"only those of {names}")])
    if problems := detections.problems(video):
        raise InputError(problems)


def _frames_looked_at(frames: Sequence[int], shot: Shot) -> list[int]:
    """Return the frames of a shot that were looked at, in steps that all frames of the video share."""
    if not frames:
        return []
    step = gcd(*(frame - frames[0] for frame in frames)) or max(1, shot.last - shot.first + 1)
    first = shot.first + (frames[0] - shot.first) % step
    return list(range(first, shot.last + 1, step))


def _seen(row: Row, number: int, video: Video) -> Seen:
    face = None if row.face is None else _within(row.face, video)
    face = None if face is None or face[0] >= face[2] or face[1] >= face[3] else face
    return Seen(
        frame=row.frame, box=_within(row.box, video), score=row.score, face=face,
        face_score=None if face is None else row.face_score, row=number,
    )  # fmt: skip


def _within(box: Box4, video: Video) -> Box4:
    return _edges(Box(*box).within(video.width, video.height))


def _edges(box: Box) -> Box4:
    return box.left, box.top, box.right, box.bottom


def _made(seen: Sequence[Seen], given: Json, counts: Mapping[str, Json]) -> Made:
    detection = {"people": len(seen), "faces": sum(look.face is not None for look in seen), **counts}
    return Made({"seen": [seen_here.as_json() for seen_here in seen], "given": given, "detection": detection})


# -- Stage: boxes of people become tracklets within a shot, as ByteTrack defines it
#
# At every look, tracks are moved ahead by a Kalman filter, and three assignments are made, each the best
# one by the Hungarian method:
#
# 1. boxes of high score with all tracks, the lost ones too;
# 2. boxes of low score with the tracks that were seen at the look before and have found nothing yet;
# 3. boxes of high score that are left with tracks that have one box only.
#
# A box of high score that is still left begins a track. A track with one box that finds no second one is
# dropped, unless it began at the first look. A track that finds nothing is lost, and ends when it was lost
# for longer than the buffer. A lost track on the very place of one that is seen is its double: the younger
# ends. Costs are one minus intersection over union, which the first and the third assignment multiply with
# the score of the box (the authors' code does). What scores exactly between low and high belongs to
# neither.

Floats = NDArray[np.float64]

_PLACE, _SPEED = 1 / 20, 1 / 160
_HEIGHT = 3


@dataclass(slots=True)
class Motion:
    """The state of one box: arrays of shape (4,) for centre x, centre y, aspect and height."""

    state: Floats  # most likely values
    speed: Floats  # their change per look
    doubt: Floats  # variance of ``state``
    shared: Floats  # covariance of ``state`` and ``speed``
    unrest: Floats  # variance of ``speed``

    @classmethod
    def start(cls, box: Floats) -> "Motion":
        """Return the state of a box seen for the first time: it stands still, as far as anybody knows."""
        state = measured(box)
        doubt, unrest = _noise(state[_HEIGHT], 2 * _PLACE, 1e-2), _noise(state[_HEIGHT], 10 * _SPEED, 1e-5)
        return cls(state, np.zeros(4), doubt, np.zeros(4), unrest)

    def predict(self, *, seen: bool) -> None:
        """Go one look ahead; a box that was not seen keeps its height."""
        if not seen:
            self.speed[_HEIGHT] = 0.0
        height = self.state[_HEIGHT]
        self.state = self.state + self.speed
        self.doubt = self.doubt + 2 * self.shared + self.unrest + _noise(height, _PLACE, 1e-2)
        self.shared = self.shared + self.unrest
        self.unrest = self.unrest + _noise(height, _SPEED, 1e-5)

    def correct(self, box: Floats) -> None:
        """Take in where the box was seen."""
        total = self.doubt + _noise(self.state[_HEIGHT], _PLACE, 1e-1)
        surprise = measured(box) - self.state
        gain, drift = self.doubt / total, self.shared / total
        self.state = self.state + gain * surprise
        self.speed = self.speed + drift * surprise
        self.unrest = self.unrest - drift * self.shared
        self.shared = self.shared - drift * self.doubt
        self.doubt = self.doubt - gain * self.doubt

    def box(self) -> Floats:
        """Return left, top, right and bottom."""
        across, down, aspect, height = self.state
        width = aspect * height
        return np.array([across - width / 2, down - height / 2, across + width / 2, down + height / 2])


def measured(box: Floats) -> Floats:
    """Return centre x, centre y, aspect and height of a box; its height must not be 0."""
    left, top, right, bottom = (float(edge) for edge in box)
    height = bottom - top
    return np.array([(left + right) / 2, (top + bottom) / 2, (right - left) / height, height])


def _noise(height: float, share: float, aspect: float) -> Floats:
    """Return variances: of lengths a share of the height, of the aspect a fixed one; squared."""
    length = share * height
    return np.array([length, length, aspect, length]) ** 2


_DOUBLE = 0.85  # overlap above which a lost track and one that is seen are the same
_SECOND, _THIRD = 0.5, 0.7  # highest costs of the second and third assignment

Boxes = NDArray[np.float64]
"""Shape (boxes, 4): left, top, right, bottom."""


@dataclass(frozen=True, slots=True)
class TrackRules:
    """The numbers of ByteTrack."""

    high: float = 0.6  # least score of a box of high score
    low: float = 0.1  # boxes of low score have more than this
    begin: float = 0.7  # least score with which a track begins
    cost: float = 0.8  # highest cost of the first assignment
    buffer: int = 30  # looks for which a track may be lost
    fuse: bool = True  # whether overlaps are multiplied with scores


@dataclass(frozen=True, slots=True)
class Look:
    """What was found in one frame: boxes, shape (n, 4), none without width or height, and scores, (n,)."""

    boxes: Boxes
    scores: Floats


@dataclass(slots=True)
class Track:
    number: int  # from 0, in the order in which tracks began
    motion: Motion  # where it is
    boxes: list[tuple[int, int]]  # look and box of everything that belongs to it, in order
    # ``new`` with one box only, ``seen`` at the last look, ``lost``, or ``over``
    state: Literal["new", "seen", "lost", "over"]

    @property
    def age(self) -> int:
        """Looks from its first box to its last."""
        return self.boxes[-1][0] - self.boxes[0][0]


@dataclass(slots=True)
class Tracker:
    """Takes looks in their order; nothing but the looks so far decides."""

    rules: TrackRules = field(default_factory=TrackRules)
    tracks: list[Track] = field(default_factory=list)
    _going: list[Track] = field(default_factory=list)
    _looks: int = 0

    def take(self, look: Look) -> None:
        rules, now = self.rules, self._looks
        high = [int(box) for box in np.flatnonzero(look.scores >= rules.high)]
        low = [int(box) for box in np.flatnonzero((look.scores > rules.low) & (look.scores < rules.high))]
        new = self._in("new")
        pool = [*self._in("seen"), *self._in("lost")]
        for track in pool:
            track.motion.predict(seen=track.state == "seen")
        rest, high = self._match(pool, high, look, rules.cost, fuse=rules.fuse)
        missed, _ = self._match(
            [track for track in rest if track.state == "seen"], low, look, _SECOND, fuse=False
        )
        for track in missed:
            track.state = "lost"
        dropped, high = self._match(new, high, look, _THIRD, fuse=rules.fuse)
        for track in dropped:
            track.state = "over"
        self._begin([box for box in high if look.scores[box] >= rules.begin], look)
        for track in self._in("lost"):
            if now - track.boxes[-1][0] > rules.buffer:
                track.state = "over"
        self._end_doubles()
        self._going = [track for track in self._going if track.state != "over"]
        self._looks = now + 1

    def finished(self) -> list[list[tuple[int, int]]]:
        """Return look and box of everything in each track, in the order in which the tracks began."""
        kept = [track for track in self.tracks if len(track.boxes) > 1 or track.boxes[0][0] == 0]
        return [list(track.boxes) for track in kept]

    def _in(self, state: str) -> list[Track]:
        return [track for track in self._going if track.state == state]

    def _begin(self, boxes: Sequence[int], look: Look) -> None:
        state: Literal["seen", "new"] = "new" if self._looks else "seen"
        for box in boxes:
            motion = Motion.start(look.boxes[box])
            track = Track(len(self.tracks), motion, [(self._looks, box)], state)
            self.tracks.append(track)
            self._going.append(track)

    def _match(
        self, tracks: Sequence[Track], boxes: Sequence[int], look: Look, most: float, *, fuse: bool
    ) -> tuple[list[Track], list[int]]:
        """Give boxes to tracks; return the tracks and the boxes that are left."""
        if not tracks or not boxes:
            return list(tracks), list(boxes)
        chosen = list(boxes)
        shared = overlaps(np.stack([track.motion.box() for track in tracks]), look.boxes[chosen])
        costs = 1 - (shared * look.scores[chosen] if fuse else shared)
        pairs = assigned(costs, most)
        for row, column in pairs:
            track, box = tracks[row], chosen[column]
            track.motion.correct(look.boxes[box])
            track.boxes.append((self._looks, box))
            track.state = "seen"
        rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
        left = [track for row, track in enumerate(tracks) if row not in rows]
        return left, [box for column, box in enumerate(chosen) if column not in columns]

    def _end_doubles(self) -> None:
        seen, lost = [*self._in("seen"), *self._in("new")], self._in("lost")
        if not seen or not lost:
            return
        boxes = [np.stack([track.motion.box() for track in some]) for some in (seen, lost)]
        for row, column in zip(*np.nonzero(overlaps(*boxes) > _DOUBLE), strict=True):
            younger = lost[column] if seen[row].age > lost[column].age else seen[row]
            younger.state = "over"


def track_boxes(looks: Sequence[Look], rules: TrackRules) -> list[list[tuple[int, int]]]:
    """Return the tracks through some looks: look and box of everything in each, in the order of beginning."""
    tracker = Tracker(rules)
    for look in looks:
        tracker.take(look)
    return tracker.finished()


def overlaps(ours: Boxes, other: Boxes) -> Floats:
    """Return intersection over union of all pairs of boxes, shape (n, m), 0 to 1."""
    shared = np.maximum(0, np.minimum(ours[:, None, 2:], other[None, :, 2:])
                        - np.maximum(ours[:, None, :2], other[None, :, :2])).prod(axis=2)  # fmt: skip
    union = _areas(ours)[:, None] + _areas(other)[None, :] - shared
    made: Floats = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return made


def assigned(costs: Floats, most: float) -> list[tuple[int, int]]:
    """Return which rows and columns belong together, by row, so that the sum of costs is least.

    What stays alone costs ``most`` together with one other, so no pair costs as much as that.
    """
    from scipy.optimize import linear_sum_assignment

    gains = np.minimum(costs - most, 0.0)
    pairs = zip(*linear_sum_assignment(gains), strict=True)
    return [(int(row), int(column)) for row, column in pairs if gains[row, column] < 0]


def _areas(boxes: Boxes) -> Floats:
    areas: Floats = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return areas


class TrackSettings(Own):
    """The numbers of ByteTrack; defaults are those of its paper."""

    high: float = Field(default=0.6, ge=0, le=1, description="Least score of a box of high score.")
    low: float = Field(default=0.1, ge=0, le=1, description="Boxes of low score have more than this.")
    begin: float = Field(default=0.7, ge=0, le=1, description="Least score with which a tracklet begins.")
    cost: float = Field(default=0.8, gt=0, le=1, description="Highest cost of the first assignment.")
    lost: float = Field(default=1.0, ge=0, description="Seconds for which somebody may be lost.")
    fuse: bool = Field(default=True, description="Whether overlaps are multiplied with scores.")
    least: int = Field(default=1, ge=1, description="Tracklets seen in fewer frames are left out.")


@stage(
    version=1,
    reads=("shot", "seen", "detection"),
    writes=("tracklets", "tracking"),
    libraries=("numpy", "scipy"),
    settings=TrackSettings,
)
def track_people(item: Item, tools: Tools) -> Outcome:
    """Return the tracklets of a shot, by when and where they begin, and what became of all boxes."""
    settings = tools.own(TrackSettings)
    shot = Shot.model_validate(item["shot"])
    seen = [Seen.model_validate(row) for row in item["seen"]]
    tracks = tracks_of(seen, item["detection"]["looked"], shot.video.fps, settings)
    kept = [track for track in tracks if len(track) >= settings.least]
    kept.sort(key=lambda track: (track[0].frame, track[0].box))
    tracklets = [
        Tracklet(tracklet_id=f"{shot.shot_id}__t{number:03d}", shot=shot.number, seen=tuple(track))
        for number, track in enumerate(kept, start=1)
    ]
    counts = {
        "boxes": len(seen),
        "in_tracklets": sum(map(len, kept)),
        "too_short": len(tracks) - len(kept),
    }
    return Made({"tracklets": [tracklet.as_json() for tracklet in tracklets], "tracking": counts})


def tracks_of(
    seen: Sequence[Seen], looked: Sequence[int], fps: float, settings: TrackSettings
) -> list[list[Seen]]:
    """Return the tracks through a shot.

    ``looked``: the frames that were looked at, ascending; those in which somebody was found may be left out.
    ``fps``: frames per second.
    """
    frames = sorted({*looked, *(sighting.frame for sighting in seen)})
    by_frame: dict[int, list[Seen]] = {frame: [] for frame in frames}
    for sighting in seen:
        by_frame[sighting.frame].append(sighting)
    step = statistics.median_low([b - a for a, b in pairwise(frames)] or [1])
    rules = TrackRules(
        high=settings.high, low=settings.low, begin=settings.begin, cost=settings.cost, fuse=settings.fuse,
        buffer=round(settings.lost * fps / step),
    )  # fmt: skip
    looks = [_look(by_frame[frame]) for frame in frames]
    return [[by_frame[frames[look]][box] for look, box in track] for track in track_boxes(looks, rules)]


def _look(some: Sequence[Seen]) -> Look:
    boxes = np.array([sighting.box for sighting in some], dtype=np.float64).reshape(len(some), 4)
    return Look(boxes, np.array([sighting.score for sighting in some], dtype=np.float64))
