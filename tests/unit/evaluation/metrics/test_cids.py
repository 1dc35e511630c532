"""Character similarity: hand-worked, perfect, worst, undefined, and whatever the order."""

import itertools
import random

import numpy as np
import pytest

from fabula.evaluation.metrics.cids import Character, Cids, Settings, ShotCrops, cids, match_characters
from fabula.evaluation.metrics.vectors import Vectors

CODE = Settings("code")


def character(key: str, *references: tuple[float, ...] | None) -> Character:
    return Character(key, ("clip",), Vectors.of(clip=list(references)))


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
        ([character("Ann", (1, 0))], [ShotCrops(1, ("Ann",), None)], "the story has no picture"),
        ([character("Ann", None)], [shot(1, "Ann", (1, 0))], "no reference of Ann has a vector"),
    ],
)
def test_cids_as_the_code_has_it_has_no_value_where_the_code_makes_no_record(
    characters: list[Character], shots: list[ShotCrops], why: str
) -> None:
    found = cids(characters, shots, CODE)
    assert (found.cross.value, found.self_.value, found.cross.reason) == (None, None, why)
