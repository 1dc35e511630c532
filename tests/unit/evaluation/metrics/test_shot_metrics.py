"""Counting, copy-paste, style, alignment, aesthetics and diversity: values worked by hand."""

import itertools
import random
from collections.abc import Callable
from itertools import pairwise
from math import exp, log
from typing import Any

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
from fabula.evaluation.shots.scores import shown
from fabula.schemas.values import Score


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


# Scores of a story, worked by hand: the value, None where there is none, and what was counted.

ONE, SLANT, OTHER = np.array([1.0, 0.0]), np.array([0.6, 0.8]), np.array([0.0, 1.0])
THREE = unit(np.array([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]]))
TWO_OF_ANN = {"Ann": np.array([ONE, OTHER]), "Bob": np.array([OTHER])}
ANN_AND_BOB = {"Ann": np.array([ONE]), "Bob": np.array([OTHER])}
FOUR = [alignment([value]) for value in (1, 2, 3, 4)]
ACTIONS: list[list[int | None] | None] = [[0, 1], [1, 2], [], None]


def character(key: str, *references: tuple[float, ...] | None) -> Character:
    return Character(key, ("clip",), Vectors.of(clip=list(references)))


def copied(references: tuple[tuple[float, ...], ...], crop: tuple[float, ...] | None, *more: Any) -> Score:
    """How near a copy of one of its references a character's crop is."""
    crops = {} if crop is None else {"Ann": Vectors.of(clip=[crop])}
    return copy_paste([character("Ann", *references)], crops, *more).score


MIRROR = {"Ann": Vectors.of(clip=[(0, 1)])}
SCORES: dict[str, tuple[Callable[[], Score], float | None]] = {
    # one of four shots has no picture, one nobody; 100 and exp(-1)
    "occm": (
        lambda: occm([(1, 1), (2, None), (0, 0), (1, 2)], "code").score, (100 + 100 * exp(-1 / 1.000001)) / 2,
    ),
    "occm of nobody": (lambda: occm([(0, 3)], "code").score, None),
    "a copy": (lambda: copied(((1, 0), (0, 1)), (1, 0)), 1.0),
    "a copy of another reference": (lambda: copied(((1, 0), (0, 1)), (0, 1)), 0.0),
    "a copy of the only reference": (lambda: copied(((1, 0),), (1, 1)), None),
    "a copy, or its mirror": (lambda: copied(((1, 0),), (1, 1), MIRROR, "code"), 0.5),
    "no crop": (lambda: copied(((1, 0), (0, 1)), None), None),
    "style": (lambda: style_self(THREE).score, (1 + 0.6 + 0.6) / 3),
    "style of one": (lambda: style_self(THREE[:1]).score, None),
    "style of some": (lambda: style_self(THREE, 5).score, (1 + 0.6 + 0.6) / 3),
    # by Ann and Bob (0.6 + 0.8) / 2 and 0.8; where nobody is, by all references
    "style of references": (
        lambda: style_cross([(SLANT, ["Ann", "Bob"]), (ONE, []), (None, ["Ann"])], TWO_OF_ANN).score,
        ((0.6 + 0.8) / 2 + 1.0) / 2,
    ),
    "style without references": (lambda: style_cross([(SLANT, ["Ann"])], {}).score, None),
    "style of the other": (lambda: style_cross([(SLANT, ["Bob", "Cat"])], ANN_AND_BOB).score, 0.8),
    "style, Ann's for the cat": (
        lambda: style_cross([(SLANT, ["Bob", "Cat"])], ANN_AND_BOB, "code").score, (0.8 + 0.6) / 2,
    ),
    "style of the story": (lambda: style_cross([(SLANT, [])], ANN_AND_BOB, "code").score, 0.6),
    "alignment": (lambda: alignment([4, 2, None]), 3.0),
    "alignment without an answer": (lambda: alignment([None]), None),
    # shots: 0.5 -> 0, 1.5 -> 2, detected but not matched -> 0, nothing detected -> no entry; mean 2/3 -> 1
    "action, rounded twice": (lambda: individual_action(ACTIONS, "code"), 1.0),
    "action": (lambda: individual_action(ACTIONS), (0 + 1 + 1 + 2) / 4),
    "average": (lambda: average(FOUR), 2.5),
    "average of three": (lambda: average([*FOUR[:3], alignment([])]), None),
    "average, action twice": (lambda: average(FOUR, "code"), (1 + 2 + 3 + 4 + 4) / 5),
    "aesthetic": (lambda: aesthetic([5.0, None, 6.0]).score, 5.5),
    "aesthetic of nothing": (lambda: aesthetic([None]).score, None),
    "two sure and different": (lambda: inception_score(np.array([ONE, OTHER])), 2.0),  # exp(ln 2)
    "two unsure": (lambda: inception_score(np.full((2, 2), 0.5)), 1.0),
    "inception of nothing": (lambda: inception_score(np.empty((0, 2))), None),
    # (1 * 0.6 + 0.8 * 1) / 2; the last is elsewhere
    "neighbours": (lambda: shot_similarity([ONE, SLANT, OTHER, ONE], [1, 1, 1, 4]).score, 0.7),
    # not 0, and not across the gap
    "neighbours with a gap": (lambda: shot_similarity([ONE, None, ONE, SLANT], [1, 1, 1, 1]).score, 0.6),
    "equal neighbours": (lambda: shot_similarity([SLANT] * 3, [1, 1, 1]).score, METRIC.range[1]),
    "opposite neighbours": (lambda: shot_similarity([SLANT, -SLANT], [1, 1]).score, METRIC.range[0]),
    "no shot": (lambda: shot_similarity([], []).score, None),
    "one shot": (lambda: shot_similarity([ONE], [1]).score, None),
    "two places": (lambda: shot_similarity([ONE, ONE], [1, 2]).score, None),
    "another place between": (lambda: shot_similarity([ONE, SLANT, ONE], [1, 2, 1]).score, None),
    "a gap": (lambda: shot_similarity([ONE, None], [1, 1]).score, None),
    # 2.5 * 0.3 = 0.75 and 2.5 * 0.2 = 0.5
    "clip": (lambda: clip_score([(0.3, 0), (0.2, 4)]).score, 0.625),
    "clip of some": (lambda: clip_score([None, (None, 0), (0.2, 0)]).score, 0.5),
    "clip of equals": (lambda: clip_score([(1.0, 0)]).score, CLIP_SCORE.range[1]),
    "clip below zero": (lambda: clip_score([(-0.5, 0)]).score, CLIP_SCORE.range[0]),
    "clip of nothing": (lambda: clip_score([]).score, None),
    "clip without a picture": (lambda: clip_score([None]).score, None),
    "clip without a text": (lambda: clip_score([(None, 0)]).score, None),
}  # fmt: skip


