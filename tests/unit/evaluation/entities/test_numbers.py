"""The metrics of an episode and their aggregation, against values worked out by hand."""

from dataclasses import replace
from itertools import permutations
from math import sqrt

import numpy as np
import pytest

from fabula.errors import ConfigError
from fabula.evaluation.entities.metrics import aggregate
from fabula.evaluation.entities.metrics.catalogue import (
    METRICS,
    admitted,
    anchor,
    centroid,
    metric_named,
    similarities_to_centroid,
)
from fabula.evaluation.entities.scores.scores import score_episode, score_methods

from .worked import ANA, FAILED, HALL, episode, said

EQ23 = aggregate.Definitions(resamples=0)
ROOT = sqrt(0.5)  # the cosine of two vectors at right angles with their centroid

# metric: value of the episode; passed, skipped, unseen, failed, absent, missing; corrected mean under eq23
TABLE = {
    # Shots 1:1 (0.5) and 1:2 (0.7); that of 2:1 could not be measured, 2:2 is missing: 0.6 x 2/4.
    "aesthetic_quality": (0.6, (2, 0, 0, 1, 0, 1), 0.3),
    # 1:1 has Ana and not Ben (1/2), 1:2 Ana (1/1), 2:1 nobody (0/1), 2:2 is missing: 0.5 x 3/4.
    "intra_character_presence": (0.5, (3, 0, 0, 0, 0, 1), 0.375),
    "intra_object_presence": (1.0, (2, 0, 0, 0, 0, 0), 1.0),
    # 1:1: (0.8 + 0.3) / 2; the reply on 1:2 failed, Ana is absent in 2:1 and missing in 2:2: 0.55 x 2/5.
    "intra_face_fidelity": (0.55, (2, 0, 0, 1, 1, 1), 0.22),
    # Only Ana in 1:1 has a score of her face; Ben's reply has none.
    "intra_face_face": (0.6, (1, 0, 0, 2, 1, 1), 0.12),
    # Ana has a score of her clothing, Ben's cannot be seen; failed, absent and missing count: 0.9 x 1/4.
    "intra_face_clothing": (0.9, (1, 0, 1, 1, 1, 1), 0.225),
    "intra_object_fidelity": (0.5, (2, 0, 0, 0, 0, 0), 0.5),
    "intra_location_fidelity": (0.8, (2, 0, 0, 0, 0, 0), 0.8),
    # 0.7 and 0.5, one reply failed, one shot is missing: 0.6 x 2/4.
    "intra_action_overall": (0.6, (2, 0, 0, 1, 0, 1), 0.3),
    # Replies of 1:1 and, without a verdict, of 2:1.
    "intra_action_depicted": (1.0, (1, 0, 0, 2, 0, 1), 0.25),
    # Only 1:1 names an object that it schedules.
    "intra_action_object_interaction": (0.2, (1, 0, 0, 0, 0, 0), 0.2),
    # Ana's two admitted crops are at right angles; absent and missing count zero: ROOT x 2/4.
    "cs_face": (ROOT, (2, 0, 0, 0, 1, 1), ROOT / 2),
    # One cup was held back, so that the other is alone.
    "cs_object": (None, (0, 2, 0, 0, 0, 0), None),
    # 1:1 to 1:2 is (1, 0) beside (0.6, 0.8); 2:2 has no video: 0.6 x 1/2.
    "cs_transition_boundary": (0.6, (1, 0, 0, 0, 0, 1), 0.3),
    # Of Ana's three re-appearances one is judged: 1 x 1/3, and 0.9 x 1/3.
    "llm_face_accuracy": (1.0, (1, 0, 0, 0, 1, 1), 1 / 3),
    "llm_face_mean_score": (0.9, (1, 0, 0, 0, 1, 1), 0.3),
    # The one pair that is judged shows no hair.
    "llm_face_hair": (None, (0, 0, 1, 0, 1, 1), None),
    "llm_object_accuracy": (None, (0, 1, 0, 0, 0, 0), None),
    "llm_scene_accuracy": (0.0, (1, 0, 0, 0, 0, 0), 0.0),
    "llm_scene_mean_score": (0.4, (1, 0, 0, 0, 0, 0), 0.4),
}


