"""Counting, copy-paste, style, alignment, aesthetics and diversity: values worked by hand."""

import itertools
import random
from math import exp, log

import numpy as np
import pytest

from fabula.evaluation.metrics.aesthetic import aesthetic
from fabula.evaluation.metrics.alignment import alignment, average, hundred, individual_action
from fabula.evaluation.metrics.cids import Character, Cids, Settings, ShotCrops, cids, match_characters
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
def test_cids_when_shots_characters_references_and_crops_come_in_another_order_is_the_same(
    settings: Settings,
) -> None:
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
def test_cids_as_the_code_has_it_has_no_value_where_the_code_makes_no_record(
    characters: list[Character], shots: list[ShotCrops], why: str
) -> None:
    found = cids(characters, shots, CODE)
    assert (found.cross.value, found.self_.value, found.cross.reason) == (None, None, why)
