"""The detections and vectors of a story, as the metrics take them."""

from collections.abc import Mapping

import numpy as np

from ...schemas.canonical import Json
from ..metrics.cids import Character, ShotCrops
from ..metrics.vectors import Floats, Vectors, unit
from .looking import unpacked


def characters_of(crops: Json) -> tuple[Character, ...]:
    """Return the characters of a story with the vectors of their references, in the order of the script."""
    return tuple(
        Character(key, tuple(encoders), vectors_of(crops["references"].get(key, {})))
        for key, encoders in crops["encoders"].items()
    )


def shots_of(shots: Json, crops: Json) -> tuple[ShotCrops, ...]:
    """Return the shots of a story with the vectors of their crops."""
    made = []
    for shot in shots:
        there = crops["shots"].get(str(shot["number"]))
        found = None if there is None else vectors_of(there)
        made.append(ShotCrops(shot["number"], tuple(shot["expected"]), found))
    return tuple(made)


def mirrors_of(crops: Json) -> dict[str, Vectors]:
    """Return the vectors of the mirror images of the first references."""
    return {key: vectors_of(rows) for key, rows in crops["mirrors"].items()}


def vectors_of(rows: Mapping[str, Json]) -> Vectors:
    """Return rows by encoder as unit vectors in double precision."""
    return Vectors({name: unit(doubles(table)) for name, table in rows.items()})


def doubles(value: Json) -> Floats:
    """Return packed rows in double precision."""
    return unpacked(value).astype(np.float64)
