"""By how much each rate falls from an unchanged storyboard to the one in which a loss was planted.

Question: what does an evaluator see less of in a changed storyboard than in the unchanged one?
Formula: over the questions of the story that count and that have an image-only verdict on both storyboards:
    fall = share right on the unchanged one - share right on the changed one; per dimension, per transition,
    and in total (the mean over dimensions that have a question, or over all questions where the evaluator
    names no dimension).
Input: verdicts of an evaluation that holds both storyboards; the plants.
Output: falls in [-1, 1]; 0 for a dimension or transition without a question, about which nothing is known.
Undefined when: a storyboard of the two was not judged, is invalid, or no question counts.
Source: ours; the paper has no planted losses.
Departures: with the text+image filter, a question counts where it was answered rightly with text and the
    *unchanged* pictures: a loss cannot remove the questions that would show it. The unchanged storyboard is
    the base method's where the evaluation holds it, else the control ``none`` of the same story and seed,
    which then has nothing to be compared with itself.
Example: causal, two questions, right and right before, right and wrong after: fall 1/2. Emotional, one
    question, right after and wrong before: fall -1. Total (1/2 - 1) / 2 = -1/4.

Planted losses: what was done to which storyboard, as ``plants.jsonl`` says it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, ValidationError

from ....errors import InputError, UserError
from ....evaluation.metrics.metric import Quantity
from ....evaluation.recoverability.matching import DIMENSIONS
from ....evaluation.recoverability.method import Method
from ....evaluation.recoverability.pooling import BOTH, IMAGE, RIGHT_VERDICT, UNJUDGED
from ....evaluation.stats.uncertainty import Uncertainty
from ....schemas.plain_files import json_lines, reason_of
from ....schemas.values import Own, Score
from ....validators.resampling import divided
from .views import View, share_score

NONE = "none"
"""The loss of a storyboard in which nothing was changed: a control."""


class Plant(Own):
    """One storyboard in which a loss was planted, or none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    story_id: str = Field(description="The story.")
    seed: int | None = Field(default=None, description="Seed of the storyboard that was changed.")
    loss: str = Field(description="What was done; none where nothing was.")
    panels: tuple[int, ...] = Field(default=(), description="Panels that were changed, from 1.")
    transition: int | tuple[int, int] | None = Field(
        default=None, description="Transition that was hit, as its earlier scene or as both; null for none."
    )
    transitions: tuple[tuple[int, int], ...] = Field(
        default=(), description="All transitions that were hit, each as both scenes, where there are several."
    )
    dimensions: tuple[str, ...] = Field(default=(), description="Dimensions that were hit.")
    method: str = Field(description="Name of the changed outputs, as they are judged.")
    base: str | None = Field(default=None, description="Name of the outputs that were changed.")

    @property
    def links(self) -> tuple[int, ...]:
        """The earlier scenes of the transitions that were hit."""
        if self.transitions:
            return tuple(earlier for earlier, _ in self.transitions)
        if self.transition is None:
            return ()
        return (self.transition[0] if isinstance(self.transition, tuple) else self.transition,)

    @property
    def is_control(self) -> bool:
        """Whether nothing was changed."""
        return self.loss == NONE


def read_plants(path: Path) -> tuple[Plant, ...]:
    problems: list[UserError] = []
    plants: list[Plant] = []
    fix = "write the plants again with `fabula experiment plant`"
    try:
        for number, row in enumerate(json_lines(path), 1):
            try:
                plant = Plant.model_validate(row)
            except ValidationError as error:
                problems.append(UserError(f"{path}:{number}", what=reason_of(error), fix=fix))
                continue
            strange = sorted(set(plant.dimensions) - set(DIMENSIONS))
            if strange:
                what = f"{strange[0]} is no scored dimension"
                problems.append(UserError(f"{path}:{number}", what=what, fix=fix))
            plants.append(plant)
    except (OSError, ValueError) as error:
        problems.append(UserError(str(path), what=f"it cannot be read: {reason_of(error)}", fix=fix))
    if problems:
        raise InputError(problems)
    return tuple(plants)


Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Fall:
    """What an evaluator sees less of in one changed storyboard."""

    plant: Plant  # what was done to it
    questions: int  # how many were compared
    # fall per dimension, shape (dimensions,); 0 where nothing is known
    dimensions: Floats = field(repr=False)
    # fall per transition, shape (transitions,); 0 where nothing is known
    transitions: Floats = field(repr=False)
    total: float  # fall of the whole


