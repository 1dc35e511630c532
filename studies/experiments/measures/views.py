"""An evaluation as one setting sees it: which questions count, how they are averaged, what is filtered out.

Question: what are recoverability and gap when a part of the protocol is left out?
Formula: of the questions that count, per dimension and then the mean over the setting's dimensions (Eq. 17,
    18 and 21); with no dimensions, all questions counted alike. ``together`` is the mean over methods.
Input: an evaluation ready to be scored; which of its questions take part.
Output: recoverability in [0, 1], higher is better; gap in [-1, 1], lower is better.
Undefined when: no question counts.
Source: KathaTrace, Eq. 17-21, applied to the settings of Tables 3, 58-60 and 66.
Departures from the source: the paper does not say over which methods the single value of an evaluator stands;
    here every method has its own and their mean stands beside, all resampled together.
Example: two dimensions, text right on 2 of 2 and 1 of 2, images on 1 of 2 and 0 of 2: text 0.75, images 0.25,
    gap 0.5. Counted alike over 4 questions: 3/4, 1/4, 0.5.

Shares over things that belong to stories, with intervals over resampled stories.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....evaluation.recoverability.columns import CONTRASTS, contrast_columns
from ....evaluation.recoverability.matching import DIMENSIONS, Definitions
from ....evaluation.recoverability.method import Method
from ....evaluation.recoverability.pooling import SetName, Sums, sums_of
from ....evaluation.recoverability.recoverability import GAP, IMAGE, TEXT, Rates, Sheet, estimates, values_of
from ....evaluation.recoverability.score import Judged
from ....evaluation.stats.uncertainty import Uncertainty, mean_of_known
from ....schemas.canonical import Plain
from ....schemas.values import Score
from ....validators.resampling import divided, resampled_sums

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
VALUES = ("text", "image", "gap")
PAIRS = CONTRASTS[0]


@dataclass(frozen=True)
class View:
    """An evaluation as a setting sees it."""

    judged: Judged = field(repr=False)  # the evaluation
    kept: Mask = field(repr=False)  # which questions take part, shape (questions,)
    # that are averaged over; none: all questions count alike, and no dimension is named
    dimensions: tuple[str, ...] = DIMENSIONS
    transitions: bool = True  # whether it is known which transition a question is about
    chosen: SetName = "filtered"  # ``filtered`` where the text+image filter is used, ``raw`` where it is not
    contrasts: bool = True  # whether contrastive pairs are looked at
    # the evaluation before its verdicts were held against those on questions about variants, if they were
    unchecked: Judged | None = field(default=None, repr=False)

    @classmethod
    def whole(cls, judged: Judged) -> "View":
        """Return the view of the full protocol."""
        return cls(judged, np.ones(judged.items.questions, dtype=bool))

    @property
    def counted(self) -> Mask:
        """Which questions count: they take part and are of a dimension that is averaged over."""
        if not self.dimensions:
            return self.kept
        places = [DIMENSIONS.index(name) for name in self.dimensions]
        return self.kept & np.isin(self.judged.items.dimension, places)

    def scored(self, method: Method) -> Mask:
        """Return which questions enter a method's rates, shape (seeds, questions)."""
        return method.outcomes.those(self.chosen) & self.counted

    def sums(self, method: Method) -> Sums:
        """Return a method's sums per story, shape (stories, dimensions); (stories, 1) without dimensions."""
        sums = sums_of(method.outcomes, self.scored(method), self.judged.items)
        if self.dimensions:
            return sums
        parts = (sums.text, sums.image, sums.counted)
        return Sums(*(part.sum(axis=-1, keepdims=True) for part in parts))


def story_values(view: View, method: Method, value: str) -> Floats:
    """Return one of :data:`VALUES` for each story on its own, ``nan`` where it has none; shape (stories,)."""
    return Rates.of(view.sums(method)).overall()[VALUES.index(value)]


@dataclass(frozen=True)
class ViewScores(Plain):
    """Recoverability and gap in a setting."""

    methods: Mapping[str, Mapping[str, Score]]  # method -> text, image, gap and pair_accuracy
    together: Mapping[str, Score]  # the mean over methods of the first three; of pair accuracy, too


NAMES = (*VALUES, "pair_accuracy")
MEAN = "mean over methods"


