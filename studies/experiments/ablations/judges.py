"""Judges alone and together (Table 62): each, their majority, and with weights fitted on people's answers.

Question: does an ensemble follow people better than its judges, and does weighting them by people help?
Formula: agreement, Spearman's correlation per storyboard, pairwise agreement and calibration error against
    people as :mod:`fabula.people.against` has them; kappa = Cohen's, of right and wrong, against the majority
    of people. Weights: :func:`fabula.people.against.fitted_weights` on the validation split; a weighted
    majority of right and wrong, a tie is wrong.
Input: replies of the judges; people's answers under image-only evidence.
Output: shares and errors in [0, 1], correlations and kappa in [-1, 1].
Undefined when: nobody has answered; for weights, nobody has answered questions of the validation split.
Source: KathaTrace, section 3.8, J.5 and Table 62, which name calibrated weighting without a formula.
Departures: where weights were fitted, all rows are compared with people outside the split that they were
    fitted on, so that no row has seen what it is measured by. Recoverability and gap of every row stand
    beside, for which no people are needed.
Example: judges right, right, wrong with weights 1, 1, 3: majority right, weighted 2 against 3, so wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....evaluation.archive.archive import read_archive
from ....evaluation.recoverability.matching import Definitions
from ....evaluation.recoverability.score import Judged as Evaluation
from ....evaluation.stats.tables import cohen_kappa
from ....people.against import ENSEMBLE, LEVELS, NAMES, Judged, against, fitted_weights, judged, unit_of
from ....people.recoverability import Resampling, lines_of, majorities
from ....schemas.canonical import Plain
from ....schemas.judgement import HumanRow
from ....schemas.katha import Question
from ....schemas.values import Score
from ..measures.reliability import NOBODY
from ..measures.views import View, undefined, view_scores
from .measuring import Sources

CALIBRATED = "calibrated"
FIT_SPLIT = "validation"
TITLES = {ENSEMBLE: "Majority vote ensemble", CALIBRATED: "Human-calibrated ensemble"}
AGAINST = (*NAMES, "kappa")
NO_WEIGHTS = f"no weights: nobody has answered judged questions of the split {FIT_SPLIT}"


@dataclass(frozen=True)
class JudgeRow(Plain):
    """A judge, or judges together."""

    name: str  # spec of the judge, ``ensemble`` or ``calibrated``
    title: str  # in tables
    # ``text``, ``image`` and ``gap``, mean over methods; ``agreement``, ``spearman``, ``pairwise_agreement``,
    # ``calibration_error``, ``mean_absolute_difference`` and ``kappa``
    scores: Mapping[str, Score]
    weights: Mapping[str, float] | None = None  # judge -> weight, where they have some


def judge_aggregation(sources: Sources) -> tuple[JudgeRow, ...]:
    """Return the rows of Table 62: every judge alone, their majority, and weighted by people."""
    folder = sources.evaluations.get("katha")
    if folder is None:
        return ()
    evaluation = sources.judged(folder)
    rows, questions = sources.answers()
    people = _People(rows, questions, evaluation, sources.definitions)
    if rows:
        people.read(judged(read_archive(folder).judgements, questions, sources.definitions.nonresponse))
    titles = {judge: f"{judge} only" for judge in evaluation.replies.judges} | TITLES
    made = []
    for name, title in titles.items():
        weights = people.weights if name == CALIBRATED else None
        if name == CALIBRATED and weights is None:
            rates = dict.fromkeys(("text", "image", "gap"), undefined(NO_WEIGHTS))
        else:
            weighted = replace(sources.definitions, weights=weights)
            own = sources.judged(folder, weighted) if weights is not None else alone(evaluation, name)
            rates = dict(view_scores(View.whole(own), weighted).together)
            rates.pop("pair_accuracy")
        made.append(JudgeRow(name, title, rates | people.followed(name), weights))
    return tuple(made)


def alone(evaluation: Evaluation, judge: str) -> Evaluation:
    """Return an evaluation in which one judge decides alone; of ``ensemble`` as it is."""
    if judge == ENSEMBLE:
        return evaluation
    methods = tuple(replace(method, outcomes=method.single[judge]) for method in evaluation.methods)
    return replace(evaluation, methods=methods)


def weighted_majority(judges: Mapping[str, Judged], weights: Mapping[str, float]) -> Judged:
    """Return what judges say together with weights; more than half of the weight must say right."""
    together = Judged()
    of_weight = {name: judge for name, judge in judges.items() if weights.get(name, 0.0) > 0}
    for unit in dict.fromkeys(unit for judge in of_weight.values() for unit in judge.right):
        said = [
            (weights[name], judge.right[unit]) for name, judge in of_weight.items() if unit in judge.right
        ]
        total = sum(weight for weight, _ in said)
        together.right[unit] = sum(weight for weight, right in said if right) > total / 2 + 1e-12
        stated = tuple(level for judge in of_weight.values() for level in judge.confidence.get(unit, ()))
        if stated:
            together.confidence[unit] = stated
    return together


class _People:
    """What people said, and how judges follow it."""

    def __init__(
        self,
        rows: Sequence[HumanRow],
        questions: Mapping[str, Question],
        evaluation: Evaluation,
        definitions: Definitions,
    ) -> None:
        self._rows = lines_of(rows, "answer", condition="image")
        self._answers = lines_of(rows, "answer")
        self._questions, self._definitions = questions, definitions
        self._split = {record.story_id: record.split for record in evaluation.release.records}
        self._followed: dict[str, dict[str, Score]] = {}
        self.weights: dict[str, float] | None = None

    def _outside(self, inside: bool) -> Callable[[HumanRow], bool]:
        def chosen(row: HumanRow) -> bool:
            story = self._questions[str(row.item)].story_id
            return (self._split.get(story) == FIT_SPLIT) == inside

        return chosen

    def read(self, judges: Mapping[str, Judged]) -> None:
        """Fit weights, and compare all judges with people."""
        single = {name: judge for name, judge in judges.items() if name != ENSEMBLE}
        fitting = list(filter(self._outside(True), self._answers))
        weights = fitted_weights(fitting, self._questions, single) if fitting else {}
        every = dict(judges)
        every.setdefault(ENSEMBLE, next(iter(single.values())))
        rows = self._rows
        if set(weights) == set(single) and any(weights.values()):
            self.weights = weights
            every[CALIBRATED] = weighted_majority(single, weights)
            rows = list(filter(self._outside(False), rows))
        resampling = Resampling(self._definitions.resamples, self._definitions.seed)
        compared = against(rows, self._questions, every, LEVELS, resampling)
        for name, judge in every.items():
            self._followed[name] = {**compared[name].values, "kappa": self._kappa(rows, judge)}

    def _kappa(self, rows: Sequence[HumanRow], judge: Judged) -> Score:
        table = np.zeros((2, 2))
        for unit, right in majorities(rows, self._questions, unit_of).items():
            if right is not None and unit in judge.right:
                table[int(judge.right[unit]), int(right)] += 1
        value, counts = cohen_kappa(table), {"questions": int(table.sum())}
        if np.isnan(value):
            return undefined("nothing is shared, or one of them always says the same", **counts)
        return Score(value=float(value), status="ok", counts=counts)

    def followed(self, name: str) -> dict[str, Score]:
        """Return how a judge follows people."""
        if name in self._followed:
            return self._followed[name]
        return dict.fromkeys(AGAINST, undefined(NO_WEIGHTS if self._followed else NOBODY))
