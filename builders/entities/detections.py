"""What stands in a file of detections: a header, and one row for each person in a frame.

The two forms of a file of detections.

In JSON lines, a row's place is the offset of its line; in Parquet, its number.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from ...errors import InputError, UserError
from ...schemas.base import Own
from ...schemas.plain_files import open_plain
from .distances import Rows

FORMAT = "fabula-detections"
_FIX = "correct the file; docs/identities.md says what stands in it"

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Box = tuple[_Number, _Number, _Number, _Number]
_Vector = Annotated[tuple[_Number, ...], Field(min_length=1, max_length=8192)]
_Share = Annotated[float, Field(ge=0, le=1)]


class Header(Own):
    """Who made the rows: the first line of JSON lines, or the metadata of the same name in Parquet.

    Attributes:
        format: always ``fabula-detections``.
        version: of the format.
        detector: what found the people.
        face_encoder: what made the vectors of faces.
        body_encoder: what made the vectors of bodies.
        videos: names of all videos that were looked at, those in which nobody was found among them.
    """

    format: Literal["fabula-detections"] = "fabula-detections"
    version: Literal[1] = 1
    detector: str = ""
    face_encoder: str = ""
    body_encoder: str = ""
    videos: tuple[str, ...] = ()


class Row(Own):
    """One person in one frame; what is not known is left out or null.

    Attributes:
        video: id of the video, or the name of its file, with ending or without.
        frame: from 0, in the order of showing.
        box: left, top, right, bottom, in pixels of the upright frame.
        score: of the detector.
        face: box of the face.
        face_score: of the detector of faces.
        face_embedding: a vector of the face, of any length but 0; its direction counts.
        body_embedding: the same of the body.
    """

    video: Annotated[str, Field(min_length=1)]
    frame: Annotated[int, Field(ge=0, le=2**31)]
    box: _Box
    score: _Share
    face: _Box | None = None
    face_score: _Share | None = None
    face_embedding: _Vector | None = None
    body_embedding: _Vector | None = None

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
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        expected, found = _told(first["type"], first["msg"], f"{first['input']!r}"[:80])
        return wrong(f"{where}: {place}" if place else where, expected, found)


def _told(kind: str, message: str, given: str) -> tuple[str, str]:
    """Return what was expected and what was found."""
    if kind == "json_invalid":
        return "a line of JSON", f"{given}: {message}"
    if kind == "missing":
        return "a value", "none"
    if kind == "extra_forbidden":
        return "the documented fields only", "another one"
    return re.sub(r"^\w+ should (be |have )?", "", message), given


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
    """Rows in JSON lines.

    Args:
        path: the file.
    """

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
                said = error.errors(include_url=False)[0]
                raise unreadable(path, f"a first line whose {said['loc']} is wrong: {said['msg']}") from error
            self._skip = len(first)

    def rows(self) -> Iterator[tuple[int, str, Row | UserError]]:
        """Yield offset, name and row of every line that is not blank."""
        number = 1 if self._skip else 0
        with open_plain(self._path, follow=True) as file:
            file.seek(self._skip)
            place = self._skip
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                where = f"{self._path}:{number}"
                if len(line) > LONGEST_LINE:
                    raise unreadable(self._path, f"line {number} with more than {LONGEST_LINE:,} bytes")
                if line.strip():
                    yield place, where, row_of(where, line)
                place += len(line)

    def read(self, places: Sequence[int]) -> list[Row]:
        """Return the rows at some offsets."""
        found = []
        with open_plain(self._path, follow=True) as file:
            for place in places:
                file.seek(place)
                found.append(Row.model_validate_json(file.readline(LONGEST_LINE)))
        return found


class ParquetRows:
    """Rows in Parquet.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as arrow
        from pyarrow import parquet

        self._path = path
        try:
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
        found = (self._file.schema_arrow.metadata or {}).get(FORMAT.encode())
        try:
            return Header() if found is None else Header.model_validate_json(found)
        except ValidationError as error:
            raise unreadable(
                self._path, f"metadata {FORMAT} that is wrong: {error.errors()[0]['msg']}"
            ) from error

    def rows(self) -> Iterator[tuple[int, str, Row | UserError]]:
        """Yield number, name and row of every row."""
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
        """Return the rows with some numbers."""
        found = []
        for place in places:
            group = next(at for at, end in enumerate(self._ends) if place < end)
            start = self._ends[group - 1] if group else 0
            found.append(Row.model_validate(self._group(group).slice(place - start, 1).to_pylist()[0]))
        return found

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
    """Return the rows of a file by the ending of its name.

    Raises:
        InputError: it is not there, or no such file.
    """
    if not path.is_file():
        raise unreadable(path, "no file")
    if path.suffix.lower() == ".parquet":
        return ParquetRows(path)
    if path.suffix.lower() != ".jsonl":
        raise unreadable(path, f"a name that ends with {path.suffix or 'nothing'}")
    return LineRows(path)
