"""Parts of the protocol removed one at a time (Table 58) or added one by one (Table 3), and evaluators.

Question: what does each part of the protocol add?
Formula: the measures of :mod:`fabula.experiments.measures`, each in the setting without the part.
Source: KathaTrace, Tables 3, 54 and 58, J.1.
Departures: the paper says what a part is, not how a protocol without it is scored. Here:

- without transition labels: questions about one scene or the whole story only; those that are anchored to a
  transition are left out, and no transition is named.
- without accepted answers: the normalised canonical answer alone is right.
- without contrastives: pair accuracy has no value, all else stays. How contrastive pairs change image
  recoverability or STG is said nowhere in the paper, whose Table 3 has them raise the one by 1.8 points and
  lower the other by 1.6; they enter no rate here, and what they add is pair accuracy, reported beside.
- without dimensions: all questions count alike, and no dimension is named.
- without the filter: also questions that nobody can answer with story and pictures together are scored.
- generic: the evaluation with the questions of the evaluator ``generic-story``.

The ladder of Table 3 begins without transitions, dimensions and contrastives, and adds them in this order.
Since Table 58 removes from the full protocol and Table 3 adds to the bare one, the two need not agree.
"""

from dataclasses import replace

from ...schemas.katha import Question
from ..evaluators.registry import EVALUATORS, evaluator_of
from ..measures.views import View
from .setting import How, Setting, averaging, both, canonical_only, keeping, uncontrasted, unfiltered


def _is_unanchored(question: Question) -> bool:
    return question.target_transition is None


def _without_transitions(view: View) -> View:
    return replace(keeping(_is_unanchored)(view), transitions=False)


FULL = Setting(name="full", title="Full KathaTrace", removes="Nothing.", how="nothing")
GENERIC = Setting(
    name="generic",
    title="Generic story QA only",
    removes="Transition labels, dimension-specific questions and contrastives.",
    how="evaluator",
    evaluator="generic-story",
)
REMOVALS = (
    GENERIC,
    Setting(
        name="without-transitions", title="w/o transition labels",
        removes="Questions that are anchored to a transition.", how="questions", cut=_without_transitions,
    ),
    Setting(
        name="without-accepted", title="w/o accepted-answer sets",
        removes="All accepted answers but the canonical one.", how="answers", record=canonical_only,
    ),
    Setting(
        name="without-contrastives", title="w/o contrastive variants",
        removes="Contrastive pairs, which enter no rate: see pair accuracy.", how="pairs", cut=uncontrasted,
    ),
    Setting(
        name="without-dimensions", title="w/o dimension-specific questions",
        removes="The questions' types: all count alike.", how="averaging", cut=averaging(),
    ),
    Setting(
        name="without-filter", title="w/o text+image filtering",
        removes="The filter: questions that nobody can answer stay in the score.", how="filter",
        cut=unfiltered,
    ),
    FULL,
)  # fmt: skip
"""The rows of Table 58."""

LADDER = (
    Setting(
        name="qa-only", title="KathaTrace: QA only",
        removes="Transitions, dimensions and contrastives.", how="questions",
        cut=both(both(_without_transitions, averaging()), uncontrasted),
    ),
    Setting(
        name="with-transitions", title="+ transition structure", removes="Dimensions and contrastives.",
        how="averaging", cut=both(averaging(), uncontrasted),
    ),
    Setting(
        name="with-dimensions", title="+ dimension-specific questions", removes="Contrastives.",
        how="pairs", cut=uncontrasted,
    ),
    replace(FULL, title="Full KathaTrace (+ contrastives)"),
)  # fmt: skip
"""The rows of Table 3 below the evaluators of others."""


def evaluator_setting(name: str) -> Setting:
    """Return the setting that is an evaluator as it is.

    Raises:
        ConfigError: there is no such evaluator.
    """
    evaluator = evaluator_of(name)
    how: How = "nothing" if name == "katha" else "evaluator"
    return Setting(
        name=name, title=evaluator.title, removes=evaluator.construction, how=how, evaluator=name
    )  # fmt: skip


OTHERS = tuple(evaluator_setting(name) for name in EVALUATORS if not evaluator_of(name).reuses)
"""The evaluators of others, the first rows of Tables 3 and 54."""
EVERY_EVALUATOR = tuple(map(evaluator_setting, EVALUATORS))
"""The rows of Table 54."""
