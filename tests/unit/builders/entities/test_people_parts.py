"""The parts of telling people apart, by hand: distances, vectors, best views, faces, crops."""

from types import SimpleNamespace

import numpy as np
import pytest

from fabula.builders.entities import names as entities
from fabula.builders.entities.identities import UNKNOWN, Rows, Weighed, fused, mean_vector
from fabula.builders.entities.pictures import (
    ViewWeights,
    best,
    candidates,
    cut_out,
    qualities,
    views_of,
)
from fabula.builders.entities.selecting import faces_of_people, looked_at
from fabula.models.vision.store import Box


def unit(*values: float) -> Rows:
    row = np.array(values, dtype=np.float64)
    return (row / np.linalg.norm(row)).astype(np.float32)


def seen(frame: int, box: tuple[float, float, float, float], face: float | None = None) -> entities.Seen:
    # A face is a square of ten pixels.
    where = None if face is None else (box[0], box[1], box[0] + 10, box[1] + 10)
    return entities.Seen(frame=frame, box=box, score=0.9, face=where, face_score=face)


def test_distance_when_both_have_both_weighs_them_over_their_limits() -> None:
    faces = Weighed([unit(1, 0), unit(0, 1)], limit=0.5, weight=0.7)
    bodies = Weighed([unit(1, 0), unit(3, 4)], limit=0.4, weight=0.3)
    made = fused([faces, bodies])
    # Faces: 1 / 0.5 = 2. Bodies: (1 - 0.6) / 0.4 = 1. Together 0.7 * 2 + 0.3 * 1.
    assert made[0, 1] == pytest.approx(1.7, abs=1e-6)
    assert made[1, 0] == made[0, 1]
    assert made.dtype == np.float32


def test_distance_when_one_has_no_face_goes_by_bodies_and_without_both_is_unknown() -> None:
    faces = Weighed([unit(1, 0), None, None], limit=0.5, weight=0.7)
    bodies = Weighed([unit(1, 0), unit(0, 1), None], limit=0.4, weight=0.3)
    made = fused([faces, bodies])
    assert made[0, 1] == pytest.approx(2.5)
    assert made[0, 2] == UNKNOWN
    assert made[1, 2] == UNKNOWN


def test_distances_when_items_change_places_are_the_same_to_the_last_bit() -> None:
    random = np.random.default_rng(0)
    rows = [unit(*random.normal(size=512)) if at % 7 else None for at in range(600)]
    order = random.permutation(600)
    one = fused([Weighed(rows, 0.5, 1.0)])
    other = fused([Weighed([rows[at] for at in order], 0.5, 1.0)])
    assert np.array_equal(one[np.ix_(order, order)], other)
    assert np.array_equal(one, one.T)
    there = [at for at in range(600) if at % 7]
    table = np.stack([rows[at] for at in there]).astype(np.float64)  # type: ignore[misc]
    assert np.allclose(one[np.ix_(there, there)], (1 - table @ table.T) / 0.5, atol=1e-6)


def test_mean_when_rows_are_missing_or_cancel_out_leaves_them_or_is_none() -> None:
    nothing = np.full(2, np.nan, dtype=np.float32)
    found = mean_vector([unit(1, 0), nothing, unit(0, 1)])
    assert found is not None
    assert np.allclose(found, unit(1, 1))
    assert mean_vector([nothing]) is None
    assert mean_vector([]) is None
    assert mean_vector([unit(1, 0), unit(-1, 0)]) is None


