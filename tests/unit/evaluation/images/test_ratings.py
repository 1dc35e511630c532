"""Ratings of an archive as sub-scores, by hand: definitions, runs, what is missing."""

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import Archive
from fabula.evaluation.metrics.story import FoundShot, FoundStory
from fabula.evaluation.metrics.vectors import packed
from fabula.evaluation.report.model import below_the_line, least_covered, with_coverage
from fabula.evaluation.shots.ratings import Definitions, collect_panels, stability, story_ratings
from fabula.evaluation.shots.report.tables import headline
from fabula.evaluation.shots.scores import ImageScores, MethodScores, StoryScore, pooled, score_archive
from fabula.evaluation.shots.scoring import Leaderboard, leaderboard
from fabula.evaluation.shots.scoring import image_comparisons as paired
from fabula.kinds.evaluations import calibrate
from fabula.people.recoverability import Resampling
from fabula.people.study import Exclusion, StudySettings
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement
from fabula.schemas.values import Score
from fabula.testing.drawn import draw_panel, picture_bytes
from fabula.testing.drawn_shots import draw_shot_outputs

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


# Where methods stand: ranks over shared stories, who is not ranked and why, which differences are real.

FEW = Definitions(resamples=500)
GONE = Score(value=None, status="undefined", reason="no character was matched")


def method(name: str, shots: int = 4, **values: list[float | None]) -> MethodScores:
    """A method with values of its stories 01, 02, ...; None for a story without."""
    count = len(next(iter(values.values())))
    stories = tuple(
        StoryScore(
            f"{n + 1:02d}",
            {
                key: GONE if (value := column[n]) is None else Score(value=value, status="ok")
                for key, column in values.items()
            },
        )
        for n in range(count)
    )
    return MethodScores(name, pooled(stories), stories, {"shots_valid": shots, "shots_requested": 4})


def board(*methods: MethodScores, excluded: tuple[str, ...] = ()) -> Leaderboard:
    return leaderboard(methods, paired(list(combinations(methods, 2)), FEW), FEW, excluded)


def test_ranks_when_lower_is_better_put_the_lowest_first() -> None:
    found = board(method("a", copy_paste_rate=[0.9, 0.8]), method("b", copy_paste_rate=[0.2, 0.1]))
    assert [found.cells[name]["copy_paste_rate"].rank for name in "ab"] == [2, 1]


def test_rank_when_a_method_lacks_a_hard_story_is_over_the_stories_that_all_have() -> None:
    # b has the higher mean, 0.9 against 0.7, but only as it failed on story 03; on 01 and 02 a is better.
    a, b = method("a", cids_cross=[0.95, 0.95, 0.2]), method("b", cids_cross=[0.9, 0.9, None])
    found = board(a, b)
    assert found.cells["a"]["cids_cross"].score.value == pytest.approx(0.7)
    assert found.cells["b"]["cids_cross"].score.value == pytest.approx(0.9)
    assert [found.cells[name]["cids_cross"].rank for name in "ab"] == [1, 2]
    assert [found.cells[name]["cids_cross"].stories for name in "ab"] == [2, 2]
    assert found.cells["a"]["cids_cross"].shared == pytest.approx(0.95)


def test_method_when_it_has_values_for_few_stories_is_not_ranked_and_takes_none_from_others() -> None:
    few = method("few", cids_cross=[0.99, None, None])
    found = board(method("a", cids_cross=[0.5, 0.6, 0.7]), method("b", cids_cross=[0.4, 0.5, 0.6]), few)
    assert found.cells["few"]["cids_cross"].rank is None
    assert found.cells["few"]["cids_cross"].why == "values for 1 of 3 stories only"
    assert found.cells["a"]["cids_cross"].stories == 3
    assert found.methods[-1] == "few"


def test_method_when_excluded_or_without_pictures_is_shown_and_not_ranked() -> None:
    best, empty = method("copy-paste", occm=[100.0, 100.0]), method("empty", 0, occm=[None, None])
    found = board(method("a", occm=[50.0, 60.0]), best, empty, excluded=("copy-paste",))
    assert found.unranked == {"copy-paste": "excluded from ranking", "empty": "no picture"}
    assert found.cells["a"]["occm"].rank == 1
    assert found.cells["copy-paste"]["occm"].rank is None
    assert found.cells["copy-paste"]["occm"].score.value == 100
    assert found.cells["empty"]["occm"].score.value is None
    assert found.methods == ("a", "copy-paste", "empty")


