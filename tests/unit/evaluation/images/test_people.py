"""People's ratings of drawn shots beside the scores of an evaluation. The ratings are made up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.kinds.evaluations import calibrate
from fabula.people.participants import Resampling
from fabula.people.study import Exclusion, StudySettings
from fabula.testing.drawn import draw_panel, picture_bytes
from fabula.testing.drawn_shots import draw_shot_outputs

pytestmark = pytest.mark.slow

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


def test_ratings_when_another_definition_is_chosen_are_compared_under_it(
    evaluated: Path, tmp_path: Path
) -> None:
    people = written(tmp_path / "people.jsonl", rating("model-x", "01", 3))
    told = calibrate(evaluated, people, settings=SETTINGS, define=["occm=code"]).as_json()
    assert told["definitions"]["scores"]["occm"] == "code"
    pearson = told["scores"]["alignment"]["stories"]["clip_score"]["stories"]["pearson"]
    assert (pearson["value"], pearson["reason"]) == (None, "1 pair; at least 3 are needed")


def test_scores_when_they_have_no_value_of_what_was_rated_are_named_with_no_pair(
    evaluated: Path, tmp_path: Path
) -> None:
    people = written(tmp_path / "people.jsonl", rating("model-x", "02/shot_03", 3))  # has no picture
    report = calibrate(evaluated, people, settings=SETTINGS)
    shots = report.as_json()["scores"]["alignment"]["shots"]
    assert shots["clip_score"]["shots"]["spearman"]["reason"] == "0 pairs; at least 3 are needed"
    assert "aesthetic: over 0 shots -, -; over 0 methods -, -; 1 rated without a score" in "\n".join(
        report.lines()
    )


def test_people_when_careless_are_left_out_and_named(evaluated: Path, tmp_path: Path) -> None:
    failed = {"kind": "attention", "rater": "p2", "item": "check", "value": 0}
    rows = [rating("model-x", "01", 4), rating("model-x", "01", 0, "p2"), failed]
    told = calibrate(
        evaluated, written(tmp_path / "people.jsonl", *rows),
        settings=StudySettings(resampling=Resampling(0), exclusion=Exclusion()),
    ).as_json()  # fmt: skip
    assert told["methods"]["model-x"]["ratings"]["alignment"]["mean"]["value"] == 4
    assert list(told["people"]["excluded_raters"]) == ["p2"]


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
