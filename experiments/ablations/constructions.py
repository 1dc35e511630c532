"""How questions are made (Table 60), and over which dimensions rates are averaged (Table 66).

Question: which questions tell what was lost, and what does the choice of dimensions do to the headline?
Formula: subsets by type of the questions that were judged, and the evaluators with other questions; the
    measures of :mod:`fabula.experiments.measures` in each.
Source: KathaTrace, Tables 60 and 66, J.3 and J.9.
Departures: the headline of the paper, image recoverability 54.6 and STG 23.5, is the row of the four latent
    dimensions in its Table 66, while its Eq. 18 and 34 are means over all six. Both are computed here, under
    their names: ``latent`` and ``six``. A row of one dimension points at that dimension or nowhere, see the
    card of localisation. "No action, no moral-target" is causal, emotional and consequence: its 22.4 is what
    Table 72 calls the non-moral latent set, so that temporal order is not in it.
"""

from ...evaluation.recoverability.items import DIMENSIONS, LATENT
from .components import evaluator_setting
from .setting import Setting, averaging

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