@pytest.mark.parametrize("case", SCORES)
def test_score_when_worked_by_hand_has_that_value(case: str) -> None:
    score, value = SCORES[case]
    found = score()
    assert found.value == (None if value is None else pytest.approx(value, abs=1e-9))
    assert found.status == ("undefined" if value is None else "ok")


def test_scores_when_told_say_what_was_counted_or_why_there_is_no_value(snapshot: Any) -> None:
    found = {case: score() for case, (score, _) in SCORES.items()}
    assert "\n".join(
        f"{case}: {one.reason or 'ok'}; {', '.join(f'{name} {count}' for name, count in one.counts.items())}"
        for case, one in found.items()
    ) == snapshot  # fmt: skip


def test_copy_paste_when_two_references_compete_is_their_softmax() -> None:
    drawn = (0.90, 0.88, (1 - 0.90**2 - 0.88**2 + 1) ** 0.5)  # any third part; made a unit vector below
    cosines = unit(np.array([drawn]))[0]
    wanted = 1 / (1 + exp((cosines[1] - cosines[0]) / 0.01))
    assert copied(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), drawn).value == pytest.approx(wanted)


def test_inputs_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        shot_occm(-1, 0)
    with pytest.raises(ValueError, match="0 to 4"):
        alignment([5])
    assert hundred(3.0) == 75.0


def test_shots_of_a_story_when_compared_with_neighbours_have_a_value_or_a_reason() -> None:
    whole = shot_similarity([ONE, SLANT, OTHER, ONE], [1, 1, 1, 4])
    assert [whole.of_shot(place) for place in (0, 3)] == ["first of its setting"] * 2
    assert whole.of_shot(2) == pytest.approx(0.8)
    lacking = shot_similarity([ONE, None, ONE, SLANT], [1, 1, 1, 1])
    assert [lacking.of_shot(1), lacking.of_shot(2)] == ["no picture", "no picture before it"]


def test_inception_score_is_the_formula_on_drawn_rows() -> None:
    rows = np.random.default_rng(5).dirichlet(np.ones(10), size=40)
    whole = rows.mean(axis=0)
    divergence = [sum(p * log(p / q) for p, q in zip(row, whole, strict=True)) for row in rows]
    assert inception_score(rows).value == pytest.approx(exp(sum(divergence) / 40))


