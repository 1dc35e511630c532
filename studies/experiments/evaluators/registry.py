"""Which evaluators there are, in the order of tables."""

from functools import cache
from importlib import import_module

from ....errors import ConfigError
from .evaluator import Evaluator

EVALUATORS = {
    "object-overlap": ".object_overlap:EVALUATOR",
    "generic-story": ".generic_story:EVALUATOR",
    "tifa": ".tifa:EVALUATOR",
    "dsg": ".dsg:EVALUATOR",
    "katha-without-contrastives": ".protocols:WITHOUT_CONTRASTIVES",
    "katha-without-dimensions": ".protocols:WITHOUT_DIMENSIONS",
    "katha": ".protocols:FULL",
}
"""Name -> where it is."""


@cache
def evaluator_of(name: str) -> Evaluator:
    """Return an evaluator by name."""
    address = EVALUATORS.get(name)
    if address is None:
        raise ConfigError(
            "evaluators", expected=f"one of {', '.join(EVALUATORS)}", found=name,
            fix="choose one of them",
        )  # fmt: skip
    module, _, attribute = address.partition(":")
    evaluator: Evaluator = getattr(import_module(module, __package__), attribute)
    return evaluator
