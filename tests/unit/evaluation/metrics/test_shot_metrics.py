"""Counting, copy-paste, style, alignment, aesthetics and diversity: values worked by hand."""

import itertools
import random
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from fabula.evaluation.metrics.aesthetic import aesthetic
from fabula.evaluation.metrics.alignment import alignment, average, hundred, individual_action
from fabula.evaluation.metrics.cids import Character, Cids, Settings, ShotCrops, cids, match_characters
from fabula.evaluation.metrics.clip_score import METRIC as CLIP_SCORE
from fabula.evaluation.metrics.clip_score import clip_score
from fabula.evaluation.metrics.copy_paste import copy_paste
from fabula.evaluation.metrics.inception import inception_score
from fabula.evaluation.metrics.occm import occm, shot_occm
from fabula.evaluation.metrics.shot_similarity import METRIC, shot_similarity
from fabula.evaluation.metrics.style import style_cross, style_self
from fabula.evaluation.metrics.vectors import Vectors, similarities, unit


@pytest.mark.parametrize(
    ("expected", "detected", "value"),
    [(1, 0, 36.79), (1, 1, 100.0), (1, 2, 36.79), (1, 3, 13.53), (2, 3, 60.65), (3, 2, 71.65)],
)
def test_occm_as_the_code_has_it_gives_the_values_of_the_public_code(expected, detected, value):
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


def test_style_cross_where_one_of_two_has_no_reference_goes_by_the_other_or_by_the_story_in_the_code():
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


# Character similarity: hand-worked, perfect, worst, undefined, and whatever the order.

CODE = Settings("code")


def cids_character(key: str, *references: tuple[float, ...] | None) -> Character:
    return Character(key, ("clip",), Vectors.of(clip=list(references)))


def shot(number: int, expected: str, *crops: tuple[float, ...] | None) -> ShotCrops:
    return ShotCrops(number, tuple(expected.split()), Vectors.of(clip=list(crops)))


def test_cids_when_one_character_is_matched_twice_is_as_worked_by_hand() -> None:
    found = cids([cids_character("Ann", (1, 0))], [shot(1, "Ann", (1, 0)), shot(2, "Ann", (0.6, 0.8))])
    assert found.cross.value == pytest.approx(0.8)  # (1 + 0.6) / 2
    assert found.self_.value == pytest.approx(0.6)  # the one pair of crops
    assert [match.cross for match in found.matches] == [pytest.approx(1.0), pytest.approx(0.6)]


def test_cids_when_there_are_several_references_is_their_mean_but_matching_goes_by_the_best() -> None:
    ann = cids_character("Ann", (1, 0), (0, 1))
    found = cids([ann], [shot(1, "Ann", (0.8, 0.6), (0, 1))])
    # best per crop: 0.8 and 1, so the second crop; its mean over references is (0 + 1) / 2
    assert found.matches[0].crop == 1
    assert found.cross.value == pytest.approx(0.5)


def test_cids_when_detections_fail_leaves_them_out_and_counts_them() -> None:
    ann, bob = cids_character("Ann", (1, 0)), cids_character("Bob", (0, 1))
    shots = [shot(1, "Ann Bob", (1, 0)), ShotCrops(2, ("Ann",), None), shot(3, "Bob")]
    found = cids([ann, bob], shots)
    assert found.cross.value == pytest.approx(1.0)
    counts = found.cross.counts
    assert (counts["expected"], counts["matched"]) == (4, 1)
    assert (counts["no_image"], counts["nothing_detected"], counts["not_matched"]) == (1, 1, 1)
    assert found.self_.status == "undefined"


def test_cids_as_the_code_has_it_counts_a_character_never_matched_as_zero_and_a_single_match_as_one() -> None:
    ann, bob = cids_character("Ann", (1, 0)), cids_character("Bob", (0, 1))
    found = cids([ann, bob], [shot(1, "Ann", (0.6, 0.8))], CODE)
    assert found.cross.value == pytest.approx(0.3)  # (0.6 + 0) / 2
    assert found.self_.value == pytest.approx(0.5)  # (1 + 0) / 2


def test_cids_when_a_character_has_no_usable_reference_says_so() -> None:
    found = cids([cids_character("Ann", None), cids_character("Bob", (1, 0))], [shot(1, "Ann Bob", (1, 0))])
    assert {match.character: match.missed for match in found.matches} == {"Ann": "no reference", "Bob": None}


def test_cids_when_the_script_has_no_character_is_undefined() -> None:
    found = cids([], [shot(1, "")], CODE)
    assert (found.cross.status, found.self_.status) == ("undefined", "undefined")


