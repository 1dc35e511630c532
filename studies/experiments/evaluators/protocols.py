"""The full protocol as an evaluator, and without one of its parts: its own questions, judged once.

Contrastive pairs are judged beside the questions and enter no rate: the paper does not say how they change a
score. What they add is reported as pair accuracy, beside. So without contrastives image recoverability, gap
and localisation are those of the full protocol, and pair accuracy has no value.
Without dimensions the same questions count alike, whatever their type, and nothing says which dimension was
lost. The judges were still told what kind of answer each question wants, as nothing is judged again: the
value is an upper bound of what questions without types would give.
"""

from dataclasses import replace

from ....evaluation.recoverability.items import DIMENSIONS
from .evaluator import Evaluator

FULL = Evaluator(
    name="katha",
    title="Full KathaTrace",
    construction="Transition questions of six dimensions with accepted answers; contrastive pairs beside.",
    card="The protocol of `fabula evaluate stories` and `fabula score`.",
    by="release",
    dimensions=DIMENSIONS,
    transitions=True,
    contrasts=True,
)
WITHOUT_CONTRASTIVES = replace(
    FULL,
    name="katha-without-contrastives",
    title="KathaTrace w/o contrastives",
    construction="The same questions; no contrastive pairs.",
    card="Contrastive pairs enter no rate, so that only pair accuracy is lost: see the definition.",
    contrasts=False,
)
WITHOUT_DIMENSIONS = replace(
    FULL,
    name="katha-without-dimensions",
    title="KathaTrace w/o dimension-specific questions",
    construction="The same questions, counted alike, without their types.",
    card="Read off the same judgements; the judges knew what kind of answer was wanted, so that it is an "
    "upper bound. It names transitions, no dimensions.",
    dimensions=(),
)
