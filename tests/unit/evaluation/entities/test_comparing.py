"""Comparing methods over episodes, and the tables of the paper."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.entities.metrics.aggregate import Definitions
from fabula.evaluation.entities.metrics.tallies import Tally
from fabula.evaluation.entities.scores.compare import entity_effects, pooled_d
from fabula.evaluation.entities.scores.manifests import check_b5, fingerprints
from fabula.evaluation.entities.scores.scores import (
    EntityScores,
    EpisodeScore,
    MethodScores,
    score_episode,
    score_methods,
)
from fabula.evaluation.entities.scores.tables import score_tables
from fabula.evaluation.report.formats import written
from fabula.schemas.judgement import EvaluationManifest

from .worked import episode

FIDELITY = "intra_face_fidelity"
FEW = Definitions(resamples=300)


def methods(
    first: Sequence[float], second: Sequence[float | None], metric: str = FIDELITY
) -> list[MethodScores]:
    def scored(index: int, value: float | None) -> EpisodeScore:
        tier = "easy" if index % 2 else "hard"
        tallies = {metric: Tally(value, passed=2 if value is not None else 0, skipped=1)}
        return EpisodeScore(f"film{index}__run", tier, f"film{index}", 10, tallies)

    both = [("ours", first), ("theirs", second)]
    return list(
        score_methods(((name, scored(i, v)) for name, values in both for i, v in enumerate(values)), FEW)
    )


OURS, THEIRS = [0.9, 0.8, 0.7, 0.9, 0.6, 0.8, 0.9, 0.7], [0.4, 0.5, 0.6, 0.3, 0.5, None, 0.4, 0.6]
PAIRED = [(a, b) for a, b in zip(OURS, THEIRS, strict=True) if b is not None]


def test_effects_when_one_episode_lacks_a_value_are_of_the_others() -> None:
    ours, theirs = methods(OURS, THEIRS)
    effect = entity_effects([(ours, theirs)], FEW)[0]
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
    effects = {each.tier: each for each in entity_effects([(ours, theirs)], FEW)}
    assert {tier: each.n for tier, each in effects.items()} == {"all": 7, "easy": 3, "hard": 4}
    assert effects["hard"].paired is None
    assert effects["hard"].difference == pytest.approx((0.5 + 0.1 + 0.1 + 0.5) / 4)


def test_p_values_when_metrics_are_many_are_corrected_together() -> None:
    made = []
    for name in ("llm_face_accuracy", FIDELITY):
        made.append(methods(OURS, THEIRS, name))
    alone = entity_effects([tuple(made[0])], FEW)[0].paired  # type: ignore[list-item]
    episodes = [
        [
            (m.method, replace(e, tallies={**e.tallies, **f.tallies}))
            for e, f in zip(m.episodes, n.episodes, strict=True)
        ]
        for m, n in zip(*made, strict=True)
    ]
    ours, theirs = score_methods([each for some in episodes for each in some], FEW)
    both = [each.paired for each in entity_effects([(ours, theirs)], FEW) if each.paired is not None]
    scores = EntityScores(FEW, (ours, theirs))
    assert [row.note for row in next(score_tables(scores)).rows if row.scores] == ["best: ours"] * 2
    assert alone is not None and alone.p_wilcoxon is not None
    assert [each.p_wilcoxon_corrected for each in both] == [pytest.approx(2 * alone.p_wilcoxon)] * 2


def test_pooled_d_when_nothing_varies_or_is_alone_is_null() -> None:
    assert pooled_d(np.array([0.5, 0.5]), np.array([0.2, 0.2])) is None
    assert pooled_d(np.array([0.5]), np.array([0.2])) is None
    assert pooled_d(np.array([1.0, 3.0]), np.array([0.0, 2.0])) == pytest.approx(1 / math.sqrt(2))


def test_tables_when_scores_are_printed_have_the_layout_of_the_paper() -> None:
    scored = [(name, score_episode(episode(method=name))) for name in ("ours", "theirs")]
    scores = EntityScores(FEW, score_methods(scored, FEW))
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
