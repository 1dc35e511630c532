"""Ratings of an archive as sub-scores, by hand: definitions, runs, what is missing."""

from typing import Any

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import Archive
from fabula.evaluation.metrics.story import FoundShot, FoundStory
from fabula.evaluation.metrics.vectors import packed
from fabula.evaluation.shots.definitions import Definitions
from fabula.evaluation.shots.ratings import collect_panels, stability, story_ratings
from fabula.evaluation.shots.score import score_archive
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement

JUDGE = Judge(spec="openai:one", provider="openai", model="one", reported_model=None)
CASTS = ((), ("A",), ("A", "B"))


def story(boxes: dict[str, list[list[float]]] | None = None) -> FoundStory:
    """A story of three shots: nobody, A, and A with B on stage."""
    shots = tuple(
        FoundShot(number=number, onstage=len(cast), expected=cast, sha256="0")
        for number, cast in enumerate(CASTS, 1)
    )
    box = [0.0, 0.0, 9.0, 9.0, 1.0]
    there = {"1": [], "2": [box], "3": [box, box]} if boxes is None else boxes
    return FoundStory(
        method="m", story_id="01", characters={"A": None, "B": None}, references={}, shots=shots,
        boxes={"model": "d", "shots": there}, crops=None, pictures=None,
    )  # fmt: skip


def rated(item: str, rating: int | None, vote: int = 0, **more: Any) -> Judgement:
    return Judgement.model_validate(
        {
            "protocol": "images", "kind": "alignment", "method": "m", "unit": "01", "seed": None,
            "item": item, "condition": "image", "judge": JUDGE, "vote": vote, "prompt": "",
            "reason": None, "raw": "",
            "outcome": "refused" if rating is None else "answered",
            "parsed": None if rating is None else {"rating": rating, "reason": ""},
            "input_tokens": None, "output_tokens": None, "cost": None, "time": None, **more,
        }
    )  # fmt: skip


def scores(*judgements: Judgement, asked_from: int = 0, **named: Any) -> dict[str, Any]:
    one = story()
    (panel,) = collect_panels(judgements, [one]).values()
    return story_ratings(one, panel, asked_from, Definitions(chosen=named))


def test_scene_when_a_rating_is_missing_is_the_mean_of_the_others() -> None:
    found = scores(rated("shot_01/scene", 4), rated("shot_02/scene", None), rated("shot_03/scene", 1))
    assert found["scene"].value == 2.5  # (4 + 1) / 2
    assert found["scene"].counts == {
        "asked": 3, "answered": 2, "runs": 1, "shots": 3, "without_image": 0, "not_asked": 0,
    }  # fmt: skip
    assert found["alignment"].status == "undefined"


@pytest.mark.parametrize(("definition", "value"), [("paper", 1.0), ("code", 3.0)])
def test_interaction_when_defined_takes_the_shots_that_it_names(definition: str, value: float) -> None:
    given = [rated(f"shot_0{number}/interaction", rating) for number, rating in ((1, 4), (2, 4), (3, 1))]
    assert scores(*given, alignment=definition)["interaction"].value == value  # 1; (4 + 4 + 1) / 3


def test_interaction_when_not_asked_of_all_shots_has_no_value_by_the_code() -> None:
    found = scores(rated("shot_03/interaction", 1), asked_from=2, alignment="code")["interaction"]
    assert found.value is None and "2 characters or more" in found.reason


def test_action_when_rounded_by_the_code_differs_from_the_mean() -> None:
    given = [rated("shot_02/action/A", 2), rated("shot_03/action/A", 4), rated("shot_03/action/B", 1)]
    assert scores(*given)["action"].value == pytest.approx(7 / 3)
    assert scores(*given, alignment="code")["action"].value == 2  # 2, and 2.5 to the even 2


def test_runs_when_repeated_have_mean_and_sample_deviation() -> None:
    one = story()
    given = [
        rated(f"shot_0{shot}/scene", rating, vote) for vote, rating in enumerate((2, 3, 4)) for shot in (1, 2)
    ]
    (panel,) = collect_panels(given, [one]).values()
    told = stability([one], panel, 0, Definitions())["scene"]
    assert (told.runs, told.mean, told.deviation) == ((2.0, 3.0, 4.0), 3.0, 1.0)
    assert story_ratings(one, panel, 0, Definitions())["scene"].value == 3.0


@pytest.mark.parametrize(
    ("item", "rating", "expected"),
    [
        ("shot_09/scene", 3, "a shot that was evaluated"),
        ("shot_01/mood", 3, "a shot that was evaluated"),
        ("shot_01/scene", 7, "a rating of 0 to 4"),
        ("shot_01/scene", True, "a rating of 0 to 4"),
    ],
)
def test_ratings_when_they_belong_to_nothing_are_refused(item: str, rating: int, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        collect_panels([rated(item, rating)], [story()])


def test_action_as_the_code_has_it_leaves_out_a_shot_whose_crops_have_no_vector() -> None:
    """Two boxes and nobody in them whom an encoder knows: nobody was asked about that shot."""
    nothing, vector = [[float("nan")] * 2], [[1.0, 0.0]]
    crops = {
        "encoders": {"A": ["face"], "B": ["face"]}, "references": {}, "mirrors": {},
        "shots": {
            number: {"face": packed(np.array(rows, dtype=np.float32))}
            for number, rows in (("2", vector), ("3", nothing))
        },
    }  # fmt: skip
    told = story().model_copy(update={"crops": crops})
    (panel,) = collect_panels([rated("shot_02/action/A", 4)], [told]).values()
    for definition, value in (("code", 4.0), ("paper", 4.0)):
        found = story_ratings(told, panel, 0, Definitions(chosen={"alignment": definition}))["action"]
        assert found.value == value
    blind = story_ratings(story(), panel, 0, Definitions(chosen={"alignment": "code"}))["action"]
    assert blind.value == 2.0  # without vectors nobody can tell: matched nobody, (4 + 0) / 2


def test_ratings_when_methods_have_other_judges_bear_the_judges_names_and_are_not_compared() -> None:
    other = Judge(spec="openai:two", provider="openai", model="two", reported_model=None)
    found = [story(), story().model_copy(update={"method": "n"})]
    judgements = [
        rated("shot_01/scene", 4), rated("shot_01/scene", 1, method="n", judge=other)
    ]  # fmt: skip
    manifest = EvaluationManifest(kind="images", protocol={}, subject={}, environment={})
    scores = score_archive(Archive(manifest, tuple(judgements)), found, Definitions(resamples=0))
    values = {
        method.method: {name: score.value for name, score in method.scores.items() if "scene" in name}
        for method in scores.methods
    }
    assert values == {"m": {"scene (openai:one)": 4}, "n": {"scene (openai:two)": 1}}
    assert scores.notes[:2] == (
        "m has no judgement by openai:two, and so no score by it",
        "n has no judgement by openai:one, and so no score by it",
    )
