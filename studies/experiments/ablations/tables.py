"""The ablations as results: one function for each table of the paper, from the same sources."""

from dataclasses import dataclass

from ....schemas.canonical import plain_fields
from .components import CONSTRUCTIONS, DIMENSION_SETS, EVERY_EVALUATOR, EVIDENCE, LADDER, OTHERS, REMOVALS
from .measuring import Sources, measure
from .setting import Measured

RATES = ("rates", "planted", "people")


@dataclass(frozen=True)
class EvidenceMeasured:
    """What was measured with some conditions of evidence."""

    measured: Measured  # the values
    value: str  # what the row says of a storyboard: ``text``, ``image`` or ``gap``
    conditions: tuple[bool, bool, bool]  # whether text-only, image-only and text+image evidence is used

    def as_json(self) -> dict[str, object]:
        """Return it as plain JSON."""
        return plain_fields(self)


def evaluators_and_ladder(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 3: the evaluators of others, then the protocol built up part by part."""
    return tuple(measure(sources, setting, RATES) for setting in (*OTHERS, *LADDER))


def evaluator_controls(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 54."""
    return tuple(measure(sources, setting, RATES) for setting in EVERY_EVALUATOR)


def component_removals(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 58."""
    return tuple(measure(sources, setting, (*RATES, "leakage")) for setting in REMOVALS)


def evidence_conditions(sources: Sources) -> tuple[EvidenceMeasured, ...]:
    """Return the rows of Table 59."""
    wanted = ("rates", "reliability", "detection", "people")
    return tuple(
        EvidenceMeasured(measure(sources, row.setting, wanted, value=row.value), row.value, row.conditions)
        for row in EVIDENCE
    )


def question_constructions(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 60."""
    return tuple(measure(sources, setting, RATES) for setting in CONSTRUCTIONS)


def dimension_sets(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 66, and the mean over all six dimensions."""
    return tuple(measure(sources, setting, RATES) for setting in DIMENSION_SETS)
