"""What stands in a file of detections: a header, and one row for each person in a frame."""

import re
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from ...errors import InputError, UserError
from ...schemas.base import Own
from .vectors import Rows

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
