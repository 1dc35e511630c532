"""The metrics of one story from an archive's line: what models made nothing of, missing pictures."""

import numpy as np

from fabula.evaluation.metrics.story import FoundShot, FoundStory, Story
from fabula.evaluation.metrics.vectors import packed
from fabula.evaluation.shots.definitions import Definitions
from fabula.evaluation.shots.scores import score_story

NAN = float("nan")


def line(style: list[list[float]], aesthetic: list[float]) -> FoundStory:
    """Three shots with one character, the last without a picture; one reference."""
    shots = tuple(
        FoundShot(number=number, onstage=1, expected=("A",), sha256=None if number == 3 else "0")
        for number in (1, 2, 3)
    )
    pictures = {
        "numbers": [1, 2], "models": {}, "style": packed(np.array(style, dtype=np.float32)),
        "aesthetic": packed(np.array(aesthetic, dtype=np.float32)[:, None]),
        "inception": packed(np.array([[0.5, 0.5], [NAN, NAN]], dtype=np.float32)),
        "references": {"A": packed(np.array([[1, 0]], dtype=np.float32))},
    }  # fmt: skip
    return FoundStory(
        method="m", story_id="01", characters={"A": None}, references={"A": ("0",)}, shots=shots,
        boxes=None, crops=None, pictures=pictures,
    )  # fmt: skip


def test_story_when_all_pictures_are_known_has_means_by_hand() -> None:
    scores = score_story(line([[1, 0], [0.6, 0.8]], [5, 6]), Definitions()).scores
    assert abs((scores["csd_cross"].value or 0) - 0.8) < 1e-6  # (1 + 0.6) / 2
    assert abs((scores["csd_self"].value or 0) - 0.6) < 1e-6
    assert scores["csd_cross"].counts["without_image"] == 1
    assert scores["aesthetic"].value == 5.5
    assert "cids_cross" not in scores and "occm" not in scores


def test_story_when_a_model_made_nothing_of_a_picture_leaves_it_out_and_counts_it() -> None:
    found = line([[1, 0], [NAN, NAN]], [NAN, 6])
    scores = score_story(found, Definitions()).scores
    assert scores["csd_cross"].value == 1
    assert scores["csd_self"].status == "undefined"
    assert (scores["aesthetic"].value, scores["aesthetic"].counts) == (6, {"pictures": 3, "valued": 1})
    rows = Story(found).rows("inception")
    assert rows is not None and [None if row is None else row.tolist() for row in rows] == [
        [0.5, 0.5],
        None,
        None,
    ]
