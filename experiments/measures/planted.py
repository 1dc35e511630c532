"""Every evaluator measured by planted losses: a calibration of judges by interventions, without people.

The same storyboards, changed and unchanged, are judged with the questions of each evaluator; what was changed
is known to nobody but this file's reader.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...evaluation.recoverability.definitions import Definitions
from ...evaluation.stats.uncertainty import Uncertainty
from ...schemas.canonical import plain_fields
from ...schemas.values import Score
from ..evaluators.registry import evaluator_of
from .falls import Fall, Falls, falls_of, stories_in
from .false_alarms import false_alarms
from .loading import view_of
from .localisation import localise_dimensions, localise_transitions
from .plants import Plant
from .sensitivity import sensitivity


@dataclass(frozen=True)
class PlantedRow:
    """What planted losses say of one evaluator.

    Attributes:
        evaluator: its name.
        title: its name in tables.
        stories: how many stories plants were compared of.
        plants: how many plants with a loss were compared.
        controls: how many without one.
        left_out: why plants were not compared, and how many.
        scores: ``localisation``, ``localisation_chance``, ``detected``, ``transitions``,
            ``transitions_chance``, ``sensitivity``, ``false_alarms``, ``false_accusations``.
        losses: loss -> ``localisation``, ``localisation_chance`` and ``sensitivity`` of these plants alone.
    """

    evaluator: str
    title: str
    stories: int
    plants: int
    controls: int
    left_out: Mapping[str, int]
    scores: Mapping[str, Score]
    losses: Mapping[str, Mapping[str, Score]]

    def as_json(self) -> dict[str, object]:
        """Return it as plain JSON."""
        return plain_fields(self)


def planted_measures(
    folders: Mapping[str, Path],
    plants: Sequence[Plant],
    definitions: Definitions,
    base: str | None = None,
) -> tuple[PlantedRow, ...]:
    """Return a row for each evaluator.

    Args:
        folders: evaluator -> the evaluation of the changed and unchanged storyboards with its questions;
            evaluators that reuse the full protocol's have the same folder.
        plants: what was done to which storyboard (:func:`.plants.read_plants`).
        definitions: how replies become verdicts, and how intervals are made.
        base: the method whose outputs were changed, if its own outputs were judged in these evaluations.

    Raises:
        InputError: an evaluation or its release cannot be read.
        ConfigError: there is no such evaluator, or a release is not where its evaluation says.
    """
    rows = []
    for name, folder in folders.items():
        evaluator = evaluator_of(name)
        falls = falls_of(view_of(evaluator, folder, definitions), plants, base)
        rows.append(planted_row(name, evaluator.title, falls, definitions))
    return tuple(rows)


def planted_row(name: str, title: str, falls: Falls, uncertainty: Uncertainty) -> PlantedRow:
    """Return the row of an evaluator whose falls are known."""
    losses = list(dict.fromkeys(fall.plant.loss for fall in falls.planted))
    return PlantedRow(
        name, title, stories_in(falls.of), len(falls.planted), len(falls.controls), dict(falls.left_out),
        planted_scores(falls, uncertainty),
        {
            loss: _of_loss([fall for fall in falls.planted if fall.plant.loss == loss], uncertainty)
            for loss in losses
        },
    )  # fmt: skip


def planted_scores(falls: Falls, uncertainty: Uncertainty) -> dict[str, Score]:
    """Return all values of an evaluator that planted losses give."""
    links = localise_transitions(falls.planted, uncertainty)
    alarms = false_alarms(falls.controls, uncertainty)
    localised = localise_dimensions(falls.planted, uncertainty)
    return {
        "localisation": localised.value,
        "localisation_chance": localised.chance,
        "detected": localised.detected,
        "transitions": links.value,
        "transitions_chance": links.chance,
        "sensitivity": sensitivity(falls.planted, uncertainty),
        "false_alarms": alarms.total,
        "false_accusations": alarms.accusations,
    }


def _of_loss(falls: Sequence[Fall], uncertainty: Uncertainty) -> dict[str, Score]:
    localised = localise_dimensions(falls, uncertainty)
    return {
        "localisation": localised.value,
        "localisation_chance": localised.chance,
        "sensitivity": sensitivity(falls, uncertainty),
    }
