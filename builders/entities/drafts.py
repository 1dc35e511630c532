"""What the stages hand to each other, from a video to an episode, as JSON in the fields of items.

Frames are counted from 0 in the order of showing; spans are inclusive at both ends. Shots are counted from 1.
Times are seconds after the first frame. Boxes are pixels of the upright frame, from the upper left corner.
Vectors stand in fields as :func:`.vectors.packed` writes them: texts, eight times shorter than lists.
"""

from typing import Literal

from ...schemas.values import Own

EntityKind = Literal["character", "location", "object"]

Box4 = tuple[float, float, float, float]
"""left, top, right, bottom."""


class Video(Own):
    """A video that can be read, the field ``video``."""

    video_id: str  # made of its file name, unique in the run
    # its name; where it lies is known by its hash (see :mod:`.film_files`). In runs of earlier versions, its
    # path.
    file: str
    sha256: str  # of the file
    frames: int  # how many it has, counted
    seconds: float  # from the start of the first frame to the end of the last
    fps: float  # average frames per second
    width: int  # in pixels, upright
    height: int  # in pixels, upright
    deinterlaced: str | None = None  # what joins its fields where it is interlaced; None for other films


class Shot(Own):
    """A shot of a video, the field ``shot``."""

    shot_id: str  # ``<video_id>__shot0001``
    video: Video
    number: int  # from 1, in the video
    first: int  # its first frame; ``last`` is its last one
    last: int
    start: float  # when its first frame is shown; ``end``, when its last one is not any more
    end: float
    # how it begins: with the video, with a cut, or out of a gradual change (dissolve, fade)
    opens: Literal["start", "cut", "gradual"] = "cut"


class Seen(Own):
    """Something that a detector found in a frame."""

    frame: int  # in which frame of the video
    box: Box4  # where
    score: float  # of the detector, 0 to 1
    face: Box4 | None = None  # box of the face in it, where one was found
    face_score: float | None = None  # of the face detector
    # its row in the field ``given``, where vectors came with the detections; else None
    row: int | None = None


class Tracklet(Own):
    """One person through a part of a shot."""

    tracklet_id: str  # ``<shot_id>__t001``, numbered by when and where it begins
    shot: int  # number of its shot
    # in order of frames; frames that were not looked at, or where it was lost, are left out
    seen: tuple[Seen, ...]
    best: tuple[int, ...] = ()  # indices into ``seen`` of the best views, best first
    face: str | None = None  # unit vector of its faces, packed, or None where no face was found
    body: str | None = None  # unit vector of its bodies, packed, or None where none could be encoded

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last frame in which it was seen."""
        return self.seen[0].frame, self.seen[-1].frame


class Merge(Own):
    """Why two groups of tracklets are one person, or why a proposal to make them one was refused."""

    one: str  # id of the group that stays
    other: str  # id of the group that goes into it
    by: str  # ``clustering``, or the model that proposed it
    reason: str  # distance, or what the model said
    refused: str | None = None  # which constraint it would break; None for a merge that was made


class Person(Own):
    """A person of an episode: tracklets that belong together, in the fields ``people`` and ``cast``."""

    person_id: str  # ``p001``, numbered by first appearance
    tracklets: tuple[str, ...]  # ids, in order of appearance
    shots: tuple[int, ...]  # numbers of the shots in which the person is seen, ascending
    merges: tuple[Merge, ...] = ()  # how it came about, and what was refused


class Entity(Own):
    """An entity of an episode's registry, the field ``registry``."""

    label: str  # ``Character 1``, ``Location 1``, ``Object 1``: numbered by first appearance within its kind
    kind: EntityKind  # character, location or object
    name: str  # as texts name it, unique up to case in the episode
    aliases: tuple[str, ...] = ()  # other names that count as a mention
    description: str = ""  # how it looks, for generators
    shots: tuple[int, ...] = ()  # numbers of the shots in which it is scheduled, ascending
    persons: tuple[str, ...] = ()  # for a character, ids of the persons that it is


class ScriptShot(Own):
    """A shot of a script."""

    number: int  # of the shot in the video
    scene: int  # number of its scene, from 1
    cut: bool  # whether it begins a continuation chain; else it goes on from the shot before
    action: str  # what happens in it


class Repair(Own):
    """Something that verification found, and what was done about it."""

    code: str  # what was found, such as ``unmentioned``
    shot: int | None  # number of the shot; None for the episode as a whole
    entity: str | None  # label of the entity, where it is about one
    found: str  # in words
    # ``added``, ``dropped``, ``merged``, ``rewritten``; or ``left``: it remains and is reported
    done: Literal["added", "dropped", "merged", "rewritten", "left"]


class Script(Own):
    """An episode's script, the field ``script``."""

    overview: str  # the story in two to four sentences
    shots: tuple[ScriptShot, ...]  # all of them, in order
    repairs: tuple[Repair, ...] = ()  # what verification found