def test_qualities_when_by_hand_add_face_size_and_sharpness() -> None:
    views = [seen(0, (0, 0, 10, 20)), seen(1, (0, 0, 20, 40), face=0.8), seen(2, (0, 0, 20, 40), face=0.4)]
    # The first has a quarter of the largest area, so half of the size; no face.
    assert qualities(views, ViewWeights()) == pytest.approx([0.15, 0.5 * 0.8 + 0.3, 0.5 * 0.4 + 0.3])
    sharp = qualities(views, ViewWeights(), {0: 30.0, 2: 60.0})
    assert sharp == pytest.approx([0.15 + 0.1, 0.7, 0.5 + 0.2])
    assert best(dict(enumerate(sharp)), 2) == [1, 2]
    assert best({4: 0.5, 2: 0.5, 9: 0.1}, 2) == [2, 4]
    assert qualities([], ViewWeights()) == []


def test_candidates_when_there_are_many_views_take_the_best_of_each_part() -> None:
    views = [seen(at, (0, 0, 10 + at % 4, 20)) for at in range(12)]
    assert candidates(views, ViewWeights(), 3) == [3, 7, 11]
    assert candidates(views, ViewWeights(), 50) == list(range(12))
    assert candidates([], ViewWeights(), 3) == []


def test_faces_when_two_people_overlap_go_to_the_nearer_head() -> None:
    people = [Box(0, 0, 60, 200), Box(30, 20, 90, 220)]
    left, right = Box(20, 10, 40, 35), Box(52, 30, 70, 55)
    assert faces_of_people(people, [right, left]) == [1, 0]
    assert faces_of_people(people, [left]) == [0, None]
    # As many as possible are given out, even if one is nearer to a person who gets another.
    assert faces_of_people(people, [Box(40, 25, 55, 45), Box(2, 5, 20, 30)]) == [1, 0]


def test_cut_when_a_box_has_a_margin_takes_it_within_the_picture() -> None:
    from PIL import Image

    picture = Image.new("RGB", (100, 50))
    part = cut_out(picture, (10, 10, 30, 30), 0.5)
    assert part is not None
    assert part.size == (40, 40)
    assert cut_out(picture, (200, 10, 230, 30)) is None
    edge = cut_out(picture, (90, 40, 130, 90), 0.1)
    assert edge is not None
    assert edge.size == (14, 15)


def test_views_when_a_person_is_in_many_shots_come_from_different_ones_first() -> None:
    def tracklet(shot: int, number: int, looks: int, first: int = 0) -> entities.Tracklet:
        views = tuple(seen(first + at, (0, 0, 10 + (at == 1), 30)) for at in range(looks))
        return entities.Tracklet(tracklet_id=f"v__shot{shot:04d}__t{number:03d}", shot=shot, seen=views)

    some = [tracklet(1, 1, 9), tracklet(1, 2, 5, 50), tracklet(2, 1, 3, 100)]
    person = entities.Person(person_id="p001", tracklets=tuple(one.tracklet_id for one in some), shots=(1, 2))
    by_id = {one.tracklet_id: one for one in some}
    assert [view.frame for view in views_of(person, by_id, 3)] == [1, 101, 51]
    assert [view.frame for view in views_of(person, by_id, 1)] == [1]


# The shots of a video as one item.


# Whether a text mentions an entity, and names letter for letter.

LEO = entities.Entity(label="Character 1", kind="character", name="Leo", aliases=("the old sailor",))
MUG = entities.Entity(label="Object 1", kind="object", name="the red mug")
NOTE = entities.Entity(label="Object 2", kind="object", name="the message from Leo")
CAFE = entities.Entity(label="Location 1", kind="location", name="The Café")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Leo waits.", {"Character 1": "exact"}),
        ("LEO waits.", {"Character 1": "folded"}),
        ("The old sailor waits.", {"Character 1": "alias"}),
        ("Leonard waits.", {}),
        ("Leonard waits for LEO.", {"Character 1": "folded"}),
        ("Leo's hand takes the red mug.", {"Character 1": "exact", "Object 1": "exact"}),
        ("The Red Mug stands there.", {"Object 1": "folded"}),
        ("A red mug stands there.", {"Object 1": "alias"}),
        ("The reddish mug stands there.", {}),
        ("Somebody reads the message from Leo.", {"Object 2": "exact"}),
        ("Leo reads the message from Leo.", {"Object 2": "exact", "Character 1": "exact"}),
        ("In The Café.", {"Location 1": "exact"}),
        ("In the cafe\u0301.", {"Location 1": "folded"}),
        ("", {}),
    ],
)
def test_mentions_when_looked_for_are_found_by_name_case_and_alias(text: str, found: dict[str, str]) -> None:
    assert entities.mentions(text, [LEO, MUG, NOTE, CAFE]) == found


