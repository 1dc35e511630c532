"""A small evaluation of episodes written by hand, with pictures, for the tests of its page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..evaluation.archive.archive import write_archive
from ..evaluation.entities.archived import CRITERIA, EPISODES
from ..evaluation.metrics.vectors import packed
from ..schemas.canonical import Json, canonical_bytes
from ..schemas.entities import EntityType
from ..schemas.judgement import EvaluationManifest, Judge, Judgement

CAST: Mapping[str, EntityType] = {"Ana": "character", "the cup": "object", "The Hall": "location"}
SHOTS = ("1:1", "1:2", "2:1")
"""Shots of each episode; the last has no video."""
FIDELITY = {"1:1": 9, "1:2": 6}
"""Shot -> overall fidelity of everything in it; that of the object in the second shot is refused."""
REFUSED = ("1:2", "the cup")
JUDGE = Judge(spec="openai:judge", provider="openai", model="judge", reported_model=None)


def write_run(
    folder: Path,
    methods: Sequence[str] = ("model-a",),
    episodes: Sequence[str] = ("film__ep",),
    names: Mapping[str, str] | None = None,
) -> Path:
    """Write an evaluation folder, in which a crop of each entity is one grey picture.

    ``names``: name in :data:`CAST` -> name that it has instead.
    """
    from PIL import Image

    (folder / "store").mkdir(parents=True)
    Image.new("RGB", (64, 64), (128, 128, 128)).save(folder / "store/crop.png")
    named = {key: (names or {}).get(key, key) for key in CAST}
    rows, judgements = [], list[Judgement]()
    for method in sorted(methods):
        for episode in sorted(episodes):
            rows.append(_line(method, episode, named))
            judgements += _judgements(method, episode, named)
    manifest = EvaluationManifest(
        kind="episodes", protocol={"pillars": [1, 2, 3]}, subject={}, environment={}
    )
    write_archive(folder, manifest, sorted(judgements, key=lambda one: (one.method or "", one.unit)))
    (folder / EPISODES).write_bytes(b"".join(canonical_bytes(row) + b"\n" for row in rows))
    return folder


def key_of(name: str, named: Mapping[str, str]) -> str:
    """Return the key of an entity of the cast."""
    return f"{CAST[name]}:{named[name]}"


def _line(method: str, episode: str, named: Mapping[str, str]) -> Json:
    gate = {key_of(name, named): {"pool": ["1:1", "1:2"], "gated": [], "unscored": [], "anchor": "1:1"}
            for name in CAST}  # fmt: skip
    gate[key_of("the cup", named)]["unscored"] = ["1:2"]
    shots = [_shot(index, key, named) for index, key in enumerate(SHOTS)]
    about = {"episode_id": episode, "tier": "easy"}
    return {"method": method, "episode_id": episode, "episode": about, "shots": shots, "gate": gate}


def _shot(index: int, key: str, named: Mapping[str, str]) -> Json:
    scene, number = map(int, key.split(":"))
    reached = key in FIDELITY
    entities = [
        {"key": key_of(name, named), "type": kind, "name": named[name], "description": f"{named[name]}: grey"}
        for name, kind in CAST.items()
    ]
    crop = {"clip": 0.3, "file": "store/crop.png"}
    seen = {entity["key"]: {"status": "present", "boxes": {}, "canonical": crop} for entity in entities}
    vector = packed(np.array([[1.0, 0.2 * index]]))
    quality = {"aesthetic_quality": 0.5, "imaging_quality": 60.0, "dynamic_degree": None}
    why = {"dynamic_degree": "fewer than two frames"}
    return {
        "shot": {
            "key": key, "index": index, "scene": scene, "number": number, "cut": number == 1,
            "action": f"{named['Ana']} takes {named['the cup']}.", "entities": entities,
            "code": None if reached else "missing",
        },
        "frames": {"invalid": None if reached else "missing", "pictures": {"0": "store/crop.png"}},
        "grid": None,
        "quality": {"definition": "paper", "values": quality, "why": why} if reached else None,
        "grounded": {"models": {}, "entities": seen} if reached else None,
        "vectors": {"model": "drawn", "crops": dict.fromkeys(seen, vector), "first": vector, "last": vector}
        if reached else None,
    }  # fmt: skip


def _judgements(method: str, episode: str, named: Mapping[str, str]) -> list[Judgement]:
    asked: list[tuple[str, str, Json]] = []
    for name, kind in CAST.items():
        key, criteria = key_of(name, named), dict.fromkeys(CRITERIA[kind], 7)
        for shot, score in FIDELITY.items():
            parsed = None if (shot, name) == REFUSED else {"overall": score, "criteria": criteria}
            asked.append(("fidelity", f"{shot}/{key}", parsed))
        asked.append(("pair", f"{key}/1:1/1:2", {"same": True, "similarity": 8, "criteria": criteria}))
    asked += [("action", shot, {"overall": 7, "depicted": True}) for shot in FIDELITY]
    return [
        Judgement(
            protocol="episodes", kind=kind, method=method, unit=episode, seed=None, item=item,
            condition="video" if kind == "action" else "image", judge=JUDGE, vote=0, prompt="",
            outcome="refused" if parsed is None else "answered", parsed=parsed,
            reason="it would not judge this" if parsed is None else None,
            raw=None if parsed is None else f"<b>{named['Ana']}</b> {parsed}",
            input_tokens=None, output_tokens=None, cost=None, time=None,
        )
        for kind, item, parsed in asked
    ]  # fmt: skip
