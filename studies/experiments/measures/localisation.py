"""Dimension localisation: does an evaluator accuse the dimension, or transition, that was really lost.

Question: a loss was planted in a storyboard, and one dimension must be accused: is it one that was hit?
Formula: the dimension whose rate falls most against the unchanged storyboard is accused; several that fall
    equally share the accusation evenly. Localisation = the accusations that lie on hit dimensions / plants
    that hit one. The same with transitions, for plants that hit some. ``detected``: the same where
    an accusation counts only if what is accused falls at all.
Input: falls per plant (:mod:`.falls`); candidates are all six dimensions, or all of a story's transitions.
Output: in [0, 1], higher is better. Chance: the mean share of the candidates that was hit, which is what
    blind pointing gets.
Undefined when: no plant that hit a dimension, or a transition, could be compared.
Source: KathaTrace names it in Tables 3, 54, 58, 60 and 66 without a formula and measures it against people.
    Measuring it against planted losses is ours.
Departures: an evaluator must point somewhere, so that one that sees nothing gets chance and not 0; whether
    it sees anything is said by sensitivity. A dimension without a question falls by 0, as nothing is known of
    it: an evaluator that names no dimension is at chance by definition, one that has questions of a single
    dimension is right where that was hit and seen. With unequal numbers of questions a guesser points more
    often to dimensions with few; over plants that hit all alike it is at chance. What a loss neither
    hits nor spares may fall with it; accusing that is counted as wrong.
Example: falls causal 1, emotional 1, others 0; causal was hit: 1/2. Nothing falls, two of six were hit:
    2/6, and ``detected`` 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....evaluation.metrics.metric import Quantity
from ....evaluation.recoverability.items import DIMENSIONS
from ....evaluation.stats.uncertainty import Uncertainty
from ....schemas.values import Score
from .falls import Fall, Floats, accused
from .views import share_score

MEASURE = Quantity(name="localisation", label="Localisation", direction="higher", range=(0, 1))
NO_PLANT = "no planted loss that hit a dimension could be compared"
NO_LINK = "no planted loss that hit a transition could be compared"
Target = Callable[[Fall], tuple[Floats, list[int]]]
"""A fall -> its candidates and the places of those that were hit."""


@dataclass(frozen=True)
class Localised:
    """How well an evaluator says what was lost."""

    value: Score  # share of plants at which what was hit is accused
    chance: Score  # what blind pointing gets
    detected: Score  # the same share where what is accused falls at all


def localise_dimensions(falls: Sequence[Fall], uncertainty: Uncertainty) -> Localised:
    """Return how often the dimension that was hit is accused; plants that hit none are left out."""
    return _localised(falls, dimension_target, uncertainty, NO_PLANT)


def localise_transitions(falls: Sequence[Fall], uncertainty: Uncertainty) -> Localised:
    """Return how often the transition that was hit is accused; plants that hit none are left out."""
    return _localised(falls, transition_target, uncertainty, NO_LINK)


def dimension_target(fall: Fall) -> tuple[Floats, list[int]]:
    """Return the falls of the dimensions, and which were hit."""
    return fall.dimensions, [DIMENSIONS.index(name) for name in fall.plant.dimensions]


def transition_target(fall: Fall) -> tuple[Floats, list[int]]:
    """Return the falls of the transitions, and which were hit."""
    return fall.transitions, [link - 1 for link in fall.plant.links if link <= len(fall.transitions)]


def credit(candidates: Floats, hit: Sequence[int]) -> float:
    """Return how much of the accusation lies on what was hit, in [0, 1]."""
    return float(accused(candidates)[list(hit)].sum())


def _localised(falls: Sequence[Fall], target: Target, uncertainty: Uncertainty, why: str) -> Localised:
    right, chance, detected = [], [], []
    for fall in falls:
        candidates, hit = target(fall)
        if fall.plant.is_control or not hit:
            continue
        story, share = fall.plant.story_id, credit(candidates, hit)
        right.append((story, share, 1.0))
        chance.append((story, len(hit) / len(candidates), 1.0))
        detected.append((story, share if candidates.max() > 1e-9 else 0.0, 1.0))
    counts = {"plants": len(right)}
    return Localised(
        *(share_score(rows, uncertainty, why, counts) for rows in (right, chance, detected))
    )  # fmt: skip