@dataclass(frozen=True)
class Falls:
    of: tuple[Fall, ...]  # one for each plant that could be compared
    left_out: dict[str, int]  # why others could not be, and how many

    @property
    def planted(self) -> tuple[Fall, ...]:
        """Those with a loss."""
        return tuple(fall for fall in self.of if not fall.plant.is_control)

    @property
    def controls(self) -> tuple[Fall, ...]:
        """Those without one."""
        return tuple(fall for fall in self.of if fall.plant.is_control)


class _Missing(Exception):
    """Something that a fall needs is not there; the message says what."""


def falls_of(view: View, plants: Iterable[Plant], base: str | None = None) -> Falls:
    """Return what an evaluator sees less of at each plant.

    ``base``: the method whose outputs were changed, used as the unchanged one where it was judged; None for
    the one that each plant names.
    """
    every = tuple(plants)
    methods = {method.name: method for method in view.judged.methods}
    controls = {(plant.story_id, plant.seed): plant for plant in every if plant.is_control}
    falls: list[Fall] = []
    left_out: dict[str, int] = {}
    links = links_of(view)
    for plant in every:
        try:
            control = next((name for name in (base, plant.base) if name in methods), None)
            if control is None:
                twin = controls.get((plant.story_id, plant.seed))
                control = None if twin is None or twin is plant else twin.method
            if control is None:
                raise _Missing("there is no unchanged storyboard beside it")
            falls.append(_fall(view, links, plant, (_of(methods, control), _of(methods, plant.method))))
        except _Missing as missing:
            left_out[str(missing)] = left_out.get(str(missing), 0) + 1
    return Falls(tuple(falls), left_out)


def _of(methods: dict[str, Method], name: str) -> Method:
    if name not in methods:
        raise _Missing("its storyboards were not judged")
    return methods[name]


def _fall(view: View, links: Ints, plant: Plant, pair: tuple[Method, Method]) -> Fall:
    judged, items = view.judged, view.judged.items
    if plant.story_id not in items.story_places or plant.seed not in judged.replies.seeds:
        raise _Missing("its storyboards were not judged")
    seed, story = judged.replies.seeds.index(plant.seed), items.story_places[plant.story_id]
    both = view.counted & (items.story == story)
    for method in pair:
        if not method.made.valid[seed, story]:
            raise _Missing("a storyboard is invalid")
        both &= method.outcomes.verdicts[seed, IMAGE] != UNJUDGED
    if view.chosen != "raw":
        both &= pair[0].outcomes.verdicts[seed, BOTH] == RIGHT_VERDICT
    if not both.any():
        raise _Missing("no question counts")
    right = [method.outcomes.verdicts[seed, IMAGE] == RIGHT_VERDICT for method in pair]
    lost = (right[0].astype(np.float64) - right[1])[both]
    dimensions = _means(lost, items.dimension[both], len(DIMENSIONS))
    size = max(len(items.records[story].scenes) - 1, 1)
    between = links[both] - 1
    transitions = _means(lost, np.where(between < size, between, -1), size)
    if not view.dimensions:
        nothing = np.zeros(len(DIMENSIONS))
        return Fall(plant, int(both.sum()), nothing, np.nan_to_num(transitions), float(lost.mean()))
    total = float(np.nanmean(dimensions))
    return Fall(plant, int(both.sum()), np.nan_to_num(dimensions), np.nan_to_num(transitions), total)


def _means(values: Floats, groups: Ints, size: int) -> Floats:
    """Return the mean of values in each group, ``nan`` where there is none; group -1 is none."""
    inside = groups >= 0
    sums, counts = (
        np.asarray(np.bincount(groups[inside], weights, size), dtype=np.float64)
        for weights in (values[inside], np.ones(int(inside.sum())))
    )
    return divided(sums, counts)


