"""Detections made elsewhere: a file of rows, read strictly, so that all behind detection runs anywhere.

The whole file is checked when it is opened; of each row only its place, frame and box stay in memory.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, UserError
from ...schemas.ids import slug
from .detections import Header, LineRows, ParquetRows, Row, open_rows, wrong
from .drafts import Box4, Video

MOST_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class _Column:
    """Rows of one video, by frame.

    Attributes:
        frames: of each row, ascending.
        places: where each is in the file.
        boxes: of each, shape (rows, 4).
    """

    frames: NDArray[np.int64]
    places: NDArray[np.int64]
    boxes: NDArray[np.float64]


@dataclass(slots=True)
class _Reading:
    """What was read so far.

    Attributes:
        problems: what is wrong.
        rows: name of a video -> frame, place and box of each of its rows.
        known: boxes by video and frame, to find the same one twice.
        lengths: of vectors, by kind.
    """

    problems: list[UserError] = field(default_factory=list)
    rows: dict[str, list[tuple[int, int, Box4]]] = field(default_factory=dict)
    known: set[tuple[str, int, Box4]] = field(default_factory=set)
    lengths: dict[str, int] = field(default_factory=dict)

    def take(self, place: int, where: str, row: Row | UserError) -> None:
        """Take a row in, or what is wrong with it."""
        problem = row if isinstance(row, UserError) else self._judged(where, row)
        if problem is not None:
            self.problems.append(problem)
        elif isinstance(row, Row):
            self.known.add((row.video, row.frame, row.box))
            self.rows.setdefault(row.video, []).append((row.frame, place, row.box))

    def columns(self) -> dict[str, _Column]:
        """Return the rows by video."""
        made = {}
        for name, rows in self.rows.items():
            ordered = sorted(rows)
            frames, places, boxes = zip(*ordered, strict=True)
            made[name] = _Column(np.array(frames), np.array(places), np.array(boxes, dtype=np.float64))
        return made

    def _judged(self, where: str, row: Row) -> UserError | None:
        for name in ("box", "face"):
            box = getattr(row, name)
            if box is not None and not (box[0] < box[2] and box[1] < box[3]):
                return wrong(f"{where}: {name}", "left < right and top < bottom", f"{list(box)}")
        if row.face is None and row.face_score is not None:
            return wrong(f"{where}: face_score", "a face with it", "none")
        for name in ("face_embedding", "body_embedding"):
            vector = getattr(row, name)
            if vector is None:
                continue
            length = self.lengths.setdefault(name, len(vector))
            if length != len(vector):
                return wrong(f"{where}: {name}", f"{length} numbers, as in the rows before", f"{len(vector)}")
            square = sum(value * value for value in vector)
            if not 0 < square < math.inf:
                return wrong(
                    f"{where}: {name}", "a vector with a direction", f"one of squared length {square}"
                )
        if (row.video, row.frame, row.box) in self.known:
            return wrong(where, "each box of a frame once", f"the same box again in frame {row.frame}")
        return None


@dataclass(frozen=True, slots=True)
class Detections:
    """A file of detections that was checked.

    Attributes:
        path: the file.
        source: what reads its rows.
        columns: its rows by the name of the video.
        vectors: what it has vectors of: ``face``, ``body``, both or neither.
    """

    path: Path
    source: LineRows | ParquetRows
    columns: Mapping[str, _Column]
    vectors: frozenset[str]

    @property
    def header(self) -> Header:
        """Who made it; empty where it does not say."""
        return self.source.header

    @property
    def names(self) -> frozenset[str]:
        """The names of all videos that it has rows of, or says it looked at."""
        return frozenset(self.columns) | frozenset(self.header.videos)

    def looked_at(self, video: Video) -> bool:
        """Whether the file is about a video."""
        return not self.names.isdisjoint(names_of(video))

    def frames(self, video: Video) -> tuple[int, ...]:
        """Return the frames of a video in which somebody was found, ascending."""
        found = [column.frames for column in self._of(video)]
        return tuple(np.unique(np.concatenate(found)).tolist()) if found else ()

    def rows(self, video: Video, first: int, last: int) -> list[Row]:
        """Return the rows of a stretch of frames: by frame, then by falling score, then by place."""
        places: list[int] = []
        for column in self._of(video):
            start, end = np.searchsorted(column.frames, (first, last + 1))
            places += column.places[start:end].tolist()
        return sorted(self.source.read(sorted(places)), key=lambda row: (row.frame, -row.score, row.box))

    def problems(self, video: Video) -> list[UserError]:
        """Return what cannot be of a video: frames that it does not have, boxes outside its frames."""
        found = []
        for column in self._of(video):
            for row in np.flatnonzero(column.frames >= video.frames)[:MOST_PROBLEMS]:
                expected = f"frames 0 to {video.frames - 1}, as {video.video_id} has"
                found.append(wrong(f"{self.path}: {video.video_id}", expected, f"frame {column.frames[row]}"))
            beyond = (column.boxes[:, :2] >= (video.width, video.height)) | (column.boxes[:, 2:] <= 0)
            for row in np.flatnonzero(beyond.any(axis=1))[:MOST_PROBLEMS]:
                where = f"{self.path}: {video.video_id}, frame {column.frames[row]}"
                expected = f"boxes that touch its {video.width} x {video.height} pixels"
                found.append(wrong(where, expected, f"{column.boxes[row].tolist()}"))
        return found

    def strangers(self, names: frozenset[str]) -> list[UserError]:
        """Return a problem for every video of the file that is none of those names."""
        return [
            wrong(str(self.path), "rows of the videos that are built from", f"rows of {name!r}")
            for name in sorted(self.names - names)
        ]

    def _of(self, video: Video) -> list[_Column]:
        return [self.columns[name] for name in names_of(video) if name in self.columns]


def names_of(video: Video) -> tuple[str, ...]:
    """Return the names by which a file of detections may call a video.

    A video whose id has a hash, because another one has its name, goes by its id only.
    """
    path = Path(video.file)
    plain = slug(path.stem)
    if plain and video.video_id != plain and video.video_id.startswith(f"{plain}-"):
        return (video.video_id,)
    return tuple(dict.fromkeys((video.video_id, path.name, path.stem)))


def open_detections(path: Path) -> Detections:
    """Read a file of detections to its end and return it.

    Raises:
        InputError: something in it is wrong; up to :data:`MOST_PROBLEMS` problems are listed.
    """
    source, reading = open_rows(path), _Reading()
    for place, where, row in source.rows():
        reading.take(place, where, row)
        if len(reading.problems) == MOST_PROBLEMS:
            break
    if not reading.problems and not reading.rows and not source.header.videos:
        reading.problems.append(wrong(str(path), "at least one detection", "none"))
    if reading.problems:
        raise InputError(reading.problems)
    vectors = frozenset(name.partition("_")[0] for name in reading.lengths)
    return Detections(path, source, reading.columns(), vectors)


def check_detections(path: Path, names: frozenset[str]) -> Detections:
    """Read a file of detections for a build of some videos, before anything else is done.

    Args:
        path: the file.
        names: of the videos: ids, and names of their files with and without ending.

    Raises:
        InputError: something in it is wrong, or it is about other videos.
    """
    detections = open_detections(path)
    if strangers := detections.strangers(names):
        raise InputError(strangers)
    return detections
