"""Which appearances of an entity are compared across shots, and which of them stands for all (Eq. 22-31).

Rows are appearances in story order, as the public evaluator sorts them; the first of several that are equally
near is taken, so that nothing depends on the order in which shots were looked at.
"""

from collections.abc import Sequence

import numpy as np

from ..metrics.vectors import Floats, unit

FIDELITY_GATE = 0.5
"""Least fidelity of an appearance that is compared (Table 11)."""
_NO_LENGTH = 1e-9


def admitted(status: str | None, fidelity: float | None, least: float = FIDELITY_GATE) -> bool:
    """Whether an appearance enters the comparison across shots (Eq. 22).

    ``status``: ``present``, ``weak`` or ``absent``; None where nobody looked. ``fidelity``: overall fidelity,
    in [0, 1]; None without a score, which admits it. ``least``: the gate's threshold.
    """
    return status == "present" and (fidelity is None or fidelity >= least)


def centroid(rows: Floats) -> Floats | None:
    """Return the mean of unit vectors, scaled to length 1 (Eq. 26); None of fewer than two, or of length 0.

    ``rows``: shape (appearances, dimensions), finite; made unit vectors.
    """
    if len(rows) < 2:
        return None
    mean: Floats = unit(np.asarray(rows, dtype=np.float64)).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length >= _NO_LENGTH else None


def similarities_to_centroid(rows: Floats) -> Floats | None:
    """Return the cosine of every appearance with the centroid (Eq. 27), shape (appearances,), in [-1, 1].

    None where there is no centroid.
    """
    middle = centroid(rows)
    return None if middle is None else unit(np.asarray(rows, dtype=np.float64)) @ middle


def anchor(rows: Floats) -> int | None:
    """Return which row is nearest to the centroid (Eq. 31), the first of equals; None without a centroid."""
    near = similarities_to_centroid(rows)
    return None if near is None else _first_best(near)


def _first_best(values: Sequence[float] | Floats) -> int:
    return int(np.argmax(np.round(values, 12)))
