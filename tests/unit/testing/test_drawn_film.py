"""The drawn film: the same each time, with a truth that its pixels bear out."""

import numpy as np

from fabula.testing.drawn_detections import Noise, colours, detections
from fabula.testing.drawn_film import CAST, HEIGHT, WIDTH, DrawnFilm

FILM = DrawnFilm(180)


def test_film_when_made_again_is_the_same_and_with_another_seed_is_not() -> None:
    again, other = DrawnFilm(180), DrawnFilm(180, seed=8)
    assert again.shots == FILM.shots
    assert again.frame(77).tobytes() == DrawnFilm(180).frame(77).tobytes()
    assert other.shots != FILM.shots


def test_film_when_whole_has_all_that_makes_it_hard() -> None:
    parts = [part for shot in FILM.shots for part in shot.parts]
    assert FILM.frames == 2160
    assert {part.character for part in parts} == set(range(len(CAST))) == set(range(8))
    assert {part.way for part in parts} == {"stand", "walk", "leave"}
    assert any(shot.pillar is not None for shot in FILM.shots)
    together = [{part.character for part in shot.parts} for shot in FILM.shots]
    assert any({2, 3} <= some for some in together)  # the twins
    assert any({4, 5} <= some for some in together)  # two in one uniform
    assert CAST[2].skin == CAST[3].skin
    assert CAST[4].outfits[0] == CAST[5].outfits[0]


def test_truth_when_compared_with_the_pixels_says_where_coats_are() -> None:
    shot = next(one for one in FILM.shots if one.pillar is None and one.scene == 0)
    for one in FILM.standing(shot.first):
        if one.visible < 0.9:
            continue
        figure = next(figure for figure in CAST if figure.name == one.character)
        left, top, right, bottom = (int(edge) for edge in one.box)
        pixels = np.asarray(FILM.frame(shot.first), dtype=np.int64)[top:bottom, left:right]
        coat = (np.abs(pixels - np.array(figure.outfits[0][0])) < 25).all(axis=2)
        assert 0.25 < coat.mean() < 0.6
        rows = np.flatnonzero(coat.any(axis=1)) / (bottom - top)
        assert 0.15 < rows[0] < 0.3
        assert 0 <= left < right <= WIDTH
        assert 0 <= top < bottom <= HEIGHT


def test_truth_when_somebody_leaves_has_them_back_at_the_end() -> None:
    shot = next(
        one for one in FILM.shots if any(part.way == "leave" for part in one.parts) and one.pillar is None
    )
    name = next(CAST[part.character].name for part in shot.parts if part.way == "leave")
    there = [any(one.character == name for one in FILM.standing(f)) for f in range(shot.first, shot.last + 1)]
    assert there[0]
    assert there[-1]
    assert not all(there)


def test_detections_when_nothing_errs_are_the_truth() -> None:
    film = DrawnFilm(4)
    rows = list(detections(film, Noise(miss=0, jitter=0, false=0, faceless=0), every=8))
    truth = [(f, one) for f in range(0, film.frames, 8) for one in film.standing(f) if one.visible >= 0.3]
    assert [(row["frame"], row["box"]) for row in rows] == [
        (f, [round(edge, 2) for edge in one.box]) for f, one in truth
    ]
    assert [row["face"] is None for row in rows] == [one.face is None for _, one in truth]
    assert list(detections(film)) == list(detections(film))


def test_colours_when_a_picture_is_scaled_hardly_change() -> None:
    picture = FILM.frame(0).crop((100, 40, 180, 160))
    small = colours(picture.resize((40, 60)))
    assert abs(np.linalg.norm(small) - 1) < 1e-5
    assert float(colours(picture) @ small) > 0.97