def test_a_method_that_left_out_shots_and_characters_stands_below_the_line_whatever_its_scores() -> None:
    def scored(name: str, shots: int, found: int, cids: float) -> MethodScores:
        counts = {"matched": found, "expected": 14}
        stories = (StoryScore("01", {"cids_cross": Score(value=cids, status="ok", counts=counts)}),)
        accounting = {"shots_valid": shots, "shots_requested": 10}
        accounting |= {"stories_requested": 1, "stories_without_shot": 0}
        return MethodScores(name, pooled(stories), stories, accounting)

    part, whole = scored("a", 8, 4, 0.994), scored("b", 10, 14, 0.993)
    found = board(part, whole)
    assert (found.methods, found.unranked) == (("b", "a"), {"a": "8 of 10 shots: less than 95%"})
    assert found.cells["b"]["cids_cross"].rank == 1 and found.cells["a"]["cids_cross"].rank is None
    scores = ImageScores(FEW, None, (part, whole))
    assert [row.run for row in scores.official_ranks()] == ["b", "a"]
    assert any(
        "rank 1" in line and "a (" in line and "incomplete: 8 of 10" in line for line in scores.lines()
    )
    subject = {"methods": {each.method: each.accounting for each in (part, whole)}}
    covered = least_covered(EvaluationManifest(kind="images", protocol={}, subject=subject, environment={}))
    table = with_coverage(headline(scores, ["a", "b"]), covered)
    assert [row.label for row in table.rows] == ["b", "Incomplete: less than 95% of the outputs", "a"]
    assert [row.scores["coverage"].value for row in table.rows if row.scores] == [1.0, 0.8]
    assert table.rows[-1].note == "8 of 10 shots; 4 of 14 expected characters found"
    assert "less than 95% of their outputs stand below" in table.note
    assert [row.label for row in with_coverage(table, covered, 0.8).rows if row.scores] == ["b", "a"]
    assert next(below_the_line(covered)).startswith("incomplete: a has 8 of 10 shots")


def test_difference_when_twelve_stories_agree_is_significant_and_of_four_is_not() -> None:
    def two(count: int) -> Leaderboard:
        low = [50.0 + n for n in range(count)]
        return board(method("a", occm=low), method("b", occm=[one + 5 + n % 3 for n, one in enumerate(low)]))

    many, few = two(12), two(4)
    assert (many.cells["b"]["occm"].better, many.cells["a"]["occm"].worse) == (("a",), ("b",))
    assert many.cells["a"]["occm"].better == ()
    assert few.cells["b"]["occm"].better == ()  # of 2 ** 4 signs two are as extreme: p = 0.125


def test_inception_when_sets_differ_in_size_ranks_the_largest_ones_only() -> None:
    scored = [method("a", occm=[1.0]), method("b", occm=[1.0]), method("c", occm=[1.0])]
    made = [
        MethodScores(
            one.method, {"inception": Score(value=value, status="ok", counts={"pictures": pictures})},
            one.stories, one.accounting,
        )
        for one, value, pictures in zip(scored, (5.0, 7.0, 9.0), (100, 100, 40), strict=True)
    ]  # fmt: skip
    cells = board(*made).cells
    assert [cells[name]["inception"].rank for name in "abc"] == [2, 1, None]
    assert cells["c"]["inception"].why == "40 pictures, others have 100"
    assert cells["a"]["inception"].low is None


# -- People's ratings of drawn shots beside the scores of an evaluation. The ratings are made up

Evaluate = Callable[..., Any]
SETTINGS = StudySettings(resampling=Resampling(50))
Row = dict[str, Any]


@pytest.fixture
def evaluated(evaluate: Evaluate, model_x: Path, copies: Path, tmp_path: Path) -> Path:
    """Three methods: one follows the script, one pastes references, one draws panels of other things."""
    other = draw_shot_outputs(tmp_path / "panels", 3)
    for number, file in enumerate(sorted(other.rglob("*.png"))):
        file.write_bytes(picture_bytes(draw_panel(number)))
    evaluate(model_x, copies, other, metrics="occm,aesthetic,inception,clip-score")
    return tmp_path / "run"


def rating(method: str, item: str, value: int, rater: str = "p1", criterion: str = "alignment") -> Row:
    return {
        "kind": "rating", "rater": rater, "item": item, "method": method, "criterion": criterion,
        "value": value,
    }  # fmt: skip


