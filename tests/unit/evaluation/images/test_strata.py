"""Scores by kind of story and of character: by hand, through an evaluation, in tables and on the page."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.metrics.story import FoundFacts, FoundShot, FoundStory
from fabula.evaluation.metrics.vectors import packed
from fabula.evaluation.shots.looking import kinds_of_story, read_found
from fabula.evaluation.shots.ratings import Definitions, actions_of, collect_panels
from fabula.evaluation.shots.scores import Stratum, score_folder, score_story, strata_of
from fabula.evaluation.shots.scoring import scored_shots, write_scores
from fabula.schemas.judgement import Judge, Judgement

Evaluate = Callable[..., Any]
FEW = Definitions(resamples=200)
BOX = [0.0, 0.0, 9.0, 9.0, 1.0]
JUDGE = Judge(spec="openai:one", provider="openai", model="one", reported_model=None)


def rows(*vectors: tuple[float, float]) -> dict[str, Any]:
    return {"clip": packed(np.array(vectors, dtype=np.float32))}


def story(story_id: str, cast: dict[str, str], crops: dict[str, Any], **facts: Any) -> FoundStory:
    """A story of one shot with everybody on stage; the references of A and B are at a right angle."""
    references = {"A": rows((1, 0)), "B": rows((0, 1))}
    people = {key: {"gender": gender} for key, gender in cast.items()}
    shot = FoundShot(number=1, onstage=len(cast), expected=tuple(cast), sha256="0")
    return FoundStory(
        method="m", story_id=story_id, characters=dict.fromkeys(cast), references={}, shots=(shot,),
        facts=FoundFacts.model_validate({**facts, "characters": people}),
        boxes={"model": "d", "shots": {"1": [BOX] * len(cast)}}, pictures=None,
        crops={
            "encoders": {key: ["clip"] for key in cast}, "models": {}, "mirrors": {},
            "references": {key: references[key] for key in cast}, "shots": {"1": crops},
        },
    )  # fmt: skip


def two() -> list[FoundStory]:
    return [
        story(
            "01", {"A": "female", "B": "male"}, rows((1, 0), (0.6, 0.8)), realistic=True, culture="chinese"
        ),
        story("02", {"A": "female"}, rows((0.8, 0.6)), realistic=False, culture="chinese"),
    ]


def by_kind(strata: tuple[Stratum, ...]) -> dict[tuple[str, str], Stratum]:
    return {(one.by, one.kind): one for one in strata}


def test_strata_when_worked_by_hand_are_means_over_their_stories_and_characters() -> None:
    found = two()
    told = by_kind(strata_of(found, [score_story(one, FEW) for one in found], {}, FEW))
    values = {group: one.scores["cids_cross"].value for group, one in told.items()}
    assert values == {
        ("realism", "realistic"): pytest.approx(0.9),  # (1 + 0.8) / 2
        ("realism", "unrealistic"): pytest.approx(0.8),
        ("culture", "chinese"): pytest.approx(0.85),  # (0.9 + 0.8) / 2
        ("gender", "female"): pytest.approx(0.9),  # (1 + 0.8) / 2: one in each story
        ("gender", "male"): pytest.approx(0.8),
    }  # of types, styles, tags and ethnicities nothing is stated
    women = told["gender", "female"]
    assert (women.stories, women.characters) == (2, 2)
    assert women.scores["cids_cross"].counts["expected"] == 2
    assert women.scores["cids_cross"].low is None  # of two stories
    assert told["culture", "chinese"].characters is None
    assert told["realism", "unrealistic"].scores["occm"].value == 100
    assert "occm" not in women.scores  # a count of boxes is of nobody


@pytest.mark.parametrize(
    ("tags", "kind"),
    [
        (("realistic_human", "non_human"), "realistic"),
        (("unrealistic_human",), "unrealistic"),
        (("realistic_human", "unrealistic_human"), "not stated"),
        (("non_human",), "not stated"),
    ],
)
def test_realism_when_nobody_states_it_is_that_of_all_humans(tags: tuple[str, ...], kind: str) -> None:
    one = two()[0].model_copy(
        update={"facts": FoundFacts(), "characters": {str(n): tag for n, tag in enumerate(tags)}}
    )
    assert kinds_of_story(one)["realism"] == kind


def test_actions_when_of_some_characters_are_their_ratings_alone() -> None:
    found = two()[0]
    given = [
        Judgement.model_validate(
            {
                "protocol": "images", "kind": "alignment", "method": "m", "unit": "01", "seed": None,
                "item": f"shot_01/action/{key}", "condition": "image", "judge": JUDGE, "vote": 0,
                "prompt": "", "reason": None, "raw": "", "outcome": "answered",
                "parsed": {"rating": rating, "reason": ""}, "input_tokens": None, "output_tokens": None,
                "cost": None, "time": None,
            }
        )
        for key, rating in (("A", 4), ("B", 1))
    ]  # fmt: skip
    (panel,) = collect_panels(given, [found]).values()
    some = {key: actions_of(found, frozenset({key}), panel=panel, definitions=FEW) for key in "AB"}
    assert [some[key].value for key in "AB"] == [4, 1]
    assert some["A"].counts["expected"] == 1


FACTS = {
    "01": {"realistic": True, "culture": "chinese", "style": "anime", "people": ("female", "male", "other")},
    "02": {"realistic": False, "culture": "japanese", "style": None, "people": ("female", "female", "male")},
    "03": {"realistic": False, "culture": "japanese", "style": None, "people": (None, None, None)},
}


def state(shot_set: Path) -> None:
    """Write ``stories.jsonl`` beside the drawn stories."""
    lines = []
    for key, told in FACTS.items():
        people = zip(("Mira", "Old Tomas", "The Fox"), told["people"], strict=True)  # type: ignore[call-overload]
        characters = {name: {"gender": gender} for name, gender in people if gender}
        plain = {name: value for name, value in told.items() if name != "people"}
        lines.append(json.dumps({"story_id": key, **plain, "characters": characters}) + "\n")
    (shot_set / "ViStory/stories.jsonl").write_text("".join(lines), "utf-8")


@pytest.mark.slow
def test_evaluation_when_the_set_states_facts_has_scores_by_kind(
    evaluate: Evaluate, shot_set: Path, model_x: Path, copies: Path, tmp_path: Path
) -> None:
    state(shot_set)
    evaluate(model_x, copies, metrics="cids,copy-paste,occm,csd,inception")
    scores = score_folder(tmp_path / "run", FEW)
    told = by_kind(scores.methods[1].strata)
    counted = {group: (one.stories, one.characters) for group, one in told.items()}
    assert counted == {
        ("realism", "realistic"): (1, None), ("realism", "unrealistic"): (2, None),
        ("story_type", "folktale"): (3, None),
        ("culture", "chinese"): (1, None), ("culture", "japanese"): (2, None),
        ("style", "anime"): (1, None), ("style", "not stated"): (2, None),
        ("tag", "realistic_human"): (3, 3), ("tag", "unrealistic_human"): (3, 3),
        ("tag", "non_human"): (3, 3),
        ("gender", "female"): (2, 3), ("gender", "male"): (2, 2), ("gender", "other"): (1, 1),
        ("gender", "not stated"): (1, 3),
    }  # fmt: skip
    whole = told["story_type", "folktale"].scores
    assert whole["occm"].value == scores.methods[1].scores["occm"].value
    assert "inception" not in whole
    parts = [told["tag", tag].scores["cids_cross"].counts for tag in ("realistic_human", "non_human")]
    assert [part["expected"] for part in parts] == [12, 3]  # on stage in four shots of five, and in one
    run = tmp_path / "run"
    write_scores(tmp_path / "t", scores, scored_shots(read_archive(run), read_found(run), scores))
    with (tmp_path / "t/strata.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:5] == ["method", "by", "kind", "metric", "value"]
    (line,) = [
        one for one in lines
        if (one["method"], one["kind"], one["metric"]) == ("model-x", "japanese", "csd_self")
    ]  # fmt: skip
    assert float(line["value"]) == told["culture", "japanese"].scores["csd_self"].value
