"""Which crop of a shot shows which expected character: an optimal assignment."""

from collections.abc import Sequence

import numpy as np

from .vectors import Floats

_IMPOSSIBLE = (
    -1e6
)  # far below any sum of cosines, so that such a pair is only taken when nothing else is left


def match_characters(tables: Sequence[Floats], least: float | None = None) -> tuple[int | None, ...]:
    """Assign each expected character at most one crop, each crop to at most one character.

    As many pairs are matched as can be, and of those the sum of similarities is as large as it can be
    (Hungarian method); the similarity of a character to a crop is the highest over the character's
    references. Pairs that are no match take no part in it.

    Args:
        tables: per character the similarities of its references and the crops, shape (references, crops), the
            same number of crops in all; ``nan`` where there is none.
        least: pairs below this similarity are no match; None takes every pair.

    Returns:
        Per character the place of its crop, or None.
    """
    if not tables or not tables[0].shape[1]:
        return (None,) * len(tables)
    from scipy.optimize import linear_sum_assignment

    best = np.full((len(tables), tables[0].shape[1]), np.nan)
    for row, table in enumerate(tables):
        if len(table):
            known = ~np.isnan(table)
            highest = np.where(known, table, -np.inf).max(axis=0)
            best[row] = np.where(known.any(axis=0), highest, np.nan)
    found: list[int | None] = [None] * len(tables)
    if least is not None:
        best[best < least] = np.nan
    rows, columns = linear_sum_assignment(np.where(np.isnan(best), _IMPOSSIBLE, best), maximize=True)
    for row, column in zip(rows, columns, strict=True):
        value = best[row, column]
        if not np.isnan(value):
            found[row] = int(column)
    return tuple(found)
