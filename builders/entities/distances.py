"""How far two tracklets are apart: cosine distances of faces and of bodies, each measured by its own limit.

    d = (w_face * d_face / limit_face + w_body * d_body / limit_body) / (w_face + w_body)

with d_face and d_body one minus cosine, over what both tracklets have: where one has no face, their bodies
alone count. A limit is the distance at which a pair is as likely the same person as not, so that 1 means
that for either kind of vector, and for both together. Two tracklets that have nothing in common are
:data:`UNKNOWN` apart: not merged by themselves, and with little weight in an average.

Numbers do not depend on the machine: components become whole numbers of 2^-24, whose products and sums
float64 holds exactly, in whatever order they are added.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .clustering import Distances
from .vectors import Rows

UNKNOWN = 1.25
_WHOLE = float(2**24)
_ROWS = 256


@dataclass(frozen=True, slots=True)
class Weighed:
    """One kind of vectors of some tracklets.

    Attributes:
        rows: unit vectors, all of one length; None where a tracklet has none.
        limit: cosine distance that counts as 1.
        weight: against the other kind.
    """

    rows: Sequence[Rows | None]
    limit: float
    weight: float


def fused(kinds: Sequence[Weighed]) -> Distances:
    """Return the distances of all pairs, shape (n, n), float32, exactly symmetric.

    Raises:
        ValueError: vectors of one kind have different lengths.
    """
    count = len(kinds[0].rows)
    made = np.empty((count, count), dtype=np.float32)
    whole = [(_whole(kind.rows), kind) for kind in kinds]
    for start in range(0, count, _ROWS):
        stop = min(start + _ROWS, count)
        sums, weights = np.zeros((stop - start, count)), np.zeros((stop - start, count))
        for (table, there), kind in whole:
            both = np.outer(there[start:stop], there) * kind.weight
            cosines = np.clip(table[start:stop] @ table.T / _WHOLE**2, -1.0, 1.0)
            sums += both * ((1.0 - cosines) / kind.limit)
            weights += both
        known = weights > 0
        block = np.divide(sums, weights, out=np.full_like(sums, UNKNOWN), where=known)
        made[start:stop] = block.astype(np.float32)
    return made


def _whole(rows: Sequence[Rows | None]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return vectors in whole numbers, 0 where there is none, and 1 for each that is there, else 0."""
    lengths = {len(row) for row in rows if row is not None}
    if len(lengths) > 1:
        raise ValueError(f"vectors of one kind have the same length, not {sorted(lengths)}")
    table = np.zeros((len(rows), next(iter(lengths), 1)))
    for place, row in enumerate(rows):
        if row is not None:
            table[place] = np.rint(row.astype(np.float64) * _WHOLE)
    return table, np.array([float(row is not None) for row in rows])
