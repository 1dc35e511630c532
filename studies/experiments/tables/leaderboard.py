"""The main numbers of each method: Tables 52 and 56, and the rate of invalid generations."""

import numpy as np

from ....evaluation.katha.report.page import unit_text
from ....evaluation.recoverability import columns, recoverability
from ....evaluation.recoverability.matching import LATENT, Definitions
from ....evaluation.recoverability.method import Method
from ....evaluation.recoverability.pooling import GapScores, MethodScores
from ....evaluation.recoverability.recoverability import Rate, Sheet, share, values_of
from ....evaluation.report.model import Measure, ScoreRow, ScoreTable
from ....pages.grid import label_text
from ....schemas.text import counted
from ....schemas.values import Score
from .results import NO_RATINGS, StudyResults, unmeasured

TEXT, IMAGE, GAP, LATENT_GAP = (Measure.of(rate) for rate in recoverability.METRICS[:4])
AMBIGUITY = Measure.of(columns.AMBIGUITY)
MORAL = Measure(name="moral_target", label="Moral target from images", better="high")
VISUAL = Measure(name="visual", label="Visual (people)", unit="plain", better="high")
INVALID_RATE = Rate(
    name="invalid_rate", label="Invalid rate", direction="lower", range=(0, 1), needs=(),
    why="no generation was asked for", of=share(0, 1),
)  # fmt: skip
INVALID = Measure.of(INVALID_RATE)
INTERVALS = (
    "In brackets 95 % intervals: the seeds of a story are averaged first, then stories are drawn with "
    "replacement."
)
FILTERED = "Over the questions that are valid for the method, equal weight per dimension."


def main_of(scores: MethodScores) -> GapScores:
    """Return what is reported: filtered, by question."""
    return scores.gaps["question"]["filtered"]


def invalid_rate(method: Method, definitions: Definitions) -> Score:
    """Return the share of a method's generations that cannot be judged, with an interval over stories.

    There is no interval where none or all are invalid: resamples of the same value say nothing.
    """
    made = method.made
    per_story = np.stack([(made.requested & ~made.valid).sum(axis=0), made.requested.sum(axis=0)], axis=-1)
    sheet = Sheet(len(per_story))
    rates = {INVALID_RATE.name: INVALID_RATE}
    sheet.add((), per_story.astype(np.float64), rates, lambda sums: values_of((INVALID_RATE,), sums))
    made_of = sheet.estimates(sheet.resampled(definitions))
    invalid, total = (float(part) for part in per_story.sum(axis=0))
    score = made_of.score(INVALID_RATE.name, numerator=invalid, denominator=total)
    return score.model_copy(update={"low": None, "high": None}) if invalid in (0.0, total) else score


def leaderboard(results: StudyResults) -> ScoreTable:
    """Table 52: what is recovered, the gap, moral targets, ambiguity and failures of each method."""
    scores = results.scores
    methods = {method.name: method for method in results.evaluation.methods}
    rows = []
    for name in results.judged_methods:
        of, main = scores.methods[name], main_of(scores.methods[name])
        values = {
            "text": main.text, "image": main.image, "gap": main.gap, "latent_gap": main.latent_gap,
            "moral_target": of.moral_target["image"], "ambiguity": of.ambiguity,
            "invalid_rate": invalid_rate(methods[name], results.definitions),
            "visual": unmeasured(NO_RATINGS),
        }  # fmt: skip
        rows.append(ScoreRow(label=name, scores=values, note=remark(results, name)))
    return ScoreTable(
        name="leaderboard", title="Leaderboard", heading="Plan + renderer",
        note=f"{FILTERED} {INTERVALS} Moral target: stories whose moral label, one of twelve, is named from "
        "the images; it is not the scored dimension moral. Semantic Compass is not among these rows: it is "
        "reported on the reporting half of the questions only, in its own tables.",
        measures=(TEXT, IMAGE, GAP, LATENT_GAP, MORAL, AMBIGUITY, INVALID, VISUAL), rows=tuple(rows),
    )  # fmt: skip


def remark(results: StudyResults, method: str) -> str | None:
    """Return what a reader must know of a method's row."""
    remarks = []
    plan_renderer = results.cells.get(method)
    if plan_renderer is not None and results.study.renderers[plan_renderer[1]].closed is not None:
        remarks.append("closed system, a reference")
    if plan_renderer is not None and plan_renderer[0] == "oracle":
        remarks.append("oracle plan on gold stories, an upper bound")
    if unit := unit_text(results.about(method)):
        remarks.append(f"unit: {unit}")
    made = results.scores.methods[method].generations
    asked, stories = int(made["stories_requested"]), results.evaluation.items.stories
    if asked < stories:
        remarks.append(f"asked for {asked:,} of {counted(stories, 'story')}")
    if main_of(results.scores.methods[method]).negative:
        remarks.append("negative gap: inspect the judging before concluding anything")
    return "; ".join(remarks) or None


def latent_gaps(results: StudyResults) -> ScoreTable:
    """Table 56: the gaps of the four latent dimensions and their mean."""
    measures = [Measure(name=name, label=label_text(name), unit="points", better="low") for name in LATENT]
    rows = []
    for name in results.judged_methods:
        main = main_of(results.scores.methods[name])
        gaps = {dimension: main.dimensions[dimension]["gap"] for dimension in LATENT}
        rows.append(ScoreRow(label=name, scores={**gaps, "latent_gap": main.latent_gap}))
    return ScoreTable(
        name="latent_gaps", title="Gaps of the latent dimensions", heading="Plan + renderer",
        note=f"What text tells and images do not, per dimension. {FILTERED} {INTERVALS} Action visibility "
        "and temporal order are in the table by dimension.",
        measures=(*measures, LATENT_GAP), rows=tuple(rows),
    )  # fmt: skip
