"""False alarms: does an evaluator's value fall where nothing was lost.

Question: a storyboard was put in again unchanged: is its total lower, and is any dimension accused?
Formula: controls at which the total falls / controls that could be compared; and the same of controls at
    which any dimension or transition falls (``accusations``).
Input: falls of the controls, whose loss is ``none``.
Output: in [0, 1], lower is better.
Undefined when: no control could be compared with an unchanged storyboard that was judged apart from it.
Source: ours; the paper has no controls of this kind.
Departures: a judge that answers the same request always alike gives both storyboards the same verdicts, and
    no false alarm can be seen; several votes, or a control whose pictures are stored anew, show them.
Example: totals of four controls fall by 0, 0, 0.1, -0.1: 1/4; in the last a dimension falls: 2/4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...evaluation.metrics.metric import Quantity
from ...evaluation.stats.uncertainty import Uncertainty
from ...schemas.values import Score
from .falls import Fall
from .sensitivity import LEAST
from .views import share_score

MEASURE = Quantity(name="false_alarms", label="False alarms", direction="lower", range=(0, 1))
NO_CONTROL = "no unchanged storyboard was judged twice: give the method that losses were planted in, too"


@dataclass(frozen=True)
class FalseAlarms:
    """How often an evaluator sees a loss where there is none."""

    total: Score  # share of controls whose total falls
    accusations: Score  # share of controls at which any dimension or transition falls


def false_alarms(falls: Sequence[Fall], uncertainty: Uncertainty) -> FalseAlarms:
    """Return how often a loss is seen at controls."""
    controls = [fall for fall in falls if fall.plant.is_control]
    counts = {"controls": len(controls)}
    total = [(fall.plant.story_id, float(fall.total > LEAST), 1.0) for fall in controls]
    accused = [
        (fall.plant.story_id, float(max(fall.dimensions.max(), fall.transitions.max()) > LEAST), 1.0)
        for fall in controls
    ]
    return FalseAlarms(
        *(share_score(rows, uncertainty, NO_CONTROL, counts) for rows in (total, accused))
    )  # fmt: skip