@pytest.mark.parametrize("name", TABLE)
def test_metric_when_episode_is_small_has_the_value_worked_out_by_hand(name: str) -> None:
    value, counts, corrected = TABLE[name]
    metric = metric_named(name)
    made = aggregate.tally(metric, episode())
    assert made.value == pytest.approx(value)
    assert tuple(getattr(made, name) for name in aggregate.COUNTED[:-1]) == counts
    score = aggregate.number(metric, [made], EQ23)
    assert score.corrected == pytest.approx(corrected)
    assert score.value == score.corrected
    assert score.score.counts["eligible"] == sum(counts)


def two() -> list[aggregate.Tally]:
    return [
        aggregate.Tally(0.5, passed=2, skipped=1, failed=1, public=aggregate.Counters(2, 1, 1)),
        aggregate.Tally(1.0, 6, public=aggregate.Counters(6, 0, 2)),
    ]


@pytest.mark.parametrize(
    ("coverage", "value", "raw", "share"),
    [
        # (0.5 x 2 + 1 x 6) / 10 = 0.7; raw 7 / 8; coverage 8 / 10
        ("eq23", 0.7, 0.875, 0.8),
        ("b5", 0.75, 0.875, 0.8),
        # by the public counters: 8 of 2 + 1 + 1 + 6 + 2 = 12
        ("code", 0.75, 0.875, 8 / 12),
    ],
)
def test_number_when_episodes_differ_in_size_follows_the_definition(coverage, value, raw, share):
    made = aggregate.number(
        metric_named("llm_face_accuracy"), two(), aggregate.Definitions(coverage=coverage, resamples=0)
    )  # type: ignore[arg-type]
    assert (made.value, made.raw, made.coverage) == pytest.approx((value, raw, share))
    assert made.corrected == pytest.approx(raw * share)
    assert made.mean == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("name", "coverage"), [("intra_face_fidelity", 2 / 3), ("cs_face", 2 / 3), ("llm_face_accuracy", 1 / 3)]
)
def test_coverage_when_definition_is_table15_is_lowered_by_missing_shots_alone_but_for_pairs(name, coverage):
    metric = metric_named(name)
    made = aggregate.number(
        metric, [aggregate.tally(metric, episode())], aggregate.Definitions(coverage="table15", resamples=0)
    )
    assert made.coverage == pytest.approx(coverage)


@pytest.mark.parametrize(
    ("unseen", "value", "share"),
    [("outside", 0.225, 1 / 4), ("inside", 0.18, 1 / 5)],  # of five instances one is scored, 0.9
)
def test_coverage_when_a_criterion_cannot_be_seen_follows_the_definition(unseen, value, share):
    metric = metric_named("intra_face_clothing")
    made = aggregate.number(
        metric, [aggregate.tally(metric, episode())], aggregate.Definitions(unseen=unseen, resamples=0)
    )  # type: ignore[arg-type]
    assert (made.raw, made.value, made.coverage) == pytest.approx((0.9, value, share))
    assert (made.score.counts["unseen"], made.score.counts["eligible"]) == (1, 5)


@pytest.mark.parametrize("why", ["skipped", "absent", "missing", "failed", "unseen"])
@pytest.mark.parametrize("name", ["llm_object_accuracy", "cs_face", "intra_face_fidelity"])
def test_number_when_nothing_was_scored_has_no_value_whatever_the_reason(name: str, why: str) -> None:
    made = aggregate.number(metric_named(name), [replace(aggregate.Tally(None), **{why: 2})], EQ23)
    assert (made.value, made.raw, made.score.status) == (None, None, "undefined")
    assert made.coverage == (None if why == "unseen" else 0.0)