def links_of(view: View) -> Ints:
    """Return the earlier scene of the transition that each question is about, 0 where it names none."""
    items = view.judged.items
    if not view.transitions:
        return np.zeros(items.questions, dtype=np.int64)
    links = {
        question.question_id: question.target_transition[0]
        for record in items.records
        for question in record.questions
        if question.target_transition is not None
    }
    return np.array([links.get(key.question_id, 0) for key in items.keys], dtype=np.int64)


def accused(falls: Floats) -> Floats:
    """Return which group an evaluator accuses: that which falls most; several share the accusation evenly.

    ``falls``: shape (groups,).

    Returned: shares that add to 1, shape (groups,).
    """
    most: Mask = falls >= falls.max() - 1e-9
    shares: Floats = most / most.sum()
    return shares


def stories_in(falls: Sequence[Fall]) -> int:
    """Return how many stories falls are of."""
    return len({fall.plant.story_id for fall in falls})


# -- Dimension localisation: does an evaluator accuse the dimension, or transition, that was really lost
#
# Question: a loss was planted in a storyboard, and one dimension must be accused: is it one that was hit?
# Formula: the dimension whose rate falls most against the unchanged storyboard is accused; several that fall
#     equally share the accusation evenly. Localisation = the accusations that lie on hit dimensions / plants
#     that hit one. The same with transitions, for plants that hit some. ``detected``: the same where
#     an accusation counts only if what is accused falls at all.
# Input: falls per plant (:mod:`.falls`); candidates are all six dimensions, or all of a story's transitions.
# Output: in [0, 1], higher is better. Chance: the mean share of the candidates that was hit, which is what
#     blind pointing gets.
# Undefined when: no plant that hit a dimension, or a transition, could be compared.
# Source: KathaTrace names it in Tables 3, 54, 58, 60 and 66 without a formula and measures it against people.
#     Measuring it against planted losses is ours.
# Departures: an evaluator must point somewhere, so that one that sees nothing gets chance and not 0; whether
# it sees anything is said by sensitivity. A dimension without a question falls by 0, as nothing is known of
#     it: an evaluator that names no dimension is at chance by definition, one that has questions of a single
#     dimension is right where that was hit and seen. With unequal numbers of questions a guesser points more
#     often to dimensions with few; over plants that hit all alike it is at chance. What a loss neither
#     hits nor spares may fall with it; accusing that is counted as wrong.
# Example: falls causal 1, emotional 1, others 0; causal was hit: 1/2. Nothing falls, two of six were hit:
#     2/6, and ``detected`` 0.

LOCALISATION = Quantity(name="localisation", label="Localisation", direction="higher", range=(0, 1))
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


# -- Sensitivity: does an evaluator's value fall at all where something was lost
#
# Question: a loss was planted in a storyboard: is its total lower than that of the unchanged one?
# Formula: plants at which the total falls / plants that could be compared. Total: the mean over dimensions of
#     image-only recoverability, or over questions for an evaluator that names no dimension (:mod:`.falls`).
# Input: falls per plant; controls are left out.
# Output: in [0, 1], higher is better; to be read beside false alarms, which a restless judge has, too.
# Undefined when: no planted loss could be compared.
# Source: ours; the paper has no planted losses.
# Departures: none.
# Example: totals fall by 0.2, 0, -0.1 and 0.5: 2/4.

SENSITIVITY = Quantity(name="sensitivity", label="Sensitivity", direction="higher", range=(0, 1))
LEAST = 1e-9
"""A total that falls by less is the same: sums in another order differ so much."""


def sensitivity(falls: Sequence[Fall], uncertainty: Uncertainty) -> Score:
    """Return the share of planted losses at which the total falls."""
    planted = [fall for fall in falls if not fall.plant.is_control]
    rows = ((fall.plant.story_id, float(fall.total > LEAST), 1.0) for fall in planted)
    return share_score(
        rows, uncertainty, "no planted loss could be compared", {"plants": len(planted)}
    )  # fmt: skip
