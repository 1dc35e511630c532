"""Reading the archive of an evaluation of episodes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import Archive, write_archive
from fabula.evaluation.entities.archived import answer_of, read_facts
from fabula.evaluation.entities.entities import EPISODES
from fabula.evaluation.entities.facts import Answer, EpisodeFacts
from fabula.evaluation.entities.metrics.aggregate import Definitions
from fabula.evaluation.entities.metrics.catalogue import METRICS
from fabula.evaluation.entities.metrics.tallies import tally
from fabula.evaluation.entities.scores.score import score_folder
from fabula.evaluation.metrics.vectors import packed
from fabula.schemas.canonical import canonical_bytes
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement

from .worked import ANA, HALL, episode

SAID: Mapping[tuple[str, str], dict[str, Any] | None] = {
    ("fidelity", "1:1/character:Ana"): {"overall": 8, "criteria": {"face": 6}},
    ("fidelity", "1:1/character:Ben"): {"overall": 3, "criteria": {}, "reason": "somebody else"},
    ("fidelity", "1:1/object:cup"): {"overall": 4, "criteria": {}},
    ("fidelity", "1:1/location:Hall"): {"overall": 9, "criteria": {}},
    ("fidelity", "1:2/character:Ana"): None,
    ("fidelity", "1:2/location:Hall"): {"overall": 7, "criteria": {}},
    ("fidelity", "2:1/object:cup"): {"overall": 6, "criteria": {}},
    ("action", "1:1"): {"overall": 7, "depicted": True, "object_interaction": 2, "reason": "1"},
    ("action", "1:2"): None,
    ("action", "2:1"): {"overall": 5, "depicted": None, "unread": {"depicted": "maybe"}},
    ("pair", f"{ANA}/1:1/1:2"): {"same": True, "similarity": 9, "criteria": {"face": 8, "hair": None}},
    ("pair", f"{HALL}/1:1/1:2"): {"same": False, "similarity": 4, "criteria": {}, "descriptions": ["a", "b"]},
}
"""What is asked and its item -> what the judge said, as our archive keeps it; as in the worked episode."""


def judgement(kind: str, item: str, parsed: dict[str, Any] | None, spec: str = "openai:judge") -> Judgement:
    provider, model = spec.split(":")
    judge = Judge(spec=spec, provider=provider, model=model, reported_model=None)
    return Judgement(
        protocol="episodes", kind=kind, method="ours", unit="film__run1", seed=None, item=item,
        condition="image", judge=judge, vote=0, prompt="",
        outcome="failed" if parsed is None else "answered", reason=None, raw=None, parsed=parsed,
        input_tokens=None, output_tokens=None, cost=None, time=None,
    )  # fmt: skip


def line_of(facts: EpisodeFacts) -> dict[str, Any]:
    """The line of an archive in which the facts of an episode stand."""
    shots = []
    for shot in facts.shots:
        entities = [{"key": a.entity, "type": a.type, "name": a.name} for a in shot.appearances]
        action = "Ana lifts the cup." if shot.names_object else "Ana waits."
        crops = {a.entity: packed(a.vector[None]) for a in shot.appearances if a.vector is not None}
        edges = {
            name: None if vector is None else packed(np.array([vector]))
            for name, vector in (("first", shot.first), ("last", shot.last))
        }
        seen = {
            a.entity: {"status": a.status, "boxes": {}, "canonical": {"clip": a.clip}}
            for a in shot.appearances
        }
        shots.append(
            {
                "shot": {
                    "key": shot.key, "index": shot.index, "scene": shot.scene, "number": 1, "cut": shot.cut,
                    "action": action, "entities": entities, "code": None if shot.reached else "missing",
                },
                "frames": {"invalid": None if shot.reached else "missing"}, "grid": None,
                "quality": None if shot.quality is None else {"definition": "paper", "values": shot.quality},
                "grounded": {"models": {}, "entities": seen if shot.reached else {}},
                "vectors": {"model": "drawn", "crops": crops, **edges} if shot.reached else None,
            }
        )  # fmt: skip
    gate = {
        key: {"pool": each.pool, "gated": each.gated, "unscored": each.unscored, "anchor": each.anchor}
        for key, each in (facts.gate or {}).items()
    }
    about = {"episode_id": facts.episode_id, "tier": facts.tier}
    return {
        "method": facts.method, "episode_id": facts.episode_id, "episode": about, "shots": shots,
        "gate": gate,
    }  # fmt: skip


def archive(folder: Path, *extra: Judgement, lines: int = 1) -> Archive:
    manifest = EvaluationManifest(
        kind="episodes", protocol={"pillars": [1, 2, 3]}, subject={}, environment={}
    )  # fmt: skip
    judged = (*(judgement(*asked, parsed) for asked, parsed in SAID.items()), *extra)
    write_archive(folder, manifest, judged)
    (folder / EPISODES).write_bytes(lines * (canonical_bytes(line_of(episode())) + b"\n"))
    return Archive(manifest, judged)


def test_facts_when_read_from_an_archive_give_the_numbers_worked_out_by_hand(tmp_path: Path) -> None:
    (facts,) = read_facts(tmp_path, archive(tmp_path))
    assert [shot.names_object for shot in facts.shots] == [True, False, False, False]
    for metric in METRICS:
        ours, worked = tally(metric, facts), tally(metric, episode())
        assert ours.value == pytest.approx(worked.value, abs=1e-6), metric.name  # vectors are kept in float32
        assert ours.eligible == worked.eligible
    scores = score_folder(tmp_path, Definitions(resamples=0))
    assert scores.methods[0].numbers["intra_face_fidelity"].value == pytest.approx(0.22)
    assert (
        "ours: the gate held back 1 of 6 present appearances; 1 were let through without a fidelity"
        in scores.notes
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "a line of JSON"),
        (b"{}\n", "no 'method'"),
        (b"[]\n", "evaluation of episodes"),
        (None, EPISODES),
    ],
)
def test_facts_when_the_file_is_something_else_are_refused(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    made = archive(tmp_path)
    (tmp_path / EPISODES).unlink()
    if content is not None:
        (tmp_path / EPISODES).write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_facts(tmp_path, made)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"pool":["1:1","1:2"]', b'"pool":["1:1","2:1"]', "location:Hall is compared in shot 2:1"),
        (b'"key":"1:2"', b'"key":"1:1"', "twice"),
        (b'"type":"location"', b'"type":"place"', "none of character"),
        (b'"aesthetic_quality":0.5', b'"aesthetic_quality":"good"', "'good' is no number"),
    ],
)
def test_facts_when_a_line_contradicts_itself_are_refused(
    tmp_path: Path, old: bytes, new: bytes, problem: str
) -> None:
    made = archive(tmp_path)
    content = (tmp_path / EPISODES).read_bytes()
    assert old in content
    (tmp_path / EPISODES).write_bytes(content.replace(old, new))
    with pytest.raises(InputError, match=problem):
        read_facts(tmp_path, made)


def test_answer_when_values_are_null_or_no_scores_keeps_what_is_scored() -> None:
    parsed = {
        "same": True,
        "similarity": None,
        "criteria": {"face": 10, "hair": None},
        "reason": "x",
        "outliers": [1],
    }
    assert answer_of("answered", parsed) == Answer(
        "answered", {"same": 1.0, "similarity": None, "face": 1.0, "hair": None}
    )
    assert answer_of("refused", None) == Answer("refused")
