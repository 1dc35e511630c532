"""Sensitivity: does an evaluator's value fall at all where something was lost.

Question: a loss was planted in a storyboard: is its total lower than that of the unchanged one?
Formula: plants at which the total falls / plants that could be compared. Total: the mean over dimensions of
    image-only recoverability, or over questions for an evaluator that names no dimension (:mod:`.falls`).
Input: falls per plant; controls are left out.
Output: in [0, 1], higher is better; to be read beside false alarms, which a restless judge has, too.
Undefined when: no planted loss could be compared.
Source: ours; the paper has no planted losses.
Departures: none.
Example: totals fall by 0.2, 0, -0.1 and 0.5: 2/4.
"""

from collections.abc import Sequence

from ....evaluation.metrics.metric import Quantity
from ....evaluation.stats.uncertainty import Uncertainty
from ....schemas.values import Score
from .falls import Fall
from .views import share_score

MEASURE = Quantity(name="sensitivity", label="Sensitivity", direction="higher", range=(0, 1))
LEAST = 1e-9
"""A total that falls by less is the same: sums in another order differ so much."""


def sensitivity(falls: Sequence[Fall], uncertainty: Uncertainty) -> Score:
    """Return the share of planted losses at which the total falls."""
    planted = [fall for fall in falls if not fall.plant.is_control]
    rows = ((fall.plant.story_id, float(fall.total > LEAST), 1.0) for fall in planted)
    return share_score(
        rows, uncertainty, "no planted loss could be compared", {"plants": len(planted)}
    )  # fmt: skip
