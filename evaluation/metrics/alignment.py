"""Prompt alignment: scene, shot, character interaction, individual action, and their average.

Question: does the picture show what the script asks for?
Formula: a judge's rating 0 to 4 per shot (per character for individual action); the mean over shots for a
    story; the average is the mean of the four, equally weighted (section H, Table S4).
Input: ratings, integers 0 to 4; None where a judge gave none.
Output: 0 to 4, or 0 to 100 as 25 times that (:func:`hundred`, the metrics page's form); higher is better.
Undefined when: no rating is known; the average also where one of the four is undefined.
Source: ViStoryBench, supplement section H and the metrics page; its public code.
Departures from the source: a judge that fails is left out and counted, where the code writes 0 (with a share
    q of failures, the code's mean is 1 - q times that of the ratings); a rating above 4 is a failure, where
    the code takes any number. Two definitions. ``paper`` (default): character interaction is asked of shots
    with two characters or more (H.1), individual actions are averaged as they are. ``code``: interaction is
    asked of every shot, individual action is rounded to an integer per shot and per story (half to even), a
    shot without any crop that an encoder of somebody on stage knows is left out, a shot where there is one
    but none was matched counts 0 (only with a minimum similarity), and the average has five terms, individual
    action twice, as the code's own leaderboard has it. The code averages as many as there are, so that a
    missing sub-score moves its average by up to 4 / 5; there is no average here. A story that the code loses
    because a character has no reference vector keeps its ratings of individual action.
Example: scene ratings 4, 2 and none: 3.0 over 2 of 3 shots; on the hundred-point scale 75.
"""

from collections.abc import Sequence
from typing import Literal

from ...schemas.values import Score
from .metric import CROPS, DETECTOR, Choice, Metric, Need

DIMENSIONS = ("scene", "shot", "interaction", "action")
Definition = Literal["paper", "code"]
DEFINITION: Choice[Definition] = Choice("alignment", ("paper", "code"))
MOST = 4


def _rated(name: str, label: str, column: int, lead: int, meaning: str, *needs: Need) -> Metric:
    return Metric(
        name=name, label=label, group="Prompt alignment", direction="higher", range=(0.0, 4.0), digits=2,
        top=4.0, column=column, lead=lead, judged=True, per_shot=name in DIMENSIONS,
        per_character=name == "action", choices=(DEFINITION,), meaning=meaning, needs=needs,
    )  # fmt: skip


SCENE = _rated(
    "scene", "Scene", 4, 7, "A judge's rating of the place against the setting description, 0 to 4."
)
SHOT = _rated(
    "shot", "Shot", 5, 8, "A judge's rating of the framing against the shot perspective design, 0 to 4."
)
INTERACTION = _rated(
    "interaction", "Interaction", 6, 9,
    "A judge's rating of what the characters do with each other (CI), 0 to 4.",
)  # fmt: skip
ACTION = _rated(
    "action", "Action", 7, 10,
    "A judge's rating of what single characters do, by their crops (IA), 0 to 4.", DETECTOR, *CROPS,
)  # fmt: skip
AVERAGE = _rated(
    "alignment", "Alignment", 8, 0,
    "Mean of scene, shot, interaction and action; undefined where one of them is. 0 to 4.",
)  # fmt: skip


def alignment(ratings: Sequence[int | None]) -> Score:
    """Return the mean rating of one story.

    ``ratings``: of each shot that was asked about; None where the judge gave none.
    """
    known = [_checked(rating) for rating in ratings if rating is not None]
    counts = {"asked": len(ratings), "answered": len(known)}
    return Score.ratio(float(sum(known)), len(known), "no rating is known", **counts)


def individual_action(
    shots: Sequence[Sequence[int | None] | None], definition: Definition = "paper"
) -> Score:
    """Return the mean rating of the single characters' actions in one story.

    ``shots``: per shot the ratings of its matched characters; empty where none was matched, None where
    nothing was detected, or there is no image; under ``code`` also where no crop has a vector.
    """
    seen = [shot for shot in shots if shot is not None]
    known = [[_checked(rating) for rating in shot if rating is not None] for shot in seen]
    counts = {
        "shots": len(shots), "asked": sum(len(shot) for shot in seen),
        "answered": sum(len(shot) for shot in known), "not_detected": len(shots) - len(seen),
        "not_matched": sum(not shot for shot in seen),
    }  # fmt: skip
    if definition == "paper":
        flat = [rating for shot in known for rating in shot]
        return Score.ratio(float(sum(flat)), len(flat), "no rating is known", **counts)
    rounded = [
        round(sum(ratings) / len(ratings)) if ratings else 0
        for shot, ratings in zip(seen, known, strict=True)
        if ratings or not shot
    ]
    if not rounded:
        return Score.ratio(0.0, 0, "no rating is known", **counts)
    return Score.ratio(float(round(sum(rounded) / len(rounded))), 1, "no rating is known", **counts)


def average(scores: Sequence[Score], definition: Definition = "paper") -> Score:
    """Return the mean of the four sub-scores, in the order of :data:`DIMENSIONS`.

    ``paper``: equally weighted (Table S4). ``code``: the last one, individual action, counts twice.
    """
    values = [score.value for score in scores if score.value is not None]
    if len(values) < len(DIMENSIONS):
        return Score(value=None, status="undefined", reason="a sub-score is undefined")
    terms = [*values, *(values[-1:] if definition == "code" else ())]
    return Score.ratio(sum(terms), len(terms), "no sub-score", sub_scores=len(values))


def hundred(value: float) -> float:
    """Return a rating of 0 to 4 on the scale of 0 to 100."""
    return 25.0 * value


def _checked(rating: int) -> int:
    if not 0 <= rating <= MOST:
        raise ValueError(f"a rating is 0 to {MOST}, not {rating}")
    return rating
