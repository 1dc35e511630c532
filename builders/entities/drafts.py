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
    """A video that can be read, the field ``video``.

    Attributes:
        video_id: made of its file name, unique in the run.
        file: its name; where it lies is known by its hash (see :mod:`.film_files`). In runs of earlier
            versions, its path.
        sha256: of the file.
        frames: how many it has, counted.
        seconds: from the start of the first frame to the end of the last.
        fps: average frames per second.
        width: in pixels, upright.
        height: in pixels, upright.
        deinterlaced: what joins its fields where it is interlaced; None for other films.
    """

    video_id: str
    file: str
    sha256: str
    frames: int
    seconds: float
    fps: float
    width: int
    height: int
    deinterlaced: str | None = None


class Shot(Own):
    """A shot of a video, the field ``shot``.

    Attributes:
        shot_id: ``<video_id>__shot0001``.
        number: from 1, in the video.
        first: its first frame; ``last`` is its last one.
        start: when its first frame is shown; ``end``, when its last one is not any more.
        opens: how it begins: with the video, with a cut, or out of a gradual change (dissolve, fade).
    """

    shot_id: str
    video: Video
    number: int
    first: int
    last: int
    start: float
    end: float
    opens: Literal["start", "cut", "gradual"] = "cut"


class Seen(Own):
    """Something that a detector found in a frame.

    Attributes:
        frame: in which frame of the video.
        box: where.
        score: of the detector, 0 to 1.
        face: box of the face in it, where one was found.
        face_score: of the face detector.
        row: its row in the field ``given``, where vectors came with the detections; else None.
    """

    frame: int
    box: Box4
    score: float
    face: Box4 | None = None
    face_score: float | None = None
    row: int | None = None


class Tracklet(Own):
    """One person through a part of a shot.

    Attributes:
        tracklet_id: ``<shot_id>__t001``, numbered by when and where it begins.
        shot: number of its shot.
        seen: in order of frames; frames that were not looked at, or where it was lost, are left out.
        best: indices into ``seen`` of the best views, best first.
        face: unit vector of its faces, packed, or None where no face was found.
        body: unit vector of its bodies, packed, or None where none could be encoded.
    """

    tracklet_id: str
    shot: int
    seen: tuple[Seen, ...]
    best: tuple[int, ...] = ()
    face: str | None = None
    body: str | None = None

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last frame in which it was seen."""
        return self.seen[0].frame, self.seen[-1].frame


class Merge(Own):
    """Why two groups of tracklets are one person, or why a proposal to make them one was refused.

    Attributes:
        one: id of the group that stays.
        other: id of the group that goes into it.
        by: ``clustering``, or the model that proposed it.
        reason: distance, or what the model said.
        refused: which constraint it would break; None for a merge that was made.
    """

    one: str
    other: str
    by: str
    reason: str
    refused: str | None = None


class Person(Own):
    """A person of an episode: tracklets that belong together, in the fields ``people`` and ``cast``.

    Attributes:
        person_id: ``p001``, numbered by first appearance.
        tracklets: ids, in order of appearance.
        shots: numbers of the shots in which the person is seen, ascending.
        merges: how it came about, and what was refused.
    """

    person_id: str
    tracklets: tuple[str, ...]
    shots: tuple[int, ...]
    merges: tuple[Merge, ...] = ()


class Entity(Own):
    """An entity of an episode's registry, the field ``registry``.

    Attributes:
        label: ``Character 1``, ``Location 1``, ``Object 1``: numbered by first appearance within its kind.
        kind: character, location or object.
        name: as texts name it, unique up to case in the episode.
        aliases: other names that count as a mention.
        description: how it looks, for generators.
        shots: numbers of the shots in which it is scheduled, ascending.
        persons: for a character, ids of the persons that it is.
    """

    label: str
    kind: EntityKind
    name: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    shots: tuple[int, ...] = ()
    persons: tuple[str, ...] = ()


class ScriptShot(Own):
    """A shot of a script.

    Attributes:
        number: of the shot in the video.
        scene: number of its scene, from 1.
        cut: whether it begins a continuation chain; else it goes on from the shot before.
        action: what happens in it.
    """

    number: int
    scene: int
    cut: bool
    action: str


class Repair(Own):
    """Something that verification found, and what was done about it.

    Attributes:
        code: what was found, such as ``unmentioned``.
        shot: number of the shot; None for the episode as a whole.
        entity: label of the entity, where it is about one.
        found: in words.
        done: ``added``, ``dropped``, ``merged``, ``rewritten``; or ``left``: it remains and is reported.
    """

    code: str
    shot: int | None
    entity: str | None
    found: str
    done: Literal["added", "dropped", "merged", "rewritten", "left"]


class Script(Own):
    """An episode's script, the field ``script``.

    Attributes:
        overview: the story in two to four sentences.
        shots: all of them, in order.
        repairs: what verification found.
    """

    overview: str
    shots: tuple[ScriptShot, ...]
    repairs: tuple[Repair, ...] = ()
