"""Shot similarity: hand-worked values, perfect and worst, what is left out, and an evaluation end to end."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from fabula.evaluation.metrics.shot_similarity import METRIC, shot_similarity
from fabula.evaluation.metrics.vectors import Floats, Joining, Vectors, mean_of_pairs, similarities, unit
from fabula.evaluation.shots.definitions import Definitions
from fabula.evaluation.shots.found import read_found
from fabula.evaluation.shots.report.page import ImageReport, images_report
from fabula.evaluation.shots.requests import EVALUATING, ImageOptions
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set

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
def test_similarity_when_no_two_neighbours_share_a_setting_is_undefined(
    features: list[Floats | None], scenes: list[int]
) -> None:
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


def test_similarity_when_evaluated_with_a_small_network_is_shown_and_ranks_nobody(tmp_path: Path) -> None:
    for library in ("torch", "transformers"):
        pytest.importorskip(library, reason="the extra metrics is not installed")
    from fabula.testing.tiny_vision import tiny_settings

    local = tiny_settings("dinov2-l-14", tmp_path / "weights")["local"]
    shot_set = draw_shot_set(tmp_path / "set", 2)
    for path in shot_set.rglob("story.json"):
        script = json.loads(path.read_text("utf-8"))
        for shot in script["Shots"][:3]:
            shot["Setting Description"] = {"en": "a mill", "ch": ""}
        path.write_text(json.dumps(script), "utf-8")
    outputs = [draw_shot_outputs(tmp_path / name, 2) for name in ("a", "b")]
    options = ImageOptions(
        metrics=("shot-similarity",), device="cpu", workers=0,
        settings=(f'encode_pictures.options={{ "dinov2-l-14" = {{ local = "{local}" }} }}',),
    )  # fmt: skip
    assert EVALUATING.evaluate(shot_set, outputs, tmp_path / "run", options).totals["failed"] == 0
    line = read_found(tmp_path / "run")[0]
    assert line.pictures is not None and line.pictures["scenes"][:4] == [1, 1, 1, 4]
    document = images_report(tmp_path / "run", wanted=ImageReport(Definitions(resamples=20)))
    assert [one.label for one in document.headline.measures] == ["Shot similarity"]
    assert document.headline.measures[0].better is None
    assert document.shots is not None and document.shots.leaders is not None and not document.shots.worst
    places = [row.places["shot_similarity"] for row in document.shots.leaders.rows]
    assert {one.rank for one in places} == {None}
    assert all("neither end is better" in (one.why or "") for one in places)


# Embeddings and their cosines.


def test_similarities_when_two_encoders_know_both_are_the_mean_of_their_cosines() -> None:
    first = Vectors.of(a=[(1, 0)], b=[(0, 2)])
    second = Vectors.of(a=[(3, 4), (1, 0)], b=[(0, 1), None])
    # pair 1: a gives 3/5, b gives 1, mean 0.8; pair 2: only a knows it, 1
    assert similarities(first, second, ("a", "b")).tolist() == [[pytest.approx(0.8), 1.0]]


def test_similarities_when_weighted_divide_by_the_weights_that_are_there() -> None:
    first = Vectors.of(a=[(1, 0)], b=[(0, 2)])
    second = Vectors.of(a=[(3, 4), (3, 4)], b=[(0, 1), None])
    found = similarities(first, second, ("a", "b"), Joining({"a": 3.0, "b": 1.0}))
    # (3 * 0.6 + 1 * 1) / 4 = 0.7, and 0.6 alone
    assert found.tolist() == [[pytest.approx(0.7), pytest.approx(0.6)]]


def test_similarities_when_no_encoder_is_shared_are_nan_and_never_zero() -> None:
    first, second = Vectors.of(a=[(1, 0)], b=[None]), Vectors.of(a=[None], b=[(1, 0)])
    assert np.isnan(similarities(first, second, ("a", "b"))).all()
    assert np.isnan(similarities(first, second, ("c",))).all()


def test_unit_of_zeros_is_nan() -> None:
    assert np.isnan(unit(np.zeros((1, 3)))).all()


def test_vectors_when_encoders_have_other_numbers_of_pictures_are_refused() -> None:
    with pytest.raises(ValueError, match="every picture"):
        Vectors.of(a=[(1, 0)], b=[(1, 0), (0, 1)])


def test_vectors_when_parts_are_joined_and_taken_keep_their_rows() -> None:
    one, two = Vectors.of(a=[(1, 0)]), Vectors.of(a=[(0, 1), None])
    both = Vectors.joined([one, two])
    assert len(both) == 3
    assert both.known(("a",)).tolist() == [True, True, False]
    assert both.take([1]).by_encoder["a"].tolist() == [[0.0, 1.0]]
    assert len(Vectors.joined([])) == 0


def test_mean_of_pairs_counts_only_pairs_that_are_known() -> None:
    table = np.array([[1, 0.5, np.nan], [0.5, 1, 0.7], [np.nan, 0.7, 1]])
    total, pairs = mean_of_pairs(table)
    assert (total, pairs) == (pytest.approx(1.2), 2)
