"""The parts of telling people apart, by hand: distances, vectors, best views, faces, crops."""

import numpy as np
import pytest

from fabula.builders.entities.distances import UNKNOWN, Rows, Weighed, fused, mean_vector, packed, unpacked
from fabula.builders.entities.drafts import Person, Seen, Tracklet
from fabula.builders.entities.measure_quality import faces_of_people
from fabula.builders.entities.pictures import (
    ViewWeights,
    best,
    candidates,
    cut_out,
    qualities,
    sharpness_of,
    views_of,
)
from fabula.models.vision.types import Box


def unit(*values: float) -> Rows:
    row = np.array(values, dtype=np.float64)
    return (row / np.linalg.norm(row)).astype(np.float32)


def seen(frame: int, box: tuple[float, float, float, float], face: float | None = None) -> Seen:
    # A face is a square of ten pixels.
    where = None if face is None else (box[0], box[1], box[0] + 10, box[1] + 10)
    return Seen(frame=frame, box=box, score=0.9, face=where, face_score=face)


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


def test_vectors_when_packed_come_back_bit_for_bit() -> None:
    row = unit(0.1, -0.7, 3)
    assert unpacked(packed(row)).tobytes() == row.tobytes()
    with pytest.raises(ValueError, match="base64"):
        unpacked("no such text!")


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


def test_sharpness_when_a_picture_is_blurred_falls() -> None:
    from PIL import Image, ImageFilter

    noise = np.random.default_rng(0).integers(0, 255, (90, 60, 3), dtype=np.uint8)
    sharp = Image.fromarray(noise)
    assert sharpness_of(sharp) > 4 * sharpness_of(sharp.filter(ImageFilter.GaussianBlur(2)))
    assert sharpness_of(Image.new("RGB", (1, 1))) == 0


def test_faces_when_two_people_overlap_go_to_the_nearer_head() -> None:
    people = [Box(0, 0, 60, 200), Box(30, 20, 90, 220)]
    left, right = Box(20, 10, 40, 35), Box(52, 30, 70, 55)
    assert faces_of_people(people, [right, left]) == [1, 0]
    assert faces_of_people(people, [left]) == [0, None]
    # As many as possible are given out, even if one is nearer to a person who gets another.
    assert faces_of_people(people, [Box(40, 25, 55, 45), Box(2, 5, 20, 30)]) == [1, 0]


def test_faces_when_they_are_outside_are_nobodys() -> None:
    people = [Box(0, 0, 60, 200)]
    assert faces_of_people(people, [Box(100, 0, 120, 20)]) == [None]
    assert faces_of_people(people, [Box(50, 0, 80, 20)]) == [None]  # a third of it is inside
    assert faces_of_people([], [Box(0, 0, 9, 9)]) == []
    assert faces_of_people(people, []) == [None]


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
    def tracklet(shot: int, number: int, looks: int, first: int = 0) -> Tracklet:
        views = tuple(seen(first + at, (0, 0, 10 + (at == 1), 30)) for at in range(looks))
        return Tracklet(tracklet_id=f"v__shot{shot:04d}__t{number:03d}", shot=shot, seen=views)

    some = [tracklet(1, 1, 9), tracklet(1, 2, 5, 50), tracklet(2, 1, 3, 100)]
    person = Person(person_id="p001", tracklets=tuple(one.tracklet_id for one in some), shots=(1, 2))
    by_id = {one.tracklet_id: one for one in some}
    assert [view.frame for view in views_of(person, by_id, 3)] == [1, 101, 51]
    assert [view.frame for view in views_of(person, by_id, 1)] == [1]
