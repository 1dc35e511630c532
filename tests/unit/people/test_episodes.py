"""A judge beside people. All people here are simulated, with error rates that are known."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from fabula.evaluation.stats.correlation import correlate
from fabula.people.episodes import Table, agreement, majority
from fabula.people.participants import Resampling

FEW = Resampling(200)
HAND = Resampling(0)


def table(judge: list[float], *people: list[float]) -> Table:
    return Table(np.array(judge), np.array(people), np.arange(len(judge), dtype=np.int64))


def test_kappa_when_worked_by_hand_is_that() -> None:
    # Judge 1100, majority 1000: they agree on 3/4; by chance on 1/2 * 1/4 + 1/2 * 3/4 = 1/2; kappa 1/2.
    rated = table([1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 0, 1])
    found = agreement("kappa", rated, HAND)
    assert found.judge.value == pytest.approx(0.5)
    # People 1 and 2: 1/2; 1 and 3: 1/2; 2 and 3: agree on 2/4, by chance on 1/2, so 0.
    assert (found.least, found.greatest) == (pytest.approx(0.0), pytest.approx(0.5))
    assert found.people.value == pytest.approx(1 / 3)


def test_agreement_when_people_err_at_known_rates_equals_sklearn_and_what_rates_imply() -> None:
    random = np.random.default_rng(1)
    truth = np.arange(4000) % 2
    wrong = random.random((4, len(truth))) < np.array([[0.05], [0.1], [0.1], [0.1]])
    said = np.where(wrong, 1 - truth, truth).astype(np.float64)
    owners = np.arange(len(truth), dtype=np.int64)
    found = agreement("kappa", Table(said[0], said[1:], owners), FEW)
    assert found.judge.value == pytest.approx(cohen_kappa_score(said[0], majority(said[1:])))
    between = [cohen_kappa_score(said[one], said[other]) for one, other in ((1, 2), (1, 3), (2, 3))]
    assert found.people.value == pytest.approx(np.mean(between))
    assert (found.least, found.greatest) == (pytest.approx(min(between)), pytest.approx(max(between)))
    # Two who err with 0.1 agree on 0.9^2 + 0.1^2 = 0.82, by chance on 1/2: kappa 0.64. The majority of
    # three errs with 3 * 0.1^2 * 0.9 + 0.1^3 = 0.028; with a judge's 0.05 they differ on 0.0752: 0.8496.
    for score, expected in ((found.people, 0.64), (found.judge, 0.8496)):
        assert score.value == pytest.approx(expected, abs=0.03)
        assert score.low is not None and score.high is not None
        assert score.low < score.value < score.high


def test_pearson_when_some_did_not_answer_equals_scipy_over_what_is_shared() -> None:
    random = np.random.default_rng(2)
    judge, people = random.random(30), random.random((3, 30)).round(1)
    people[0, :5], people[:, 7], judge[9] = np.nan, np.nan, np.nan
    found = agreement("pearson", Table(judge, people, np.arange(30, dtype=np.int64)), FEW)
    together = np.array([np.nan if np.isnan(column).all() else np.nanmean(column) for column in people.T])
    assert found.judge.value == pytest.approx(correlate("pearson", judge, together).value)
    pairs = ((0, 1), (0, 2), (1, 2))
    between = [correlate("pearson", people[one], people[other]).value for one, other in pairs]
    assert found.people.value == pytest.approx(np.mean([value for value in between if value is not None]))
    assert found.judge.counts == {"answered": 29, "used": 28, "tied": 0, "without_judge": 1}


def test_kappa_when_people_tie_or_the_judge_is_silent_leaves_these_out_and_counts_them() -> None:
    rated = table([1, 0, 1, np.nan], [1, 0, 1, 1], [1, 0, 0, 1])
    found = agreement("kappa", rated, HAND)
    assert found.judge.value == pytest.approx(1.0)
    assert found.judge.counts == {"answered": 4, "used": 2, "tied": 1, "without_judge": 1}


def test_kappa_when_everybody_says_the_same_is_undefined_and_no_score() -> None:
    found = agreement("kappa", table([1, 1], [1, 1], [1, 1]), FEW)
    assert (found.judge.value, found.judge.status) == (None, "undefined")
    assert (found.people.value, found.least) == (None, None)


def test_interval_when_entries_share_instances_draws_instances() -> None:
    judge, people = np.arange(8.0) % 4, np.array([np.arange(8.0) % 4 + [0, 1, 0, 0, 0, 1, 0, 0]])
    apart = agreement("pearson", Table(judge, people, np.arange(8, dtype=np.int64)), FEW)
    joined = agreement("pearson", Table(judge, people, np.arange(8, dtype=np.int64) // 4), FEW)
    assert apart.judge.value == pytest.approx(joined.judge.value)
    # Both instances hold the same four pairs, so drawing instances changes nothing.
    assert joined.judge.low == pytest.approx(joined.judge.high)
    assert apart.judge.low is not None and apart.judge.value is not None
    assert apart.judge.low < apart.judge.value - 0.01