def test_a_reply_when_it_failed_never_becomes_a_number() -> None:
    metric, facts = metric_named("llm_face_accuracy"), episode()
    failed = replace(facts, pairs={**facts.pairs, (ANA, "1:2"): FAILED})
    made = aggregate.number(metric, [aggregate.tally(metric, failed)], EQ23)
    assert (made.value, made.raw, made.coverage) == (None, None, 0.0)
    assert made.score.reason == "nothing was scored"


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_mean_when_a_shot_is_lost_does_not_rise(metric: object) -> None:
    metric = metric_named(metric.name)  # type: ignore[attr-defined]
    facts = episode()
    before = aggregate.number(metric, [aggregate.tally(metric, facts)], EQ23)
    for index, shot in enumerate(facts.shots):
        unseen = tuple(replace(each, status=None, fidelity=None, vector=None) for each in shot.appearances)
        missing = replace(shot, reached=False, appearances=unseen)
        lost = [missing if each is shot else each for each in facts.shots]
        gate = {key: replace(gate, pool=tuple(k for k in gate.pool if k != shot.key), anchor=None)
                for key, gate in (facts.gate or {}).items()}  # fmt: skip
        made = aggregate.tally(metric, replace(facts, shots=tuple(lost), gate=gate, pairs={}))
        assert made.eligible == aggregate.tally(metric, facts).eligible, index
        whole = aggregate.number(metric, [made], EQ23).coverage
        assert whole is None or before.coverage is None or whole <= before.coverage


def test_location_when_a_pair_differs_or_was_not_answered_is_decided_or_not() -> None:
    facts, metric = episode(), metric_named("llm_scene_accuracy")
    shots = (*facts.shots[:2], replace(facts.shots[2], appearances=(replace(facts.shots[0].appearances[3]),)))
    gate = {**(facts.gate or {}), HALL: replace((facts.gate or {})[HALL], pool=("1:1", "1:2", "2:1"))}
    verdicts = [(1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, None, 0.0), (1.0, None, None), (None, None, None)]
    for first, second, expected in verdicts:
        pairs = {(HALL, "1:2"): said(same=first), (HALL, "2:1"): said(same=second)}
        made = aggregate.tally(metric, replace(facts, shots=shots, gate=gate, pairs=pairs))
        assert made.value == expected
        assert made.failed == (expected is None)


def test_metrics_when_listed_are_51_with_the_24_short_names_of_table_4() -> None:
    assert [sum(metric.pillar == pillar for metric in METRICS) for pillar in (1, 2, 3)] == [6, 24, 21]
    short = ("char_presence", "obj_presence", "loc_presence", "face_fidelity", "object_fidelity",
             "location_fidelity", "action_overall", "action_subject", "action_interaction")  # fmt: skip
    assert [metric_named(name).name for name in short] == [
        "intra_character_presence", "intra_object_presence", "intra_location_presence", "intra_face_fidelity",
        "intra_object_fidelity", "intra_location_fidelity", "intra_action_overall",
        "intra_action_subject_identity", "intra_action_object_interaction",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="no metric 'vibes'"):
        metric_named("vibes")


def test_scores_when_episodes_come_in_any_order_are_the_same() -> None:
    other = replace(episode("second__run2"), tier="hard")
    third = episode("film__run3")
    third = replace(
        third, shots=(replace(third.shots[0], quality={"aesthetic_quality": 0.9}), *third.shots[1:])
    )
    scored = [("ours", score_episode(facts)) for facts in (episode(), other, third)]
    definitions = aggregate.Definitions(resamples=200, interval="percentile")
    made = {
        str(
            {
                tier: {name: round(n.value or 0, 9) for name, n in some.items()}
                for tier, some in sorted(m.tiers.items())
            }
        )
        for order in permutations(scored)
        for m in score_methods(order, definitions)
    }
    assert len(made) == 1


def test_intervals_when_all_episodes_are_of_one_source_are_not_made() -> None:
    metric = metric_named("intra_face_fidelity")
    tallies = {metric.name: aggregate.tally(metric, episode())}
    few = aggregate.numbers([metric], [("film", tallies)] * 40, aggregate.Definitions(resamples=100))
    assert (few[metric.name].score.low, few[metric.name].score.high) == (None, None)
    rows = [
        (f"film{index}", {metric.name: replace(tallies[metric.name], value=index / 40)})
        for index in range(40)
    ]
    made = aggregate.numbers([metric], rows, aggregate.Definitions(resamples=2000))[metric.name].score
    # 2/5 of a mean of values from 0 to 39/40, whose standard deviation is 0.289:
    # 0.195 +- 0.4 x 1.96 x 0.289 / sqrt(40)
    assert (made.low, made.high) == pytest.approx((0.195 - 0.0358, 0.195 + 0.0358), abs=0.006)


