"""One small episode whose numbers are worked out by hand in the tests."""

import numpy as np

from fabula.evaluation.entities.archived import CRITERIA, Answer, Appearance, EpisodeFacts, Gate, ShotFacts
from fabula.schemas.entities import EntityType

ANA, BEN, CUP, HALL = "character:Ana", "character:Ben", "object:cup", "location:Hall"
EAST, NORTH = np.array([1.0, 0.0]), np.array([0.0, 1.0])
FAILED = Answer("failed")


def said(**values: float | None) -> Answer:
    nulls = frozenset(name for name, value in values.items() if value is None)
    return Answer("answered", values, nulls & {*CRITERIA["character"]})


def seen(entity: str, status: str, fidelity: Answer | None = None, vector: object = None) -> Appearance:
    kind, name = entity.split(":")
    types: dict[str, EntityType] = {"character": "character", "object": "object", "location": "location"}
    return Appearance(entity, types[kind], name, status, 0.3, vector, fidelity)  # type: ignore[arg-type]


def episode(episode_id: str = "film__run1", method: str = "ours") -> EpisodeFacts:
    """Four shots in two scenes; the last has no video. Ana is in all of them, Ben in the first only."""
    shots = (
        ShotFacts(
            "1:1", 0, 1, True, True, True, True,
            (
                seen(ANA, "present", said(overall=0.8, face=0.6, clothing=0.9), EAST),
                seen(BEN, "weak", said(overall=0.3, clothing=None)),
                seen(CUP, "present", said(overall=0.4), EAST), seen(HALL, "present", said(overall=0.9), EAST),
            ),
            {"aesthetic_quality": 0.5}, said(overall=0.7, depicted=1.0, object_interaction=0.2), EAST, EAST,
        ),
        ShotFacts(
            "1:2", 1, 1, False, True, True, False,
            (seen(ANA, "present", FAILED, NORTH), seen(HALL, "present", said(overall=0.7), EAST)),
            {"aesthetic_quality": 0.7}, FAILED, np.array([0.6, 0.8]), NORTH,
        ),
        ShotFacts(
            "2:1", 2, 2, True, True, True, False,
            (seen(ANA, "absent"), seen(CUP, "present", said(overall=0.6), EAST)),
            {"aesthetic_quality": None}, said(overall=0.5, depicted=None), EAST, EAST,
        ),
        ShotFacts(
            "2:2", 3, 2, False, False, True, False, (Appearance(ANA, "character", "Ana"),)
        ),
    )  # fmt: skip
    gate = {
        ANA: Gate(("1:1", "1:2"), (), ("1:2",), "1:1"), BEN: Gate(),
        CUP: Gate(("2:1",), ("1:1",)), HALL: Gate(("1:1", "1:2"), anchor="1:1"),
    }  # fmt: skip
    pairs = {
        (ANA, "1:2"): said(same=1.0, similarity=0.9, face=0.8, hair=None),
        (HALL, "1:2"): said(same=0.0, similarity=0.4),
    }
    return EpisodeFacts(method, episode_id, "easy", shots, gate, pairs)