# Character similarity: hand-worked, perfect, worst, undefined, and whatever the order.

CODE = Settings("code")


def shot(number: int, expected: str, *crops: tuple[float, ...] | None) -> ShotCrops:
    return ShotCrops(number, tuple(expected.split()), Vectors.of(clip=list(crops)))


def test_cids_when_one_character_is_matched_twice_is_as_worked_by_hand() -> None:
    found = cids([character("Ann", (1, 0))], [shot(1, "Ann", (1, 0)), shot(2, "Ann", (0.6, 0.8))])
    assert found.cross.value == pytest.approx(0.8)  # (1 + 0.6) / 2
    assert found.self_.value == pytest.approx(0.6)  # the one pair of crops
    assert [match.cross for match in found.matches] == [pytest.approx(1.0), pytest.approx(0.6)]


def test_cids_when_there_are_several_references_is_their_mean_but_matching_goes_by_the_best() -> None:
    ann = character("Ann", (1, 0), (0, 1))
    found = cids([ann], [shot(1, "Ann", (0.8, 0.6), (0, 1))])
    # best per crop: 0.8 and 1, so the second crop; its mean over references is (0 + 1) / 2
    assert found.matches[0].crop == 1
    assert found.cross.value == pytest.approx(0.5)


def test_cids_when_detections_fail_leaves_them_out_and_counts_them() -> None:
    ann, bob = character("Ann", (1, 0)), character("Bob", (0, 1))
    shots = [shot(1, "Ann Bob", (1, 0)), ShotCrops(2, ("Ann",), None), shot(3, "Bob")]
    found = cids([ann, bob], shots)
    assert found.cross.value == pytest.approx(1.0)
    counts = found.cross.counts
    assert (counts["expected"], counts["matched"]) == (4, 1)
    assert (counts["no_image"], counts["nothing_detected"], counts["not_matched"]) == (1, 1, 1)
    assert found.self_.status == "undefined"


def test_cids_as_the_code_has_it_counts_a_character_never_matched_as_zero_and_a_single_match_as_one() -> None:
    ann, bob = character("Ann", (1, 0)), character("Bob", (0, 1))
    found = cids([ann, bob], [shot(1, "Ann", (0.6, 0.8))], CODE)
    assert found.cross.value == pytest.approx(0.3)  # (0.6 + 0) / 2
    assert found.self_.value == pytest.approx(0.5)  # (1 + 0) / 2


def test_cids_when_a_character_has_no_usable_reference_says_so() -> None:
    found = cids([character("Ann", None), character("Bob", (1, 0))], [shot(1, "Ann Bob", (1, 0))])
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
        ([character("Ann", (1, 0))], [ShotCrops(1, ("Ann",), None)], "the story has no picture"),
        ([character("Ann", None)], [shot(1, "Ann", (1, 0))], "no reference of Ann has a vector"),
    ],
)
def test_cids_as_the_code_has_it_has_no_value_where_the_code_makes_no_record(characters, shots, why):
    found = cids(characters, shots, CODE)
    assert (found.cross.value, found.self_.value, found.cross.reason) == (None, None, why)


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


def test_score_when_shots_come_in_another_order_is_the_same() -> None:
    shots = [(value, 0) for value in (0.25, 0.5, 0.125)]
    assert clip_score(shots).score.value == clip_score(shots[::-1]).score.value


def test_values_when_shown_have_their_interval_and_the_stories_that_they_stand_on() -> None:
    counts = {"stories": 3, "stories_counted": 2, "expected": 5, "matched": 4}
    score = Score(value=2.5, status="ok", low=2.25, high=3.0, counts=counts)
    counted = "  2 of 3 stories, 1 of 5 expected characters not matched"
    assert [shown(name, score) for name in ("scene", "clip_score", "occm")] == [
        f"   2.500 of 4  [2.250, 3.000]  62.5 of 100{counted}",
        f"   2.500  [2.250, 3.000]{counted}", f"    2.50  [2.25, 3.00]{counted}",
    ]  # fmt: skip
    assert shown("occm", Score(value=1.0, status="ok", low=0.5, counts=counts | {"matched": 5})) == (
        "    1.00  2 of 3 stories"
    )
    assert shown("occm", Score(value=None, status="undefined", reason="nobody is due")) == (
        "       -  nobody is due"
    )
