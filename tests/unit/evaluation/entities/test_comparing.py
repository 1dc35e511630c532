"""Comparing methods over episodes, and the tables of the paper."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import Archive, write_archive
from fabula.evaluation.entities.archived import EPISODES, Answer, EpisodeFacts, answer_of, read_facts
from fabula.evaluation.entities.metrics.aggregate import Definitions, Tally, tally
from fabula.evaluation.entities.metrics.catalogue import METRICS, metric_named
from fabula.evaluation.entities.published import check_b5, fingerprints
from fabula.evaluation.entities.scores import scores as scoring
from fabula.evaluation.entities.scores.tables import _best, score_tables
from fabula.evaluation.metrics.vectors import packed
from fabula.evaluation.report.formats import written
from fabula.schemas.canonical import canonical_bytes
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement
from fabula.schemas.values import Score

from .worked import ANA, HALL, episode

FIDELITY = "intra_face_fidelity"
FEW = Definitions(resamples=300)


def methods(
    first: Sequence[float], second: Sequence[float | None], metric: str = FIDELITY
) -> list[scoring.MethodScores]:
    def scored(index: int, value: float | None) -> scoring.EpisodeScore:
        tier = "easy" if index % 2 else "hard"
        tallies = {metric: Tally(value, passed=2 if value is not None else 0, skipped=1)}
        return scoring.EpisodeScore(f"film{index}__run", tier, f"film{index}", 10, tallies)

    both = [("ours", first), ("theirs", second)]
    return list(
        scoring.score_methods(
            ((name, scored(i, v)) for name, values in both for i, v in enumerate(values)), FEW
        )
    )


OURS, THEIRS = [0.9, 0.8, 0.7, 0.9, 0.6, 0.8, 0.9, 0.7], [0.4, 0.5, 0.6, 0.3, 0.5, None, 0.4, 0.6]
PAIRED = [(a, b) for a, b in zip(OURS, THEIRS, strict=True) if b is not None]


def test_effects_when_one_episode_lacks_a_value_are_of_the_others() -> None:
    ours, theirs = methods(OURS, THEIRS)
    effect = scoring.entity_effects([(ours, theirs)], FEW)[0]
    differences = [a - b for a, b in PAIRED]
    spread = math.sqrt((stdev(a for a, _ in PAIRED) ** 2 + stdev(b for _, b in PAIRED) ** 2) / 2)
    assert (effect.metric, effect.tier, effect.n) == (FIDELITY, "all", 7)
    assert effect.difference == pytest.approx(mean(differences))
    assert effect.d == pytest.approx(mean(differences) / spread)
    assert effect.d_z == pytest.approx(mean(differences) / stdev(differences))
    # The numbers have coverage: 2 of 3 instances in each episode, and 1 that has no value of the second.
    assert effect.gap == pytest.approx(mean(OURS) * 2 / 3 - mean(b for _, b in PAIRED) * 14 / 22)
    assert effect.better == "ours"
    assert effect.paired is not None and (effect.paired.higher, effect.paired.lower) == (7, 0)


def test_effects_when_tiers_are_known_are_given_by_tier() -> None:
    ours, theirs = methods(OURS, THEIRS)
    effects = {each.tier: each for each in scoring.entity_effects([(ours, theirs)], FEW)}
    assert {tier: each.n for tier, each in effects.items()} == {"all": 7, "easy": 3, "hard": 4}
    assert effects["hard"].paired is None
    assert effects["hard"].difference == pytest.approx((0.5 + 0.1 + 0.1 + 0.5) / 4)


def test_p_values_when_metrics_are_many_are_corrected_together() -> None:
    made = []
    for name in ("llm_face_accuracy", FIDELITY):
        made.append(methods(OURS, THEIRS, name))
    alone = scoring.entity_effects([tuple(made[0])], FEW)[0].paired  # type: ignore[list-item]
    episodes = [
        [
            (m.method, replace(e, tallies={**e.tallies, **f.tallies}))
            for e, f in zip(m.episodes, n.episodes, strict=True)
        ]
        for m, n in zip(*made, strict=True)
    ]
    ours, theirs = scoring.score_methods([each for some in episodes for each in some], FEW)
    both = [each.paired for each in scoring.entity_effects([(ours, theirs)], FEW) if each.paired is not None]
    scores = scoring.EntityScores(FEW, (ours, theirs))
    assert [row.note for row in next(score_tables(scores)).rows if row.scores] == ["best: ours"] * 2
    assert alone is not None and alone.p_wilcoxon is not None
    assert [each.p_wilcoxon_corrected for each in both] == [pytest.approx(2 * alone.p_wilcoxon)] * 2


def test_pooled_d_when_nothing_varies_or_is_alone_is_null() -> None:
    assert scoring.pooled_d(np.array([0.5, 0.5]), np.array([0.2, 0.2])) is None
    assert scoring.pooled_d(np.array([0.5]), np.array([0.2])) is None
    assert scoring.pooled_d(np.array([1.0, 3.0]), np.array([0.0, 2.0])) == pytest.approx(1 / math.sqrt(2))


def test_tables_when_scores_are_printed_have_the_layout_of_the_paper() -> None:
    scored = [(name, scoring.score_episode(episode(method=name))) for name in ("ours", "theirs")]
    scores = scoring.EntityScores(FEW, scoring.score_methods(scored, FEW))
    tables = {table.name: table for table in score_tables(scores)}
    assert list(tables) == [
        "table_4", "table_12", "table_13", "table_14", "table_15", "table_19", "table_20", "table_21", "gaps",
        "table_22",
    ]  # fmt: skip
    assert [row.label for row in tables["table_4"].rows][:5] == [
        "P1: Quality", "imaging_quality", "aesthetic_quality", "motion_smoothness", "P2: Presence",
    ]  # fmt: skip
    assert [measure.label for measure in tables["table_4"].measures] == ["ours", "theirs"]
    assert {row.note for row in tables["table_4"].rows} == {None}  # both have the same
    assert tables["table_15"].rows[1].note == (
        "ours: passed 2, failed 1, absent 1, missing 1; theirs: passed 2, failed 1, absent 1, missing 1"
    )
    assert [row.label for row in tables["table_21"].rows] == [
        "LLM, ours",
        "LLM, theirs",
        "DINOv2, ours",
        "DINOv2, theirs",
    ]
    assert tables["table_21"].rows[0].note == "pairs: 1, 0, 0, 0, 0"
    assert "| aesthetic\\_quality | 0.300 | 0.300 |" in written(tables.values(), "markdown")
    assert (
        json.loads(json.dumps(scores.as_json()))["methods"][0]["tiers"]["all"]["cs_face"]["coverage"] == 0.5
    )
    assert any("intra_face_fidelity" in line and "0.220" in line for line in scores.lines())


def manifest(**environment: object) -> EvaluationManifest:
    protocol = {"manifest": {"config": {"box": 0.25}, "model_checkpoints": fingerprints(CHECKPOINTS)}}
    return EvaluationManifest(kind="episodes", protocol=protocol, subject={}, environment=environment)


CHECKPOINTS = {
    "GDINO_WEIGHTS": {"path": "/a/gdino.pth", "size": 5, "head_sha256": "00"},
    "CLIP_MODEL_PATH": {"path": "/b/clip", "type": "directory"},
    "GDINO_CONFIG": "MISSING (/c/config.py)",
    "VBENCH_CACHE_DIR": "UNSET",
}


def test_checkpoints_when_kept_are_known_by_fingerprint_and_not_by_place() -> None:
    assert fingerprints(CHECKPOINTS) == {
        "GDINO_WEIGHTS": {"size": 5, "head_sha256": "00"},
        "CLIP_MODEL_PATH": {"type": "directory", "name": "clip"},
        "GDINO_CONFIG": "MISSING",
        "VBENCH_CACHE_DIR": "UNSET",
    }


def test_b5_when_only_time_platform_and_keys_differ_lets_them_be_compared() -> None:
    same = {"libraries": {"torch": "2.1"}, "fabula": "1"}
    check_b5(
        manifest(**same, platform="a", timestamp_utc="x"), manifest(**same, platform="b", timestamp_utc="y")
    )
    other = manifest(libraries={"torch": "2.2"}, fabula="1")
    with pytest.raises(InputError, match=r'libraries\.torch.*"2\.1".*"2\.2"'):
        check_b5(manifest(**same), other)
    check_b5(manifest(**same), other, ("libraries",))


def test_b5_when_what_was_asked_differs_refuses_it() -> None:
    changed = manifest()
    changed.protocol["manifest"]["config"]["box"] = 0.3
    with pytest.raises(InputError, match=r"config\.box"):
        check_b5(manifest(), changed)


# Reading the archive of an evaluation of episodes.

SAID: Mapping[tuple[str, str], dict[str, Any] | None] = {
    ("fidelity", "1:1/character:Ana"): {"overall": 8, "criteria": {"face": 6, "clothing": 9}},
    ("fidelity", "1:1/character:Ben"): {
        "overall": 3,
        "criteria": {"clothing": None},
        "reason": "x",
        "unread": {"clothing": "null"},
    },
    ("fidelity", "1:1/object:cup"): {"overall": 4, "criteria": {}},
    ("fidelity", "1:1/location:Hall"): {"overall": 9, "criteria": {}},
    ("fidelity", "1:2/character:Ana"): None,
    ("fidelity", "1:2/location:Hall"): {"overall": 7, "criteria": {}},
    ("fidelity", "2:1/object:cup"): {"overall": 6, "criteria": {}},
    ("action", "1:1"): {"overall": 7, "depicted": True, "object_interaction": 2, "reason": "1"},
    ("action", "1:2"): None,
    ("action", "2:1"): {"overall": 5, "depicted": None, "unread": {"depicted": "maybe"}},
    ("pair", f"{ANA}/1:1/1:2"): {
        "same": True,
        "similarity": 9,
        "criteria": {"face": 8, "hair": None},
        "unread": {"hair": "null"},
    },
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
    scores = scoring.score_folder(tmp_path, Definitions(resamples=0))
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
def test_facts_when_the_file_is_something_else_are_refused(tmp_path, content, problem):
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
def test_facts_when_a_line_contradicts_itself_are_refused(tmp_path, old, new, problem):
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
        "criteria": {"face": 10, "hair": None, "build": None, "clothing": None},
        "reason": "x",
        "outliers": [1],
        "unread": {"similarity": "null", "hair": "null", "build": "nothing", "clothing": '"good"'},
    }
    values = {"same": 1.0, "similarity": None, "face": 1.0, **dict.fromkeys(("hair", "build", "clothing"))}
    # What is not there, or no number, has failed; so has an overall score that is null.
    assert answer_of("answered", parsed) == Answer("answered", values, frozenset({"hair"}))
    assert answer_of("refused", None) == Answer("refused")


@pytest.mark.parametrize(
    ("metric", "values", "note"),
    [
        ("llm_face_accuracy", {"a": 0.5, "b": 0.75, "c": None}, "best: b"),
        ("llm_face_accuracy", {"a": 0.75, "b": 0.75, "c": 0.5}, None),  # equals
        ("llm_face_accuracy", {"a": 0.5, "c": None}, None),  # one method
        ("llm_face_accuracy", {"c": None}, None),
    ],
)
def test_best_method_when_there_are_several_is_named_unless_two_are_equal(metric, values, note):
    none = Score(value=None, status="undefined", reason="nobody is seen")
    scores = {
        name: none if value is None else Score(value=value, status="ok") for name, value in values.items()
    }
    assert _best(metric_named(metric), scores) == note
