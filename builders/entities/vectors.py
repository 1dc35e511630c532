"""Vectors as texts in the fields of items: little-endian float32 in base 64, bit for bit."""

import base64
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...schemas.canonical import Json

Rows = NDArray[np.float32]


def packed(vector: Rows) -> str:
    """Return a vector, shape (dimensions,), as text."""
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode("ascii")


def unpacked(text: str) -> Rows:
    """Return the vector that :func:`packed` wrote.

    Raises:
        ValueError: it is no such text.
    """
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)


def packed_rows(rows: Sequence[Rows | None]) -> Json:
    """Return vectors of one length, some of which may be missing, as plain JSON."""
    return [None if row is None else packed(row) for row in rows]


def mean_vector(rows: Sequence[Rows]) -> Rows | None:
    """Return the unit vector in the direction of the mean of unit vectors.

    Rows with ``nan`` stand for pictures in which there was nothing to encode, and are left out.

    Returns:
        Shape (dimensions,); None where no row is left, or where they cancel each other out.
    """
    there = [row.astype(np.float64) for row in rows if np.isfinite(row).all()]
    if not there:
        return None
    mean = np.mean(there, axis=0)
    length = float(np.sqrt((mean * mean).sum()))
    return (mean / length).astype(np.float32) if length > 1e-6 else None
