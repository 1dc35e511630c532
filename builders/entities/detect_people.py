"""Stage: the people in a shot, and the face of each, in every k-th frame; or as a file says.

A face belongs to a person whose box holds most of it; where several faces or people come into question, they
are given out so that faces are as near as can be to where a head is, in the middle of the top of a box. A
face without a person is counted and left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...errors import InputError
from ...media.images import MediaProblem
from ...models.vision.needs import VisionSettings, opened
from ...models.vision.store import Box
from ...schemas.canonical import Json, sha256_file
from .cluster_people import packed_rows
from .detections import Detections, Row, open_detections, unreadable, wrong
from .load_videos import segments_of
from .measure_quality import faces_of_people
from .names import Box4, Seen, Shot, Video
from .pictures import ModelName, frames_of

if TYPE_CHECKING:
    from PIL.Image import Image

SEGMENT = 1000
"""Frames of a long shot, about, whose people are kept together."""
DEFAULTS: Mapping[str, Mapping[str, Any]] = {"people-yolo11n": {"threshold": 0.1}}
"""Options of models that differ from their own: tracking makes use of boxes of low score."""


class Settings(VisionSettings):
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


SPEC = StageSpec(
    name="detect_people",
    version=2,
    shape="map",
    reads=("shot",),
    writes=("seen", "given", "detection"),
    libraries=("pillow", "numpy", "scipy"),
    settings=Settings,
    patience=20,
)


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return who is seen in each shot, what vectors came with it, and what was looked at.

    ``seen`` is sorted by frame, then by falling score. ``given`` has packed vectors ``face`` and ``body`` for
    every row, null where a row has none; it is null itself where the file has no vectors at all.
    ``detection`` says who looked (``by``), at which frames (``looked``), and has counts.
    """
    settings = tools.own(Settings)
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
        """Return it as JSON."""
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
        settings = tools.own(Settings)
        assert settings.people is not None
        people = opened(settings.people, settings, "detector", DEFAULTS.get(settings.people, {}))
        faces = None if settings.faces is None else opened(settings.faces, settings, "detector", {})
        return cls(people, faces, tools)

    @property
    def settings(self) -> Settings:
        """The settings of the stage."""
        return self.tools.own(Settings)

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
    segments, whole = segments_of(SPEC, lookout.tools, inputs), _Found()
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


def _given(shot: Shot, settings: Settings) -> Outcome:
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
