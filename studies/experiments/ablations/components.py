"""Parts of the protocol removed one at a time (Table 58) or added one by one (Table 3), and evaluators.

Question: what does each part of the protocol add?
Formula: the measures of :mod:`fabula.studies.experiments.measures`, each in the setting without the part.
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

Which evidence is needed (Table 59): values and filter with fewer conditions.

Question: what does each condition of evidence add?
Formula: without text-only evidence there is no gap, and the value is image-only recoverability; without
    image-only evidence the value is that from text; without text+image evidence nothing is filtered. Each
    value's reliability is split-half over storyboards (:mod:`...measures.reliability`), detection is of
    planted defects (:mod:`...measures.detection`), correlation is with people's
    image-only recoverability.
Source: KathaTrace, J.2 and Table 59, which names the three columns without formulas; Table 73 has the rates.
Departures: the definitions are ours. Without the filter detection is 0, since nothing is removed.

How questions are made (Table 60), and over which dimensions rates are averaged (Table 66).

Question: which questions tell what was lost, and what does the choice of dimensions do to the headline?
Formula: subsets by type of the questions that were judged, and the evaluators with other questions; the
    measures of :mod:`fabula.studies.experiments.measures` in each.
Source: KathaTrace, Tables 60 and 66, J.3 and J.9.
Departures: the headline of the paper, image recoverability 54.6 and STG 23.5, is the row of the four latent
    dimensions in its Table 66, while its Eq. 18 and 34 are means over all six. Both are computed here, under
    their names: ``latent`` and ``six``. A row of one dimension points at that dimension or nowhere, see the
    card of localisation. "No action, no moral-target" is causal, emotional and consequence: its 22.4 is what
    Table 72 calls the non-moral latent set, so that temporal order is not in it.
"""

from dataclasses import dataclass, replace

from ....evaluation.recoverability.items import DIMENSIONS, LATENT
from ....schemas.katha import Question
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
    """Return the setting that is an evaluator as it is."""
    evaluator = evaluator_of(name)
    how: How = "nothing" if name == "katha" else "evaluator"
    return Setting(
        name=name, title=evaluator.title, how=how, evaluator=name,
        removes="Nothing." if how == "nothing" else evaluator.construction,
    )  # fmt: skip


OTHERS = tuple(evaluator_setting(name) for name in EVALUATORS if not evaluator_of(name).reuses)
"""The evaluators of others, the first rows of Tables 3 and 54."""
EVERY_EVALUATOR = tuple(map(evaluator_setting, EVALUATORS))
"""The rows of Table 54."""


@dataclass(frozen=True)
class Evidence:
    """A row of Table 59."""

    setting: Setting  # what of the protocol is left
    value: str  # what it says of a storyboard: ``text``, ``image`` or ``gap``
    conditions: tuple[bool, bool, bool]  # whether text-only, image-only and text+image evidence is used


def _row(name: str, title: str, value: str, conditions: tuple[bool, bool, bool]) -> Evidence:
    left_out = [
        kind
        for kind, used in zip(("text-only", "image-only", "text+image"), conditions, strict=True)
        if not used
    ]
    removes = f"{' and '.join(left_out).capitalize()} evidence." if left_out else "Nothing."
    cut = None if conditions[2] else unfiltered
    how: How = "nothing" if not left_out else "filter"
    return Evidence(Setting(name=name, title=title, removes=removes, how=how, cut=cut), value, conditions)


EVIDENCE = (
    _row("image", "Image-only only", "image", (False, True, False)),
    _row("text-image", "Text + image-only", "gap", (True, True, False)),
    _row("image-both", "Image + text+image only", "image", (False, True, True)),
    _row("text-both", "Text-only + text+image only", "text", (True, False, True)),
    _row("full", "Full evidence protocol", "gap", (True, True, True)),
)
"""The rows of Table 59."""


CAUSAL = ("causal", "consequence")
NON_MORAL = tuple(name for name in LATENT if name != "moral")


def _typed(name: str, title: str, dimensions: tuple[str, ...], removes: str) -> Setting:
    return Setting(name=name, title=title, removes=removes, how="questions", cut=averaging(*dimensions))


def _called(evaluator: str, name: str, title: str) -> Setting:
    made = evaluator_setting(evaluator)
    return Setting(name=name, title=title, removes=made.removes, how="evaluator", evaluator=evaluator)


CONSTRUCTIONS = (
    _called("object-overlap", "object-level", "Object-level QA"),
    _called("tifa", "scene-level", "Scene-level QA"),
    _called("generic-story", "generic", "Generic story QA"),
    _typed("action-only", "Action-only transition QA", ("action_visibility",), "All but visible acts."),
    _typed("causal-only", "Causal/consequence QA only", CAUSAL, "All but causes and consequences."),
    _typed("moral-only", "Moral-target QA only", ("moral",), "All but the moral target."),
    Setting(name="full", title="Full dimension-specific QA", removes="Nothing.", how="nothing"),
)
"""The rows of Table 60."""

DIMENSION_SETS = (
    _typed("action", "Action visibility only", ("action_visibility",), "All but visible acts."),
    _typed("latent", "Latent only, the paper's headline", LATENT,
           "Visible acts and order."),
    _typed("action-latent", "Action + latent dimensions", ("action_visibility", *LATENT), "Order."),
    _typed("non-moral", "No action, no moral-target", NON_MORAL, "Visible acts, order and the moral target."),
    _typed("moral", "Moral-target only", ("moral",), "All but the moral target."),
    _typed("six", "All six dimensions (Eq. 18 and 34)", DIMENSIONS, "Nothing."),
)  # fmt: skip
"""The rows of Table 66, and the mean that the paper's equations state."""
