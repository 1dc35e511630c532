"""Known truth: SIMULATED judgements are drawn from stated truths, and scoring must recover them.

This tests the statistics, not any model or judge.
"""

import numpy as np
import pytest

from fabula.evaluation.recoverability.coverage import generations
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.items import items_of
from fabula.evaluation.recoverability.method import methods_of
from fabula.evaluation.recoverability.replies import KINDS
from fabula.evaluation.recoverability.score import estimated, score_folder
from fabula.evaluation.recoverability.votes import boards
from fabula.schemas.katha import StoryRecord, Variant
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth, expected, simulated_manifest, simulated_replies

DRAWS, STORIES = 200, 120
DEFINITIONS = Definitions(resamples=500)


def items():
    bundles = sample_bundles(STORIES)
    variants = [Variant.model_validate(one) for bundle in bundles for one in bundle["variants"]]
    return items_of([StoryRecord.model_validate(bundle["record"]) for bundle in bundles], variants)


def values_of(things, replies):
    made = generations(simulated_manifest("x", replies), replies, things)
    found = {kind: boards(replies, things, kind, DEFINITIONS) for kind in KINDS}
    methods = methods_of(found, made, things, replies.judges)
    return estimated(methods, things, DEFINITIONS)[1]


@pytest.fixture(scope="module")
def draws():
    """Values of 200 simulated evaluations of 120 stories, and the truth that they were drawn from."""
    things, truth = items(), Truth()
    return expected(truth), [
        values_of(things, simulated_replies(things, [("m", truth)], seed))["m"] for seed in range(DRAWS)
    ]


def test_intervals_when_the_truth_is_known_hold_it_at_the_stated_rate(draws):
    truth, found = draws
    for name, value in truth.items():
        held = sum(one.low[name] <= value <= one.high[name] for one in found)
        # binomial(200, 0.95): 190 are expected; below 178 or above 199 are 2e-4 and 4e-5 likely
        assert 178 <= held <= 199, f"{name}: {held} of {DRAWS}"


def test_values_when_the_truth_is_known_are_not_biased(draws):
    truth, found = draws
    for name, value in truth.items():
        values = np.array([one.values[name] for one in found])
        error = values.std(ddof=1) / np.sqrt(DRAWS)
        assert abs(values.mean() - value) < 4 * error + 1e-12, name


def test_methods_when_one_loses_less_are_told_apart_and_ranked(tmp_path):
    images = ((0.9,) * 6, (0.6,) * 6, (0.3,) * 6)
    truths = [(f"m{place}", Truth(image=image)) for place, image in enumerate(images)]
    made = write_simulated(tmp_path, 360, truths)
    scores = score_folder(made.run, made.release, DEFINITIONS)
    gaps = [scores.methods[name].gaps["question"]["common"].gap.value for name, _ in truths]
    assert gaps == sorted(gaps)
    first = scores.comparisons[0]
    assert (first.first, first.second) == ("m0", "m1")
    assert first.difference == pytest.approx(gaps[0] - gaps[1])
    assert first.high < 0
    assert first.p_bootstrap_corrected == pytest.approx(min(1.0, 3 * first.p_bootstrap))
    assert first.p_wilcoxon_corrected < 0.01
    assert first.rank_biserial < 0
    assert first.cohen_d < 0
    assert scores.robustness["half_data"]["mean"] > 0.9
    assert scores.robustness["filtering"]["raw_common"]["value"] == pytest.approx(1.0)