def written(path: Path, *rows: Row) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.mark.slow
def test_ratings_when_they_follow_the_pictures_go_with_the_scores(evaluated: Path, tmp_path: Path) -> None:
    liked = {"model-x": 4, "copy-paste": 2, "panels": 0}
    rows = [
        rating(method, item, value, rater)
        for method, value in liked.items()
        for item in ("01", "02", "03", "01/shot_01", "01/shot_02", "02/shot_03")
        for rater in ("p1", "p2")
    ]
    report = calibrate(evaluated, written(tmp_path / "people.jsonl", *rows), settings=SETTINGS)
    found = report.as_json()["scores"]["alignment"]
    stories = found["stories"]["clip_score"]
    assert stories["stories"]["pearson"]["pairs"] == 9
    assert stories["methods"]["spearman"]["value"] == pytest.approx(1.0)
    assert stories["without_score"] == 0
    assert found["shots"]["clip_score"]["shots"]["pearson"]["pairs"] == 8  # one has no picture
    assert found["shots"]["clip_score"]["without_score"] == 1
    assert found["sets"]["inception"]["methods"]["pearson"]["pairs"] == 3
    lines = "\n".join(report.lines())
    assert "alignment against scores (Pearson, Spearman)" in lines
    assert "clip_score: over 9 stories" in lines and "1 rated without a score" in lines
    assert "2 people: 36 rating" in lines and "model-x\n  alignment: 4.000" in lines


@pytest.mark.slow
def test_ratings_when_another_definition_is_chosen_are_compared_under_it(evaluated, tmp_path):
    people = written(tmp_path / "people.jsonl", rating("model-x", "01", 3))
    told = calibrate(evaluated, people, settings=SETTINGS, define=["occm=code"]).as_json()
    assert told["definitions"]["scores"]["occm"] == "code"
    pearson = told["scores"]["alignment"]["stories"]["clip_score"]["stories"]["pearson"]
    assert (pearson["value"], pearson["reason"]) == (None, "1 pair; at least 3 are needed")


@pytest.mark.slow
def test_scores_when_they_have_no_value_of_what_was_rated_are_named_with_no_pair(evaluated, tmp_path):
    people = written(tmp_path / "people.jsonl", rating("model-x", "02/shot_03", 3))  # has no picture
    report = calibrate(evaluated, people, settings=SETTINGS)
    shots = report.as_json()["scores"]["alignment"]["shots"]
    assert shots["clip_score"]["shots"]["spearman"]["reason"] == "0 pairs; at least 3 are needed"
    assert "aesthetic: over 0 shots -, -; over 0 methods -, -; 1 rated without a score" in "\n".join(
        report.lines()
    )


@pytest.mark.slow
def test_people_when_careless_are_left_out_and_named(evaluated: Path, tmp_path: Path) -> None:
    failed = {"kind": "attention", "rater": "p2", "item": "check", "value": 0}
    rows = [rating("model-x", "01", 4), rating("model-x", "01", 0, "p2"), failed]
    told = calibrate(
        evaluated, written(tmp_path / "people.jsonl", *rows),
        settings=StudySettings(resampling=Resampling(0), exclusion=Exclusion()),
    ).as_json()  # fmt: skip
    assert told["methods"]["model-x"]["ratings"]["alignment"]["mean"]["value"] == 4
    assert list(told["people"]["excluded_raters"]) == ["p2"]


@pytest.mark.slow
def test_ratings_when_they_name_what_is_not_there_are_refused(evaluated: Path, tmp_path: Path) -> None:
    wrong = {
        "value: expected a rating from 0 to 4, found 5": rating("model-x", "01", 5),
        "item: expected the id of a story of the evaluation": rating("model-x", "09", 1),
        "or of one of its shots, such as 01/shot_03, found '01/shot_77'": rating("model-x", "01/shot_77", 1),
        "method: expected one of copy-paste, model-x, panels, found 'nobody'": rating("nobody", "01", 1),
        "1 of kind completion": rating("model-x", "01", 1) | {"kind": "completion", "completion": [1]},
    }
    with pytest.raises(InputError) as refused:
        calibrate(evaluated, written(tmp_path / "people.jsonl", *wrong.values()), settings=SETTINGS)
    assert [text for text in wrong if text not in str(refused.value)] == []