def _drawn(seed: int) -> tuple[list[Character], list[ShotCrops]]:
    draw = np.random.default_rng(seed)

    def rows(count: int) -> Vectors:
        return Vectors.of(clip=[tuple(draw.normal(size=8)) for _ in range(count)])

    characters = [Character(key, ("clip",), rows(1 + place % 3)) for place, key in enumerate("ABCD")]
    shots = [ShotCrops(number, tuple("ABCD"[: number % 4]), rows(number % 5)) for number in range(1, 9)]
    return characters, shots


def _values(found: Cids) -> tuple[float | None, float | None]:
    return found.cross.value, found.self_.value


@pytest.mark.parametrize("settings", [Settings(), CODE])
def test_cids_when_shots_characters_references_and_crops_come_in_another_order_is_the_same(settings):
    characters, shots = _drawn(7)
    before = _values(cids(characters, shots, settings))
    mix = random.Random(3)
    turned = [
        Character(one.key, one.encoders, one.references.take(list(range(len(one.references)))[::-1]))
        for one in characters
    ]
    mixed = []
    for one in shots:
        assert one.crops is not None
        order = list(range(len(one.crops)))
        mix.shuffle(order)
        mixed.append(ShotCrops(one.number, one.expected[::-1], one.crops.take(order)))
    mix.shuffle(turned)
    mix.shuffle(mixed)
    assert _values(cids(turned, mixed, settings)) == pytest.approx(before, abs=1e-12)


def test_match_characters_is_as_good_as_trying_every_assignment() -> None:
    draw = np.random.default_rng(11)
    for characters, crops in ((2, 3), (3, 3), (3, 2), (4, 6)):
        tables = [draw.uniform(-1, 1, size=(2, crops)) for _ in range(characters)]
        best = np.array([table.max(axis=0) for table in tables])
        found = match_characters(tables)
        total = sum(best[row, crop] for row, crop in enumerate(found) if crop is not None)
        size = min(characters, crops)
        tried = (
            sum(best[row, column] for row, column in zip(rows, columns, strict=True))
            for rows in itertools.permutations(range(characters), size)
            for columns in itertools.combinations(range(crops), size)
        )
        assert total == pytest.approx(max(tried))


def test_cids_as_the_code_has_it_counts_two_faces_without_a_common_encoder_as_zero() -> None:
    ann = Character("Ann", ("a", "b"), Vectors.of(a=[(1, 0)], b=[None]))
    crops = [Vectors.of(a=[(0.6, 0.8)], b=[None]), Vectors.of(a=[None], b=[(1, 0)])]
    shots = [ShotCrops(number, ("Ann",), vectors) for number, vectors in enumerate(crops, 1)]
    found = cids([ann], shots, CODE)
    assert [match.cross for match in found.matches] == [pytest.approx(0.6), 0.0]
    assert found.cross.value == pytest.approx(0.3)  # (0.6 + 0) / 2
    assert found.self_.value == 0.0
    paper = cids([ann], shots)
    assert (paper.cross.value, paper.matches[1].missed) == (pytest.approx(0.6), "not matched")


@pytest.mark.parametrize(
    ("characters", "shots", "why"),
    [
        ([cids_character("Ann", (1, 0))], [ShotCrops(1, ("Ann",), None)], "the story has no picture"),
        ([cids_character("Ann", None)], [shot(1, "Ann", (1, 0))], "no reference of Ann has a vector"),
    ],
)
def test_cids_as_the_code_has_it_has_no_value_where_the_code_makes_no_record(characters, shots, why):
    found = cids(characters, shots, CODE)
    assert (found.cross.value, found.self_.value, found.cross.reason) == (None, None, why)


# -- Shot similarity: hand-worked values, perfect and worst, what is left out, and an evaluation end to end

ONE, SLANT, OTHER = np.array([1.0, 0.0]), np.array([0.6, 0.8]), np.array([0.0, 1.0])


def test_similarity_when_worked_by_hand_is_the_mean_over_neighbours_of_one_setting() -> None:
    found = shot_similarity([ONE, SLANT, OTHER, ONE], [1, 1, 1, 4])
    assert found.score.value == pytest.approx(0.7)  # (1 * 0.6 + 0.8 * 1) / 2; the last is elsewhere
    assert found.score.counts == {"shots": 4, "without_image": 0, "neighbours": 2, "lost": 0, "pairs": 2}
    assert [found.of_shot(place) for place in (0, 3)] == ["first of its setting"] * 2
    assert found.of_shot(2) == pytest.approx(0.8)


