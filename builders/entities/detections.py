"""A file of detections made elsewhere, JSON lines or Parquet: a header, and a row for each person in a frame.

It is read strictly, and checked whole when it is opened; of each row only its place (the offset of its line,
or its number), its frame and its box stay in memory.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from ...errors import InputError, UserError
from ...schemas.plain_files import composed, open_plain, reason_of, type_reason
from ...schemas.text import slug
from ...schemas.values import Own
from .identities import Rows
from .names import Box4, Video

FORMAT = "fabula-detections"
_FIX = "correct the file; docs/identities.md says what stands in it"

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Box = tuple[_Number, _Number, _Number, _Number]
_Vector = Annotated[tuple[_Number, ...], Field(min_length=1, max_length=8192)]
_Share = Annotated[float, Field(ge=0, le=1)]


class Header(Own):
    """Who made the rows: the first line of JSON lines, or the metadata of the same name in Parquet."""

    format: Literal["fabula-detections"] = "fabula-detections"  # always ``fabula-detections``
    version: Literal[1] = 1  # of the format
    detector: str = ""  # what found the people
    face_encoder: str = ""  # what made the vectors of faces
    body_encoder: str = ""  # what made the vectors of bodies
    # names of all videos that were looked at, those in which nobody was found among them
    videos: tuple[str, ...] = ()


class Row(Own):
    """One person in one frame; what is not known is left out or null."""

    # id of the video, or the name of its file, with ending or without
    video: Annotated[str, Field(min_length=1)]
    frame: Annotated[int, Field(ge=0, le=2**31)]  # from 0, in the order of showing
    box: _Box  # left, top, right, bottom, in pixels of the upright frame
    score: _Share  # of the detector
    face: _Box | None = None  # box of the face
    face_score: _Share | None = None  # of the detector of faces
    face_embedding: _Vector | None = None  # a vector of the face, of any length but 0; its direction counts
    body_embedding: _Vector | None = None  # the same of the body

    def vector(self, kind: str) -> Rows | None:
        """Return the unit vector of a kind, ``face`` or ``body``."""
        values = self.face_embedding if kind == "face" else self.body_embedding
        if values is None:
            return None
        exact = np.array(values, dtype=np.float64)
        unit: Rows = (exact / np.sqrt((exact * exact).sum())).astype(np.float32)
        return unit


def row_of(where: str, value: Any) -> Row | UserError:  # noqa: ANN401 - bytes of a line, or a mapping
    """Return the row that a line or a mapping holds, or what is wrong with it."""
    try:
        if isinstance(value, bytes):
            return Row.model_validate_json(value, strict=True)
        return Row.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        return UserError(f"{where}: {field}" if field else where, what=type_reason(first), fix=_FIX)


def wrong(where: str, expected: str, found: str) -> UserError:
    """Return a problem of a file of detections."""
    return UserError(where, expected=expected, found=found, fix=_FIX)


def unreadable(path: object, found: str) -> InputError:
    """Return the error for a file that is no file of detections at all."""
    return InputError([wrong(str(path), "JSON lines (.jsonl) or Parquet (.parquet) with detections", found)])


LONGEST_LINE = 1_000_000
"""Bytes of a line; two vectors of 8,192 numbers need less than half of it."""
_BATCH = 2048


class LineRows:
    """Rows in JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.header = Header()
        self._skip = 0
        with open_plain(path, follow=True) as file:
            first = file.readline(LONGEST_LINE)
        if f'"{FORMAT}"'.encode() in first:
            try:
                self.header = Header.model_validate_json(first, strict=True)
            except ValidationError as error:
                raise unreadable(path, f"a first line that is wrong: {reason_of(error)}") from error
            self._skip = len(first)

    def rows(self) -> Iterator[tuple[int, str, Row | UserError]]:
        """Yield offset, name and row of every line that is not blank."""
        number = 1 if self._skip else 0
        with open_plain(self._path, follow=True) as file:
            file.seek(self._skip)
            offset = self._skip
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                where = f"{self._path}:{number}"
                if len(line) > LONGEST_LINE:
                    raise unreadable(self._path, f"line {number} with more than {LONGEST_LINE:,} bytes")
                if line.strip():
                    yield offset, where, row_of(where, line)
                offset += len(line)

    def read(self, places: Sequence[int]) -> list[Row]:
        rows = []
        with open_plain(self._path, follow=True) as file:
            for offset in places:
                file.seek(offset)
                rows.append(Row.model_validate_json(file.readline(LONGEST_LINE)))
        return rows


