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
    E = 0 left out. What ``code`` does otherwise than the code, and by how much: a name that is listed twice
    is one character expected, where the code counts two (E = 1 for 2: with D = 1, 100 for 60.65); boxes
    without any pixel count (none in pictures of a detector that looks for something); a story with pictures
    but nobody on stage has no value, where the code writes 0 (of n stories, a share of 1 / n); a story that
    the code loses because a character has no reference vector counts (:func:`.cids.no_record`).
Example: E = 2, D = 3: ``code`` gives 100 exp(-1 / 2.000001) = 60.65.
"""

from collections.abc import Iterable
from math import exp
from typing import Literal

from .metric import DETECTOR, Choice, Choices, Metric, Term, Terms
from .story import Story

Definition = Literal["paper", "code"]
DEFINITION: Choice[Definition] = Choice("occm", ("paper", "code"))
EPSILON: dict[Definition, float] = {"paper": exp(-6), "code": 1e-6}


def shot_occm(expected: int, detected: int, definition: Definition = "paper") -> float | None:
    """Return the value of one shot; None where the definition leaves it out."""
    if expected < 0 or detected < 0:
        raise ValueError("counts of characters are 0 or more")
    if expected == 0 and definition == "code":
        return None
    return 100.0 * exp(-abs(detected - expected) / (EPSILON[definition] + expected))


def occm(shots: Iterable[tuple[int, int | None]], definition: Definition = "paper") -> Terms:
    """Return the values of one story's shots.

    ``shots``: expected and detected characters of each shot; None where there is no image.
    """
    terms = []
    for index, (expected, detected) in enumerate(shots):
        value = None if detected is None else shot_occm(expected, detected, definition)
        why = "no picture" if detected is None else "nobody on stage"
        terms.append(Term(why if value is None else value, index))
    counts = {
        "shots": len(terms), "without_image": sum(term.value == "no picture" for term in terms),
        "left_out": sum(term.value == "nobody on stage" for term in terms),
        "counted": sum(not isinstance(term.value, str) for term in terms),
    }  # fmt: skip
    return Terms(terms, counts, "no shot is counted")


def _terms(story: Story, chosen: Choices) -> Terms | None:
    boxes = story.boxes()
    if boxes is None:
        return None
    pairs = zip(story.shots, boxes, strict=True)
    counted = [(shot.onstage, None if boxes is None else len(boxes)) for shot, boxes in pairs]
    return occm(counted, chosen.of(DEFINITION))


METRIC = Metric(
    name="occm", label="OCCM", group="Character count", direction="higher", range=(0.0, 100.0), digits=2,
    top=100.0, column=9, lead=3, needs=(DETECTOR,), terms=_terms, per_shot=True, choices=(DEFINITION,),
    notes=(("left_out", "shots", "shots with nobody on stage left out"),),
    meaning="Whether as many characters are detected as the script puts on stage: 100 exp(-|D - E| / "
    "(eps + E)), mean over shots. Above 0, to 100.",
)  # fmt: skip