# How similarity changes with the gap between shots.

ONCE = aggregate.Definitions(resamples=0)


def test_pairs_when_episode_is_small_are_those_worked_out_by_hand() -> None:
    pairs = list(aggregate.gap_pairs(episode()))
    near = 0.5**0.5  # of both crops to the centroid
    assert pairs[0] == aggregate.GapPair("judged", "character", ANA, 1, 0.9, ("1:2", "1:1"))
    assert pairs[1][:4] == ("centroid", "character", ANA, 1)
    assert pairs[1].similarity == pytest.approx(near)
    assert pairs[2] == aggregate.GapPair("crops", "character", ANA, 1, 0.0, ("1:1", "1:2"))
    assert pairs[3:] == [aggregate.GapPair("judged", "location", HALL, 1, 0.4, ("1:2", "1:1"))]


@pytest.mark.parametrize(
    ("gap", "index", "intervening"),
    [(1, "1-2", "0"), (2, "1-2", "1-2"), (3, "3-5", "1-2"), (6, "6-10", "3-5"), (21, "21-50", "11-20"),
     (50, "21-50", "21-50"), (51, "51+", "21-50"), (52, "51+", "51+")],
)  # fmt: skip
def test_bin_when_gap_is_counted_in_either_way_is_that_of_the_tables(gap, index, intervening):
    assert (aggregate.bin_of(gap), aggregate.bin_of(gap, "intervening")) == (index, intervening)


def test_curve_when_pairs_are_of_several_sources_has_means_and_counts() -> None:
    pairs = [
        (f"film{index % 8}", aggregate.GapPair("judged", "character", ANA, 1 + index % 2 * 3, index / 40))
        for index in range(40)
    ]
    (curve,) = aggregate.gap_curves(pairs, [("judged", "character")], aggregate.Definitions(resamples=500))
    near, far = curve.bins["1-2"], curve.bins["3-5"]
    assert (near.value, far.value) == pytest.approx(
        (0.475, 0.5)
    )  # means of 0, 2, ..., 38 and of 1, 3, ..., 39
    assert near.counts == {"pairs": 20, "sources": 4}
    assert curve.bins["6-10"].value is None
    assert (near.low, near.high) == (None, None)  # four sources are too few
    wide = aggregate.Definitions(resamples=500, interval="percentile")
    (again,) = aggregate.gap_curves(pairs, [("judged", "character")], wide)
    low, high = again.bins["1-2"].low, again.bins["1-2"].high
    assert low is not None and high is not None and low < 0.475 < high


def test_curve_when_a_gap_is_beyond_the_last_bin_gets_another() -> None:
    pairs = [("film", aggregate.GapPair("crops", "object", "object:cup", 60, 0.3))]
    (curve,) = aggregate.gap_curves(pairs, [("crops", "object")], ONCE)
    assert curve.bins["51+"].value == pytest.approx(0.3)


# The gate of appearances, their centroid and the anchor.


@pytest.mark.parametrize(
    ("status", "fidelity", "expected"),
    [
        ("present", 0.5, True), ("present", 0.49, False), ("present", None, True),
        ("weak", 0.9, False), ("weak", None, False), ("absent", None, False), (None, None, False),
    ],
)  # fmt: skip
def test_admitted_when_status_and_fidelity_vary_follows_equation_22(status, fidelity, expected):
    assert admitted(status, fidelity) is expected


def test_centroid_when_vectors_are_at_right_angles_is_between_them() -> None:
    rows = np.array([[2.0, 0.0], [0.0, 0.5]])  # unit vectors (1, 0) and (0, 1), whatever their length
    middle = centroid(rows)
    assert middle is not None
    assert middle == pytest.approx([0.5**0.5, 0.5**0.5])
    assert similarities_to_centroid(rows) == pytest.approx([0.5**0.5, 0.5**0.5])


def test_anchor_when_rows_are_equally_near_is_the_first() -> None:
    assert anchor(np.array([[1.0, 0.0], [0.0, 1.0]])) == 0
    assert anchor(np.array([[0.0, 1.0], [1.0, 0.1], [1.0, 0.0]])) == 1