class ParquetRows:
    """Rows in Parquet."""

    def __init__(self, path: Path) -> None:
        import pyarrow as arrow
        from pyarrow import parquet

        self._path = path
        try:
            open_plain(path, follow=True).close()  # else what is in place of the file is told by pyarrow
            self._file = parquet.ParquetFile(path)
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise _unreadable_parquet(path, error) from error
        if problem := _columns(self._file.schema_arrow):
            raise unreadable(path, problem)
        self.header = self._header()
        counts = [self._file.metadata.row_group(at).num_rows for at in range(self._file.num_row_groups)]
        self._ends = [sum(counts[: at + 1]) for at in range(len(counts))]
        self._group = lru_cache(maxsize=2)(self._rows_of_group)

    def _header(self) -> Header:
        metadata = (self._file.schema_arrow.metadata or {}).get(FORMAT.encode())
        try:
            return Header() if metadata is None else Header.model_validate_json(metadata)
        except ValidationError as error:
            found = f"metadata {FORMAT} that is wrong: {reason_of(error)}"
            raise unreadable(self._path, found) from error

    def rows(self) -> Iterator[tuple[int, str, Row | UserError]]:
        number = 0
        for values in self._batches():
            for value in values:
                where = f"{self._path}: row {number}"
                yield number, where, row_of(where, value)
                number += 1

    def _batches(self) -> Iterator[list[dict[str, Any]]]:
        import pyarrow as arrow

        try:
            for batch in self._file.iter_batches(_BATCH):
                yield batch.to_pylist()
        except (arrow.ArrowException, OSError) as error:
            raise _unreadable_parquet(self._path, error) from error

    def read(self, places: Sequence[int]) -> list[Row]:
        rows = []
        for row in places:
            group = next(at for at, end in enumerate(self._ends) if row < end)
            start = self._ends[group - 1] if group else 0
            rows.append(Row.model_validate(self._group(group).slice(row - start, 1).to_pylist()[0]))
        return rows

    def _rows_of_group(self, group: int) -> Any:  # noqa: ANN401 - a table of pyarrow
        return self._file.read_row_group(group)


def _unreadable_parquet(path: Path, error: Exception) -> InputError:
    lines = str(error).splitlines() or [type(error).__name__]
    return unreadable(path, f"no Parquet file that can be read: {lines[0][:200]}")


def _columns(schema: Any) -> str | None:  # noqa: ANN401 - of pyarrow
    """Return what is wrong with the columns: none may be missing, unknown, or of another type."""
    from pyarrow import types

    def number(kind: Any) -> bool:  # noqa: ANN401 - of pyarrow
        return bool(types.is_floating(kind) or types.is_integer(kind))

    def numbers(kind: Any) -> bool:  # noqa: ANN401 - of pyarrow
        listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        return bool(listed and number(kind.value_type))

    def text(kind: Any) -> bool:  # noqa: ANN401 - of pyarrow
        return bool(types.is_string(kind) or types.is_large_string(kind))

    wanted = {
        "video": text, "frame": types.is_integer, "box": numbers, "score": number, "face": numbers,
        "face_score": number, "face_embedding": numbers, "body_embedding": numbers,
    }  # fmt: skip
    for name in ("video", "frame", "box", "score"):
        if name not in schema.names:
            return f"no column {name}"
    for column in schema:
        if column.name not in wanted or schema.names.count(column.name) > 1:
            return f"a column {column.name}, which is none of {', '.join(wanted)}, or is there twice"
        if not wanted[column.name](column.type) and str(column.type) != "null":
            return f"a column {column.name} of type {column.type}"
    return None


def open_rows(path: Path) -> LineRows | ParquetRows:
    """Return the rows of a file by the ending of its name."""
    if not path.is_file():
        raise unreadable(path, "no file")
    if path.suffix.lower() == ".parquet":
        return ParquetRows(path)
    if path.suffix.lower() != ".jsonl":
        raise unreadable(path, f"a name that ends with {path.suffix or 'nothing'}")
    return LineRows(path)


