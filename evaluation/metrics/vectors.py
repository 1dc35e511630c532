"""Embeddings of pictures or crops by one or more encoders, and the cosine similarities between them."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...schemas.canonical import Json

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Vectors:
    """Unit vectors of the same pictures by one or more encoders."""

    # encoder -> shape (pictures, dimensions), float64; each row of length 1, or all ``nan`` where the encoder
    # found nothing to encode, such as no face
    by_encoder: Mapping[str, Floats] = field(repr=False)

    def __post_init__(self) -> None:
        if len({len(rows) for rows in self.by_encoder.values()}) > 1:
            raise ValueError("every encoder must have a row for every picture")

    def __len__(self) -> int:
        return next((len(rows) for rows in self.by_encoder.values()), 0)

    @classmethod
    def of(cls, **rows: Sequence[Sequence[float] | None]) -> "Vectors":
        """Return vectors from lists of any length, made unit vectors; None where there is none."""
        made = {}
        for encoder, vectors in rows.items():
            size = next((len(vector) for vector in vectors if vector is not None), 1)
            nothing = (float("nan"),) * size
            table = np.array([nothing if vector is None else vector for vector in vectors], dtype=np.float64)
            made[encoder] = unit(table.reshape(len(vectors), size))
        return cls(made)

    def take(self, rows: Sequence[int]) -> "Vectors":
        """Return the vectors of some of the pictures, in the order given."""
        places = np.asarray(rows, dtype=np.intp)
        return Vectors({encoder: table[places] for encoder, table in self.by_encoder.items()})

    def known(self, encoders: Iterable[str]) -> NDArray[np.bool_]:
        """Return for each picture whether any of the encoders has a vector of it; shape (pictures,)."""
        there = np.zeros(len(self), dtype=bool)
        for encoder in encoders:
            if encoder in self.by_encoder:
                there |= _present(self.by_encoder[encoder])
        return there

    @staticmethod
    def joined(parts: Sequence["Vectors"]) -> "Vectors":
        """Return the vectors of all parts, one after the other; all must have the same encoders."""
        if not parts:
            return Vectors({})
        return Vectors(
            {
                encoder: _stacked([part.by_encoder[encoder] for part in parts])
                for encoder in parts[0].by_encoder
            }
        )


def packed(rows: NDArray[np.float32]) -> Json:
    """Return rows as plain JSON, bit for bit: shape, and little-endian float32 in base 64."""
    data = np.ascontiguousarray(rows, dtype="<f4").tobytes()
    return {"shape": list(rows.shape), "data": base64.b64encode(data).decode("ascii")}


def unpacked(value: Json) -> NDArray[np.float32]:
    """Return rows from what :func:`packed` made of them."""
    shape = tuple(int(size) for size in value["shape"])
    flat = np.frombuffer(base64.b64decode(value["data"], validate=True), dtype="<f4")
    return flat.reshape(shape).astype(np.float32)


def doubles(value: Json) -> Floats:
    """Return packed rows in double precision."""
    return unpacked(value).astype(np.float64)


def vectors_of(rows: Mapping[str, Json]) -> Vectors:
    """Return packed rows by encoder as unit vectors in double precision."""
    return Vectors({name: unit(doubles(table)) for name, table in rows.items()})


def unit(rows: Floats) -> Floats:
    """Return rows scaled to length 1; a row of zeros or ``nan`` becomes ``nan``."""
    lengths = np.sqrt((rows * rows).sum(axis=-1, keepdims=True))
    scaled: Floats = np.full(rows.shape, np.nan)
    np.divide(rows, lengths, out=scaled, where=lengths > 0)
    return scaled


def similarities(
    first: Vectors, second: Vectors, encoders: Sequence[str], apart: float = float("nan")
) -> Floats:
    """Return the cosine similarity of every pair of pictures, the mean over the encoders that know both.

    Returned: shape (n, m), in [-1, 1]; ``nan`` where no encoder has both pictures, ``apart`` where each of
    the two is known to another one.
    """
    total = np.zeros((len(first), len(second)))
    counted = np.zeros_like(total)
    for encoder in encoders:
        if encoder not in first.by_encoder or encoder not in second.by_encoder:
            continue
        left, right = first.by_encoder[encoder], second.by_encoder[encoder]
        both = _present(left)[:, None] & _present(right)[None, :]
        if not both.any():
            continue
        total += np.where(both, np.nan_to_num(left) @ np.nan_to_num(right).T, 0.0)
        counted += both
    seen = first.known(encoders)[:, None] & second.known(encoders)[None, :]
    result: Floats = np.where(seen, apart, np.nan)
    np.divide(total, counted, out=result, where=counted > 0)
    return np.clip(result, -1.0, 1.0)


def mean_of_pairs(table: Floats) -> tuple[float, int]:
    """Return the sum of what stands above the diagonal of a square table without ``nan``, and how many."""
    above = table[np.triu_indices(len(table), k=1)]
    known = above[~np.isnan(above)]
    return float(known.sum()), len(known)


def _stacked(tables: Sequence[Floats]) -> Floats:
    """Return the rows of all tables; one without any vector takes the width of the others."""
    width = max(table.shape[1] for table in tables)
    return np.concatenate(
        [table if _present(table).any() else np.full((len(table), width), np.nan) for table in tables]
    )


def _present(rows: Floats) -> NDArray[np.bool_]:
    return np.asarray(~np.isnan(rows).any(axis=1), dtype=np.bool_)
