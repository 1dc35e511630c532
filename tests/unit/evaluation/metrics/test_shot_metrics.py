"""Counting, copy-paste, style, alignment, aesthetics and diversity: values worked by hand."""

from math import exp, log

import numpy as np
import pytest

from fabula.evaluation.metrics.aesthetic import aesthetic
from fabula.evaluation.metrics.alignment import alignment, average, hundred, individual_action
from fabula.evaluation.metrics.cids import Character
from fabula.evaluation.metrics.copy_paste import copy_paste
from fabula.evaluation.metrics.inception import inception_score
from fabula.evaluation.metrics.occm import occm, shot_occm
from fabula.evaluation.metrics.style import style_cross, style_self
from fabula.evaluation.metrics.vectors import Vectors, unit


@pytest.mark.parametrize(
    ("expected", "detected", "value"),
    [(1, 0, 36.79), (1, 1, 100.0), (1, 2, 36.79), (1, 3, 13.53), (2, 3, 60.65), (3, 2, 71.65)],
)
def test_occm_as_the_code_has_it_gives_the_values_of_the_public_code(
    expected: int, detected: int, value: float
) -> None:
    assert shot_occm(expected, detected, "code") == pytest.approx(value, abs=0.005)


def test_occm_as_the_paper_has_it_smooths_more_and_counts_empty_scenes() -> None:
    assert shot_occm(1, 0) == pytest.approx(100 * exp(-1 / (1 + exp(-6))))
    assert shot_occm(0, 0) == 100.0
    assert shot_occm(0, 1) == pytest.approx(0.0, abs=1e-9)
    assert shot_occm(0, 1, "code") is None


def test_occm_of_a_story_counts_shots_without_image_and_leaves_them_out() -> None:
    score = occm([(1, 1), (2, None), (0, 0), (1, 2)], "code").score
    assert score.value == pytest.approx((100 + 100 * exp(-1 / 1.000001)) / 2)
    assert score.counts == {"shots": 4, "without_image": 1, "left_out": 1, "counted": 2}
    assert occm([(0, 3)], "code").score.status == "undefined"
    with pytest.raises(ValueError, match="0 or more"):
        shot_occm(-1, 0)


def character(*references: tuple[float, ...] | None) -> Character:
    return Character("Ann", ("clip",), Vectors.of(clip=list(references)))


def test_copy_paste_when_two_references_compete_is_their_softmax() -> None:
    first, second = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    drawn = (0.90, 0.88, (1 - 0.90**2 - 0.88**2 + 1) ** 0.5)  # any third part; made a unit vector below
    crops = {"Ann": Vectors.of(clip=[drawn])}
    cosines = unit(np.array([drawn]))[0]
    wanted = 1 / (1 + exp((cosines[1] - cosines[0]) / 0.01))
    assert copy_paste([character(first, second)], crops).score.value == pytest.approx(wanted)


def test_copy_paste_of_an_exact_copy_is_near_one_and_of_another_reference_near_zero() -> None:
    ann = character((1, 0), (0, 1))
    assert copy_paste([ann], {"Ann": Vectors.of(clip=[(1, 0)])}).score.value == pytest.approx(1.0)
    assert copy_paste([ann], {"Ann": Vectors.of(clip=[(0, 1)])}).score.value == pytest.approx(0.0)


def test_copy_paste_with_one_reference_is_undefined_on_paper_and_against_the_mirror_in_the_code() -> None:
    ann, crops = character((1, 0)), {"Ann": Vectors.of(clip=[(1, 1)])}
    paper = copy_paste([ann], crops).score
    assert (paper.status, paper.counts["one_reference"]) == ("undefined", 1)
    mirrors = {"Ann": Vectors.of(clip=[(0, 1)])}
    assert copy_paste([ann], crops, mirrors, "code").score.value == pytest.approx(0.5)


def test_copy_paste_without_a_matched_crop_is_undefined_and_never_zero() -> None:
    score = copy_paste([character((1, 0), (0, 1))], {}).score
    assert (score.value, score.counts["no_crop"]) == (None, 1)