@pytest.mark.parametrize(
    ("text", "entity", "made"),
    [
        ("She takes a red mug.", MUG, "She takes the red mug."),
        ("He drops The Red Mug here.", MUG, "He drops the red mug here."),
        ("He lifts his red mug and a red mug.", MUG, "He lifts the red mug and a red mug."),
        ("Red mug in hand, he goes.", MUG, "The red mug in hand, he goes."),
        ("The red mug falls.", MUG, "The red mug falls."),
        ("There the old sailor sits.", LEO, "There Leo sits."),
        ("Nobody is there.", LEO, "Nobody is there."),
        ("Leonard waits for LEO.", LEO, "Leonard waits for Leo."),
    ],
)
def test_name_when_another_one_stands_there_is_spelled_as_registered(text, entity, made):
    assert entities.spelled(text, entity) == made


@pytest.mark.parametrize(
    ("kind", "name", "made"),
    [
        ("object", "Red Mug", "the Red Mug"),
        ("object", "The red mug", "the red mug"),
        ("location", "harbour office.", "Harbour office"),
        ("character", "`mira`", "Mira"),
        ("character", " : ", ""),
        ("object", "mug: green", "the mug green"),
        ("character", "Character 3", ""),
        ("object", "the object 12", ""),
        ("location", "Hall of location_2", ""),
        ("character", "Gen_Leo", ""),
        ("object", "object lesson", "the object lesson"),
    ],
)
def test_name_when_tidied_has_the_form_of_its_kind(kind: str, name: str, made: str) -> None:
    assert entities.tidy_name(kind, name) == made  # type: ignore[arg-type]


def test_names_when_taken_or_within_others_are_given_anew_and_noted() -> None:
    given = [
        entities.Entity(label="Character 1", kind="character", name="Leo", aliases=("Captain", "Leo", "xy")),
        entities.Entity(label="Character 2", kind="character", name="leo", aliases=("captain",)),
        entities.Entity(label="Object 1", kind="object", name="the coat of Leo"),
        entities.Entity(label="Object 2", kind="object", name=""),
        entities.Entity(label="Object 3", kind="object", name="the coat"),
    ]
    made, repairs = entities.with_unique_names(given, lambda one: f"Spare {one.label[-1]}")
    names = [one.name for one in made]
    assert names[0] == "Leo"
    assert len({name.casefold() for name in names}) == 5
    assert not any(a != b and a.casefold() in b.casefold() for a in names for b in names)
    # Both captains could be meant: neither alias stays. Two letters are no name.
    assert [one.aliases for one in made[:2]] == [(), ()]
    assert [repair.code for repair in repairs] == ["name-taken"] * 3
    assert all(repair.done == "rewritten" for repair in repairs)


# Scores of tracks, by hand.


@pytest.mark.parametrize(
    ("first", "last", "pairs"),
    [
        (100, 199, ((112, 115), (137, 140), (162, 165), (187, 190))),  # the middles of four times 25 frames
        (10, 11, ((10, 11), (11, 11))),  # fewer frames than parts: each once, and none behind the last
        (7, 7, ((7, 7),)),
    ],
)
def test_frames_when_chosen_of_a_shot_are_in_the_middle_of_equal_parts(first, last, pairs):
    shot = SimpleNamespace(first=first, last=last, video=SimpleNamespace(fps=30.0))
    assert looked_at(shot, 4) == pairs
