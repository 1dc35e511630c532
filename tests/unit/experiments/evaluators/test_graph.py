"""A child counts only where its parents hold: worked by hand, chains, unjudged ones, circles."""

from pathlib import Path

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.score import judged_folder, scores_of
from fabula.experiments.evaluators.graph import apply_graph, ordered, with_parents
from fabula.releases.loading import load
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.planted_judgements import write_judged
from fabula.testing.simulated_evaluations import write_loadable_release

RIGHT, WRONG, UNJUDGED = 1, 0, -1


def settled(verdicts: list[int], parents: dict[int, list[int]]) -> list[int]:
    values: list[int] = with_parents(np.array(verdicts, dtype=np.int8), parents).tolist()
    return values


def test_child_when_its_parent_is_wrong_is_wrong_and_its_grandchild_too() -> None:
    graph = {2: [1], 1: [0]}
    assert settled([RIGHT, RIGHT, RIGHT], graph) == [RIGHT, RIGHT, RIGHT]
    assert settled([WRONG, RIGHT, RIGHT], graph) == [WRONG, WRONG, WRONG]
    assert settled([RIGHT, RIGHT, WRONG], graph) == [RIGHT, RIGHT, WRONG]


def test_child_when_a_parent_is_unjudged_is_unjudged_unless_it_is_wrong_anyway() -> None:
    assert settled([UNJUDGED, RIGHT], {1: [0]}) == [UNJUDGED, UNJUDGED]
    assert settled([UNJUDGED, WRONG], {1: [0]}) == [UNJUDGED, WRONG]
    assert settled([WRONG, UNJUDGED], {1: [0]}) == [WRONG, UNJUDGED]
    assert settled([UNJUDGED, WRONG, RIGHT], {2: [0, 1]}) == [UNJUDGED, WRONG, WRONG]


def test_verdicts_when_of_several_seeds_and_conditions_are_each_their_own() -> None:
    verdicts = np.array([[[1, 1], [0, 1]], [[1, 0], [-1, 1]]], dtype=np.int8)
    kept = verdicts.copy()
    assert with_parents(verdicts, {1: [0]}).tolist() == [[[1, 1], [0, 0]], [[1, 0], [-1, -1]]]
    assert (verdicts == kept).all()


def test_order_when_questions_depend_on_each_other_has_ancestors_first_or_names_the_circle() -> None:
    assert ordered({3: [2, 1], 2: [1], 1: [0]}) == [1, 2, 3]
    for circle in ({0: [1], 1: [0]}, {0: [0]}, {0: [1], 1: [2], 2: [0]}):
        with pytest.raises(InputError, match="circle"):
            ordered(circle)


def test_scores_when_a_graph_is_applied_are_worked_by_hand(tmp_path: Path) -> None:
    release = load(write_loadable_release(tmp_path / "release", sample_bundles(1)))
    by_type = {question.question_type: question.question_id for question in release.records[0].questions}
    run = write_judged(
        tmp_path / "run", release, ("m",),
        lambda method, question, condition: condition != "image" or question.question_type != "causal",
        judges=("a", "b"),
    )  # fmt: skip
    used = Definitions(resamples=0)
    judged = judged_folder(run, None, used)
    # images: causal wrong, so 5 of 6; with moral and consequence below causal only 3 of 6 count
    assert scores_of(judged, used).methods["m"].gaps["question"]["filtered"].image.value == pytest.approx(
        5 / 6
    )
    graph = {by_type["moral"]: (by_type["causal"],), by_type["consequence"]: (by_type["moral"],)}
    made = scores_of(apply_graph(judged, graph), used).methods["m"]
    assert made.gaps["question"]["filtered"].image.value == pytest.approx(3 / 6)
    assert made.gaps["question"]["filtered"].text.value == 1.0
    assert made.judges["a"]["filtered"]["image"].value == pytest.approx(3 / 6)
    with pytest.raises(InputError, match="no questions of the release"):
        apply_graph(judged, {by_type["moral"]: ("nowhere",)})