def test_style_self_is_the_mean_over_pairs() -> None:
    pictures = unit(np.array([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]]))
    assert style_self(pictures).score.value == pytest.approx((1 + 0.6 + 0.6) / 3)
    assert style_self(pictures[:1]).score.status == "undefined"
    assert style_self(pictures, 5).score.counts == {"shots": 5, "without_image": 2, "pairs": 3}


def test_style_cross_goes_by_the_characters_on_stage_and_by_the_story_where_there_are_none() -> None:
    references = {"Ann": np.array([[1.0, 0.0], [0.0, 1.0]]), "Bob": np.array([[0.0, 1.0]])}
    shots = [(np.array([0.6, 0.8]), ["Ann", "Bob"]), (np.array([1.0, 0.0]), []), (None, ["Ann"])]
    first = style_cross(shots, references).score
    assert first.value == pytest.approx(((0.6 + 0.8) / 2 + 1.0) / 2)
    assert first.counts == {"shots": 3, "without_image": 1, "by_the_story": 1, "no_reference": 0}
    assert style_cross(shots, {}).score.reason == "no reference picture"


def test_style_cross_where_one_of_two_has_no_reference_goes_by_the_other_or_by_the_story_in_the_code() -> (
    None
):
    references = {"Ann": np.array([[1.0, 0.0]]), "Bob": np.array([[0.0, 1.0]])}
    shots = [(np.array([0.6, 0.8]), ["Bob", "Cat"])]
    first, code = style_cross(shots, references).score, style_cross(shots, references, "code").score
    assert (first.value, first.counts["no_reference"]) == (pytest.approx(0.8), 1)
    assert code.value == pytest.approx((0.8 + 0.6) / 2)  # Ann's for the cat
    assert style_cross([(np.array([0.6, 0.8]), [])], references, "code").score.value == pytest.approx(0.6)


def test_alignment_leaves_failed_judgements_out_and_counts_them() -> None:
    score = alignment([4, 2, None])
    assert (score.value, score.counts) == (3.0, {"asked": 3, "answered": 2})
    assert hundred(3.0) == 75.0
    assert alignment([None]).status == "undefined"
    with pytest.raises(ValueError, match="0 to 4"):
        alignment([5])


def test_individual_action_as_the_code_has_it_rounds_half_to_even_twice() -> None:
    # shots: 0.5 -> 0, 1.5 -> 2, detected but not matched -> 0, nothing detected -> no entry; mean 2/3 -> 1
    shots = [[0, 1], [1, 2], [], None]
    assert individual_action(shots, "code").value == 1.0
    assert individual_action(shots).value == pytest.approx(1.0)  # (0 + 1 + 1 + 2) / 4
    assert individual_action(shots).counts["not_detected"] == 1


def test_average_needs_all_four() -> None:
    four = [alignment([value]) for value in (1, 2, 3, 4)]
    assert average(four).value == 2.5
    assert average([*four[:3], alignment([])]).status == "undefined"
    assert average(four, "code").value == (1 + 2 + 3 + 4 + 4) / 5  # individual action twice


def test_aesthetic_counts_pictures_without_value() -> None:
    assert aesthetic([5.0, None, 6.0]).score.value == 5.5
    assert aesthetic([None]).score.status == "undefined"


def test_inception_score_of_two_sure_and_different_pictures_is_two() -> None:
    assert inception_score(np.array([[1.0, 0.0], [0.0, 1.0]])).value == pytest.approx(2.0)  # exp(ln 2)
    assert inception_score(np.array([[0.5, 0.5], [0.5, 0.5]])).value == pytest.approx(1.0)
    assert inception_score(np.empty((0, 2))).status == "undefined"


def test_inception_score_is_the_formula_on_drawn_rows() -> None:
    rows = np.random.default_rng(5).dirichlet(np.ones(10), size=40)
    whole = rows.mean(axis=0)
    divergence = [sum(p * log(p / q) for p, q in zip(row, whole, strict=True)) for row in rows]
    assert inception_score(rows).value == pytest.approx(exp(sum(divergence) / 40))