def test_similarity_when_one_picture_is_repeated_is_the_highest_and_of_its_opposite_the_lowest() -> None:
    assert shot_similarity([SLANT] * 3, [1, 1, 1]).score.value == pytest.approx(METRIC.range[1])
    assert shot_similarity([SLANT, -SLANT], [1, 1]).score.value == pytest.approx(METRIC.range[0])


@pytest.mark.parametrize(
    ("features", "scenes"),
    [([], []), ([ONE], [1]), ([ONE, ONE], [1, 2]), ([ONE, SLANT, ONE], [1, 2, 1]), ([ONE, None], [1, 1])],
)
def test_similarity_when_no_two_neighbours_share_a_setting_is_undefined(features, scenes):
    found = shot_similarity(features, scenes).score
    assert (found.value, found.status) == (None, "undefined")


def test_similarity_when_a_picture_is_missing_leaves_its_pairs_out_and_counts_them() -> None:
    found = shot_similarity([ONE, None, ONE, SLANT], [1, 1, 1, 1])
    assert found.score.value == pytest.approx(0.6)  # not 0, and not across the gap
    assert found.score.counts == {"shots": 4, "without_image": 1, "neighbours": 3, "lost": 2, "pairs": 1}
    assert [found.of_shot(1), found.of_shot(2)] == ["no picture", "no picture before it"]


def test_similarity_when_a_story_is_told_backwards_is_the_same() -> None:
    features = [ONE, SLANT, OTHER, SLANT]
    there, back = shot_similarity(features, [1, 1, 3, 3]), shot_similarity(features[::-1], [3, 3, 1, 1])
    assert there.score.value == back.score.value


def test_similarity_of_drawn_vectors_is_the_cosine_of_scipy() -> None:
    rows = np.random.default_rng(7).normal(size=(6, 12))
    wanted = [1 - cosine(first, second) for first, second in pairwise(rows)]
    found = shot_similarity(list(unit(rows)), [1] * 6)
    assert [found.of_shot(place) for place in range(1, 6)] == pytest.approx(wanted, abs=1e-12)
    assert found.score.value == pytest.approx(np.mean(wanted), abs=1e-12)


# Embeddings and their cosines.


def test_similarities_when_two_encoders_know_both_are_the_mean_of_their_cosines() -> None:
    first = Vectors.of(a=[(1, 0)], b=[(0, 2)])
    second = Vectors.of(a=[(3, 4), (1, 0)], b=[(0, 1), None])
    # pair 1: a gives 3/5, b gives 1, mean 0.8; pair 2: only a knows it, 1
    assert similarities(first, second, ("a", "b")).tolist() == [[pytest.approx(0.8), 1.0]]


def test_similarities_when_no_encoder_is_shared_are_nan_and_never_zero() -> None:
    first, second = Vectors.of(a=[(1, 0)], b=[None]), Vectors.of(a=[None], b=[(1, 0)])
    assert np.isnan(similarities(first, second, ("a", "b"))).all()
    assert np.isnan(similarities(first, second, ("c",))).all()


# -- The CLIP score: hand-worked values, and what is left out

Shots = list[tuple[float | None, int] | None]


def test_score_when_worked_by_hand_is_the_mean_of_the_weighted_cosines() -> None:
    found = clip_score([(0.3, 0), (0.2, 4)]).score
    # 2.5 * 0.3 = 0.75 and 2.5 * 0.2 = 0.5
    assert found.value == pytest.approx(0.625)
    assert found.counts == {"shots": 2, "without_image": 0, "without_text": 0, "cut": 1}


def test_score_when_pictures_and_texts_are_the_same_is_the_highest_and_below_zero_the_lowest() -> None:
    assert clip_score([(1.0, 0)]).score.value == CLIP_SCORE.range[1]
    assert clip_score([(-0.5, 0)]).score.value == CLIP_SCORE.range[0]


def test_score_when_a_picture_or_a_text_is_missing_leaves_the_shot_out_and_counts_it() -> None:
    found = clip_score([None, (None, 0), (0.2, 0)]).score
    assert found.value == pytest.approx(0.5)
    assert found.counts == {"shots": 3, "without_image": 1, "without_text": 1, "cut": 0}


@pytest.mark.parametrize(
    ("shots", "reason"),
    [([], "no picture"), ([None], "no picture"), ([(None, 0)], "no shot has an English text")],
)
def test_score_when_nothing_is_known_is_undefined(shots: Shots, reason: str) -> None:
    found = clip_score(shots).score
    assert (found.value, found.status, found.reason) == (None, "undefined", reason)


def test_score_when_shots_come_in_another_order_is_the_same() -> None:
    shots: Shots = [(value, 0) for value in (0.25, 0.5, 0.125)]
    assert clip_score(shots).score.value == clip_score(shots[::-1]).score.value
