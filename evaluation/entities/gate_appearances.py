"""Stage: which appearances of each entity are compared across shots, and which stands for all (Eq. 22-31)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ..judging.answers import last_attempts
from ..metrics.vectors import unpacked
from .judging import MOST, GateSettings
from .metrics.catalogue import admitted, anchor, similarities_to_centroid

SPEC = StageSpec(
    name="gate_appearances",
    version=1,
    shape="map",
    reads=("shots",),
    writes=("gate",),
    libraries=("numpy",),
    settings=GateSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return for each scheduled entity who is compared; None where nobody encoded any appearance."""
    shots = item["shots"]
    if all(shot["vectors"] is None for shot in shots):
        return Made({"gate": None})
    keys = dict.fromkeys(entity["key"] for shot in shots for entity in shot["shot"]["entities"])
    least = tools.own(GateSettings).least
    scores = [fidelity_of(shot) for shot in shots]
    return Made({"gate": {key: _gated(key, shots, scores, least) for key in keys}})


def fidelity_of(shot: Json) -> dict[str, float]:
    """Return entity -> overall fidelity in [0, 1], of those that the judge scored."""
    beginning = f"{shot['shot']['key']}/"
    scored = {row["item"].removeprefix(beginning): row["parsed"] for row in last_attempts(shot["fidelity"])}
    return {
        key: parsed["overall"] / MOST
        for key, parsed in scored.items()
        if parsed is not None and parsed["overall"] is not None
    }


def _gated(
    key: str, shots: Sequence[Json], scores: Sequence[Mapping[str, float]], least: float
) -> dict[str, Any]:
    pool, gated, unscored, vectors = [], [], [], {}
    for shot, fidelity in zip(shots, scores, strict=True):
        name, seen = shot["shot"]["key"], ((shot["grounded"] or {}).get("entities") or {}).get(key)
        if seen is None or seen["status"] != "present":
            continue
        if not admitted(seen["status"], fidelity.get(key), least):
            gated.append(name)
            continue
        pool.append(name)
        if key not in fidelity:
            unscored.append(name)
        packed = (shot["vectors"] or {"crops": {}})["crops"].get(key)
        if packed is not None:
            vectors[name] = unpacked(packed)
    nearest, near = _nearest(vectors)
    return {
        "pool": pool, "gated": gated, "unscored": unscored, "anchor": nearest, "similarities": near,
    }  # fmt: skip


def _nearest(vectors: Mapping[str, Any]) -> tuple[str | None, dict[str, float]]:
    """Return the shot that is nearest to the centroid, and the cosine of each with it."""
    if not vectors:
        return None, {}
    rows = np.concatenate([np.atleast_2d(rows) for rows in vectors.values()])
    near, first = similarities_to_centroid(rows), anchor(rows)
    names = list(vectors)
    if near is None or first is None:
        return None, {}
    return names[first], dict(zip(names, map(float, near), strict=True))