MOST_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class _Column:
    """Rows of one video, by frame."""

    frames: NDArray[np.int64]  # of each row, ascending
    places: NDArray[np.int64]  # where each is in the file
    boxes: NDArray[np.float64]  # of each, shape (rows, 4)


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    problems: list[UserError] = field(default_factory=list)  # what is wrong
    # name of a video -> frame, place and box of each of its rows
    rows: dict[str, list[tuple[int, int, Box4]]] = field(default_factory=dict)
    # boxes by video and frame, to find the same one twice
    known: set[tuple[str, int, Box4]] = field(default_factory=set)
    lengths: dict[str, int] = field(default_factory=dict)  # of vectors, by kind
    # of boxes, by kind: the larger of the longest side and the farthest edge, in pixels
    largest: dict[str, float] = field(default_factory=dict)

    def take(self, row_number: int, where: str, row: Row | UserError) -> None:
        problem = row if isinstance(row, UserError) else self._judged(where, row)
        if problem is not None:
            self.problems.append(problem)
        elif isinstance(row, Row):
            self.known.add((row.video, row.frame, row.box))
            self.rows.setdefault(composed(row.video), []).append((row.frame, row_number, row.box))

    def columns(self) -> dict[str, _Column]:
        """Return the rows by video."""
        made = {}
        for name, rows in self.rows.items():
            ordered = sorted(rows)
            frames, places, boxes = zip(*ordered, strict=True)
            made[name] = _Column(np.array(frames), np.array(places), np.array(boxes, dtype=np.float64))
        return made

    def shares(self, path: Path) -> list[UserError]:
        """Return a problem for each kind of box of which none exceeds one pixel: those are shares."""
        return [
            wrong(f"{path}: {name}", "pixels of the upright frame",
                  f"no {name} of more than one pixel: shares of the frame, from 0 to 1?")
            for name, size in self.largest.items() if size <= 1
        ]  # fmt: skip

    def _judged(self, where: str, row: Row) -> UserError | None:
        for name in ("box", "face"):
            box = getattr(row, name)
            if box is None:
                continue
            size = min(max(box), max(box[2] - box[0], box[3] - box[1]))
            self.largest[name] = max(size, self.largest.get(name, size))
            if not (box[0] < box[2] and box[1] < box[3]):
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
    """A file of detections that was checked."""

    path: Path  # the file
    source: LineRows | ParquetRows  # what reads its rows
    columns: Mapping[str, _Column]  # its rows by the name of the video
    vectors: frozenset[str]  # what it has vectors of: ``face``, ``body``, both or neither

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
        frames = [column.frames for column in self._of(video)]
        return tuple(np.unique(np.concatenate(frames)).tolist()) if frames else ()

    def rows(self, video: Video, first: int, last: int) -> list[Row]:
        """Return the rows of a stretch of frames: by frame, then by falling score, then by place."""
        places: list[int] = []
        for column in self._of(video):
            start, end = np.searchsorted(column.frames, (first, last + 1))
            places += column.places[start:end].tolist()
        return sorted(self.source.read(sorted(places)), key=lambda row: (row.frame, -row.score, row.box))

    def problems(self, video: Video) -> list[UserError]:
        """Return what cannot be of a video: frames that it does not have, boxes outside its frames."""
        problems = []
        for column in self._of(video):
            for row in np.flatnonzero(column.frames >= video.frames)[:MOST_PROBLEMS]:
                expected = f"frames 0 to {video.frames - 1}, as {video.video_id} has"
                problems.append(
                    wrong(f"{self.path}: {video.video_id}", expected, f"frame {column.frames[row]}")
                )
            beyond = (column.boxes[:, :2] >= (video.width, video.height)) | (column.boxes[:, 2:] <= 0)
            for row in np.flatnonzero(beyond.any(axis=1))[:MOST_PROBLEMS]:
                where = f"{self.path}: {video.video_id}, frame {column.frames[row]}"
                expected = f"boxes that touch its {video.width} x {video.height} pixels"
                problems.append(wrong(where, expected, f"{column.boxes[row].tolist()}"))
        return problems

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
    return tuple(dict.fromkeys((video.video_id, composed(path.name), composed(path.stem))))


def open_detections(path: Path) -> Detections:
    """Read a file of detections to its end and return it."""
    source, reading = open_rows(path), _Reading()
    for row_number, where, row in source.rows():
        reading.take(row_number, where, row)
        if len(reading.problems) == MOST_PROBLEMS:
            break
    if not reading.problems and not reading.rows and not source.header.videos:
        reading.problems.append(wrong(str(path), "at least one detection", "none"))
    if problems := reading.problems or reading.shares(path):
        raise InputError(problems)
    vectors = frozenset(name.partition("_")[0] for name in reading.lengths)
    return Detections(path, source, reading.columns(), vectors)


def check_detections(path: Path, names: frozenset[str]) -> Detections:
    """Read a file of detections for a build of some videos, before anything else is done."""
    detections = open_detections(path)
    if strangers := detections.strangers(names):
        raise InputError(strangers)
    return detections
