"""Onstage Character Count Matching (OCCM).

Question: are as many characters in the picture as the script puts on stage?
Formula: 100 exp(-|D - E| / (eps + E)) for a shot; the mean over shots for a story.
Input: E characters expected (int >= 0) and D detected (int >= 0, after clean-up of the detector's boxes).
Output: per shot (0, 100], higher is better.
Undefined when: no shot is counted. ``code``: also a shot with E = 0, which it leaves out. A shot without an
    image has no count: it is left out and stands in the coverage.
Source: ViStoryBench, supplement section K and the metrics page; its public code.
Departures from the source: two definitions. ``paper`` (default): eps = e^-6 as the metrics page prints it,
    and shots with E = 0 count, where any detection is superfluous (D = 0 gives 100): the metric is meant to
    punish superfluous characters, and an empty scene is where they show. ``code``: eps = 1e-6, shots with
    E = 0 left out. A name that is listed twice is one character expected in both, where the code counts two.
Example: E = 2, D = 3: ``code`` gives 100 exp(-1 / 2.000001) = 60.65.
"""

from collections.abc import Iterable
from math import exp
from typing import Literal

from ...schemas.score import Score
from .spec import Spec

SPEC = Spec("occm", 1, "story", "higher", (0.0, 100.0), "mean of stories", ("detections",))
Definition = Literal["paper", "code"]
EPSILON: dict[Definition, float] = {"paper": exp(-6), "code": 1e-6}


def shot_occm(expected: int, detected: int, definition: Definition = "paper") -> float | None:
    """Return the value of one shot; None where the definition leaves it out.

    Raises:
        ValueError: a count is negative.
    """
    if expected < 0 or detected < 0:
        raise ValueError("counts of characters are 0 or more")
    if expected == 0 and definition == "code":
        return None
    return 100.0 * exp(-abs(detected - expected) / (EPSILON[definition] + expected))


def occm(shots: Iterable[tuple[int, int | None]], definition: Definition = "paper") -> Score:
    """Return the value of one story.

    Args:
        shots: expected and detected characters of each shot; None where there is no image.
        definition: ``paper`` or ``code``.
    """
    total, counts = 0.0, {"shots": 0, "without_image": 0, "left_out": 0, "counted": 0}
    for expected, detected in shots:
        counts["shots"] += 1
        if detected is None:
            counts["without_image"] += 1
            continue
        value = shot_occm(expected, detected, definition)
        if value is None:
            counts["left_out"] += 1
            continue
        counts["counted"] += 1
        total += value
    return Score.ratio(total, counts["counted"], "no shot is counted", **counts)