def view_scores(view: View, definitions: Definitions) -> ViewScores:
    """Return recoverability and gap of every method in a setting, resampled together."""
    items, methods = view.judged.items, view.judged.methods
    sheet = Sheet(items.stories)
    for method in methods:
        sheet.add((method.name, "sums"), view.sums(method).columns())
        pairs = contrast_columns(method.choices, method.labels, method.made, items)
        sheet.add((method.name, "pairs"), pairs if view.contrasts else np.zeros_like(pairs))

    def statistic(totals: Floats) -> Floats:
        per_method = np.stack([_values(sheet, totals, method.name) for method in methods], axis=-2)
        mean = mean_of_known(np.moveaxis(per_method, -2, -1))
        return np.concatenate([side_by_side(per_method), mean], axis=-1)

    names = [method.name for method in methods]
    rates = {
        f"{name}.{rate}": kind
        for name in (*names, MEAN)
        for rate, kind in zip(NAMES, (TEXT, IMAGE, GAP, PAIRS), strict=True)
    }
    drawn = estimates(rates, sheet.resampled(definitions), statistic)
    counted = {method.name: _counts(view, method) for method in methods}
    every = list(counted.values())
    counted[MEAN] = {"methods": len(methods), "questions": sum(row["questions"] for row in every)}
    counted[MEAN] |= {name: max(row[name] for row in every) for name in ("stories", "dimensions")}
    scores = {
        name: {rate: drawn.score(f"{name}.{rate}", counts=counted[name]) for rate in NAMES}
        for name in (*names, MEAN)
    }
    return ViewScores({name: scores[name] for name in names}, scores[MEAN])


def side_by_side(values: Floats) -> Floats:
    """Return values of shape (..., methods, rates) as (..., methods x rates)."""
    return values.reshape(*values.shape[:-2], values.shape[-2] * values.shape[-1])


def _values(sheet: Sheet, totals: Floats, method: str) -> Floats:
    rates = Rates.of(Sums.of(sheet.part(totals, (method, "sums"))))
    pairs = values_of((PAIRS,), sheet.part(totals, (method, "pairs")))
    return np.concatenate([np.stack(rates.overall(), axis=-1), pairs], axis=-1)


def _counts(view: View, method: Method) -> dict[str, int]:
    scored = view.scored(method)
    sums = view.sums(method)
    return {
        "questions": int(scored.sum()),
        "stories": int((sums.counted > 0).any(axis=1).sum()),
        "dimensions": int((sums.counted > 0).any(axis=0).sum()) if view.dimensions else 0,
    }


def share_score(
    rows: Iterable[tuple[str, float, float]],
    uncertainty: Uncertainty,
    why_undefined: str,
    counts: Mapping[str, int] | None = None,
) -> Score:
    """Return the sum of one number over the sum of another.

    Returned: a share in [0, 1], with both sums.
    """
    stories: dict[str, list[float]] = {}
    for story, part, whole in rows:
        sums = stories.setdefault(story, [0.0, 0.0])
        sums[0] += part
        sums[1] += whole
    columns = np.array([sums for sums in stories.values() if sums[1] > 0], dtype=np.float64).reshape(-1, 2)
    counts = {"stories": len(columns), **(counts or {})}
    if not len(columns):
        return Score(value=None, status="undefined", reason=why_undefined, counts=counts)
    part, whole = columns.sum(axis=0)
    drawn = resampled_sums(columns, uncertainty.resamples if len(columns) > 1 else 0, uncertainty.seed)
    replicates = divided(drawn[:, 0], drawn[:, 1])
    low, high = uncertainty.ends(divided(part, whole), replicates, len(columns), (0.0, 1.0))
    return Score(
        value=float(part / whole), status="ok", numerator=float(part), denominator=float(whole),
        low=end_of(low), high=end_of(high), counts=counts,
    )  # fmt: skip


def end_of(value: object) -> float | None:
    """Return an end of an interval, None where there is none; ten digits are the same on every machine."""
    number = float(np.asarray(value))
    return None if np.isnan(number) else round(number, 10)


def undefined(reason: str, **counts: int) -> Score:
    return Score(value=None, status="undefined", reason=reason, counts=counts)
